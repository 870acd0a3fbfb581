"""Planning: an order of jobs under rules, crews and a deadline, checked for real.

What is real: before there is a draft call-tool solves the plan and lists the rules
along an order that keeps them (and the deadline, once the sheet is read), so that the
draft is left with naming each job once, as they come; afterwards it lays the draft out
as a schedule and names what is late. Check is a constraint check that names the rule
that is broken; retrieve brings the sheet with hours, crews and deadline. What the
harness does for the executor: it shows two solved plans, begins the third's order,
takes the job names out of what follows, and makes start and end times of them.
"""

from __future__ import annotations

from dataclasses import replace
from typing import ClassVar

import numpy as np

from jerp.bridge.executor import Completion, Message, Request, Sampling
from jerp.domains.base import ControlledDomain, Effect, Feedback, Workspace
from jerp.domains.controlled.criteria import checked, weighted
from jerp.domains.controlled.planning_schedule import (
    late_jobs,
    parse_order,
    rules_broken,
    schedule,
    sorted_rules,
)
from jerp.domains.controlled.planning_tasks import generate
from jerp.harness.actions import Action
from jerp.records import ProcessStep, Task, Verdict

__all__ = ["WEIGHTS", "PlanningDomain"]

INSTRUCTION = "You put jobs in order."
EXAMPLES = """\
Rules: load before drive, drive before park, park before lock
Order: load, drive, park, lock

Rules: knead before rest, knead before bake, bake before slice
Order: knead, rest, bake, slice
"""
PREFILL = "Order:"
SAMPLING = Sampling(temperature=0.7, max_tokens=20, stop=("\n",))
WEIGHTS = {"feasible": 0.75, "rules": 0.15, "form": 0.1}


class PlanningDomain(ControlledDomain):
    """Orders of four jobs; see the module's docstring for what is real.

    What is in hand is frozen once there is a draft, and a tool call and a check word a
    broken rule alike, so that few requests are within reach. Before observe only the
    names of the jobs are known. The deadline shows in the sheet and in the schedule
    alone: a check does not see it. `extra` keeps the lines of the last request.
    """

    name: ClassVar[str] = "planning"
    needs_evidence: ClassVar[bool] = False
    runs_code: ClassVar[bool] = False
    ladder: ClassVar[int] = 1

    def generate(self, seed: int, num_tasks: int) -> tuple[Task, ...]:
        """Tasks in turns of difficulty 0, 1, 2; fewer tasks are a prefix of more."""
        return generate(seed, num_tasks)

    def legal(self, workspace: Workspace) -> np.ndarray:
        """`[A]` bool: nothing is read once there is a draft; rules must be known."""
        legal = super().legal(workspace)
        legal[Action.OBSERVE] &= workspace.draft is None
        legal[Action.CHECK] &= workspace.observed
        asked = workspace.extra == _ask(workspace)
        legal[Action.REVISE] &= workspace.observed and not asked
        return legal

    def request(self, workspace: Workspace, action: int) -> Request | None:
        """What is in hand, as the third plan after two solved ones.

        A revision has the rules sorted and what was found wrong said forwards; the
        rejected order is left out, because a small model then repeats it.
        """
        if action not in (Action.DRAFT, Action.REVISE):
            return None
        lines = (EXAMPLES, *_ask(workspace))
        return Request(
            (
                Message("system", INSTRUCTION),
                Message("user", "\n".join(lines)),
                Message("assistant", PREFILL),
            ),
            SAMPLING,
            workspace.sample_index,
        )

    def verify(self, task: Task, artefact: str | None, workspace: Workspace) -> Verdict:
        """`feasible` pays for an order that keeps all; the others for keeping part.

        `rules`: every job once and no rule broken; `feasible`: besides, no job late.
        `form`: nothing but job names, of an order that keeps the rules.
        """
        order = parse_order(task.payload["jobs"], artefact or "")
        rules = order is not None and not rules_broken(task.payload, order)
        in_time = rules and order is not None and not late_jobs(task.payload, order)
        form = rules and order is not None and _is_plain(artefact or "", len(order))
        held = {"feasible": in_time, "rules": rules, "form": form}
        scores = {name: float(holds) for name, holds in held.items()}
        criteria = weighted(scores, WEIGHTS, public=("rules", "form"))
        return Verdict(criteria, success=bool(in_time))

    def _may_retrieve(self, workspace: Workspace) -> bool:
        fresh = workspace.draft is None and not workspace.passages
        return workspace.observed and fresh

    def _may_call_tool(self, workspace: Workspace) -> bool:
        return workspace.observed and not workspace.tested

    def _observe(self, workspace: Workspace) -> Effect:
        rules = workspace.task.payload["words"]
        findings = workspace.findings + len(rules)
        after = replace(workspace, observed=True, findings=findings)
        step = ProcessStep(
            "observe", arguments=workspace.task.key, new_facts=len(rules)
        )
        return after, step, " ".join(rules)

    def _retrieve(self, workspace: Workspace) -> Effect:
        """The sheet: hours of each job, crews, deadlines."""
        plan = workspace.task.payload
        hours = ", ".join(f"{job} {plan['hours'][job]}" for job in plan["jobs"])
        due = [f" End {job} by hour {hour}." for job, hour in plan["deadlines"].items()]
        sheet = f"Hours: {hours}. Crews: {plan['crews']}.{''.join(due)}"
        facts = len(plan["jobs"]) + 1 + len(due)
        after = replace(
            workspace,
            passages=(sheet,),
            tested=False,
            findings=workspace.findings + facts,
        )
        step = ProcessStep(
            "retrieve", arguments="sheet", new_facts=facts, gathers_evidence=True
        )
        return after, step, sheet

    def _call_tool(self, workspace: Workspace) -> Effect:
        return _sort(workspace) if workspace.draft is None else _simulate(workspace)

    def _write(
        self, workspace: Workspace, action: int, completion: Completion
    ) -> Effect:
        draft = completion.text.strip()
        revises = action == Action.REVISE
        found = "" if workspace.feedback is None else workspace.feedback.text
        step = ProcessStep(
            "write",
            arguments="\n".join((*workspace.passages, found)),
            error=completion.status != "ok",
            revises=revises,
        )
        after = workspace.with_draft(draft, revises=revises)
        return replace(after, extra=_ask(workspace)), step, draft

    def _check(self, workspace: Workspace) -> Effect:
        """The rules alone; names the first that is broken."""
        plan = workspace.task.payload
        order = parse_order(plan["jobs"], workspace.draft or "")
        broken = plan["rules"] if order is None else rules_broken(plan, order)
        missing = tuple(f"{first} before {then}" for first, then in broken)
        found = _finding(workspace) or workspace.feedback or Feedback("", failed=False)
        told = replace(workspace, feedback=found)
        after, step = checked(told, missing, len(plan["rules"]))
        return after, step, found.text or "no rule is broken"


def _sort(w: Workspace) -> Effect:
    """Sorts the rules by what they build on and, with the sheet, by the deadline."""
    step = ProcessStep(
        "call-tool", arguments=f"sort {len(w.passages)}", new_facts=1, tool_valid=True
    )
    after = replace(w, tested=True)
    return after, step, _rules(after)


def _ask(w: Workspace) -> tuple[str, ...]:
    """The lines of a request: the names of the jobs or, once known, the rules."""
    if not w.observed:
        return (f"Jobs: {', '.join(w.task.payload['jobs'])}",)
    found = () if w.feedback is None or not w.feedback.text else (w.feedback.text,)
    return (*found, _rules(w))


def _rules(w: Workspace) -> str:
    """The rules as given; sorted once a tool or a failed draft has had them sorted."""
    plan = w.task.payload
    failed = w.feedback is not None and w.feedback.failed
    if w.draft is None and not w.tested:
        return f"Rules: {', '.join(plan['words'])}"
    due = bool(w.passages) or (failed and w.tested)
    rules = sorted_rules(plan, due=due)
    return f"Rules: {', '.join(f'{first} before {then}' for first, then in rules)}"


def _simulate(w: Workspace) -> Effect:
    """The schedule of the draft; a broken rule or a late job is a failure."""
    plan = w.task.payload
    order = parse_order(plan["jobs"], w.draft or "")
    feedback = _finding(w)
    spans = {} if order is None else schedule(plan, order)
    late = [] if order is None else late_jobs(plan, order)
    if feedback is None and late:
        feedback = Feedback(f"{late[0].capitalize()} as early as can be.", failed=True)
    shown = ", ".join(f"{job} {span.start}-{span.end}" for job, span in spans.items())
    ok = feedback is None
    after = replace(
        w,
        tested=True,
        support=float(ok),
        feedback=feedback or Feedback("", failed=False),
    )
    step = ProcessStep(
        "call-tool",
        arguments=w.draft or "",
        new_facts=len(spans),
        tool_valid=order is not None,
        verify_failed=not ok,
    )
    problem = "all in time" if feedback is None else feedback.text
    return after, step, f"{shown or 'no schedule'}; {problem}"


def _finding(w: Workspace) -> Feedback | None:
    """What a check and a tool call say alike: the form, else the first broken rule."""
    plan = w.task.payload
    order = parse_order(plan["jobs"], w.draft or "")
    if order is None:
        return Feedback(f"Name all {len(plan['jobs'])} jobs once.", failed=True)
    broken = rules_broken(plan, order)
    if not broken:
        return None
    first, then = broken[0]
    return Feedback(f"First {first}, then {then}.", failed=True)


def _is_plain(text: str, count: int) -> bool:
    return len(text.replace(",", " ").split()) == count

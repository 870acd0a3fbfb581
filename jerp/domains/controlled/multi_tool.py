"""Multi-tool: a numeric question that needs a table, a unit converter, a calculator.

What is real: a SELECT in SQLite, exact unit conversion, and a calculator that parses
the executor's arithmetic; check applies the public part of the verifier's rubric. What
the harness does for the executor: it composes the SQL from the task (text of the
executor never reaches SQLite) and converts what it found; it begins the expression with
the first amount, the executor completes it, and the arithmetic that leads it counts,
less the words for what is counted. Retrieve brings a worked question of the same form
over other rows; a failed check or calculation brings a second one.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, ClassVar, NamedTuple

import numpy as np

from jerp.bridge.executor import Completion, Message, Request, Sampling
from jerp.domains.base import ControlledDomain, Effect, Feedback, Workspace
from jerp.domains.controlled import multi_tool_rubric as rubric
from jerp.domains.controlled.criteria import check_scores, weighted
from jerp.domains.controlled.multi_tool_calculator import calculate, decimal
from jerp.domains.controlled.multi_tool_table import query, select
from jerp.domains.controlled.multi_tool_tasks import arithmetic, begin, generate, line
from jerp.harness.actions import Action
from jerp.records import ProcessStep, Task, Verdict

__all__ = ["MultiToolDomain"]

INSTRUCTION = "Write the arithmetic that answers the question."
SAMPLING = Sampling(temperature=0.7, max_tokens=24, stop=("\n", "="))


class Hand(NamedTuple):
    """What the domain keeps in `Workspace.extra`.

    Attributes:
      rows: what the SELECT gave; empty before it ran.
      converted: the unit converter ran.
      noted: the worksheet, a worked question, was retrieved.
      asked: the lines, note and hint of the last executor request.
    """

    rows: tuple[tuple[str | int, ...], ...] = ()
    converted: bool = False
    noted: bool = False
    asked: tuple[tuple[str, ...], bool, str] | None = None


class MultiToolDomain(ControlledDomain):
    """Arithmetic over a table; see the module's docstring for what is real.

    Nothing but observe is legal before the question is read, and no draft before the
    table was. Call-tool runs the calculator on a draft that it has not seen, else the
    next of table and converter. Retrieve shows the worksheet, once.
    """

    name: ClassVar[str] = "multi-tool"
    needs_evidence: ClassVar[bool] = True
    runs_code: ClassVar[bool] = False
    ladder: ClassVar[int] = 1

    def generate(self, seed: int, num_tasks: int) -> tuple[Task, ...]:
        """Tasks in turns of difficulty 0, 1, 2; fewer tasks are a prefix of more."""
        return generate(seed, num_tasks)

    def begin(self, task: Task, sample_index: int) -> Workspace:
        """A fresh workspace: nothing in hand, the question unread."""
        return Workspace(task=task, sample_index=sample_index, extra=Hand())

    def legal(self, workspace: Workspace) -> np.ndarray:
        """`[A]` bool. A draft needs the table's row, a revision something new.

        A revision that would repeat the last request word for word is not offered.
        """
        legal = super().legal(workspace)
        legal[Action.DRAFT] &= bool(_hand(workspace).rows)
        legal[Action.REVISE] &= _hand(workspace).asked != _ask(workspace)
        return legal

    def request(self, workspace: Workspace, action: int) -> Request | None:
        """The question over the lines in hand; a revision puts a worked example first.

        The example is a function of the task alone, so that revisions repeat requests;
        the rejected draft is left out, because a small model then repeats it too.
        """
        if action not in (Action.DRAFT, Action.REVISE):
            return None
        lines, noted, hint = _ask(workspace)
        task = workspace.task
        worked = (_example(task, 0),) * noted + (hint,) * bool(hint)
        turns = []
        for example in worked:
            question, _, answer = example.rpartition("\n")
            turns += [Message("user", question), Message("assistant", answer)]
        return Request(
            (
                Message("system", INSTRUCTION),
                *turns,
                Message("user", "\n".join((*lines, task.prompt))),
                Message("assistant", f"Answer = {begin(task.payload)}"),
            ),
            SAMPLING,
            workspace.sample_index,
        )

    def verify(self, task: Task, artefact: str | None, workspace: Workspace) -> Verdict:
        """Judges an expression and the tools behind it; see `multi_tool_rubric`."""
        hand = _hand(workspace)
        in_order = hand.asked is not None and hand.asked[0] == _rows(workspace)
        score = rubric.scores(
            task,
            artefact,
            hand.rows,
            converted=hand.converted,
            calculated=workspace.tested and in_order,
        )
        criteria = weighted(score, rubric.WEIGHTS, rubric.PUBLIC)
        return Verdict(criteria, success=bool(score["correct"]))

    def _may_retrieve(self, workspace: Workspace) -> bool:
        return workspace.observed and not _hand(workspace).noted

    def _may_call_tool(self, workspace: Workspace) -> bool:
        calculates = workspace.draft is not None and not workspace.tested
        return calculates or (workspace.observed and not _hand(workspace).converted)

    def _retrieve(self, workspace: Workspace) -> Effect:
        after = _with_hand(workspace, noted=True)
        step = ProcessStep(
            "retrieve", arguments="worksheet", new_facts=1, gathers_evidence=True
        )
        return after, step, _example(workspace.task, 0)

    def _call_tool(self, workspace: Workspace) -> Effect:
        """The calculator on a draft it has not seen, else the table, the converter."""
        if workspace.draft is not None and not workspace.tested:
            return _calculate(workspace, workspace.draft)
        payload = workspace.task.payload
        if _hand(workspace).rows:
            after = _with_hand(workspace, converted=True)
            arguments = " to ".join(payload["units"])
        else:
            columns, items = payload["columns"], payload["items"]
            rows = tuple(select(columns, payload["rows"], items))
            after = _with_hand(workspace, rows=rows)
            arguments = f"{query(columns, len(items))}: {', '.join(items)}"
        step = ProcessStep(
            "call-tool",
            arguments=arguments,
            new_facts=len(payload["items"]),
            gathers_evidence=True,
            tool_valid=True,
        )
        return after, step, "\n".join(_rows(after))

    def _write(
        self, workspace: Workspace, action: int, completion: Completion
    ) -> Effect:
        """The harness's beginning and the arithmetic that the completion leads with."""
        revises = action == Action.REVISE
        payload, ask = workspace.task.payload, _ask(workspace)
        draft = arithmetic(payload, begin(payload) + completion.text)
        after = replace(
            workspace.with_draft(draft, revises=revises),
            extra=_hand(workspace)._replace(asked=ask),
        )
        step = ProcessStep(
            "", arguments=f"{ask}", error=completion.status != "ok", revises=revises
        )
        return after, step, draft

    def _check(self, workspace: Workspace) -> Effect:
        task, hand = workspace.task, _hand(workspace)
        score = rubric.public_scores(
            task, workspace.draft, hand.rows, converted=hand.converted
        )
        return check_scores(workspace, score, _example(task, 1))

    def _claims(self, workspace: Workspace) -> dict[str, int]:
        """One claim, the value; its evidence is that all its numbers are in hand."""
        draft = workspace.draft
        if not draft:
            return {}
        return {"claims": 1, "evidence": int(_known_share(workspace, draft) == 1)}


def _calculate(w: Workspace, draft: str) -> Effect:
    """Value or error; an error asks for a revision. Says which numbers are known."""
    result, feedback = calculate(draft), w.feedback
    if result.error:
        feedback = Feedback(_example(w.task, 1), failed=True)
    step = ProcessStep(
        "call-tool",
        arguments=draft,
        error=bool(result.error),
        verify_failed=bool(result.error),
        tool_valid=not result.error,
    )
    known = _known_share(w, draft)
    after = replace(w, tested=True, support=known, feedback=feedback)
    return after, step, result.error or _shown(result.value)


def _known_share(w: Workspace, draft: str) -> float:
    hand = _hand(w)
    return rubric.known_share(w.task, draft, hand.rows, converted=hand.converted)


def _hand(w: Workspace) -> Hand:
    if not isinstance(w.extra, Hand):
        raise TypeError(f"workspace.extra: expected a multi-tool Hand, got {w.extra!r}")
    return w.extra


def _with_hand(w: Workspace, **changes: Any) -> Workspace:
    """With more in hand: note first, then the rows in the unit that they have now."""
    after = replace(w, extra=_hand(w)._replace(**changes))
    hand = _hand(after)
    found = len(hand.rows) * (1 + hand.converted) + hand.noted
    return replace(after, passages=_rows(after), findings=found)


def _rows(w: Workspace) -> tuple[str, ...]:
    hand = _hand(w)
    payload = w.task.payload
    return tuple(line(payload, row, converted=hand.converted) for row in hand.rows)


def _ask(w: Workspace) -> tuple[tuple[str, ...], bool, str]:
    return w.passages, _hand(w).noted, "" if w.feedback is None else w.feedback.text


def _example(task: Task, number: int) -> str:
    """A worked question of the task's form, its expression on the last line."""
    example = task.payload["examples"][number]
    lines = (*example["lines"], example["question"])
    return "\n".join((*lines, f"Answer = {example['expression']}"))


def _shown(value: Any) -> str:
    try:
        return decimal(value)
    except ValueError:
        return str(value)

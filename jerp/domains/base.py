"""What the controlled domains share: the workspace, the masks, the features, the trace.

A domain subclasses `ControlledDomain` and has a method for each action; `_write` is
that of a draft and a revision. The masks keep the requests that an episode can reach
few: one draft, at most `max_revisions` revisions, a fixed retrieval ladder, and a
revision only after feedback that found a failure.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Hashable, Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar, final

import numpy as np

from jerp.bridge.executor import Completion, Request
from jerp.harness.actions import ACTIONS, NUM_ACTIONS, Action
from jerp.harness.state import NO_ACTION, encode_features
from jerp.records import ProcessStep, ProcessTrace, Task, Verdict

__all__ = ["ControlledDomain", "Effect", "Feedback", "Workspace"]


@dataclass(frozen=True)
class Feedback:
    """What a test run, a tool or a check said of the current draft, in canonical form.

    Attributes:
      text: goes into the prompt of a revision; equal findings give equal texts.
      failed: something is wrong, so a revision makes sense.
    """

    text: str
    failed: bool


@dataclass(frozen=True)
class Workspace:
    """One episode in progress. Immutable; `ControlledDomain.advance` makes the next.

    Attributes:
      support: share of the draft last found supported by tests or evidence, or -1.
      checked, tested: the current draft was checked, its tool was run.
      extra: what one domain keeps besides; hashable.
    """

    task: Task
    sample_index: int
    step: int = 0
    last_action: int = NO_ACTION
    observed: bool = False
    passages: tuple[str, ...] = ()
    draft: str | None = None
    revisions: int = 0
    feedback: Feedback | None = None
    checked: bool = False
    tested: bool = False
    coverage: float = 0.0
    missing_share: float = 1.0
    support: float = -1.0
    findings: int = 0
    errors: int = 0
    cost: float = 0.0
    extra: Hashable = None
    trace: tuple[ProcessStep, ...] = ()
    transcript: tuple[dict[str, Any], ...] = ()
    terminated: bool = False
    truncated: bool = False
    verdict: Verdict | None = None

    def with_draft(self, draft: str, *, revises: bool) -> Workspace:
        """With a new draft, of which nothing is known yet."""
        return replace(
            self,
            draft=draft,
            revisions=self.revisions + revises,
            feedback=None,
            checked=False,
            tested=False,
            coverage=0.0,
            missing_share=1.0,
            support=-1.0,
        )


Effect = tuple[Workspace, ProcessStep, str]
"""Of an action: the workspace after it, its trace entry, its observation as text."""


class ControlledDomain(ABC):
    """Base of the controlled domains; see `jerp.bridge.session.HarnessDomain`.

    Costs are deterministic (never seconds), so that a replayed episode has the same
    features: an executor call costs `call_cost`, any other step `step_cost`.
    """

    name: ClassVar[str]
    needs_evidence: ClassVar[bool]
    runs_code: ClassVar[bool]
    ladder: ClassVar[int]
    max_revisions: ClassVar[int] = 2
    max_steps: ClassVar[int] = 10
    call_cost: ClassVar[float] = 1.0
    step_cost: ClassVar[float] = 0.1
    cost_budget: ClassVar[float] = 4.0

    @abstractmethod
    def generate(self, seed: int, num_tasks: int) -> tuple[Task, ...]:
        """`num_tasks` tasks in three difficulties; a function of `seed` alone."""

    @abstractmethod
    def request(self, workspace: Workspace, action: int) -> Request | None:
        """The executor request of a draft or revision; None for other actions."""

    @abstractmethod
    def verify(self, task: Task, artefact: str | None, workspace: Workspace) -> Verdict:
        """Judges what was submitted; several criteria, correctness at least half."""

    @abstractmethod
    def _retrieve(self, workspace: Workspace) -> Effect:
        """Brings the next passage of the ladder."""

    @abstractmethod
    def _call_tool(self, workspace: Workspace) -> Effect:
        """Runs the domain's tool."""

    @abstractmethod
    def _write(
        self, workspace: Workspace, action: int, completion: Completion
    ) -> Effect:
        """Makes a draft or revision of what the executor wrote, whatever its status."""

    @abstractmethod
    def _check(self, workspace: Workspace) -> Effect:
        """Applies the public part of the rubric to the draft."""

    def preflight(self) -> Mapping[str, str]:
        """What a report should say of the tools that episodes will use.

        Call it before live episodes: it raises what would make them all fail.
        """
        return {}

    def close(self) -> None:  # noqa: B027
        """Ends what episodes have left open; a second time does nothing."""

    def begin(self, task: Task, sample_index: int) -> Workspace:
        """A fresh workspace."""
        return Workspace(task=task, sample_index=sample_index)

    def legal(self, workspace: Workspace) -> np.ndarray:
        """`[A]` bool: the actions that would do something."""
        legal = np.zeros(NUM_ACTIONS, bool)
        if workspace.terminated or workspace.truncated:
            return legal
        has_draft = workspace.draft is not None
        failed = workspace.feedback is not None and workspace.feedback.failed
        legal[Action.OBSERVE] = not workspace.observed
        legal[Action.RETRIEVE] = self._may_retrieve(workspace)
        legal[Action.CALL_TOOL] = self._may_call_tool(workspace)
        legal[Action.DRAFT] = not has_draft
        legal[Action.CHECK] = has_draft and not workspace.checked
        legal[Action.REVISE] = (
            has_draft and failed and workspace.revisions < self.max_revisions
        )
        legal[Action.SUBMIT] = has_draft
        return legal

    def features(self, workspace: Workspace) -> np.ndarray:
        """`[18]` float32, see `jerp.harness.state`."""
        status = (
            workspace.step / self.max_steps,
            float(workspace.draft is not None),
            min(len(workspace.draft or "") / 500, 1.0),
            workspace.coverage,
            workspace.missing_share,
            workspace.errors / self.max_steps,
            min(workspace.cost / self.cost_budget, 1.0),
            (self.max_steps - workspace.step) / self.max_steps,
            workspace.support,
            min(workspace.findings / 10, 1.0),
        )
        return encode_features(
            np.asarray(status, np.float32), np.int32(workspace.last_action), xp=np
        )

    def advance(
        self, workspace: Workspace, action: int, completion: Completion | None
    ) -> Workspace:
        """The workspace after a legal `action`; at its end the verifier judges."""
        after, step, observation = self._act(workspace, action, completion)
        cost = self.call_cost if completion is not None else self.step_cost
        step = replace(step, action=ACTIONS[action], cost=cost)
        terminated = self._ends(after, action)
        number = workspace.step + 1
        entry: dict[str, Any] = {"action": ACTIONS[action], "observation": observation}
        if completion is not None:
            entry |= {"completion": completion.text, "status": completion.status}
        verdict = None
        if terminated:
            verdict = self.verify(workspace.task, after.draft, after)
        return replace(
            after,
            step=number,
            last_action=int(action),
            cost=workspace.cost + cost,
            errors=workspace.errors + int(step.error),
            trace=(*workspace.trace, step),
            transcript=(*workspace.transcript, entry),
            terminated=terminated,
            truncated=not terminated and number >= self.max_steps,
            verdict=verdict,
        )

    def anchor(self, workspace: Workspace) -> Hashable:
        """All that later requests, legality and score depend on, but no counters."""
        w = workspace
        feedback = w.feedback and (w.feedback.text, w.feedback.failed)
        return (
            w.observed,
            w.passages,
            w.draft,
            w.revisions,
            feedback,
            w.checked,
            w.tested,
            w.extra,
        )

    def timeless(self, workspace: Workspace) -> Workspace:
        """The same state in a fresh episode: no counters, no history."""
        return replace(
            workspace,
            step=0,
            errors=0,
            cost=0.0,
            trace=(),
            transcript=(),
            truncated=False,
        )

    def process_trace(self, workspace: Workspace) -> ProcessTrace:
        """The episode as `jerp.harness.maturity` reads it."""
        verdict = workspace.verdict
        missing = 1.0
        if verdict is not None and verdict.criteria:
            missing = np.mean([c.score < 1 for c in verdict.criteria])
        return ProcessTrace(
            steps=workspace.trace,
            max_steps=self.max_steps,
            cost_budget=self.cost_budget,
            tools=ACTIONS,
            score=0.0 if verdict is None else verdict.score,
            missing_share=float(missing),
            runs_code=self.runs_code,
            needs_evidence=self.needs_evidence,
            chose_submit=workspace.terminated,
        )

    @final
    def _act(
        self, workspace: Workspace, action: int, completion: Completion | None
    ) -> Effect:
        act = {
            Action.OBSERVE: self._observe,
            Action.RETRIEVE: self._retrieve,
            Action.CALL_TOOL: self._call_tool,
            Action.CHECK: self._check,
            Action.SUBMIT: self._submit,
        }
        if completion is not None:
            after, step, text = self._write(workspace, action, completion)
        else:
            after, step, text = act[Action(action)](workspace)
        return after, replace(step, **self._claims(after)), text

    def _observe(self, workspace: Workspace) -> Effect:
        step = ProcessStep("observe", arguments=workspace.task.key, new_facts=1)
        return replace(workspace, observed=True), step, workspace.task.prompt

    def _submit(self, workspace: Workspace) -> Effect:
        draft = workspace.draft or ""
        return workspace, ProcessStep("submit", arguments=draft), draft

    def _ends(self, after: Workspace, action: int) -> bool:
        """Whether the episode is over, other than by its budget."""
        return action == Action.SUBMIT

    def _claims(self, workspace: Workspace) -> dict[str, int]:
        """`claims` and `evidence` of the draft, where a domain has such."""
        return {}

    def _may_retrieve(self, workspace: Workspace) -> bool:
        return len(workspace.passages) < self.ladder

    def _may_call_tool(self, workspace: Workspace) -> bool:
        return workspace.draft is not None and not workspace.tested

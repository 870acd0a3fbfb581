"""A place where a frozen language model follows skills on the tasks of a domain.

Any executor of `jerp.bridge` with any domain that it plays; behind a `StoredExecutor`
no answer is ever asked for twice. An episode takes, step by step, the first action of a
fixed order that is legal: what differs between two episodes is the skill and luck.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Sequence
from functools import cached_property
from typing import Any

import numpy as np

from jerp.bridge.executor import Executor
from jerp.bridge.session import HarnessDomain, Session
from jerp.errors import ConfigError
from jerp.harness.actions import ACTIONS, Action
from jerp.records import Task
from jerp.runs.skills.draft_prompt import DraftPrompts, Shown
from jerp.runs.skills.skilled_domain import SkilledDomain, skilled_task
from jerp.runs.skills.work import Evidence, ReadDraft, RefinementState
from jerp.storage.skill_runs import SkillRun, Trial
from jerp.typing import USAGE_KINDS, Outcome

__all__ = ["DRAFT_ONCE", "DRAFT_TEST_REVISE", "DomainWorkplace", "told_run"]

DRAFT_ONCE = (Action.OBSERVE, Action.DRAFT, Action.CALL_TOOL, Action.SUBMIT)
"""One call of the executor; the tool looks at the draft, and evidence has what it saw,
but nothing is made better by it."""

DRAFT_TEST_REVISE = (*DRAFT_ONCE[:3], Action.REVISE, Action.SUBMIT)
"""Drafts, tests, and revises as long as something fails and the domain allows it."""

CALLS, TOKENS_IN, TOKENS_OUT = (
    USAGE_KINDS.index(kind) for kind in ("executor_calls", "tokens_in", "tokens_out")
)

Secrets = Iterable[str | int | float]


def told_run(content: Any) -> str:
    r"""A run in words: what was done, and what came of it, step by step.

    Args:
      content: of `SkillRun.evidence`, as `DomainWorkplace` writes it: a transcript.

    Example:
      >>> told_run([{"action": "draft", "observation": "x = 1"}])
      '> draft\nx = 1'
    """
    lines = []
    for step in content:
        lines += [f"> {step['action']}", step["observation"], step.get("error", "")]
    return "\n".join(line for line in lines if line)


class DomainWorkplace:
    """See `jerp.runs.skills.work.Workplace`.

    Args:
      domain: whose tasks these are, and whose verifier judges.
      executor: frozen; it reads the skill in its system prompt.
      tasks: any of the domain.
      prompts: for the optimizer, and how its drafts are read.
      context: what the optimizer is told of a task beside its runs.
      secrets: of a task, what no skill may hold, see `jerp.skill_faults`.
      told: a run's transcript in words, for the optimizer.
      order: actions; of those that are legal the first one is taken.
      reference: executes the reference solution of a task, where there is one.
      workers: threads that verify.

    Raises:
      ConfigError: no tasks, two of one key, or an order that never submits.
    """

    def __init__(
        self,
        domain: HarnessDomain,
        executor: Executor,
        tasks: Sequence[Task],
        prompts: DraftPrompts,
        *,
        context: Callable[[Task], str] = lambda task: task.prompt,
        secrets: Callable[[Task], Secrets] = lambda _: (),
        told: Callable[[Any], str] = told_run,
        order: Sequence[int] = DRAFT_ONCE,
        reference: Callable[[Task], Outcome] | None = None,
        workers: int = 2,
    ):
        self._tasks = {task.key: task for task in tasks}
        if len(self._tasks) != len(tasks) or not tasks:
            raise ConfigError(
                f"tasks: expected some, each key once, got {len(tasks)} of which "
                f"{len(self._tasks)} differ"
            )
        if Action.SUBMIT not in order:
            raise ConfigError(
                f"order: expected actions with 'submit' among them, got "
                f"{[ACTIONS[action] for action in order]}"
            )
        # A protocol's class variables are an instance's there.
        self._domain: Any = SkilledDomain(domain)
        self._executor = executor
        self._prompts, self._context, self._secrets = prompts, context, secrets
        self._order, self._workers = tuple(order), workers
        self._told, self._reference = told, reference

    @property
    def tasks(self) -> tuple[str, ...]:
        """Keys."""
        return tuple(self._tasks)

    @cached_property
    def fingerprint(self) -> str:
        """Tells it from one with another executor, other tasks or other prompts."""
        shown = {
            key: (task.prompt, task.payload, self._context(task))
            for key, task in self._tasks.items()
        }
        order = [ACTIONS[action] for action in self._order]
        told = f"{self._told.__module__}.{self._told.__qualname__}"
        what = (self._executor.fingerprint, shown, order, told, self._prompts.settings)
        text = json.dumps(what, sort_keys=True)
        return f"{self._domain.name} {hashlib.sha256(text.encode()).hexdigest()[:16]}"

    def prompts(self, states: Sequence[RefinementState]) -> np.ndarray:
        """`[S, P]` int32, see `DraftPrompts`."""
        return np.stack([self._prompts.prompt(self._shown(s)) for s in states])

    def read(self, task: str, tokens: np.ndarray, mask: np.ndarray) -> ReadDraft:
        """See `DraftPrompts.read`."""
        secrets = self._secrets(self._tasks[task])
        return self._prompts.read(tokens, mask, secrets=secrets)

    def execute(self, trials: Sequence[Trial]) -> list[SkillRun]:
        """A run a trial, all of them together.

        Raises:
          ExecutorError: the executor failed as a whole.
        """
        if not trials:
            return []
        tasks = [skilled_task(self._tasks[t.task], t.skill) for t in trials]
        with Session(self._domain, self._executor, workers=self._workers) as session:
            handle, _, legal = session.open(tasks, [t.sample for t in trials])
            usage = np.zeros((len(trials), len(USAGE_KINDS)))
            outcome = np.full(len(trials), Outcome.TRUNCATED)
            while legal.any():
                step = session.step(handle, [self._action(row) for row in legal])
                usage, outcome, legal = usage + step.usage, step.outcome, step.legal
            return [
                SkillRun(
                    Outcome(int(outcome[row])),
                    [*session.workspace(int(handle[row])).transcript],
                    executor_calls=int(usage[row, CALLS]),
                    tokens=int(usage[row, TOKENS_IN] + usage[row, TOKENS_OUT]),
                )
                for row in range(len(trials))
            ]

    def reference(self, task: str) -> Outcome:
        """Of the reference solution; one that there is not was not judged."""
        if self._reference is None:
            return Outcome.INFRASTRUCTURE
        return self._reference(self._tasks[task])

    def _action(self, legal: np.ndarray) -> int:
        """The first of the order; 0 for an episode that has ended."""
        if not legal.any():
            return 0
        for action in self._order:
            if legal[action]:
                return action
        raise ConfigError(
            f"order: expected an action that is legal, of "
            f"{[ACTIONS[a] for a in np.flatnonzero(legal)]}, got "
            f"{[ACTIONS[a] for a in self._order]}"
        )

    def _shown(self, state: RefinementState) -> Shown:
        task = self._tasks[state.task]

        def told(run: Evidence | None) -> str | None:
            return None if run is None else self._told(run.content)

        runs = (told(state.success), told(state.failure))
        return Shown(self._context(task), state.skill, *runs)

"""What the loop of skills knows of a place where skills are executed: a `Workplace`.

The loop knows neither worlds nor prompts nor parsers. It hands states to a workplace,
which makes prompts of them, reads drafts, and executes skills. A state holds its
evidence as the executor left it, verbatim: nothing here looks into it.
"""

from __future__ import annotations

import contextlib
import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from jerp.errors import ExecutorError, InputError
from jerp.runs.policy.description import described
from jerp.skills.document import Skill
from jerp.storage.skill_runs import SkillRun, SkillRunFile, Trial
from jerp.typing import Outcome

__all__ = [
    "Evidence",
    "ReadDraft",
    "RefinementState",
    "SkillRun",
    "Trial",
    "Workplace",
    "check_verifier",
    "executed",
    "read_draft",
    "workplace_name",
]


@dataclass(frozen=True)
class Evidence:
    """One run of a skill, as the executor left it.

    Attributes:
      run: its name within the task, see `Trial.name`.
      content: `SkillRun.evidence`.
    """

    run: str
    content: Any


@dataclass(frozen=True)
class RefinementState:
    """What a skill is to be drafted from.

    Attributes:
      task: its key.
      skill: that is to be revised, as `render_skill` writes it; None at a cold start,
        which has no evidence either.
      success: a run of the skill that succeeded, or None.
      failure: one that failed, or None.
      parent: id of the skill's node in the tree; None at a cold start.

    Reference: Peng et al., "WER", arXiv:2608.17587, eq. 1.
    """

    task: str
    skill: str | None = None
    success: Evidence | None = None
    failure: Evidence | None = None
    parent: int | None = None

    @property
    def evidence(self) -> tuple[str, ...]:
        """Names of the runs that are shown."""
        return tuple(e.run for e in (self.success, self.failure) if e is not None)


@dataclass(frozen=True)
class ReadDraft:
    """What a draft says.

    Attributes:
      skill: None if and only if there is a fault.
      reasoning: as it was written.
      reasoning_tokens: >= 0, its length.
      faults: names of why there is no skill.

    Raises:
      InputError: a skill and faults, neither, or a skill that is no `Skill`.
    """

    skill: Skill | None
    reasoning: str = ""
    reasoning_tokens: int = 0
    faults: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if self.skill is not None and not isinstance(self.skill, Skill):
            raise InputError(
                f"skill: expected a Skill or None, got {self.skill!r:.80}; see "
                "jerp.parse_skill"
            )
        if (self.skill is None) != bool(self.faults):
            raise InputError(
                "faults: expected why there is no skill, and none where there is one, "
                f"got {self.faults!r:.80}"
            )


class Workplace(Protocol):
    """Where skills are drafted for and executed; equal ones do the same.

    What it is is told from others by a text `fingerprint` if it has one, otherwise by
    its public attributes (`jerp.runs.policy.description.described`).
    """

    def prompts(self, states: Sequence[RefinementState]) -> np.ndarray:
        """`[S, P]` int32 tokens, padded with 0 on the right, for the optimizer."""
        ...

    def read(self, task: str, tokens: np.ndarray, mask: np.ndarray) -> ReadDraft:
        """What a draft `[L]` for a task says; whatever was written never raises."""
        ...

    def execute(self, trials: Sequence[Trial]) -> list[SkillRun]:
        """A run a trial, in their order, each the same whatever is beside it.

        A failure of the infrastructure is a run with that outcome, no exception.
        """
        ...


def executed(
    workplace: Workplace,
    runs: SkillRunFile,
    trials: Sequence[Trial],
    *,
    at_once: int,
) -> list[SkillRun]:
    """The runs of trials: those that are in the file, and the rest executed.

    Args:
      workplace: executes.
      runs: what was executed, here and in earlier sessions.
      trials: any; equal ones are one run.
      at_once: trials that are executed before they are written down. What is killed in
        between is executed again: 1 for executors that are dear and remember nothing.

    Raises:
      ExecutorError: the workplace returned no list of runs, or of another number.
      StorageError: the disk refuses.
      Exception: what the workplace raises, with a note.
    """
    missing = [trial for trial in dict.fromkeys(trials) if trial not in runs]
    for first in range(0, len(missing), at_once):
        part = missing[first : first + at_once]
        runs.append(part, _runs(workplace, part))
    # As the file has them, so that a run that goes on sees what this one saw.
    return [runs[trial] for trial in trials]


def read_draft(
    workplace: Workplace, task: str, tokens: np.ndarray, mask: np.ndarray
) -> ReadDraft:
    """What a workplace reads of a draft.

    Args:
      workplace: reads.
      task: key.
      tokens: `[L]` int32 of the draft.
      mask: `[L]` bool, True for real.

    Raises:
      ExecutorError: it returned no `ReadDraft`.
      Exception: what the workplace raises, with a note.
    """
    with _noted("read", task):
        found: Any = workplace.read(task, tokens, mask)
    if not isinstance(found, ReadDraft):
        raise ExecutorError(
            f"workplace.read: expected a ReadDraft for task {task!r:.80}, got "
            f"{found!r:.80}; a draft that says nothing is one with faults"
        )
    return found


def _runs(workplace: Workplace, trials: Sequence[Trial]) -> list[SkillRun]:
    """What a workplace executes, if these are runs."""
    tasks = ", ".join(dict.fromkeys(trial.task for trial in trials))
    with _noted("execute", tasks):
        found: Any = workplace.execute(trials)
    if not isinstance(found, list):
        raise ExecutorError(
            f"workplace.execute: expected a list of runs for {tasks:.80}, got "
            f"{type(found).__name__}"
        )
    if len(found) != len(trials):
        raise ExecutorError(
            f"workplace.execute: expected a run for each of {len(trials)} trials, "
            f"got {len(found)}; nobody's answer is a run of INFRASTRUCTURE"
        )
    for trial, run in zip(trials, found, strict=True):
        if not isinstance(run, SkillRun):
            raise ExecutorError(
                f"workplace.execute: expected a SkillRun for task {trial.task!r:.80}, "
                f"got {run!r:.80}"
            )
    return found


@contextlib.contextmanager
def _noted(method: str, tasks: str) -> Iterator[None]:
    """Says of what a workplace raises where that was."""
    try:
        yield
    except Exception as error:
        error.add_note(f"in workplace.{method} for {tasks:.200}")
        raise


def check_verifier(workplace: Any, tasks: Sequence[str]) -> None:
    """Refuses tasks whose verifier judges one and the same solution in two ways.

    Args:
      workplace: if it has a `reference`, a function of a task that executes the
        reference solution and returns the `Outcome`; otherwise nothing is checked.
      tasks: keys.

    Raises:
      InputError: it names those tasks. A verdict of `INFRASTRUCTURE` is none.
    """
    reference = getattr(workplace, "reference", None)
    if reference is None:
        return
    differing = []
    for task in tasks:
        first, second = (Outcome(reference(task)) for _ in range(2))
        if first != second and Outcome.INFRASTRUCTURE not in (first, second):
            differing.append(f"{task} ({first.name}, {second.name})")
    if differing:
        more = f" and {len(differing) - 5} more" if len(differing) > 5 else ""
        raise InputError(
            "tasks: expected verifiers that judge the reference solution alike each "
            f"time, got two verdicts for {', '.join(differing[:5])}{more}; mend these "
            "tasks or leave them out"
        )


def workplace_name(workplace: Workplace) -> str:
    """Tells a workplace from others in a short text."""
    fingerprint = getattr(workplace, "fingerprint", None)
    if isinstance(fingerprint, str):
        return fingerprint
    found = sorted(described("workplace", workplace).items())
    digest = hashlib.sha256(repr(found).encode()).hexdigest()
    return f"{type(workplace).__name__} {digest[:12]}"

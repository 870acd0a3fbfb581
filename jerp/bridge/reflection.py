"""What reflection is: a group of trials in, operations on a rule pool out.

A reflector reads what one task's episodes did, the rules that were there, and earlier
successes of the same pool, and answers with operations. It never changes a pool:
`jerp.rules.edits.apply_edits` does, and counts what it drops. What a reflector could
not use is counted by reason, never guessed at. Episodes that an executor's failure
ended are nobody's answer, and no reflector reads them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np

from jerp.errors import InputError
from jerp.rules.edits import EditOp
from jerp.typing import Outcome

__all__ = [
    "INFRASTRUCTURE",
    "MAX_OPERATIONS",
    "Occasion",
    "Operation",
    "Reflection",
    "Reflector",
    "ShownRule",
    "Trial",
    "judged",
    "nothing_judged",
]

MAX_OPERATIONS = 4
"""Of one reflection, as in ExpeL's code."""

INFRASTRUCTURE = "infrastructure"
"""The reason, and the status, where nobody answered: no operation, and no fault."""


def _no_steps() -> np.ndarray:
    return np.zeros(0, np.int32)


@dataclass(frozen=True, eq=False)
class Trial:
    """One episode, as a reflector reads it.

    Attributes:
      success: whether it succeeded.
      score: the graded result, in [0, 1].
      outcome: a `jerp.typing.Outcome`.
      text: a transcript; "" where there is none.
      anchor: `[t]` int32, equal iff the state is, between trials of one task's group.
      situation, move: `[t]` int32, numbers in the tuples of a `RuleLanguage`; 0 where
        it has no words. The three are empty where only the text is known.
      task_digest: of the task; another instance has another one.
      episode: names the episode, for a ledger.
    """

    success: bool
    score: float
    outcome: int
    text: str = ""
    anchor: np.ndarray = field(default_factory=_no_steps)
    situation: np.ndarray = field(default_factory=_no_steps)
    move: np.ndarray = field(default_factory=_no_steps)
    task_digest: str = ""
    episode: str = ""

    def __post_init__(self):
        shapes = [np.shape(x) for x in (self.anchor, self.situation, self.move)]
        if len(set(shapes)) > 1 or len(shapes[0]) != 1:
            raise InputError(
                "anchor, situation, move: expected one number a step in each, shape "
                f"[t], got shapes {shapes}"
            )


@dataclass(frozen=True)
class ShownRule:
    """A rule of the pool before reflection; `rule_id` is its number in the book."""

    rule_id: int
    text: str
    score: float


@dataclass(frozen=True, eq=False)
class Occasion:
    """What is reflected on at once: the episodes of one task.

    Attributes:
      task_key: whose pool it is.
      task: what is asked, in words.
      rules: active rules of that pool, best first.
      trials: the current group.
      references: successes of *earlier* groups of the same pool, of this or another
        instance.
      full: the pool has no room, so that rules should rather go than come.
    """

    task_key: str
    task: str
    rules: tuple[ShownRule, ...]
    trials: tuple[Trial, ...]
    references: tuple[Trial, ...] = ()
    full: bool = False


@dataclass(frozen=True)
class Operation:
    """One edit: `targets` are rule ids, `text` of a new rule, or "" without one."""

    op: EditOp
    targets: tuple[int, ...] = ()
    text: str = ""


@dataclass(frozen=True)
class Reflection:
    """What came of one occasion.

    Attributes:
      operations: at most `MAX_OPERATIONS`, at most one a rule.
      rejected: how often something was not used, by reason.
      status: "ok", "skipped" where there was nothing to reflect on, "infrastructure"
        where all episodes failed on it, or what befell the call that was made.
    """

    operations: tuple[Operation, ...] = ()
    rejected: Counter[str] = field(default_factory=Counter)
    status: str = "ok"


class Reflector(Protocol):
    """Revises rules from experience.

    Attributes:
      name: says in tables and ledgers who wrote a rule.
    """

    @property
    def name(self) -> str:
        """Such as "contrast"."""
        ...

    def reflect(self, occasions: Sequence[Occasion]) -> list[Reflection]:
        """Of each occasion, same length and order; at most one call of an executor."""
        ...


def judged(trials: Sequence[Trial]) -> tuple[Trial, ...]:
    """Those that did not fail on infrastructure."""
    return tuple(t for t in trials if t.outcome != Outcome.INFRASTRUCTURE)


def nothing_judged(occasion: Occasion) -> Reflection:
    """Of an occasion without a trial that was judged; failed ones are counted."""
    if not occasion.trials:
        return Reflection(status="skipped")
    return Reflection((), Counter({INFRASTRUCTURE: 1}), INFRASTRUCTURE)

"""Revisions held against their parents on fresh runs, until something is decided.

A pair is a run of the revision and one of its parent, with equal luck, drawn after both
were written and shown to no optimizer. A skill here is for one task, so that pairs are
independent given the two skills, and each counts. Every test has a level of its own;
together they are wrong with a chance of at most alpha, however many there are.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from jerp.errors import ConfigError
from jerp.estimators.sequential import (
    SPENDINGS,
    SequentialVerdict,
    Spending,
    sequential_verdict,
    spent_alpha,
)
from jerp.estimators.sequential_power import MOST_PAIRS, pairs_needed
from jerp.ops.checks import check_choice, check_whole
from jerp.runs.skills.settings import check_number
from jerp.runs.skills.work import SkillRun, Trial, Workplace, executed
from jerp.storage.skill_runs import SkillRunFile
from jerp.typing import Outcome

__all__ = ["Acceptance", "Challenge", "PairedTest", "decide"]


@dataclass(frozen=True)
class Acceptance:
    """What it takes for a revision to replace its parent.

    Attributes:
      alpha: chance that a tree without any better revision has one accepted.
      spending: how alpha is shared out, see `jerp.spent_alpha`.
      p_gain: chance that a revision worth finding wins where its parent loses.
      p_loss: that it loses where the parent wins.
      power: with which such a revision is to be found; it says how many pairs a test
        may take, see `jerp.pairs_needed`.
      max_pairs: no test takes more; one that would need more is not begun.

    Raises:
      ConfigError: a number out of range.
    """

    alpha: float = 0.05
    spending: Spending = "harmonic_squared"
    p_gain: float = 0.6
    p_loss: float = 0.1
    power: float = 0.8
    max_pairs: int = 200

    def __post_init__(self) -> None:
        check_choice("spending", self.spending, SPENDINGS)
        check_whole("max_pairs", self.max_pairs, least=1)
        if self.max_pairs > MOST_PAIRS:
            raise ConfigError(
                f"max_pairs: expected at most {MOST_PAIRS}, got {self.max_pairs}"
            )
        for name in ("alpha", "power", "p_gain", "p_loss"):
            check_number(name, getattr(self, name))
        for name in ("alpha", "power"):
            if not 0 < (value := getattr(self, name)) < 1:
                raise ConfigError(f"{name}: expected in (0, 1), got {value}")
        if not 0 <= self.p_loss < self.p_gain <= 1 - self.p_loss:
            raise ConfigError(
                "p_gain, p_loss: expected more gains than losses, together at most 1, "
                f"got {self.p_gain} and {self.p_loss}"
            )

    def cap(self, number: int) -> int | None:
        """Pairs that test `number` of the tree may take; None if it is not begun."""
        level = float(spent_alpha(number, alpha=self.alpha, spending=self.spending))
        plan = pairs_needed(
            *(self.p_gain, self.p_loss),
            alpha=level,
            power=self.power,
            max_pairs=self.max_pairs,
        )
        return plan.pairs


class Challenge(NamedTuple):
    """A revision that would replace its parent.

    Attributes:
      task: key.
      child: the revision as Markdown.
      parent: the skill that it revises.
    """

    task: str
    child: str
    parent: str


@dataclass
class PairedTest:
    """A test, as far as it came.

    Attributes:
      challenge: what is tested.
      number: of the test in the tree, from 1 on.
      cap: pairs that it may take; None if it was not begun.
      gains: pairs that the revision alone won.
      losses: pairs that the parent alone won.
      pairs: both runs of which were answered.
      lost: pairs of which one was not.
      verdict: so far.
      runs: that were asked for.
    """

    challenge: Challenge
    number: int
    cap: int | None
    gains: int = 0
    losses: int = 0
    pairs: int = 0
    lost: int = 0
    verdict: SequentialVerdict = SequentialVerdict.UNDECIDED
    runs: list[SkillRun] = field(default_factory=list)

    @property
    def is_open(self) -> bool:
        """Whether another pair is wanted."""
        return self.cap is not None and self.verdict == SequentialVerdict.UNDECIDED

    def take(self, child: SkillRun, parent: SkillRun) -> None:
        """Counts a pair."""
        self.runs += [child, parent]
        if Outcome.INFRASTRUCTURE in (child.outcome, parent.outcome):
            self.lost += 1
            return
        won, was_won = (run.outcome == Outcome.SUCCESS for run in (child, parent))
        self.pairs += 1
        self.gains += won and not was_won
        self.losses += was_won and not won


def decide(
    workplace: Workplace,
    runs: SkillRunFile,
    challenges: Sequence[Challenge],
    acceptance: Acceptance,
    *,
    first_number: int,
    first_sample: int,
    at_once: int,
) -> list[PairedTest]:
    """Runs pair after pair of all challenges that are not decided.

    Args:
      workplace: executes.
      runs: of the run; what is there is not executed again.
      challenges: to decide; they are numbered in their order.
      acceptance: see `Acceptance`.
      first_number: of the first of them in the tree.
      first_sample: of the pairs, up to `acceptance.max_pairs` of them.
      at_once: see `jerp.runs.skills.work.executed`.
    """
    found = [
        PairedTest(challenge, number, acceptance.cap(number))
        for number, challenge in enumerate(challenges, first_number)
    ]
    for sample in range(first_sample, first_sample + acceptance.max_pairs):
        waiting = [test for test in found if test.is_open]
        if not waiting:
            break
        trials = [
            Trial(test.challenge.task, skill, sample)
            for test in waiting
            for skill in (test.challenge.child, test.challenge.parent)
        ]
        answers = executed(workplace, runs, trials, at_once=at_once)
        for test, child, parent in zip(
            waiting, answers[::2], answers[1::2], strict=True
        ):
            test.take(child, parent)
        _judge(found, acceptance)
    return found


def _judge(tests: Sequence[PairedTest], acceptance: Acceptance) -> None:
    """Of those that are open; all are counted, for one program whatever is open."""
    caps = [0 if test.cap is None else test.cap - test.lost for test in tests]
    names = ("gains", "losses", "pairs", "number")
    counts = {n: np.array([getattr(t, n) for t in tests], np.int32) for n in names}
    verdicts = sequential_verdict(
        *(counts["gains"], counts["losses"], counts["pairs"]),
        max_pairs=np.array(caps, np.int32),
        number=counts["number"],
        alpha=acceptance.alpha,
        spending=acceptance.spending,
    )
    for test, verdict in zip(tests, np.asarray(verdicts), strict=True):
        if test.is_open:
            test.verdict = SequentialVerdict(int(verdict))

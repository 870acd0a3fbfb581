"""How many pairs it takes to accept a revision, on the host, in float64.

The test is that of `jerp.estimators.sequential`. Symbols: pairs, each a gain with
chance `p_gain`, a loss with chance `p_loss`, or neither; `n` discordant pairs, `g` of
them gains. What is computed is exact: every path of the counts is walked, and what has
been accepted walks no further. Nothing here can be traced.
"""

from __future__ import annotations

import math
import numbers
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from jerp.errors import InputError
from jerp.ops.checks import check_count

__all__ = ["MOST_PAIRS", "PairsPlan", "pairs_needed"]

MOST_PAIRS = 20_000
"""Beyond these no number is looked for."""


class PairsPlan(NamedTuple):
    """What a test costs, and what it finds.

    Attributes:
      pairs: the fewest that reach the power; None if `max_pairs` do not. All that
        follows is of that number of pairs, of `max_pairs` where it is None.
      power: chance that the revision is accepted.
      expected_pairs: on average, with a stop at the acceptance. Stops where nothing can
        be accepted any more make it fewer.
      calls: of the executor, for all the pairs.
      expected_calls: for `expected_pairs`.
    """

    pairs: int | None
    power: float
    expected_pairs: float
    calls: float
    expected_calls: float


def pairs_needed(
    p_gain: float,
    p_loss: float,
    *,
    alpha: float,
    power: float = 0.8,
    max_pairs: int = 2_000,
    calls_per_run: float = 1.0,
) -> PairsPlan:
    """Pairs after which a revision, of known chances, will have been accepted.

        power(m) = P(E >= 1 / alpha after some pair up to the m-th)
        pairs = min {m : power(m) >= power},  expected = sum_{i < m} (1 - power(i))
        calls = 2 pairs calls_per_run

    Where a task has one vote and several pairs, read tasks for pairs and give the
    chances of a vote: of m pairs each with chances g and l, a gain is first with
    g / (g + l) (1 - (1 - g - l)^m).

    Args:
      p_gain: in [0, 1]; of independent runs p' (1 - p), as `expected_changes` has it
        over tasks.
      p_loss: in [0, 1]; both together at most 1.
      alpha: in (0, 1), of this test: `spent_alpha` of its number.
      power: wanted, in (0, 1).
      max_pairs: no more are looked at; at most 20,000.
      calls_per_run: of the executor, on average.

    Returns:
      `PairsPlan`.

    Raises:
      InputError: an argument out of range.

    Reference: see `jerp.estimators.sequential.paired_e_value`; the walk is that of
      Armitage, McPherson and Rowe, "Repeated significance tests on accumulating data",
      JRSS A 132 (1969).

    Example:
      >>> plan = pairs_needed(0.3, 0.1, alpha=0.05, calls_per_run=6)
      >>> plan.pairs, round(plan.power, 3), round(plan.expected_pairs, 1), plan.calls
      (106, 0.803, 60.5, 1272.0)
    """
    _check(p_gain, p_loss, alpha, power, calls_per_run)
    check_count("max_pairs", max_pairs)
    if max_pairs > MOST_PAIRS:
        raise InputError(f"max_pairs: expected at most {MOST_PAIRS}, got {max_pairs}")
    both = min(p_gain + p_loss, 1.0)
    first_time = _acceptances(p_gain / both if both else 0.0, alpha, max_pairs)
    number, reached, expected = 0, 0.0, 0.0
    discordant, accepted = np.ones(1), np.zeros(max_pairs)
    while number < max_pairs and reached < power:
        accepted[number] = next(first_time)
        expected += 1.0 - reached
        reached += both * float(discordant @ accepted[: number + 1])
        discordant = _one_more(discordant, both)
        number += 1
    runs = 2.0 * calls_per_run
    return PairsPlan(
        pairs=number if reached >= power else None,
        power=reached,
        expected_pairs=expected,
        calls=number * runs,
        expected_calls=expected * runs,
    )


def accepting_gains(level: float, most: int) -> Iterator[int]:
    """The fewest gains among n = 1, 2, ... discordant pairs that the test accepts.

        min {g : E(g, n - g) >= 1 / level};  n + 1 if there is none

    E grows with a gain and falls with a loss, so that this number stays or grows by one
    from n to n + 1. P(X <= g) of X ~ Binomial(n + 1, 1 / 2), the sum that is in E, is
    followed along that way.

    Args:
      level: alpha of the test.
      most: the last n.

    Example:
      >>> list(accepting_gains(0.05, 12))
      [2, 3, 4, 5, 6, 7, 7, 8, 9, 10, 10, 11]
    """
    log = np.cumsum(np.log(np.maximum(np.arange(most + 2.0), 1.0)))

    def log_chance(coins: int, heads: int) -> float:
        ways = log[coins] - log[heads] - log[coins - heads]
        return float(ways) - coins * math.log(2)

    gains, below = 1, 1.0
    for n in range(1, most + 1):
        this = log_chance(n, gains)
        below -= math.exp(this) / 2
        if math.log(2 * below / (n + 1)) - this < -math.log(level):
            gains += 1
            below += math.exp(log_chance(n + 1, gains))
        yield gains


def _acceptances(chance: float, level: float, most: int) -> Iterator[float]:
    """Chance that the n-th discordant pair is the one that accepts, n = 1, 2, ..."""
    mass = np.ones(1)
    for gains in accepting_gains(level, most):
        mass = _one_more(mass, chance)
        yield float(mass[gains:].sum())
        mass[gains:] = 0


def _one_more(mass: NDArray[np.float64], chance: float) -> NDArray[np.float64]:
    """Chances of a count after one more trial."""
    grown = np.append(mass * (1 - chance), 0.0)
    grown[1:] += mass * chance
    return grown


def _check(
    p_gain: float, p_loss: float, alpha: float, power: float, calls_per_run: float
) -> None:
    shares = {"p_gain": p_gain, "p_loss": p_loss, "alpha": alpha, "power": power}
    for name, value in {**shares, "calls_per_run": calls_per_run}.items():
        if isinstance(value, bool) or not isinstance(value, numbers.Real):
            raise InputError(f"{name}: expected a number, got {value!r:.80}")
    for name, value in (("p_gain", p_gain), ("p_loss", p_loss)):
        if not 0 <= value <= 1:
            raise InputError(f"{name}: expected in [0, 1], got {value}")
    if p_gain + p_loss > 1 + 1e-12:
        raise InputError(
            "p_gain, p_loss: expected a sum of at most 1, a pair is one of the two or "
            f"neither, got {p_gain} and {p_loss}"
        )
    for name, value in (("alpha", alpha), ("power", power)):
        if not 0 < value < 1:
            raise InputError(f"{name}: expected in (0, 1), got {value}")
    if not 0 < calls_per_run < math.inf:
        raise InputError(f"calls_per_run: expected > 0, got {calls_per_run}")

"""How likely "expanded" is when the boundary did move, on the host, in float64.

The rule is that of `jerp.estimators.verdict`. Symbols: `N` questions of a category for
each of `S` training seeds, other questions for every seed; `g` and `l` the chances that
a question counts as a gain or as a loss; `C` categories. What is computed is the power
of one category while in the C - 1 others nothing moves, so that Holm asks alpha / C of
it; were others to move as well, it would be higher. Nothing here can be traced.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import jax
import numpy as np
from numpy.typing import NDArray

from jerp.errors import InputError
from jerp.estimators.changes import Changes, expected_changes
from jerp.estimators.student import student_quantile
from jerp.estimators.trinomial import critical_gains, draw_changes, seed_tables
from jerp.estimators.verdict import ALPHA, SEED_LEVEL
from jerp.ops.checks import check_count
from jerp.typing import ArrayLike, Key

__all__ = [
    "MOST_QUESTIONS",
    "MOST_SAMPLES",
    "boundary_power",
    "questions_for_power",
    "samples_for_power",
]

MOST_QUESTIONS = 20_000
MOST_SAMPLES = 65_536
"""Beyond these no number is looked for."""


def boundary_power(
    key: Key,
    num_questions: int,
    gain: float,
    loss: float,
    *,
    num_categories: int = 1,
    num_seeds: int = 1,
    seed_spread: float = 0.0,
    alpha: float = ALPHA,
    num_studies: int = 20_000,
) -> float:
    """Chance of the verdict "expanded", for known chances of gain and loss.

        sum over (b, c) of P(b, c) [p_up(b, c) < alpha / C],
        (b, c) ~ Multinomial(N; g, l), the exact test of b over c

    With one seed this sum is exact. With S > 1 seeds each has its own (b_s, c_s), the
    test takes their sums, and Student's 95% interval of the S differences has to lie
    above 0 as well: then it is the share of `num_studies` drawn studies, with a
    standard error of at most .0036.

    Args:
      key: consumed; matters with several seeds alone.
      num_questions: N, of the category and for each seed.
      gain: g, see `expected_changes`.
      loss: l; g + l is at most 1.
      num_categories: C.
      num_seeds: S.
      seed_spread: standard deviation between seeds of g - l, while g + l stays: a
        normal at 15 points, cut where a chance would leave [0, g + l]. 0 for seeds
        that differ by their questions alone.
      alpha: of the rule.
      num_studies: drawn with several seeds.

    Returns:
      The power.

    Raises:
      InputError: an argument out of range.

    Deviations: no approximation by a normal: the counts that matter here are small.

    Reference: Duffy, "Asymptotic and exact power for the McNemar test and its analogue
      with R controls per case", Biometrics 40 (1984).

    Example:
      >>> key = jax.random.key(0)
      >>> round(boundary_power(key, 100, 0.10, 0.02, num_categories=3), 3)
      0.472
    """
    check_count("num_questions", num_questions)
    rule = _rule(key, num_categories, num_seeds, seed_spread, alpha, num_studies)
    return rule(num_questions, _changes(gain, loss))


def questions_for_power(
    key: Key,
    gain: float,
    loss: float,
    *,
    power: float = 0.8,
    num_categories: int = 1,
    num_seeds: int = 1,
    seed_spread: float = 0.0,
    alpha: float = ALPHA,
    num_studies: int = 20_000,
) -> int | None:
    """Questions of a category, for each seed, with which "expanded" becomes likely.

        N with power(N) >= power > power(N - 1), found by doubling and halving

    The power of one seed rises with N, but for steps back of up to .03 below a dozen
    questions; drawn studies add noise. Some smaller N may reach it too.

    Args:
      key: consumed; see `boundary_power`, as are the other arguments.
      gain: g.
      loss: l.
      power: wanted, in (0, 1).
      num_categories: C.
      num_seeds: S.
      seed_spread: between seeds, of g - l. However many questions there are, it stays.
      alpha: of the rule.
      num_studies: drawn with several seeds.

    Returns:
      N; None where no N up to 20,000 is enough, such as where gains are no likelier
      than losses.

    Raises:
      InputError: an argument out of range.

    Reference: see `boundary_power`.

    Example:
      >>> questions_for_power(jax.random.key(0), 0.10, 0.02, num_categories=3)
      172
    """
    _check_power(power)
    rule = _rule(key, num_categories, num_seeds, seed_spread, alpha, num_studies)
    changes = _changes(gain, loss)
    if changes.gain <= changes.loss:
        return None
    return _least(lambda n: rule(n, changes) >= power, MOST_QUESTIONS)


def samples_for_power(
    key: Key,
    num_questions: int,
    base: ArrayLike,
    trained: ArrayLike,
    *,
    weight: ArrayLike | None = None,
    power: float = 0.8,
    num_categories: int = 1,
    num_seeds: int = 1,
    seed_spread: float = 0.0,
    alpha: float = ALPHA,
    num_studies: int = 20_000,
) -> int | None:
    """Samples a question, of each agent, with which "expanded" becomes likely.

    More samples show rarer successes and leave less to luck; they add no questions.

    Args:
      key: consumed; see `boundary_power`, as are the arguments not named here.
      num_questions: N, of the category and for each seed.
      base: `[Q]`, see `expected_changes`.
      trained: `[Q]`.
      weight: `[Q]`.
      power: wanted, in (0, 1).
      num_categories: C.
      num_seeds: S.
      seed_spread: between seeds, of g - l.
      alpha: of the rule.
      num_studies: drawn with several seeds.

    Returns:
      The smallest such n, but for steps back of the power; None where no n up to
      65,536 is enough: more questions are needed then.

    Raises:
      InputError: an argument out of range.

    Reference: see `boundary_power`.

    Example:
      >>> key, base, trained, share = jax.random.key(0), [0.0], [0.05], [1.0]
      >>> samples_for_power(key, 20, base, trained, weight=share)
      8
    """
    _check_power(power)
    check_count("num_questions", num_questions)
    rule = _rule(key, num_categories, num_seeds, seed_spread, alpha, num_studies)

    def enough(num_samples: int) -> bool:
        found = expected_changes(base, trained, num_samples=num_samples, weight=weight)
        return rule(num_questions, found) >= power

    return _least(enough, MOST_SAMPLES)


def _rule(
    key: Key,
    num_categories: int,
    num_seeds: int,
    seed_spread: float,
    alpha: float,
    num_studies: int,
) -> Callable[[int, Changes], float]:
    """The power as a function of N and the chances; every call has the same draws."""
    check_count("num_categories", num_categories)
    check_count("num_seeds", num_seeds)
    check_count("num_studies", num_studies)
    if not 1e-8 <= alpha <= 0.5:
        raise InputError(f"alpha: expected in [1e-8, 0.5], got {alpha}")
    if not 0 <= seed_spread <= 1:
        raise InputError(f"seed_spread: expected in [0, 1], got {seed_spread}")
    level = alpha / num_categories
    if num_seeds == 1:
        return lambda number, changes: _exact(number, changes, seed_spread, level)
    shape = (2, num_studies, num_seeds)
    uniform = np.asarray(jax.random.uniform(key, shape), np.float64)
    return lambda number, changes: _drawn(number, changes, seed_spread, level, uniform)


def _exact(number: int, changes: Changes, spread: float, level: float) -> float:
    total = 0.0
    for table in seed_tables(number, *changes, spread):
        both = table.gains[:, None] + table.losses
        needed = critical_gains(int(both.min()), int(both.max()), level)
        shown = table.gains[:, None] >= needed[both - both.min()]
        total += table.weight * float(table.mass[shown].sum())
    return total


def _drawn(
    number: int,
    changes: Changes,
    spread: float,
    level: float,
    uniform: NDArray[np.float64],
) -> float:
    gains, losses = draw_changes(seed_tables(number, *changes, spread), uniform)
    b, c = gains.sum(1), losses.sum(1)
    needed = critical_gains(int((b + c).min()), int((b + c).max()), level)
    shown = b >= needed[b + c - (b + c).min()]
    net = gains - losses
    seeds = net.shape[1]
    error = net.std(1, ddof=1) / math.sqrt(seeds)
    above = net.mean(1) > student_quantile(seeds - 1, level=SEED_LEVEL) * error
    return float((shown & above).mean())


def _changes(gain: float, loss: float) -> Changes:
    for name, value in (("gain", gain), ("loss", loss)):
        if not 0 <= value <= 1:
            raise InputError(f"{name}: expected in [0, 1], got {value}")
    if gain + loss > 1 + 1e-12:
        raise InputError(
            f"gain, loss: expected a sum of at most 1, a question is one of the two or "
            f"neither, got {gain} and {loss}"
        )
    return Changes(float(gain), float(loss))


def _check_power(power: float) -> None:
    if not 0 < power < 1:
        raise InputError(f"power: expected in (0, 1), got {power}")


def _least(enough: Callable[[int], bool], most: int) -> int | None:
    """A number that is enough while the one before is not; None if `most` is not."""
    high = 1
    while not enough(high):
        if high == most:
            return None
        high = min(2 * high, most)
    low = high // 2
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if enough(middle) else (middle, high)
    return high

"""pass@k and pass^k of tasks from counts, on the device, in float32.

Symbols: `n` samples of a task, `c` correct ones among them, `k` the budget; C(a, b) is
the binomial coefficient. Both estimators average over all choices of k of the n
samples, which is unbiased. With fewer samples than k there is no estimate: NaN, never 1
or 0. For more digits or counts in the millions see `jerp.estimators.passk_float64`.
"""

from __future__ import annotations

import operator
from collections.abc import Sequence
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np

from jerp.errors import InputError
from jerp.estimators.arguments import MOST, check_broadcast
from jerp.ops.checks import check_values, concrete
from jerp.typing import Array, ArrayLike

__all__ = ["budgets", "check_counts", "pass_at_k", "pass_hat_k"]


def pass_at_k(
    num_samples: ArrayLike, num_correct: ArrayLike, *, k: int | Sequence[int]
) -> Array:
    """Probability that at least one of k samples is correct.

        pass@k = 1 - C(n - c, k) / C(n, k) = 1 - prod_{i<k} (1 - c / (n - i))

    The product is taken as -expm1(sum_{i<k} log(1 - c / (n - i))): all terms have one
    sign, so the error does not grow with k and small values keep their digits.

    Args:
      num_samples: `[...]` whole numbers, n; float32 rounds them from 2^24 on. The two
        counts broadcast against each other.
      num_correct: `[...]` whole numbers in [0, n], c.
      k: static. One budget, or several: all of them cost as much as the largest.

    Returns:
      `[...]` float32 for one k, `[..., K]` for several; NaN where n < k. In [0, 1],
      exactly c / n for k = 1, 0 where c = 0 and 1 where n - c < k. That a task has
      fewer samples than k is a fact of the data and no error: the other tasks keep
      their estimates. The mean of a surface then leaves such a task out of every cell.

    Raises:
      InputError: a count that is no whole number or beyond int32, c < 0 or c > n where
        Python can see it (under jit the estimate is NaN); k that is no whole number or
        below 1. `ShapeError`, one of them: counts that do not broadcast.

    Deviations: the released code answers 1.0 for k > n even where c = 0, and for
      c > n, and 0.0 for k = 0. The textbook 1 - (1 - c / n)^k is biased downwards.

    Reference: Chen et al., "Evaluating Large Language Models Trained on Code",
      arXiv:2107.03374, eq. 1.

    Example:
      >>> n, c = jnp.array([4, 4, 2]), jnp.array([1, 0, 2])
      >>> [[round(x, 4) for x in row] for row in pass_at_k(n, c, k=(1, 4)).tolist()]
      [[0.25, 1.0], [0.0, 0.0], [1.0, nan]]
    """
    check_counts(num_samples, num_correct)
    return _of_budgets(num_samples, num_correct, k, at_least_one=True)


def pass_hat_k(
    num_samples: ArrayLike, num_correct: ArrayLike, *, k: int | Sequence[int]
) -> Array:
    """Probability that all of k samples are correct.

        pass^k = C(c, k) / C(n, k) = prod_{i<k} (1 - (n - c) / (n - i))

    The product is taken as exp(sum_{i<k} log(...)), see `pass_at_k`.
    The dual of pass@k: pass^k of c correct is 1 - pass@k of n - c correct.

    Args:
      num_samples: `[...]` whole numbers, n; float32 rounds them from 2^24 on. The two
        counts broadcast against each other.
      num_correct: `[...]` whole numbers in [0, n], c.
      k: static. One budget, or several: all of them cost as much as the largest.

    Returns:
      `[...]` float32 for one k, `[..., K]` for several; NaN where n < k. In [0, 1],
      exactly c / n for k = 1, 0 where c < k and 1 where c = n.

    Raises:
      InputError: see `pass_at_k`.

    Deviations: the released code takes for every task the number of distinct trials in
      the whole file as n: a missing trial counts as a failure, and one recorded twice
      gives values above 1. Here each task has its own n.

    Reference: Yao et al., "tau-bench", arXiv:2406.12045, section 3.

    Example:
      >>> pass_hat_k(4, jnp.array([4, 3, 1]), k=2).tolist()
      [1.0, 0.5, 0.0]
    """
    check_counts(num_samples, num_correct)
    return _of_budgets(num_samples, num_correct, k, at_least_one=False)


def budgets(k: int | Sequence[int], *, name: str = "k") -> tuple[int, ...]:
    """Budgets as a tuple, refused unless all are whole numbers from 1 on.

    Args:
      k: one budget or several.
      name: of the argument, for the message.

    Returns:
      The budgets in the order given.

    Raises:
      InputError: none is given, or one is no whole number, or below 1.

    Example:
      >>> budgets(4), budgets([1, 2])
      ((4,), (1, 2))
    """
    several = k if isinstance(k, Sequence) else (k,)
    try:
        found = tuple(operator.index(each) for each in several)
    except TypeError as error:
        raise InputError(
            f"{name}: expected whole numbers known before tracing, got {k!r}"
        ) from error
    whole = not any(isinstance(each, bool) for each in several)
    if not (whole and found and min(found) >= 1):
        raise InputError(f"{name}: expected whole numbers >= 1, got {k!r}")
    return found


def check_counts(num_samples: ArrayLike, num_correct: ArrayLike) -> None:
    """Raises `InputError` unless what is seen of the counts is 0 <= c <= n and whole.

    `ShapeError`, which is one, if they do not broadcast.

    Args:
      num_samples: `[...]`, n.
      num_correct: `[...]`, c; the two broadcast against each other.

    Example:
      >>> check_counts(3, 4)
      Traceback (most recent call last):
      ...
      jerp.errors.InputError: num_correct: expected <= num_samples, got 4
    """
    for name, count in (("num_samples", num_samples), ("num_correct", num_correct)):
        check_values(
            name, count, lambda v: (v >= 0) & (v == np.floor(v)), "whole numbers >= 0"
        )
    check_broadcast(num_samples=num_samples, num_correct=num_correct)
    samples, correct = concrete(num_samples), concrete(num_correct)
    if samples is not None and correct is not None:
        samples, correct = np.broadcast_arrays(samples, correct)
        check_values("num_correct", correct, lambda v: v <= samples, "<= num_samples")


def _of_budgets(
    num_samples: ArrayLike,
    num_correct: ArrayLike,
    k: int | Sequence[int],
    *,
    at_least_one: bool,
) -> Array:
    """One estimate, or one a budget along the last axis."""
    for name, count in (("num_samples", num_samples), ("num_correct", num_correct)):
        check_values(
            name,
            count,
            lambda v: v <= MOST,
            "at most 2^31 - 1 (see pass_at_k_float64 and pass_hat_k_float64)",
        )
    ks, samples = budgets(k), concrete(num_samples)
    most = max(ks) if samples is None else np.max(samples, initial=0)
    # A budget beyond all samples has no estimate, and gets no memory either.
    draws = max((each for each in ks if each <= most), default=1)
    counts = (jnp.asarray(count, jnp.float32) for count in (num_samples, num_correct))
    value = _estimate(*counts, ks=ks, draws=draws, at_least_one=at_least_one)
    return value if isinstance(k, Sequence) else value[..., 0]


@partial(jax.jit, static_argnames=("ks", "draws", "at_least_one"))
def _estimate(
    num_samples: Array,
    num_correct: Array,
    *,
    ks: tuple[int, ...],
    draws: int,
    at_least_one: bool,
) -> Array:
    """pass@k, or else pass^k, `[..., K]`.

    Both from the probability that k samples are all failures, or all correct. NaN where
    that is undefined: n < k, or counts that are no counts.
    """
    counts = jnp.broadcast_arrays(num_samples, num_correct)
    samples, correct = (count[..., None] for count in counts)
    excluded = correct if at_least_one else samples - correct
    draw = _last_axis(np.arange(draws), samples.ndim)
    left = jnp.maximum(samples - draw, 1)  # draws beyond n must not divide by 0
    share = excluded / left
    # Each form where it is accurate: log1p for small shares, log for small remainders.
    term = jnp.where(
        share < 0.5,
        jnp.log1p(-jnp.minimum(share, 0.5)),
        jnp.log(jnp.maximum(left - excluded, 0) / left),
    )
    log_none = jnp.cumsum(term, axis=-1)[..., np.minimum(ks, draws) - 1]
    # 0 minus, not a sign: where c = 0 that would be -0.0.
    value = 0 - jnp.expm1(log_none) if at_least_one else jnp.exp(log_none)
    budget = _last_axis(np.array(ks), samples.ndim)
    # Logarithms would touch the last digits of c / n.
    value = jnp.where(budget == 1, correct / left[..., :1], value)
    whole = (samples == jnp.floor(samples)) & (correct == jnp.floor(correct))
    valid = whole & (correct >= 0) & (correct <= samples)
    return jnp.where(valid & (samples >= budget), value, jnp.nan)


def _last_axis(numbers: np.ndarray, ndim: int) -> np.ndarray:
    """As float32 along the last of `ndim` axes."""
    return numbers.astype(np.float32).reshape((1,) * (ndim - 1) + numbers.shape)

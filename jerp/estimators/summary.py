"""Summaries of many scores that a few tasks do not rule, for intervals over tasks.

Each is made for `bootstrap_interval` or `simultaneous_band`, where tasks are the
clusters: either a `Statistic` of weighted values, or a value a task whose mean is the
summary. Symbols: `N` values or tasks, `M` and `L` runs of a task, `K` thresholds.
rliable draws the runs of each task anew and keeps the tasks: its intervals speak of
these tasks alone and are far narrower. It also ignores the seed it is given.
"""

from __future__ import annotations

import math

import jax.numpy as jnp

from jerp.estimators.arguments import row_axes
from jerp.ops.checks import check_axes
from jerp.typing import Array, ArrayLike

__all__ = [
    "interquartile_mean",
    "performance_profile",
    "probability_of_improvement",
]


def interquartile_mean(values: ArrayLike, weight: ArrayLike) -> Array:
    """Weighted mean of the middle half, a `Statistic`.

        IQM = 2 / W sum_i v_i x_(i),   W = sum_i w_i
        v_i = |[W_{i-1}, W_i] and [W / 4, 3 W / 4]|,   W_i = w_(1) + ... + w_(i)

    As robust to outliers as a trimmed mean, with more power than the median. The value
    at each edge of the middle half counts in part.

    Args:
      values: `[N, ...]` float32, each component trimmed on its own.
      weight: `[N]` float32, at least 0.

    Returns:
      `[...]` float32; NaN where nothing is weighed, or a NaN is. An infinite value
      counts as the outlier that it is.

    Deviations: rliable cuts `floor(N / 4)` whole values at either end
      (scipy's `trim_mean`), which is the same where N is a multiple of 4.

    Reference: Agarwal et al., "Deep reinforcement learning at the edge of the
      statistical precipice", arXiv:2108.13264, section 4.3.

    Example:
      >>> float(interquartile_mean(jnp.array([9.0, 1.0, 3.0, 2.0]), jnp.ones(4)))
      2.5
      >>> float(interquartile_mean(jnp.array([1.0, 3.0]), jnp.ones(2)))
      2.0
    """
    values, weight = (jnp.asarray(x, jnp.float32) for x in (values, weight))
    check_axes(values=(values, row_axes(values) or "N"), weight=(weight, "N"))
    number = weight.shape[0]
    columns = values.reshape(number, math.prod(values.shape[1:]))
    order = jnp.argsort(columns, axis=0)
    ordered = jnp.take_along_axis(columns, order, axis=0)
    size = weight[order]
    # Weights are small whole numbers as a rule: their running sums are then exact.
    end = jnp.cumsum(size, axis=0)
    total = jnp.sum(weight)
    inside = jnp.minimum(end, 0.75 * total) - jnp.maximum(end - size, 0.25 * total)
    share = jnp.maximum(inside, 0.0)
    half = jnp.where(total > 0, 0.5 * total, 1.0)
    # What is trimmed may be infinite, and what weighs nothing anything at all.
    counts = (share > 0) | ((size > 0) & jnp.isnan(ordered))
    middle = jnp.sum(share * jnp.where(counts, ordered, 0.0), axis=0) / half
    return jnp.where(total > 0, middle, jnp.nan).reshape(values.shape[1:])


def probability_of_improvement(
    a: ArrayLike,
    b: ArrayLike,
    *,
    mask_a: ArrayLike | None = None,
    mask_b: ArrayLike | None = None,
) -> Array:
    """How likely a run of A beats one of B, task by task.

        P_i(A > B) = mean over runs j, l of  [a_ij > b_il] + [a_ij = b_il] / 2

    The mean over tasks is the summary, with its interval over tasks:
    `bootstrap_interval(key, probability_of_improvement(a, b))`. One half says that
    neither is better; how much better, it does not say.

    Args:
      a: `[N, M]` float32, scores of A's runs. A NaN is no run.
      b: `[N, L]` float32, scores of B's runs on the same tasks.
      mask_a: `[N, M]` bool, False leaves a run out; None keeps all.
      mask_b: `[N, L]` bool.

    Returns:
      `[N]` float32; NaN for a task without a run on either side.

    Deviations: rliable draws runs anew within each task for its interval.

    Reference: arXiv:2108.13264, section 4.3 (Mann and Whitney's U over M L).

    Example:
      >>> a = jnp.array([[1.0, 2.0], [0.0, 0.0]])
      >>> b = jnp.array([[1.0, 1.0], [0.0, 5.0]])
      >>> probability_of_improvement(a, b).tolist()
      [0.75, 0.25]
    """
    check_axes(a=(a, "N M"), b=(b, "N L"))
    a, kept_a = _runs("a", a, mask_a)
    b, kept_b = _runs("b", b, mask_b)
    left, right = a[:, :, None], b[:, None, :]
    wins = jnp.where(left > right, 1.0, jnp.where(left == right, 0.5, 0.0))
    pairs = kept_a[:, :, None] & kept_b[:, None, :]
    number = jnp.sum(pairs, axis=(1, 2)).astype(jnp.float32)
    total = jnp.sum(jnp.where(pairs, wins, 0.0), axis=(1, 2))
    return jnp.where(number > 0, total / jnp.maximum(number, 1.0), jnp.nan)


def performance_profile(
    scores: ArrayLike, thresholds: ArrayLike, *, mask: ArrayLike | None = None
) -> Array:
    """Share of a task's runs that score above each threshold.

        F_i(tau) = mean over runs j of [x_ij > tau]

    The mean over tasks is the profile, with its band over all thresholds at once:
    `simultaneous_band(key, performance_profile(scores, thresholds))`. Where one
    profile lies above another at every tau, that agent is better by any measure that
    rises with the score.

    Args:
      scores: `[N]` or `[N, M]` float32. A NaN is no run.
      thresholds: `[K]` float32, tau.
      mask: shape of `scores`, bool, False leaves a run out; None keeps all.

    Returns:
      `[N, K]` float32; NaN for a task without a run.

    Deviations: rliable draws runs anew within each task, and its band holds each tau
      alone.

    Reference: arXiv:2108.13264, section 4.2; Dolan and More, Mathematical Programming
      91 (2002).

    Example:
      >>> performance_profile(jnp.array([[0.0, 1.0]]), jnp.array([-1.0, 0.5])).tolist()
      [[1.0, 0.5]]
    """
    scores = jnp.asarray(scores, jnp.float32)
    scores, kept = _runs("scores", scores, mask)
    if scores.ndim == 1:
        scores, kept = scores[:, None], kept[:, None]
    thresholds = jnp.asarray(thresholds, jnp.float32)
    check_axes(scores=(scores, "N M"), thresholds=(thresholds, "K"))
    above = (scores[:, :, None] > thresholds[None, None, :]) & kept[:, :, None]
    number = jnp.sum(kept, axis=1).astype(jnp.float32)[:, None]
    share = jnp.sum(above, axis=1).astype(jnp.float32) / jnp.maximum(number, 1.0)
    return jnp.where(number > 0, share, jnp.nan)


def _runs(name: str, scores: ArrayLike, mask: ArrayLike | None) -> tuple[Array, Array]:
    """Scores of the tasks' runs, and which of them there are."""
    scores = jnp.asarray(scores, jnp.float32)
    kept = jnp.ones(scores.shape, bool) if mask is None else jnp.asarray(mask)
    axes, mask_name = row_axes(scores), "mask" if name == "scores" else f"mask_{name}"
    check_axes(**{name: (scores, axes), mask_name: (kept, axes, bool)})
    return scores, kept & ~jnp.isnan(scores)

"""Where two pass@k curves cross: the budget from which another agent is the better.

Symbols: `N` tasks, `K` sample budgets k. Tasks are resampled whole and both curves on
the same tasks, so that what the tasks have in common drops out.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import jax
import jax.numpy as jnp
from flax import struct

from jerp.errors import InputError
from jerp.estimators.arguments import as_array, check_resampling, check_rows
from jerp.estimators.clusters import kept_rows, resampling_clusters
from jerp.estimators.marginal import check_grid
from jerp.estimators.passk import budgets
from jerp.estimators.quantiles import quantile
from jerp.estimators.resampling import replicates, weighted_mean
from jerp.ops.checks import check_axes
from jerp.records import Interval
from jerp.typing import Array, ArrayLike, Key

__all__ = ["Crossing", "crossing_k"]

_ROUNDING = 1e-6
"""Mean differences of proportions below this are float32's, and no difference."""


class Crossing(struct.PyTreeNode):
    """The budget at which one curve overtakes another.

    Attributes:
      k: `Interval` of scalars, in samples; NaN without a crossing.
      share: `[]` float32, share of the resamples that cross in the same direction; in
        any, if the estimate does not cross. Below `level` the interval speaks of those
        alone that cross.
      direction: `[]` int32: 1 if B overtakes A, -1 if B falls below A, 0 for neither.
      count: `[]` int32, crossings of the estimate on the grid; `k` is the first.
    """

    k: Interval
    share: Array
    direction: Array
    count: Array


def crossing_k(
    key: Key,
    a: ArrayLike,
    b: ArrayLike,
    ks: Sequence[int],
    *,
    cluster: ArrayLike | None = None,
    mask: ArrayLike | None = None,
    strata: ArrayLike | None = None,
    num_resamples: int = 2000,
    level: float = 0.95,
) -> Crossing:
    """The k at which the mean of B first crosses that of A, with its interval.

        d(k) = mean_tasks (b - a),  d(k*) = 0,  d linear in log2 k between grid points
        interval: percentiles of log2 k* over resamples of tasks that cross likewise

    Where the curves touch without changing sides they do not cross; where they touch
    and then change sides, they cross at the last k of the touch. With several
    crossings, the first counts, and in a resample the first of the same direction.

    Args:
      key: consumed.
      a: `[N, K]` float32, pass@k of agent A. A task with a NaN in any k, on either
        side, is left out and counted.
      b: `[N, K]` float32, of agent B on the same tasks.
      ks: the K budgets, two or more whole numbers, increasing.
      cluster: see `jerp.estimators.intervals.bootstrap_interval`.
      mask: `[N]` bool, False leaves a task out; None keeps all.
      strata: see `jerp.estimators.intervals.bootstrap_interval`.
      num_resamples: R.
      level: nominal coverage.

    Returns:
      `Crossing`. NaN limits with fewer than two clusters. Without any task it is NaN,
      `num_values` is 0 and no error is raised: that everything failed has to be
      reported.

    Raises:
      InputError: see `jerp.estimators.bands.simultaneous_band`; and `ks` that are not
        as said.

    Deviations: arXiv:2604.14877 reads "near k = 4" off a figure, without an interval.

    Reference: the equation above.

    Example:
      >>> a = jnp.array([[0.5, 0.5, 0.5]] * 3)
      >>> b = jnp.array([[0.25, 0.75, 1.0]] * 3)
      >>> found = crossing_k(jax.random.key(0), a, b, [1, 4, 16])
      >>> float(found.k.point), float(found.share), int(found.direction)
      (2.0, 1.0, 1)
    """
    check_resampling(key, weighted_mean, num_resamples=num_resamples, level=level)
    curves = {"a": as_array(a), "b": as_array(b)}
    check_axes(a=(curves["a"], "N K"), b=(curves["b"], "N K"))
    ks = budgets(tuple(ks), name="ks")
    check_grid("ks", ks, size=curves["a"].shape[1])
    if len(ks) < 2:
        raise InputError(f"ks: expected two or more values, got {ks}")
    curves, *rows = check_rows(curves, cluster, mask, strata, name="")
    a, b = jnp.asarray(curves["a"], jnp.float32), jnp.asarray(curves["b"], jnp.float32)
    found = _crossing_interval(
        key,
        b - a,
        *rows,
        jnp.log2(jnp.asarray(ks, jnp.float32)),
        jnp.array([(1 - level) / 2, (1 + level) / 2], jnp.float32),
        num_resamples=num_resamples,
    )
    return found.replace(k=found.k.replace(level=level))


@partial(jax.jit, static_argnames=("num_resamples",))
def _crossing_interval(
    key: Key,
    difference: Array,
    cluster: ArrayLike | None,
    mask: ArrayLike | None,
    strata: ArrayLike | None,
    log2_k: Array,
    tails: Array,
    *,
    num_resamples: int,
) -> Crossing:
    difference, cluster, mask = kept_rows(difference, cluster, mask)
    clusters = resampling_clusters(cluster, mask, strata=strata)
    mean = weighted_mean(difference, mask.astype(jnp.float32))
    upward, downward, count = _crossings(mean, log2_k)
    up_first = jnp.isnan(downward) | (upward < downward)
    direction = jnp.where(count == 0, 0, jnp.where(up_first, 1, -1)).astype(jnp.int32)
    means = replicates(
        key, difference, clusters, weighted_mean, num_resamples=num_resamples
    )
    ups, downs, counts = jax.vmap(_crossings, (0, None))(means, log2_k)
    alike = jnp.where(direction >= 0, ups, downs)
    low, high = jax.vmap(quantile, (None, 0))(alike, tails)
    crosses = jnp.where(direction == 0, counts > 0, ~jnp.isnan(alike))
    shown = clusters.varies & (direction != 0)
    point = jnp.where(direction >= 0, upward, downward)
    return Crossing(
        k=Interval(
            point=jnp.exp2(point),
            low=jnp.where(shown, jnp.exp2(low), jnp.nan),
            high=jnp.where(shown, jnp.exp2(high), jnp.nan),
            num_values=jnp.sum(mask, dtype=jnp.int32),
            num_excluded=jnp.sum(~mask, dtype=jnp.int32),
            num_clusters=clusters.count,
        ),
        share=jnp.where(
            clusters.varies, jnp.mean(crosses.astype(jnp.float32)), jnp.nan
        ),
        direction=direction,
        count=count,
    )


def _crossings(difference: Array, log2_k: Array) -> tuple[Array, Array, Array]:
    """First upward and first downward crossing in log2 k, NaN for none; their number.

    A difference of 0 has no side: the last side before it counts.
    """
    d = jnp.where(jnp.abs(difference) <= _ROUNDING, 0.0, difference)
    side = jnp.sign(d)
    place = jnp.arange(side.shape[0], dtype=jnp.int32)
    sided = jax.lax.cummax(jnp.where(side != 0, place, -1))[:-1]
    before = jnp.where(sided >= 0, side[jnp.maximum(sided, 0)], 0.0)
    crosses = before * side[1:] < 0
    left, right = d[:-1], d[1:]
    share = left / jnp.where(crosses, left - right, 1.0)
    at = log2_k[:-1] + share * jnp.diff(log2_k)

    def first(which: Array) -> Array:
        least = jnp.min(jnp.where(which, at, jnp.inf))
        return jnp.where(jnp.any(which), least, jnp.nan)

    upward, downward = crosses & (side[1:] > 0), crosses & (side[1:] < 0)
    return first(upward), first(downward), jnp.sum(crosses, dtype=jnp.int32)

"""Simultaneous confidence bands: one statement about a whole curve or surface.

Pointwise intervals hold each cell with 95%, and so miss somewhere far more often. A
band holds all cells at once with 95%: every feature that is read off a curve (where it
peaks, that it rises, that it lies above another) is covered by the one statement.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp

from jerp.estimators.arguments import check_resampling, check_rows
from jerp.estimators.clusters import kept_rows, resampling_clusters
from jerp.estimators.quantiles import quantile, resolution
from jerp.estimators.resampling import (
    Statistic,
    evaluate,
    replicates,
    weighted_mean,
)
from jerp.records import Interval
from jerp.typing import Array, ArrayLike, ArrayTree, Key

__all__ = ["simultaneous_band"]


def simultaneous_band(
    key: Key,
    values: ArrayTree,
    statistic: Statistic = weighted_mean,
    *,
    cluster: ArrayLike | None = None,
    mask: ArrayLike | None = None,
    strata: ArrayLike | None = None,
    num_resamples: int = 2000,
    level: float = 0.95,
) -> Interval:
    """Sup-t confidence band of a curve or surface, by cluster bootstrap.

        theta_j +- q s_j,  s_j the spread of theta_rj over the resamples r,
        q the `level` quantile over r of max_j |theta_rj - theta_j| / s_j

    The band of a difference between two curves measured on the same tasks is
    `simultaneous_band(key, a - b)`.

    Args:
      key: consumed.
      values: tree of `[N, ...]` arrays, such as pass@k of N tasks `[N, K]` or `[N, K,
        H]`. A row with a NaN in any cell is left out of all cells and counted: were
        each cell to keep its own tasks, a curve could rise because hard tasks drop
        out, and no band would hold it. Centre large values first: a spread that is
        below 2e-6 of their size passes for rounding, and the band has no width there.
      statistic: see `Statistic`; static.
      cluster: `[N]` int, equal iff same task; None takes every row as its own.
      mask: `[N]` bool, False leaves a row out; None keeps all.
      strata: see `jerp.estimators.intervals.bootstrap_interval`.
      num_resamples: R.
      level: nominal coverage of all cells together.

    Returns:
      `Interval` in the shape of the statistic. A cell without spread (every task
      solved, or none) has zero width and does not touch the others: the data cannot
      show how far it may be off, see `wilson_interval` for one such cell. NaN limits
      with fewer than two clusters; a cell whose statistic is NaN is NaN alone, and
      resamples in which it is are left out. Without any row all is NaN and `num_values`
      0, which is no error: that everything failed has to be reported.

    Raises:
      InputError: a number of resamples or a level out of range, a key or statistic that
        is none, and, where Python can see it, an infinite value, ids beyond int32 or a
        cluster in two strata. `ShapeError`, one of them: other axes or types.

    Deviations: symmetric around the estimate, so that limits of a proportion may leave
      [0, 1]; too narrow below about 20 clusters and for cells with a handful of
      successes, as all bootstraps without correction are.

    Reference: Montiel Olea and Plagborg-Moller, "Simultaneous confidence bands: theory,
      implementation, and an application to SVARs", J. Applied Econometrics 34 (2019).

    Example:
      >>> solved = jnp.array([[0.0, 0.0], [0.0, 1.0], [0.0, 1.0], [1.0, 1.0]])
      >>> band = simultaneous_band(jax.random.key(0), solved)
      >>> band.point.tolist(), bool((band.low < band.point).all())
      ([0.25, 0.75], True)
    """
    check_resampling(key, statistic, num_resamples=num_resamples, level=level)
    band = _band(
        key,
        *check_rows(values, cluster, mask, strata),
        jnp.float32(level),
        statistic=statistic,
        num_resamples=num_resamples,
    )
    return band.replace(level=level)


@partial(jax.jit, static_argnames=("statistic", "num_resamples"))
def _band(
    key: Key,
    values: Any,
    cluster: ArrayLike | None,
    mask: ArrayLike | None,
    strata: ArrayLike | None,
    level: Array,
    *,
    statistic: Statistic,
    num_resamples: int,
) -> Interval:
    values, cluster, mask = kept_rows(values, cluster, mask)
    clusters = resampling_clusters(cluster, mask, strata=strata)
    point = evaluate(statistic, values, mask.astype(jnp.float32))
    replicate = replicates(
        key, values, clusters, statistic, num_resamples=num_resamples
    )
    half = jnp.where(clusters.varies, _half_width(point, replicate, level), jnp.nan)
    return Interval(
        point=point,
        low=point - half,
        high=point + half,
        num_values=jnp.sum(mask, dtype=jnp.int32),
        num_excluded=jnp.sum(~mask, dtype=jnp.int32),
        num_clusters=clusters.count,
    )


def _half_width(point: Array, replicate: Array, level: Array) -> Array:
    """Half the width of each cell, 0 without spread and NaN without a resample."""
    defined = ~jnp.isnan(replicate)
    number = jnp.maximum(jnp.sum(defined, axis=0), 1).astype(jnp.float32)

    def mean(x: Array) -> Array:
        return jnp.sum(jnp.where(defined, x, 0.0), axis=0) / number

    deviation = jnp.where(defined, replicate - point[None], 0.0)
    # Standardizing what rounding alone moves would let it set the width of all cells.
    moves = jnp.max(jnp.abs(deviation), axis=0) > resolution(replicate)
    centred = deviation - mean(deviation)[None]
    spread = jnp.where(moves, jnp.sqrt(mean(centred**2)), 0.0)
    share = jnp.abs(deviation) / jnp.where(moves, spread, 1.0)[None]
    cells = tuple(range(1, share.ndim))
    told = moves[None] & defined
    largest = jnp.max(jnp.where(told, share, 0.0), axis=cells, initial=0.0)
    # A resample that tells nothing of any cell would pass for one that is close to all.
    silent = jnp.any(moves) & ~jnp.any(told, axis=cells)
    half = quantile(jnp.where(silent, jnp.nan, largest), level) * spread
    return jnp.where(jnp.any(defined, axis=0), half, jnp.nan)

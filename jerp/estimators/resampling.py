"""Resampling whole clusters: the parts that every cluster bootstrap is made of.

Symbols: `N` values, `C` clusters, `R` resamples. A resample is a weight for each value,
the number of times its cluster was drawn, so that a statistic is a function of values
and weights and nothing is ever gathered. `ops.segments.dense_group_ids` alone decides
what a cluster is. What is undefined is NaN; nothing here is clamped silently.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
from jax.scipy.special import ndtr, ndtri

from jerp.ops.segments import GroupIds
from jerp.typing import Array, ArrayLike, Key

__all__ = [
    "Statistic",
    "bca_levels",
    "jackknife",
    "quantile",
    "replicates",
    "resampled_weight",
    "weighted_mean",
]

Statistic = Callable[[Any, Array], Array]
"""`(values, weight [N]) -> array`: what is estimated, with every value counted `weight`
times. A value of weight 0 must not matter."""

_BLOCK_ELEMENTS = 2**20
"""Weights in memory at once: 4 MB, about a core's cache."""


def weighted_mean(values: ArrayLike, weight: Array) -> Array:
    """Mean over the leading axis, the usual statistic.

        sum_i w_i x_i / sum_i w_i

    Args:
      values: `[N, ...]` float32.
      weight: `[N]` float32, >= 0.

    Returns:
      `[...]` float32; NaN where nothing is weighed.

    Example:
      >>> float(weighted_mean(jnp.array([1.0, 4.0]), jnp.array([2.0, 1.0])))
      2.0
    """
    total = jnp.sum(weight)
    # Accelerators would otherwise round the products.
    weighted = jnp.tensordot(
        weight,
        jnp.asarray(values, jnp.float32),
        axes=1,
        precision=jax.lax.Precision.HIGHEST,
    )
    return jnp.where(total > 0, weighted / jnp.where(total > 0, total, 1), jnp.nan)


def resampled_weight(share: Array, clusters: GroupIds) -> Array:
    """Times that each value's cluster is among C draws of C clusters.

    Args:
      share: `[N]` float32, independent and uniform in [0, 1). C is traced and N bounds
        it, so the first C are the draws and the others are not used.
      clusters: of N values.

    Returns:
      `[N]` float32, 0 for values that are left out.

    Example:
      >>> from jerp.ops.segments import dense_group_ids
      >>> c = dense_group_ids(jnp.array([7, 7, 9]), mask=jnp.ones(3, bool))
      >>> resampled_weight(jnp.array([0.1, 0.4, 0.9]), c).tolist()
      [2.0, 2.0, 0.0]
    """
    number = clusters.index.shape[0]
    # Below 1 times C rounds below C; the grain of 2^-23 is a bias too small to see.
    draw = jnp.floor(share * clusters.count.astype(jnp.float32)).astype(jnp.int32)
    counts = (jnp.arange(number) < clusters.count).astype(jnp.float32)
    times = jax.ops.segment_sum(counts, draw, num_segments=number + 1)
    return times[clusters.index]


def replicates(
    key: Key,
    values: Any,
    clusters: GroupIds,
    statistic: Statistic,
    *,
    num_resamples: int,
) -> Array:
    """The statistic of every resample, a few megabytes of weights at a time.

    Args:
      key: consumed.
      values: tree of `[N, ...]` arrays, finite also where left out.
      clusters: of the N values.
      statistic: see `Statistic`.
      num_resamples: R.

    Returns:
      `[R, ...]` in the shape of the statistic.

    Example:
      >>> from jerp.ops.segments import dense_group_ids
      >>> c = dense_group_ids(jnp.array([0, 1]), mask=jnp.ones(2, bool))
      >>> x = jnp.array([0.0, 1.0])
      >>> r = replicates(jax.random.key(0), x, c, weighted_mean, num_resamples=64)
      >>> sorted(set(r.tolist()))
      [0.0, 0.5, 1.0]
    """
    number = clusters.index.shape[0]
    num_blocks = -(-num_resamples // _rows(number, num_resamples))
    rows = -(-num_resamples // num_blocks)

    # One flat draw a block: a matrix of draws, or a key a resample, compiles four times
    # as long.
    def block(b: Array) -> Array:
        share = jax.random.uniform(jax.random.fold_in(key, b), (rows * number,))
        share = share.reshape(rows, number)
        weight = jax.vmap(resampled_weight, (0, None))(share, clusters)
        return jax.vmap(statistic, (None, 0))(values, weight)

    blocks = jax.lax.map(block, jnp.arange(num_blocks))
    return blocks.reshape(-1, *blocks.shape[2:])[:num_resamples]


def jackknife(values: Any, clusters: GroupIds, statistic: Statistic) -> Array:
    """The statistic without one cluster at a time.

    Args:
      values: tree of `[N, ...]` arrays.
      clusters: of the N values.
      statistic: see `Statistic`.

    Returns:
      `[N, ...]`; row c is without cluster c, rows from C on are NaN.

    Example:
      >>> from jerp.ops.segments import dense_group_ids
      >>> c = dense_group_ids(jnp.array([5, 5, 6]), mask=jnp.ones(3, bool))
      >>> jackknife(jnp.array([1.0, 2.0, 4.0]), c, weighted_mean).tolist()
      [4.0, 1.5, nan]
    """
    number = clusters.index.shape[0]

    def without(c: Array) -> Array:
        kept = (clusters.index != c) & (clusters.index < number)
        value = statistic(values, kept.astype(jnp.float32))
        return jnp.where(c < clusters.count, value, jnp.nan)

    return jax.lax.map(without, jnp.arange(number), batch_size=_rows(number, number))


def bca_levels(level: Array, point: Array, replicate: Array, left_out: Array) -> Array:
    """Where BCa reads the bootstrap distribution for a nominal quantile.

        Phi(z0 + (z0 + z) / (1 - a (z0 + z))),  z = Phi^-1(level)
        z0 = Phi^-1(share of resamples below the point, ties half)
        a  = sum_c u_c^3 / (6 (sum_c u_c^2)^1.5),  u_c = mean - theta without c

    Args:
      level: `[]` float32, in (0, 1).
      point: `[...]` float32, the estimate.
      replicate: `[R, ...]` float32; NaN is left out.
      left_out: `[N, ...]` float32, from `jackknife`; NaN is left out.

    Returns:
      `[...]` float32 levels, finite also when all resamples are equal.

    Reference: Efron, "Better bootstrap confidence intervals", JASA 82 (1987).

    Example:
      >>> r = jnp.array([0.0, 1.0, 2.0])
      >>> a = bca_levels(jnp.float32(0.9), jnp.float32(1.0), r, r)
      >>> round(float(a), 4)
      0.9
    """
    center = point[None]
    side = jnp.where(replicate < center, 1.0, jnp.where(replicate == center, 0.5, 0.0))
    defined = jnp.sum(~jnp.isnan(replicate), axis=0).astype(jnp.float32)
    # The added half keeps z0 finite when all resamples lie on one side.
    bias = ndtri((jnp.sum(side, axis=0) + 0.5) / (defined + 1.0))
    real = ~jnp.isnan(left_out)
    number = jnp.maximum(jnp.sum(real, axis=0), 1).astype(jnp.float32)
    mean = jnp.sum(jnp.where(real, left_out, 0.0), axis=0) / number
    offset = jnp.where(real, mean[None] - left_out, 0.0)
    # Scaled before cubing, which would underflow for small offsets.
    scale = jnp.max(jnp.abs(offset), axis=0, initial=0.0)
    offset = offset / jnp.where(scale > 0, scale, 1.0)[None]
    square = jnp.sum(offset**2, axis=0)
    skew = jnp.sum(offset**3, axis=0) / jnp.where(square > 0, square, 1.0) ** 1.5
    shifted = bias + ndtri(level)
    return ndtr(bias + shifted / (1.0 - skew / 6.0 * shifted))


def quantile(replicate: Array, level: Array) -> Array:
    """Linearly interpolated quantile of what is not NaN, one level a component.

    `jnp.nanquantile` takes one level for all components; BCa has its own for each.

    Args:
      replicate: `[R, ...]` float32.
      level: `[]` or `[...]` float32 in [0, 1].

    Returns:
      `[...]` float32; NaN where all are NaN.

    Example:
      >>> float(quantile(jnp.array([3.0, jnp.nan, 1.0]), jnp.float32(0.25)))
      1.5
    """
    ordered = jnp.sort(replicate, axis=0)
    last = jnp.maximum(jnp.sum(~jnp.isnan(replicate), axis=0) - 1, 0)
    position = jnp.broadcast_to(level, last.shape) * last.astype(jnp.float32)
    lower = jnp.floor(position)
    pick = partial(jnp.take_along_axis, ordered, axis=0)
    low = pick(lower.astype(jnp.int32)[None])[0]
    high = pick(jnp.ceil(position).astype(jnp.int32)[None])[0]
    return low + (high - low) * (position - lower)


def _rows(num_values: int, num_rows: int) -> int:
    """Most rows of N weights in memory at once."""
    return max(1, min(num_rows, _BLOCK_ELEMENTS // max(num_values, 1)))

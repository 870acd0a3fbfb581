"""Resampling whole clusters: the parts that every cluster bootstrap is made of.

Symbols: `N` values, `C` clusters, `R` resamples. A resample is a weight for each value,
the number of times it was drawn, so that a statistic is a function of values and
weights and nothing is ever gathered. `jerp.estimators.clusters` says what a cluster
is. What is undefined is NaN; nothing here is clamped silently.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp

from jerp.errors import InputError
from jerp.estimators.clusters import Clusters
from jerp.typing import Array, ArrayLike, Key

__all__ = [
    "Statistic",
    "evaluate",
    "jackknife",
    "replicates",
    "resampled_weight",
    "weight_within",
    "weighted_mean",
]

Statistic = Callable[[Any, Array], Array]
"""`(values, weight [N]) -> array`: what is estimated, with every value counted `weight`
times. A value of weight 0 must not matter."""

_BLOCK_ELEMENTS = 2**20
"""Weights in memory at once: 4 MB, about a core's cache."""

_SUM_LENGTH = 128
"""Products added up in sequence before their sums are."""


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
    values, total = jnp.asarray(values, jnp.float32), jnp.sum(weight)
    # 0 times infinity is NaN, and what weighs nothing must not matter. A NaN is above
    # and below everything.
    finite = jnp.isfinite(values)
    above, below = ~finite & ~(values < 0), ~finite & ~(values > 0)
    parts = (
        jnp.where(finite, values, 0),
        above.astype(jnp.float32),
        below.astype(jnp.float32),
    )
    weighted, above, below = jnp.moveaxis(
        _sum_of_products(weight, jnp.stack(parts, axis=-1)), -1, 0
    )
    mean = jnp.where(total > 0, weighted / jnp.where(total > 0, total, 1), jnp.nan)
    infinite = jnp.where(above > 0, jnp.inf, 0) - jnp.where(below > 0, jnp.inf, 0)
    return mean + infinite


def resampled_weight(share: Array, clusters: Clusters) -> Array:
    """Times that each value's cluster is drawn, every cluster once replaced.

    Args:
      share: `[N]` float32, independent and uniform in [0, 1). C is traced and N bounds
        it, so the first C are the draws and the others are not used.
      clusters: of N values; a draw stays within the stratum.

    Returns:
      `[N]` float32, 0 for values that are left out.

    Example:
      >>> from jerp.estimators.clusters import resampling_clusters
      >>> c = resampling_clusters(jnp.array([7, 7, 9]), jnp.ones(3, bool))
      >>> resampled_weight(jnp.array([0.1, 0.4, 0.9]), c).tolist()
      [2.0, 2.0, 0.0]
    """
    number = clusters.index.shape[0]
    # Below 1 times n rounds below n; the grain of 2^-23 is a bias too small to see.
    offset = jnp.floor(share * clusters.size.astype(jnp.float32)).astype(jnp.int32)
    counts = (jnp.arange(number) < clusters.count).astype(jnp.float32)
    times = jax.ops.segment_sum(
        counts, clusters.first + offset, num_segments=number + 1
    )
    return times[clusters.index]


def weight_within(key: Key, weight: Array, clusters: Clusters) -> Array:
    """The second stage: the values of each drawn cluster are drawn anew.

    A cluster of m values that was drawn t times gives t m draws among those m values.

    Args:
      key: consumed.
      weight: `[R, N]` float32, times that each value's cluster is drawn, from
        `resampled_weight`.
      clusters: of N values.

    Returns:
      `[R, N]` float32 with the same sum in every cluster.

    Example:
      >>> from jerp.estimators.clusters import resampling_clusters
      >>> c = resampling_clusters(jnp.array([7, 7, 9]), jnp.ones(3, bool))
      >>> w = weight_within(jax.random.key(0), jnp.array([[1.0, 1.0, 2.0]]), c)
      >>> float(w[0, :2].sum()), float(w[0, 2])
      (2.0, 2.0)
    """
    rows, number = weight.shape
    if number == 0:
        return weight
    order = jnp.argsort(clusters.index)
    # Side by side, the values of a cluster are [start, start + size).
    ordered = clusters.index[order]
    sizes = jnp.bincount(ordered, length=number + 1)
    start, size = (jnp.cumsum(sizes) - sizes)[ordered], sizes[ordered]
    end = jnp.cumsum(weight[:, order].astype(jnp.int32), axis=1)

    # How many draws there are is known on the device alone, N or a little more: they
    # are made N at a time.
    def draw(state: tuple[Array, Array]) -> tuple[Array, Array]:
        turn, times = state
        share = jax.random.uniform(jax.random.fold_in(key, turn), (rows * number,))

        def one(times: Array, share: Array, end: Array) -> Array:
            left = jnp.clip(end - turn * number, 0, number)
            place = jnp.cumsum(jnp.zeros(number + 1, jnp.int32).at[left].add(1))[:-1]
            place = jnp.minimum(place, number - 1)
            offset = jnp.floor(share * size[place].astype(jnp.float32))
            real = jnp.arange(number) < left[-1]
            drawn = start[place] + offset.astype(jnp.int32)
            return times.at[drawn].add(real.astype(times.dtype))

        return turn + 1, jax.vmap(one)(times, share.reshape(rows, number), end)

    def unfinished(state: tuple[Array, Array]) -> Array:
        return state[0] * number < jnp.max(end, initial=0)

    none = jnp.int32(0), jnp.zeros_like(weight)
    _, times = jax.lax.while_loop(unfinished, draw, none)
    return jnp.zeros_like(weight).at[:, order].set(times)


def replicates(
    key: Key,
    values: Any,
    clusters: Clusters,
    statistic: Statistic,
    *,
    num_resamples: int,
    resample_within: bool = False,
) -> Array:
    """The statistic of every resample, a few megabytes of weights at a time.

    Args:
      key: consumed.
      values: tree of `[N, ...]` arrays, finite also where left out.
      clusters: of the N values.
      statistic: see `Statistic`.
      num_resamples: R.
      resample_within: also draw the values of each drawn cluster anew.

    Returns:
      `[R, ...]` in the shape of the statistic.

    Example:
      >>> from jerp.estimators.clusters import resampling_clusters
      >>> c = resampling_clusters(jnp.arange(2), jnp.ones(2, bool))
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
        if resample_within:
            within = jax.random.fold_in(key, num_blocks + b)
            weight = weight_within(within, weight, clusters)
        return jax.vmap(statistic, (None, 0))(values, weight)

    blocks = jax.lax.map(block, jnp.arange(num_blocks))
    return blocks.reshape(-1, *blocks.shape[2:])[:num_resamples]


def jackknife(values: Any, clusters: Clusters, statistic: Statistic) -> Array:
    """The statistic without one cluster at a time.

    Args:
      values: tree of `[N, ...]` arrays.
      clusters: of the N values.
      statistic: see `Statistic`.

    Returns:
      `[N, ...]`; row c is without cluster c, rows from C on are NaN.

    Example:
      >>> from jerp.estimators.clusters import resampling_clusters
      >>> c = resampling_clusters(jnp.array([5, 5, 6]), jnp.ones(3, bool))
      >>> jackknife(jnp.array([1.0, 2.0, 4.0]), c, weighted_mean).tolist()
      [4.0, 1.5, nan]
    """
    number = clusters.index.shape[0]

    def without(c: Array) -> Array:
        kept = (clusters.index != c) & (clusters.index < number)
        value = statistic(values, kept.astype(jnp.float32))
        return jnp.where(c < clusters.count, value, jnp.nan)

    return jax.lax.map(without, jnp.arange(number), batch_size=_rows(number, number))


def evaluate(statistic: Statistic, values: Any, weight: Array) -> Array:
    """The statistic of the data, refused where it is no `Statistic`.

    Example:
      >>> float(evaluate(weighted_mean, jnp.array([1.0, 3.0]), jnp.ones(2)))
      2.0
    """
    try:
        return statistic(values, weight)
    except TypeError as error:
        name = getattr(statistic, "__name__", repr(statistic))
        raise InputError(
            f"statistic: expected a function (values, weight [N]) -> array that jit "
            f"can trace, as weighted_mean is, got {name}, which raised "
            f"{type(error).__name__}"
        ) from error


def _sum_of_products(weight: Array, values: Array) -> Array:
    """`sum_i w_i x_i` in blocks, as one matrix product a block.

    One long product adds up in sequence and is off by 4e-4 at 50,000 equal values.
    """
    number, shape = weight.shape[0], values.shape[1:]
    blocks = max(1, -(-number // _SUM_LENGTH))
    length, columns = -(-number // blocks), math.prod(shape)
    padding = blocks * length - number
    weight = jnp.pad(weight, (0, padding)).reshape(blocks, length)
    values = jnp.pad(values.reshape(number, columns), ((0, padding), (0, 0)))
    values = values.reshape(blocks, length, columns)
    # Accelerators would otherwise round the products.
    sums = jnp.einsum("bi,bij->bj", weight, values, precision=jax.lax.Precision.HIGHEST)
    return jnp.sum(sums, axis=0).reshape(shape)


def _rows(num_values: int, num_rows: int) -> int:
    """Most rows of N weights in memory at once."""
    return max(1, min(num_rows, _BLOCK_ELEMENTS // max(num_values, 1)))

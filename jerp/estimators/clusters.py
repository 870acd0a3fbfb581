"""Which rows count, and which of them are drawn together and from where.

Symbols: `N` rows, `C` clusters (tasks). Clusters are numbered from 0 so that those of
one stratum stand side by side: a resample replaces each cluster by one drawn from the
neighbours `[first, first + size)` of its stratum. Without strata all clusters are
neighbours. Rows that are masked or hold a NaN enter nothing and are counted.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import chex
import jax
import jax.numpy as jnp
import numpy as np

from jerp.errors import InputError
from jerp.ops.checks import concrete
from jerp.ops.segments import GroupIds, dense_group_ids
from jerp.typing import Array, ArrayLike

__all__ = ["Clusters", "check_strata", "kept_rows", "resampling_clusters"]


class Clusters(NamedTuple):
    """Which cluster each row is in, and which clusters may stand in for which.

    Attributes:
      index: `[N]` int32 in [0, C); N for rows that are left out.
      count: `[]` int32, C: clusters with at least one row.
      first: `[N]` int32; entry c is the first cluster of the stratum of cluster c.
      size: `[N]` int32; entry c is the number of clusters in that stratum, 0 from C on.
      nested: `[]` bool, no cluster is in two strata.
    """

    index: Array
    count: Array
    first: Array
    size: Array
    nested: Array

    @property
    def varies(self) -> Array:
        """`[]` bool: resampling means something, some stratum has two clusters."""
        return self.nested & (jnp.max(self.size, initial=0) >= 2)


def kept_rows(
    values: Any, cluster: ArrayLike | None, mask: ArrayLike | None
) -> tuple[Any, Array, Array]:
    """Arrays of one length, and a mask that also leaves out rows with a NaN.

    Args:
      values: tree of `[N, ...]` arrays.
      cluster: `[N]` int; None takes every row as its own cluster.
      mask: `[N]` bool, False leaves a row out; None keeps all.

    Returns:
      Values, cluster, mask. A row that is left out holds 0 in every value, so that
      nothing that was in it reaches a statistic.

    Example:
      >>> x, cluster, mask = kept_rows(jnp.array([1.0, jnp.nan, 3.0]), None, None)
      >>> x.tolist(), mask.tolist()
      ([1.0, 0.0, 3.0], [True, False, True])
    """
    number = jax.tree.leaves(values)[0].shape[0]
    chex.assert_tree_shape_prefix(values, (number,))
    cluster = jnp.arange(number) if cluster is None else jnp.asarray(cluster)
    mask = jnp.ones(number, bool) if mask is None else jnp.asarray(mask)
    chex.assert_shape([cluster, mask], (number,))
    chex.assert_type([cluster, mask], [int, bool])
    for leaf in jax.tree.leaves(values):
        if jnp.issubdtype(leaf.dtype, jnp.inexact):
            mask = mask & ~jnp.any(jnp.isnan(leaf), axis=tuple(range(1, leaf.ndim)))

    def clean(leaf: Array) -> Array:
        kept = mask.reshape((number,) + (1,) * (leaf.ndim - 1))
        return jnp.where(kept, leaf, jnp.zeros((), leaf.dtype))

    return jax.tree.map(clean, values), cluster, mask


def resampling_clusters(
    cluster: ArrayLike, mask: ArrayLike, *, strata: ArrayLike | None = None
) -> Clusters:
    """Numbers the clusters of the rows that count, stratum by stratum.

    Args:
      cluster: `[N]` int, equal iff same cluster; any values, in any order.
      mask: `[N]` bool, True for rows that count. A cluster without such a row is none.
      strata: `[N]` int, equal iff same stratum; None puts all into one.

    Returns:
      `Clusters`.

    Example:
      >>> task, domain = jnp.array([7, 7, 3, 5]), jnp.array([1, 1, 0, 1])
      >>> c = resampling_clusters(task, jnp.ones(4, bool), strata=domain)
      >>> c.index.tolist(), c.first.tolist(), c.size.tolist()
      ([2, 2, 0, 1], [0, 1, 1, 0], [1, 2, 2, 0])
    """
    ids = dense_group_ids(cluster, mask=mask)
    number = ids.index.shape[0]
    real = jnp.arange(number) < ids.count
    if strata is None:
        size = jnp.where(real, ids.count, 0)
        return Clusters(*ids, jnp.zeros_like(size), size, jnp.bool_(True))
    chex.assert_type(jnp.asarray(strata), int)
    by_stratum = dense_group_ids(strata, cluster, mask=mask)
    first, size = _neighbours(by_stratum, dense_group_ids(strata, mask=mask).index)
    return Clusters(*by_stratum, first, size, by_stratum.count == ids.count)


def check_strata(
    strata: ArrayLike | None, cluster: ArrayLike | None, mask: ArrayLike | None
) -> None:
    """Raises `InputError` if a cluster is seen to be in two strata.

    Example:
      >>> check_strata(np.array([0, 0, 1]), np.array([5, 5, 6]), None)
    """
    if strata is None or cluster is None:
        return
    stratum, name = concrete(strata), concrete(cluster)
    kept = np.ones(np.shape(cluster), bool) if mask is None else concrete(mask)
    if stratum is None or name is None or kept is None:
        return
    chex.assert_equal_shape([stratum, name, kept])
    pairs = np.unique(np.stack([name[kept], stratum[kept]]), axis=1)
    names, times = np.unique(pairs[0], return_counts=True)
    if (times > 1).any():
        raise InputError(
            f"strata: expected every cluster in one stratum, got cluster "
            f"{names[times > 1][0]} in {times.max()} ({(times > 1).sum()} of "
            f"{len(names)} wrong)"
        )


def _neighbours(ids: GroupIds, stratum: Array) -> tuple[Array, Array]:
    """First cluster and number of clusters in the stratum of each cluster.

    Every cluster appears once in the sums: clusters, not rows, are counted.
    """
    number = ids.index.shape[0]
    real = jnp.arange(number) < ids.count
    slots = number + 1
    of_cluster = jnp.full(slots, number, jnp.int32).at[ids.index].set(stratum)[:-1]
    size = jax.ops.segment_sum(real.astype(jnp.int32), of_cluster, num_segments=slots)
    first = jnp.cumsum(size) - size
    zero = jnp.int32(0)
    return jnp.where(real, first[of_cluster], zero), jnp.where(
        real, size[of_cluster], zero
    )

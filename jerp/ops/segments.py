"""Reductions over groups of rows, with a static number of groups.

`N` rows, each in one of `G` groups by its id in [0, G). Rows may lie in any order.
Masked rows enter nothing, whatever they and their ids hold; a real row whose id is out
of range enters no group either. A NaN in a real row makes its own group NaN and no
other. Values are centred on one of their group before they are averaged, so that equal
values deviate by exactly 0. Half precision comes in, float32 goes out.
"""

from __future__ import annotations

from functools import partial
from typing import NamedTuple

import chex
import jax
import jax.numpy as jnp
from flax import struct
from jax import lax

from jerp.ops.checks import check_axes
from jerp.ops.masked import safe_sqrt
from jerp.typing import Array, ArrayLike

__all__ = [
    "GroupIds",
    "GroupStats",
    "dense_group_ids",
    "group_deviations",
    "group_max",
    "group_stats",
    "group_sum",
    "of_group",
]


_SUM_LENGTH = 1024
"""Rows that are added up in sequence. With many groups it may be more: there is at most
one sum of a part for 8 rows, so that the parts cost next to nothing."""


class GroupIds(NamedTuple):
    """Which group each row is in.

    Attributes:
      index: `[N]` int32 in [0, G); N for rows that are left out.
      count: `[]` int32, G: groups with at least one row.
    """

    index: Array
    count: Array


class GroupStats(struct.PyTreeNode):
    """Statistics of each group; 0 and False for groups without rows.

    Attributes:
      mean: `[G]` float32.
      std: `[G]` float32.
      count: `[G]` int32, rows.
      dead: `[G]` bool, has rows and all their values are equal: nothing to learn from.
    """

    mean: Array
    std: Array
    count: Array
    dead: Array


def dense_group_ids(*keys: ArrayLike, mask: ArrayLike) -> GroupIds:
    """Numbers rows by their keys: the same number iff all keys are equal.

    Args:
      *keys: `[N]` int32 each, any values in any order, such as task and anchor.
      mask: `[N]` bool, True for rows that count. A group without such a row is none.

    Returns:
      `GroupIds`, numbered in the sorted order of the keys, the first one leading.

    Example:
      >>> task, anchor = jnp.array([7, 3, 7, 7]), jnp.array([0, 0, 0, 1])
      >>> ids = dense_group_ids(task, anchor, mask=jnp.ones(4, bool))
      >>> ids.index.tolist(), int(ids.count)
      ([1, 0, 1, 2], 3)
    """
    check_axes(
        **{f"keys[{i}]": (key, "N", int) for i, key in enumerate(keys)},
        mask=(mask, "N", bool),
    )
    columns, counts = [jnp.asarray(key) for key in keys], jnp.asarray(mask)
    number = counts.shape[0]
    if number == 0:
        return GroupIds(index=jnp.zeros(0, jnp.int32), count=jnp.int32(0))
    # A row that is left out takes the keys of one that counts: it makes no group, and
    # the sort, which is nearly all of the time, has no key more.
    some = jnp.argmax(counts)
    columns = [jnp.where(counts, key, key[some]) for key in columns]
    rows = jnp.arange(number, dtype=jnp.int32)
    *columns, order = lax.sort((*columns, rows), num_keys=len(columns), is_stable=False)
    changes = jnp.any(jnp.stack([key[1:] != key[:-1] for key in columns]), axis=0)
    dense = jnp.append(jnp.int32(0), jnp.cumsum(changes, dtype=jnp.int32))
    index = jnp.zeros_like(rows).at[order].set(dense, unique_indices=True)
    return GroupIds(
        index=jnp.where(counts, index, jnp.int32(number)),
        count=jnp.where(counts[some], dense[-1] + 1, 0),
    )


def group_sum(x: Array, group_id: Array, mask: Array, *, num_groups: int) -> Array:
    """Sum of the real rows of each group.

        s_g = sum {x_i : group_i = g, m_i}

    Args:
      x: `[N]`, float or an integer type. Masked rows may hold anything.
      group_id: `[N]` int32.
      mask: `[N]` bool.
      num_groups: G, static.

    Returns:
      `[G]` float32 or the integer type; 0 for groups without rows. A group is added up
      in parts, which are then added, so that a million rows lose no more digits than a
      part does.

    Example:
      >>> x, g = jnp.array([1.0, 2.0, 4.0]), jnp.array([1, 0, 1])
      >>> group_sum(x, g, jnp.ones(3, bool), num_groups=3).tolist()
      [2.0, 5.0, 0.0]
    """
    _check(x, group_id, mask)
    index = _kept(group_id, mask, num_groups)
    if jnp.issubdtype(x.dtype, jnp.floating):
        x = jnp.asarray(x, jnp.float32)
    x = jnp.where(mask, x, 0)
    slots = num_groups + 1
    parts = max(1, x.size // max(8 * slots, _SUM_LENGTH))
    part = jnp.arange(x.size, dtype=jnp.int32) % parts
    sums = jax.ops.segment_sum(x, index + slots * part, num_segments=slots * parts)
    return jnp.sum(sums.reshape(parts, slots), axis=0, dtype=x.dtype)[:-1]


def group_max(
    x: Array, group_id: Array, mask: Array, *, num_groups: int, empty: float
) -> Array:
    """Largest real row of each group.

        max_g = max {x_i : group_i = g, m_i}

    Args:
      x: `[N]` float. Masked rows may hold anything.
      group_id: `[N]` int32.
      mask: `[N]` bool.
      num_groups: G, static.
      empty: the answer for a group without rows, and a lower bound of every answer.

    Returns:
      `[G]` float32.

    Example:
      >>> x, g = jnp.array([1.0, 2.0, 4.0]), jnp.array([1, 0, 1])
      >>> group_max(x, g, jnp.ones(3, bool), num_groups=3, empty=0.0).tolist()
      [2.0, 4.0, 0.0]
    """
    _check(x, group_id, mask)
    index = _kept(group_id, mask, num_groups)
    x = jnp.where(mask, jnp.asarray(x, jnp.float32), empty)
    return jnp.full(num_groups + 1, empty, jnp.float32).at[index].max(x)[:-1]


def of_group(value: Array, group_id: Array, mask: Array) -> Array:
    """Hands each row the value of its group.

    Args:
      value: `[G]`, one a group.
      group_id: `[N]` int32.
      mask: `[N]` bool.

    Returns:
      `[N]`; 0 for masked rows and ids out of range.

    Example:
      >>> of_group(
      ...     jnp.array([5.0, 6.0]), jnp.array([1, 0, 9]), jnp.ones(3, bool)
      ... ).tolist()
      [6.0, 5.0, 0.0]
    """
    index = _kept(group_id, mask, value.shape[0])
    return jnp.asarray(value).at[index].get(mode="fill", fill_value=0)


def group_deviations(
    x: Array,
    group_id: Array,
    mask: Array,
    *,
    num_groups: int,
    weight: Array | None = None,
) -> Array:
    """Distance of each row from the mean of its group.

        d_i = x_i - mean_g,   mean_g = sum_g w_j x_j / sum_g w_j

    Args:
      x: `[N]` float. Masked rows may hold anything.
      group_id: `[N]` int32.
      mask: `[N]` bool.
      num_groups: G, static.
      weight: `[N]` float32, at least 0; None weighs all rows alike.

    Returns:
      `[N]` float32; 0 for masked rows and ids out of range, and exactly 0 in groups of
      equal values. NaN in a group whose rows weigh nothing.

    Example:
      >>> x, g = jnp.array([1.0, 2.0, 4.0]), jnp.array([1, 0, 1])
      >>> group_deviations(x, g, jnp.ones(3, bool), num_groups=2).tolist()
      [-1.5, 0.0, 1.5]
    """
    return _centred(x, group_id, mask, num_groups, weight).deviation


def group_stats(
    x: Array,
    group_id: Array,
    mask: Array,
    *,
    num_groups: int,
    ddof: int = 0,
    weight: Array | None = None,
) -> GroupStats:
    """Mean, standard deviation and size of each group.

        mean_g = sum_g w_i x_i / W_g,   W_g = sum_g w_i
        std_g  = sqrt(sum_g w_i (x_i - mean_g)^2 / (W_g - ddof))

    Deviations are scaled by the largest before they are squared: neither 1e30 nor
    1e-30 over- or underflows.

    Args:
      x: `[N]` float. Masked rows may hold anything.
      group_id: `[N]` int32; a real row with an id outside [0, G) enters nothing.
      mask: `[N]` bool.
      num_groups: G, static.
      ddof: 0 for the population's standard deviation, 1 for the sample's.
      weight: `[N]` float32, at least 0; None weighs all rows alike.

    Returns:
      `GroupStats`. `std` is 0 where `W_g <= ddof`. The mean of rows that weigh nothing
      is NaN.

    Example:
      >>> x, g = jnp.array([1.0, 2.0, 4.0]), jnp.array([1, 0, 1])
      >>> stats = group_stats(x, g, jnp.ones(3, bool), num_groups=3)
      >>> stats.mean.tolist(), stats.std.tolist(), stats.count.tolist()
      ([2.0, 2.5, 0.0], [0.0, 1.5, 0.0], [1, 2, 0])
      >>> stats.dead.tolist()
      [True, False, False]
    """
    centred = _centred(x, group_id, mask, num_groups, weight)
    size = jnp.abs(lax.stop_gradient(centred.deviation))
    largest = group_max(size, group_id, mask, num_groups=num_groups, empty=0.0)
    unit = jnp.where(largest > 0, largest, 1)
    unit_of_row = of_group(unit, group_id, mask)
    share = centred.deviation / jnp.where(unit_of_row > 0, unit_of_row, 1)
    square = centred.weight * jnp.square(share)
    squares = group_sum(square, group_id, mask, num_groups=num_groups)
    freedom = centred.total - ddof
    variance = jnp.where(freedom > 0, squares / jnp.where(freedom > 0, freedom, 1), 0)
    return GroupStats(
        mean=centred.mean,
        std=unit * safe_sqrt(variance),
        count=centred.count,
        dead=(centred.count > 0) & (largest == 0),
    )


class _Centred(NamedTuple):
    """Of rows the deviation and weight `[N]`; of groups mean, rows, weight `[G]`."""

    deviation: Array
    weight: Array
    mean: Array
    count: Array
    total: Array


def _centred(
    x: Array, group_id: Array, mask: Array, num_groups: int, weight: Array | None
) -> _Centred:
    """Distances from the group's mean, taken in three steps.

    In float32 the mean of equal numbers differs from them by rounding, and dividing by
    a tiny spread would make that visible. Differences from the largest are exact there;
    the second centring removes what the first one rounded.
    """
    _check(x, group_id, mask)
    sum_of = partial(group_sum, group_id=group_id, mask=mask, num_groups=num_groups)
    count = sum_of(jnp.ones(x.shape, jnp.int32))
    if weight is None:
        weight, total = jnp.ones(x.shape), count.astype(jnp.float32)
    else:
        chex.assert_equal_shape([x, weight])
        weight = jnp.where(mask, jnp.asarray(weight, jnp.float32), 0)
        total = sum_of(weight)
    top = group_max(x, group_id, mask, num_groups=num_groups, empty=-jnp.inf)
    mean = lax.stop_gradient(jnp.where(count > 0, top, 0))
    inside = _kept(group_id, mask, num_groups) < num_groups
    x = jnp.where(inside, jnp.asarray(x, jnp.float32), 0)
    deviation = x - of_group(mean, group_id, mask)
    for _ in range(2):
        moment = sum_of(weight * deviation)
        shift = jnp.where(count > 0, moment / jnp.where(count > 0, total, 1), 0)
        deviation = deviation - of_group(shift, group_id, mask)
        mean = mean + shift
    return _Centred(deviation, weight, mean, count, total)


def _kept(group_id: Array, mask: Array, num_groups: int) -> Array:
    """Ids of the rows that count, G for all others, int32."""
    # In a narrow type G would wrap around and be the id of a group.
    group_id = jnp.asarray(group_id).astype(jnp.int32)
    inside = mask & (group_id >= 0) & (group_id < num_groups)
    return jnp.where(inside, group_id, num_groups)


def _check(x: Array, group_id: Array, mask: Array) -> None:
    chex.assert_rank([x, group_id, mask], 1)
    chex.assert_equal_shape([x, group_id, mask])
    chex.assert_type([group_id, mask], [int, bool])

"""How often states repeat: without repetition GiGPO is GRPO.

`N` steps in groups by (task, anchor), as `ops.segments.dense_group_ids` numbers them.
"""

from __future__ import annotations

import jax.numpy as jnp
from flax import struct

from jerp.ops.segments import GroupIds, group_sum
from jerp.typing import Array

__all__ = ["AnchorCoverage", "anchor_coverage"]


class AnchorCoverage(struct.PyTreeNode):
    """How many groups of equal states there are, and how large.

    Attributes:
      groups: `[]` int32, distinct (task, anchor) pairs among the real steps.
      size_min: `[]` int32, steps of the smallest group; 0 without steps.
      size_mean: `[]` float32.
      size_max: `[]` int32.
      singleton_share: `[]` float32, groups of one step among all groups; NaN without
        steps.
    """

    groups: Array
    size_min: Array
    size_mean: Array
    size_max: Array
    singleton_share: Array


def anchor_coverage(ids: GroupIds, mask: Array) -> AnchorCoverage:
    """Sizes of the groups of steps.

    Args:
      ids: group of each of N steps.
      mask: `[N]` bool, the one the groups were numbered with.

    Returns:
      `AnchorCoverage`.

    Example:
      >>> from jerp.ops.segments import dense_group_ids
      >>> mask = jnp.ones(4, bool)
      >>> ids = dense_group_ids(jnp.array([7, 3, 7, 7]), mask=mask)
      >>> c = anchor_coverage(ids, mask)
      >>> int(c.groups), int(c.size_max), float(c.singleton_share)
      (2, 3, 0.5)
    """
    number = mask.size
    ones = jnp.ones(number, jnp.int32)
    size = group_sum(ones, ids.index, mask, num_groups=number)
    smallest = jnp.min(jnp.where(size > 0, size, number), initial=number)
    return AnchorCoverage(
        groups=ids.count,
        size_min=jnp.where(ids.count > 0, smallest, 0),
        size_mean=jnp.sum(size) / jnp.maximum(ids.count, 1),
        size_max=jnp.max(size, initial=0),
        singleton_share=jnp.sum(size == 1) / ids.count,
    )

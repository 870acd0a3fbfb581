"""Sums of products of rows by segment, as matrix products of blocks of one segment.

Rows are laid out so that no block holds rows of two segments. Summing the products of
the blocks then costs one pass over the rows, however many segments there are.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
from flax import struct
from jax import lax

from jerp.typing import Array

__all__ = ["Blocks", "blocks_of"]

MOST_ROWS, FEWEST_ROWS = 128, 4
"""In a block: a matrix product's worth, and little padding where rows are few."""


class Blocks(struct.PyTreeNode):
    """Where rows lie: `S` blocks of `R` rows, a segment each.

    Attributes:
      index: `[S, R]` int32, the row; N for padding.
      segment: `[S]` int32 in [0, num_segments).
      num_rows: N, static.
      num_segments: static.
    """

    index: Array
    segment: Array
    num_rows: int = struct.field(pytree_node=False)
    num_segments: int = struct.field(pytree_node=False)

    def rows(self, x: Array) -> Array:
        """`[N, F]` to `[S, R, F]`, 0 in padding."""
        return jnp.take(x, self.index, axis=0, mode="fill", fill_value=0)

    def scattered(self, x: Array) -> Array:
        """`[S, R]` back to `[N]`, 0 for rows that are in no segment."""
        return jnp.zeros(self.num_rows).at[self.index].set(x, mode="drop")

    def products(self, x: Array, y: Array) -> Array:
        """`[num_segments, F, G]`: sums over a segment's rows of the products.

            P_s = sum_{i in s} x_i y_i'

        `x` `[S, R, F]` and `y` `[S, R, G]` are from `rows`.
        """
        parts = jnp.einsum("srf,srg->sfg", x, y, precision=lax.Precision.HIGHEST)
        return jax.ops.segment_sum(parts, self.segment, self.num_segments)


def blocks_of(segment: Array, num_segments: int) -> Blocks:
    """Lays out rows by segment.

    Args:
      segment: `[N]` int32 in [0, num_segments); `num_segments` for rows in none.
      num_segments: static.

    Returns:
      `Blocks`, one more for every segment than the rows would need at least.

    Example:
      >>> b = blocks_of(jnp.array([1, 0, 2, 1]), 2)
      >>> x = b.rows(jnp.array([[1.0], [2.0], [3.0], [4.0]]))
      >>> b.products(x, x)[:, 0, 0].tolist()
      [4.0, 17.0]
    """
    number = segment.shape[0]
    size = min(MOST_ROWS, max(FEWEST_ROWS, number // (num_segments + 1)))
    num_blocks = -(-number // size) + num_segments
    count = jnp.bincount(segment, length=num_segments + 1)
    order = jnp.argsort(segment)
    rank = jnp.arange(number) - (jnp.cumsum(count) - count)[segment[order]]
    needed = -(-count[:-1] // size)
    first = jnp.append(jnp.cumsum(needed) - needed, num_blocks)
    slot = first[segment[order]] * size + rank
    index = jnp.full(num_blocks * size, number, jnp.int32)
    index = index.at[slot].set(order.astype(jnp.int32), mode="drop")
    of_block = jnp.repeat(
        jnp.arange(num_segments), needed, total_repeat_length=num_blocks
    )
    return Blocks(index.reshape(num_blocks, size), of_block, number, num_segments)

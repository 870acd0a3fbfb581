"""Causal attention in blocks of queries, for whole episodes that are long.

Scores of all queries at once are `[B, H, T, T]`, in every layer, and a gradient keeps
them: over a gigabyte for an episode of a thousand tokens and a decoder of thirty
layers. In blocks there are `[B, H, block, T]`, which the gradient computes a second
time. The numbers are those of `jerp.models.decoder.causal_mixer`.
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
from jax import lax

from jerp.models.attention import grouped_attention
from jerp.typing import Array

__all__ = ["blocked_causal_mixer"]


def blocked_causal_mixer(
    query: Array, key: Array, value: Array, cache: Any, *, block: int
) -> tuple[Array, tuple[Array, Array]]:
    """A `Mixer` of a full forward pass.

    Args:
      query: `[B, T, H, D]` float32.
      key: `[B, T, G, D]` float32.
      value: `[B, T, G, D]` float32.
      cache: not read.
      block: static, queries whose scores are in memory together.

    Returns:
      `[B, T, H, D]` float32, and the cache that `causal_mixer` makes.
    """
    del cache
    batch, length, heads, dim = query.shape
    key, value = jnp.moveaxis(key, 1, 3), jnp.moveaxis(value, 1, 2)
    number = -(-length // block)
    # Rows that fill the last block see everything, and are thrown away.
    padded = jnp.pad(query, ((0, 0), (0, number * block - length), (0, 0), (0, 0)))
    blocks = jnp.moveaxis(padded.reshape(batch, number, block, heads, dim), 1, 0)

    @jax.checkpoint
    def attend(start: Array, rows: Array) -> Array:
        place = start + jnp.arange(block)
        seen = jnp.arange(length)[None] <= place[:, None]
        mask = jnp.broadcast_to(seen[None], (batch, block, length))
        return grouped_attention(rows, key, value, mask)

    starts = block * jnp.arange(number)
    mixed = lax.map(lambda each: attend(*each), (starts, blocks))
    mixed = jnp.moveaxis(mixed, 0, 1).reshape(batch, number * block, heads, dim)
    return mixed[:, :length], (key, value)

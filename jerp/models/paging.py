"""Prefill into a pool of key/value blocks, and from blocks into rows of a cache.

A prompt is cut into blocks of `C` tokens. A block's keys and values are a function of
the tokens up to its end, bitwise, whatever else one call computes; so prompts that
begin alike share blocks, samples of one prompt share all of them, and one call fills
blocks of any prompts, neighbouring blocks of the same prompt included (a layer writes
all its blocks before it reads any). Who owns which block is the caller's business.

Axes: `N` blocks of the pool, `P` blocks of one call, `C` tokens of a block, `K` blocks
of a row's table, `S = K C` positions.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import chex
import jax.numpy as jnp
from flax import struct

from jerp.models.attention import grouped_attention
from jerp.models.decoder import (
    Decoder,
    DecoderConfig,
    hidden_states,
)
from jerp.models.generate import Cache, init_cache
from jerp.typing import Array, ArrayTree

__all__ = ["BlockBatch", "Pool", "admit", "init_pool", "prefill"]

Pool = Cache
"""Keys `[N, G, D, C]` and values `[N, G, C, D]` of every layer, float32."""


class BlockBatch(struct.PyTreeNode):
    """The blocks that one call of `prefill` computes.

    Attributes:
      tokens: `[P, C]` int32; a prompt's last block is padded with anything.
      start: `[P]` int32, position of a block's first token.
      block: `[P]` int32, where it goes in the pool; `N` marks an unused row.
      table: `[P, K]` int32, the blocks of the prompt in order, this one included;
        entries behind it may name any block.
    """

    tokens: Array
    start: Array
    block: Array
    table: Array


def init_pool(config: DecoderConfig, *, num_blocks: int, block_size: int) -> Pool:
    """An empty pool."""
    return init_cache(config, batch_size=num_blocks, capacity=block_size)


def _in_order(layer: tuple[Array, Array], table: Array) -> tuple[Array, Array]:
    """The blocks of every table one after the other: `[P, G, D, S]`, `[P, G, S, D]`."""
    keys, values = layer
    keys = jnp.moveaxis(keys[table], 1, 3)
    values = jnp.moveaxis(values[table], 1, 2)
    keys = keys.reshape(*keys.shape[:3], -1)
    return keys, values.reshape(*values.shape[:2], -1, values.shape[-1])


def _prefill_mixer(
    query: Array, key: Array, value: Array, cache: Any, *, batch: BlockBatch
):
    keys, values = cache
    keys = keys.at[batch.block].set(jnp.moveaxis(key, 1, 3), mode="drop")
    values = values.at[batch.block].set(jnp.moveaxis(value, 1, 2), mode="drop")
    ordered = _in_order((keys, values), batch.table)
    place = jnp.arange(ordered[1].shape[2])
    position = batch.start[:, None] + jnp.arange(query.shape[1])[None]
    mask = place[None, None, :] <= position[:, :, None]
    return grouped_attention(query, *ordered, mask), (keys, values)


def prefill(
    params: ArrayTree, pool: Pool, batch: BlockBatch, *, decoder: Decoder
) -> Pool:
    """Computes keys and values of up to `P` blocks.

    Args:
      params: variables of `decoder`.
      pool: holds all earlier blocks of the same prompts, unless they are in `batch`;
        donate it.
      batch: what to compute.
      decoder: static.

    Returns:
      The pool with the new blocks.
    """
    chex.assert_rank(
        [batch.tokens, batch.start, batch.block, batch.table], [2, 1, 1, 2]
    )
    offset = jnp.arange(batch.tokens.shape[1], dtype=jnp.int32)
    positions = batch.start[:, None] + offset[None]
    _, pool = hidden_states(
        decoder,
        params,
        batch.tokens,
        positions,
        pool,
        partial(_prefill_mixer, batch=batch),
    )
    return pool


def admit(cache: Cache, pool: Pool, row: Array, table: Array) -> Cache:
    """Copies prompts from the pool into rows of a decoding cache.

    Args:
      cache: of the decoding rows; donate it.
      pool: holds the prompts' blocks.
      row: `[A]` int32, the rows to fill; `B` marks an unused entry.
      table: `[A, K]` int32, as in `BlockBatch`.

    Returns:
      The cache; the other rows are as they were.
    """
    chex.assert_rank([row, table], [1, 2])
    filled = []
    for (keys, values), layer in zip(cache, pool, strict=True):
        new_keys, new_values = _in_order(layer, table)
        filled.append(
            (
                keys.at[row].set(new_keys, mode="drop"),
                values.at[row].set(new_values, mode="drop"),
            )
        )
    return tuple(filled)

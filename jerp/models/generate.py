"""Batched decoding with a key/value cache: chunks of one compiled scan.

`decode` draws a fixed number of tokens for a fixed number of rows; whoever owns the
rows may replace finished ones between two calls. `generate` is the case in which all
rows start together and one scan does everything.

What a row draws is a function of its own prompt, key and sampling parameters, bitwise,
as long as shapes stay the same: rows never mix, a row's memory layout depends on its
own positions alone, and draw `n` of a row uses `fold_in(key, n)`.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import chex
import jax
import jax.numpy as jnp
from flax import struct

from jerp.models.attention import grouped_attention
from jerp.models.decoder import (
    Decoder,
    DecoderConfig,
    hidden_states,
    output_logits,
)
from jerp.models.sampling import SamplingRows, sample_tokens
from jerp.typing import Array, ArrayTree, Key

__all__ = ["Cache", "DecodeRows", "Generated", "decode", "generate", "init_cache"]

Cache = tuple[tuple[Array, Array], ...]
"""Keys `[B, G, D, S]` and values `[B, G, S, D]` of every layer, float32."""


class DecodeRows(struct.PyTreeNode):
    """Where each of `B` rows stands.

    Attributes:
      token: `[B]` int32, the last token, not in the cache yet.
      position: `[B]` int32, its position; the cache holds all before it.
      drawn: `[B]` int32, how many tokens the row has drawn so far.
      keys: `[B]` typed keys.
      sampling: how the rows draw.
    """

    token: Array
    position: Array
    drawn: Array
    keys: Key
    sampling: SamplingRows


class Generated(struct.PyTreeNode):
    """What was drawn.

    Attributes:
      tokens: `[B, N]` int32; behind the mask is what would have come next.
      log_prob: `[B, N]` float32 under the distribution sampled from.
      mask: `[B, N]` bool, True up to and including the stop token.
    """

    tokens: Array
    log_prob: Array
    mask: Array


def init_cache(config: DecoderConfig, *, batch_size: int, capacity: int) -> Cache:
    """An empty cache of `capacity` positions a row."""
    heads, dim = config.num_kv_heads, config.head_dim
    key, value = (batch_size, heads, dim, capacity), (batch_size, heads, capacity, dim)
    return tuple((jnp.zeros(key), jnp.zeros(value)) for _ in range(config.num_layers))


def _decode_mixer(
    query: Array, key: Array, value: Array, cache: Any, *, position: Array
):
    rows = jnp.arange(position.shape[0])
    keys, values = cache
    # a row that outlived its capacity writes nowhere; its tokens are not used
    keys = keys.at[rows, :, :, position].set(key[:, 0], mode="drop")
    values = values.at[rows, :, position].set(value[:, 0], mode="drop")
    mask = jnp.arange(values.shape[2])[None, None, :] <= position[:, None, None]
    return grouped_attention(query, keys, values, mask), (keys, values)


def decode(
    params: ArrayTree, cache: Cache, rows: DecodeRows, *, decoder: Decoder, steps: int
) -> tuple[Cache, DecodeRows, Array, Array]:
    """Draws `steps` tokens for every row.

    Args:
      params: variables of `decoder`.
      cache: holds positions `0 .. position - 1` of every row; donate it.
      rows: where the rows stand.
      decoder: static.
      steps: static.

    Returns:
      `(cache, rows, tokens [B, steps], log_prob [B, steps])`.
    """
    chex.assert_rank([rows.token, rows.position, rows.keys], 1)

    def step(carry: tuple[Cache, DecodeRows], _: None):
        cache, rows = carry
        hidden, cache = hidden_states(
            decoder,
            params,
            rows.token[:, None],
            rows.position[:, None],
            cache,
            partial(_decode_mixer, position=rows.position),
        )
        logits = output_logits(decoder, params, hidden[:, 0])
        token, log_prob = sample_tokens(logits, _uniforms(rows), rows.sampling)
        rows = rows.replace(
            token=token, position=rows.position + 1, drawn=rows.drawn + 1
        )
        return (cache, rows), (token, log_prob)

    (cache, rows), (tokens, log_prob) = jax.lax.scan(
        step, (cache, rows), None, length=steps
    )
    return cache, rows, tokens.T, log_prob.T


def _uniforms(rows: DecodeRows) -> Array:
    def draw(key: Key, number: Array) -> Array:
        return jax.random.uniform(jax.random.fold_in(key, number))

    return jax.vmap(draw)(rows.keys, rows.drawn)


def generate(
    params: ArrayTree,
    keys: Key,
    tokens: Array,
    length: Array,
    sampling: SamplingRows,
    stop_tokens: Array,
    *,
    decoder: Decoder,
    steps: int,
) -> Generated:
    """Continues every prompt by up to `steps` tokens, in one scan.

    Args:
      params: variables of `decoder`.
      keys: `[B]` typed keys, one a row.
      tokens: `[B, L]` int32 prompts, padded on the right with any token.
      length: `[B]` int32, at least 1.
      sampling: how the rows draw.
      stop_tokens: `[K]` int32; a row ends with the first of these it draws.
      decoder: static.
      steps: static.

    Returns:
      The tokens drawn.
    """
    chex.assert_rank([tokens, length, stop_tokens, keys], [2, 1, 1, 1])
    rows = DecodeRows(
        token=jnp.take_along_axis(tokens, (length - 1)[:, None], axis=1)[:, 0],
        position=length - 1,
        drawn=jnp.zeros_like(length),
        keys=keys,
        sampling=sampling,
    )
    cache = _prompt_cache(params, tokens, decoder=decoder, room=steps)
    _, _, drawn, log_prob = decode(params, cache, rows, decoder=decoder, steps=steps)
    stopped = jnp.any(drawn[:, :, None] == stop_tokens[None, None], axis=-1)
    before = jnp.cumsum(stopped, axis=1) - stopped
    return Generated(tokens=drawn, log_prob=log_prob, mask=before == 0)


def _prompt_cache(
    params: ArrayTree, tokens: Array, *, decoder: Decoder, room: int
) -> Cache:
    """Keys and values of whole prompts, with `room` positions behind them."""
    positions = jnp.arange(tokens.shape[1], dtype=jnp.int32)[None]
    _, prompt = hidden_states(
        decoder, params, tokens, jnp.broadcast_to(positions, tokens.shape)
    )
    none, more = (0, 0), (0, room)
    return tuple(
        (jnp.pad(k, (none, none, none, more)), jnp.pad(v, (none, none, more, none)))
        for k, v in prompt
    )

"""Whole episodes as one sequence of tokens each, read in one causal pass.

A step is its observation's tokens and then the tokens that were written. In the layout
`[B, T (L_o + L_a)]` padding stands between them; it is neither seen nor counted, so
that a state is the one of the sequence without padding, as a policy that appends to a
cache has it.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import chex
import jax
import jax.numpy as jnp

from jerp.models.attention import grouped_attention
from jerp.models.decoder import Decoder, hidden_states
from jerp.typing import Array, ArrayTree

__all__ = ["decision_states"]


def decision_states(
    params: ArrayTree,
    observation: Array,
    tokens: Array,
    token_mask: Array,
    *,
    decoder: Decoder,
) -> Array:
    """The states from which the tokens of all actions are drawn.

    Args:
      params: variables of `decoder`.
      observation: `[B, T, L_o]` int32, padded with 0.
      tokens: `[B, T, L_a]` int32, what was written.
      token_mask: `[B, T, L_a]` bool, what of it is real.
      decoder: static.

    Returns:
      `[B, T, L_a, F]` float32: entry `j` is the state of the last real token before
      action token `j`; 0 where there is none.
    """
    chex.assert_rank([observation, tokens, token_mask], 3)
    batch, steps, num_seen = observation.shape
    stream = jnp.concatenate([observation, tokens], axis=-1).reshape(batch, -1)
    real = jnp.concatenate([observation != 0, token_mask], axis=-1).reshape(batch, -1)
    hidden, _ = hidden_states(
        decoder,
        params,
        stream,
        jnp.maximum(jnp.cumsum(real, axis=1, dtype=jnp.int32) - 1, 0),
        None,
        partial(_stream_mixer, real=real),
    )
    place = jnp.arange(stream.shape[1], dtype=jnp.int32)[None]
    latest = jax.lax.cummax(jnp.where(real, place, -1), axis=1)
    before = jnp.pad(latest[:, :-1], ((0, 0), (1, 0)), constant_values=-1)
    before = before.reshape(batch, steps, -1)[..., num_seen:].reshape(batch, -1, 1)
    states = jnp.take_along_axis(hidden, jnp.maximum(before, 0), axis=1)
    states = jnp.where(before >= 0, states, 0.0)
    return states.reshape(*tokens.shape, -1)


def _stream_mixer(query: Array, key: Array, value: Array, cache: Any, *, real: Array):
    """A token sees the real ones before it, and itself."""
    del cache
    length = query.shape[1]
    key, value = jnp.moveaxis(key, 1, 3), jnp.moveaxis(value, 1, 2)
    place = jnp.arange(length)
    causal = (place[:, None] >= place[None])[None] & real[:, None, :]
    mask = causal | (place[:, None] == place[None])[None]
    return grouped_attention(query, key, value, mask), None

"""Whole episodes as one sequence of tokens each, read in one causal pass.

A step is its observation's tokens and then the tokens that were written. In the layout
`[B, T (L_o + L_a)]` padding stands between them; it is taken out before the pass, so
that a state is the one of the sequence without padding, as a policy that appends to a
cache has it, and so that padding costs nothing.
"""

from __future__ import annotations

from functools import partial
from typing import Any, NamedTuple, cast

import chex
import jax.numpy as jnp

from jerp.models.blocked_attention import blocked_causal_mixer
from jerp.models.decoder import Decoder, causal_mixer, hidden_states
from jerp.models.generate import Cache
from jerp.typing import Array, ArrayTree

__all__ = ["Stream", "read_stream"]

BLOCK = 128
"""Queries whose scores are in memory together, where an episode is longer than two
blocks; below that all at once is as small and faster."""


class Stream(NamedTuple):
    """Episodes that were read.

    Attributes:
      states: `[B, T, L_a, F]` float32: entry `j` is the state of the last real token
        before action token `j`; 0 where there is none, NaN where it lies beyond the
        capacity. Finite in padding, where a NaN would come back in every gradient.
      before: `[B, T, L_a]` int32, how many real tokens that is.
      cache: keys and values of the real tokens by layer, as `causal_mixer` has them.
    """

    states: Array
    before: Array
    cache: Cache


def read_stream(
    params: ArrayTree,
    observation: Array,
    tokens: Array,
    token_mask: Array,
    mask: Array,
    *,
    decoder: Decoder,
    capacity: int,
) -> Stream:
    """Reads whole episodes, up to the states from which actions are drawn.

    Args:
      params: variables of `decoder`.
      observation: `[B, T, L_o]` int32, padded with 0.
      tokens: `[B, T, L_a]` int32, what was written.
      token_mask: `[B, T, L_a]` bool, what of it is real.
      mask: `[B, T]` bool, real steps; the others may hold anything and are not read.
      decoder: static.
      capacity: static, the most tokens of an episode that are read.

    Returns:
      `Stream`.
    """
    chex.assert_rank([observation, tokens, token_mask, mask], [3, 3, 3, 2])
    batch, steps, num_seen = observation.shape
    stream = jnp.concatenate([observation, tokens], axis=-1).reshape(batch, -1)
    real = jnp.concatenate([observation != 0, token_mask], axis=-1) & mask[..., None]
    real = real.reshape(batch, -1)
    count = jnp.cumsum(real, axis=1, dtype=jnp.int32)
    place = jnp.where(real, count - 1, capacity)
    packed = jnp.zeros((batch, capacity), jnp.int32)
    packed = packed.at[jnp.arange(batch)[:, None], place].set(stream, mode="drop")
    positions = jnp.broadcast_to(jnp.arange(capacity)[None], packed.shape)
    mixer = partial(blocked_causal_mixer, block=BLOCK)
    mixer = causal_mixer if capacity <= 2 * BLOCK else mixer
    hidden, cache = hidden_states(decoder, params, packed, positions, None, mixer)
    before = jnp.pad(count[:, :-1], ((0, 0), (1, 0)))
    before = before.reshape(batch, steps, -1)[..., num_seen:].reshape(batch, -1, 1)
    last = jnp.clip(before - 1, 0, capacity - 1)
    states = jnp.take_along_axis(hidden, last, axis=1)
    states = jnp.where(before > 0, states, 0.0)
    states = states.reshape(*tokens.shape, -1)
    before = before.reshape(tokens.shape)
    beyond = mask[..., None] & (before > capacity)
    states = jnp.where(beyond[..., None], jnp.nan, states)
    return Stream(states, before, cast(Any, cache))

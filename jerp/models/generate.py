"""Batched sampling from a decoder as one compiled scan with a key/value cache.

Prompts are padded on the right; the generated part has a cache of its own in which
step `t` of every row is column `t`, so that writing is one slice and the memory layout
a row sees depends on its own length alone.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
from flax import struct

from jerp.models.decoder import Decoder, grouped_attention
from jerp.models.sampling import sample_token
from jerp.typing import Array, ArrayTree, Key

__all__ = ["Generated", "SamplingArrays", "generate"]


class SamplingArrays(struct.PyTreeNode):
    """Sampling parameters of every row, see `jerp.models.sampling.sample_token`.

    Attributes:
      temperature: `[B]` float32.
      top_k: `[B]` int32.
      top_p: `[B]` float32.
    """

    temperature: Array
    top_k: Array
    top_p: Array


class Generated(struct.PyTreeNode):
    """What was sampled.

    Attributes:
      tokens: `[B, N]` int32; the stop token included, padding after it.
      log_prob: `[B, N]` float32 under the distribution sampled from; 0 in padding.
      mask: `[B, N]` bool, True up to and including the stop token.
    """

    tokens: Array
    log_prob: Array
    mask: Array


def _keep(query: Array, key: Array, value: Array, cache: Any, *, mask: Array):
    del cache
    return grouped_attention(query, key, value, mask), (key, value)


def _extend(
    query: Array, key: Array, value: Array, cache: Any, *, mask: Array, step: Array
):
    prompt_key, prompt_value, new_key, new_value = cache
    new_key = jax.lax.dynamic_update_slice_in_dim(new_key, key, step, axis=1)
    new_value = jax.lax.dynamic_update_slice_in_dim(new_value, value, step, axis=1)
    mixed = grouped_attention(
        query,
        jnp.concatenate([prompt_key, new_key], axis=1),
        jnp.concatenate([prompt_value, new_value], axis=1),
        mask,
    )
    return mixed, (prompt_key, prompt_value, new_key, new_value)


def generate(
    params: ArrayTree,
    keys: Key,
    tokens: Array,
    length: Array,
    sampling: SamplingArrays,
    stop_tokens: Array,
    *,
    decoder: Decoder,
    num_steps: int,
) -> Generated:
    """Continues every prompt by up to `num_steps` tokens.

    Args:
      params: variables of `decoder`.
      keys: `[B]` typed keys, one a row; step `t` of a row uses `fold_in(key, t)`, so
        the draws of a row do not depend on its neighbours.
      tokens: `[B, L]` int32 prompts, padded on the right with anything.
      length: `[B]` int32, at least 1.
      sampling: parameters by row.
      stop_tokens: `[K]` int32; a row ends with the first of these it draws.
      decoder: the module; static.
      num_steps: static.

    Returns:
      The sampled tokens.
    """
    batch, width = tokens.shape
    place = jnp.arange(width, dtype=jnp.int32)
    causal = (place[None, :] <= place[:, None])[None] & (
        place[None, None, :] < length[:, None, None]
    )
    causal = causal | (place[None, :] == place[:, None])[None]
    hidden, cache = decoder.apply(
        params,
        tokens,
        jnp.broadcast_to(place[None], tokens.shape),
        None,
        partial(_keep, mask=causal),
        method="hidden",
    )
    last = jnp.take_along_axis(hidden, (length - 1)[:, None, None], axis=1)
    empty = (batch, num_steps, *cache[0][0].shape[2:])
    cache = tuple((k, v, jnp.zeros(empty), jnp.zeros(empty)) for k, v in cache)
    prompt_mask = place[None] < length[:, None]

    def step(carry, t):
        cache, last, done = carry
        logits = decoder.apply(params, last[:, 0], method="logits")
        uniform = jax.vmap(lambda key: jax.random.uniform(jax.random.fold_in(key, t)))(
            keys
        )
        token, log_prob = sample_token(
            logits, uniform, sampling.temperature, sampling.top_k, sampling.top_p
        )
        new = jnp.arange(num_steps) <= t
        mask = jnp.concatenate(
            [prompt_mask, jnp.broadcast_to(new[None], (batch, num_steps))], axis=1
        )
        last, cache = decoder.apply(
            params,
            token[:, None],
            (length + t)[:, None],
            cache,
            partial(_extend, mask=mask[:, None], step=t),
            method="hidden",
        )
        out = (token, jnp.where(done, 0, log_prob), ~done)
        done = done | jnp.any(token[:, None] == stop_tokens[None], axis=-1)
        return (cache, last, done), out

    start = (cache, last, jnp.zeros(batch, bool))
    _, out = jax.lax.scan(step, start, jnp.arange(num_steps, dtype=jnp.int32))
    token, log_prob, mask = jax.tree.map(lambda x: jnp.swapaxes(x, 0, 1), out)
    return Generated(tokens=token, log_prob=log_prob, mask=mask)

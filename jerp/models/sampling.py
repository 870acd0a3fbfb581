"""Drawing a token from logits: temperature, top-k, top-p, and its log-probability.

A row draws by the inverse of its cumulative distribution from one uniform number, so a
token costs one number and not one for every word of the vocabulary. Log-probabilities
are those of the distribution that was really sampled from: after temperature, top-k and
top-p; 0 for greedy choice. Rows never mix.
"""

from __future__ import annotations

import chex
import jax
import jax.numpy as jnp

from jerp.typing import Array

__all__ = ["sample_token"]

_BLOCK = 256


def sample_token(
    logits: Array, uniform: Array, temperature: Array, top_k: Array, top_p: Array
) -> tuple[Array, Array]:
    """Draws one token a row.

        p_i ~ exp(logit_i / temperature)  over the kept tokens; token = F^-1(uniform)

    Kept are the `top_k` largest logits and, among these, the smallest set of most
    likely tokens whose mass reaches `top_p`; ties at the edge are kept.

    Args:
      logits: `[B, V]` float32.
      uniform: `[B]` float32 in [0, 1).
      temperature: `[B]` float32; 0 takes the largest logit.
      top_k: `[B]` int32; 0 keeps all.
      top_p: `[B]` float32; 1 keeps all.

    Returns:
      `(token [B] int32, log_prob [B] float32)`, the latter under the distribution
      sampled from.
    """
    chex.assert_rank([logits, uniform, temperature, top_k, top_p], [2, 1, 1, 1, 1])
    greedy = temperature <= 0
    scaled = logits / jnp.where(greedy, 1.0, temperature)[:, None]
    scaled = scaled - jnp.max(scaled, -1, keepdims=True)
    restricted = (top_k > 0) | (top_p < 1)
    floor = jax.lax.cond(
        jnp.any(restricted & ~greedy),
        lambda: jnp.where(restricted, _floor(scaled, top_k, top_p), -jnp.inf),
        lambda: jnp.full(top_p.shape, -jnp.inf),
    )
    weight = jnp.where(scaled >= floor[:, None], jnp.exp(scaled), 0)
    token, total = _inverse_cdf(weight, uniform)
    token = jnp.where(greedy, jnp.argmax(logits, -1).astype(jnp.int32), token)
    chosen = jnp.take_along_axis(scaled, token[:, None], axis=-1)[:, 0]
    return token, jnp.where(greedy, 0.0, chosen - jnp.log(total))


def _floor(scaled: Array, top_k: Array, top_p: Array) -> Array:
    """`[B]`: the least scaled logit that is kept."""
    size = scaled.shape[-1]
    ordered = -jnp.sort(-scaled, axis=-1)
    rank = jnp.arange(size, dtype=jnp.int32)[None]
    weight = jnp.where(
        rank < jnp.where(top_k > 0, top_k, size)[:, None], jnp.exp(ordered), 0
    )
    before = jnp.cumsum(weight, -1) - weight
    inside = (before < (top_p * jnp.sum(weight, -1))[:, None]) & (weight > 0)
    last = jnp.maximum(jnp.sum(inside, -1) - 1, 0)
    return jnp.take_along_axis(ordered, last[:, None], axis=-1)[:, 0]


def _inverse_cdf(weight: Array, uniform: Array) -> tuple[Array, Array]:
    """First token whose cumulative weight exceeds `uniform * total`, and the total.

    The sum runs over blocks of tokens first and then inside one block, which reads the
    vocabulary once.
    """
    rows, size = weight.shape
    blocks = jnp.pad(weight, ((0, 0), (0, -size % _BLOCK))).reshape(rows, -1, _BLOCK)
    cumulative = jnp.cumsum(jnp.sum(blocks, -1), -1)
    total = cumulative[:, -1]
    target = uniform * total
    block = _first_above(cumulative, target)
    start = jnp.where(block > 0, _pick(cumulative, jnp.maximum(block - 1, 0)), 0)
    inside = jnp.take_along_axis(blocks, block[:, None, None], axis=1)[:, 0]
    place = _first_above(jnp.cumsum(inside, -1), target - start)
    # rounding may point past the last token with any weight
    last = jnp.max(jnp.where(inside > 0, jnp.arange(_BLOCK)[None], 0), -1)
    return (block * _BLOCK + jnp.minimum(place, last)).astype(jnp.int32), total


def _first_above(cumulative: Array, target: Array) -> Array:
    count = jnp.sum(cumulative <= target[:, None], -1)
    positive = jnp.sum(cumulative < cumulative[:, -1:], -1)
    return jnp.minimum(count, positive).astype(jnp.int32)


def _pick(values: Array, index: Array) -> Array:
    return jnp.take_along_axis(values, index[:, None], axis=-1)[:, 0]

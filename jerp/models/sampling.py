"""Drawing a token from logits: temperature, top-k, top-p, and its log-probability.

A row draws by the inverse of its cumulative distribution from one uniform number, so a
token costs one number and not one for every word of the vocabulary; top-k and top-p
bisect for the edge of what is kept instead of sorting (both are some hundred times
faster on a CPU). Log-probabilities are those of the distribution really sampled from:
after temperature, top-k and top-p; 0 for a greedy choice. Rows never mix.
"""

from __future__ import annotations

import chex
import jax
import jax.numpy as jnp
from flax import struct

from jerp.typing import Array

__all__ = ["SamplingRows", "sample_tokens"]

_BLOCK = 256
_BITS = 31


class SamplingRows(struct.PyTreeNode):
    """How each of `B` rows draws.

    Attributes:
      temperature: `[B]` float32; 0 takes the largest logit.
      top_k: `[B]` int32; 0 keeps all.
      top_p: `[B]` float32 in (0, 1]; 1 keeps all.
    """

    temperature: Array
    top_k: Array
    top_p: Array


def sample_tokens(
    logits: Array, uniform: Array, rows: SamplingRows
) -> tuple[Array, Array]:
    """Draws one token a row.

        p_i ~ exp(logit_i / temperature)  over the kept tokens;  token = F^-1(uniform)

    Kept are the `top_k` largest logits and, among these, the smallest set of most
    likely tokens whose mass reaches `top_p`. Ties at the edge are kept.

    Args:
      logits: `[B, V]` float32.
      uniform: `[B]` float32 in [0, 1).
      rows: temperature, top-k and top-p.

    Returns:
      `(token [B] int32, log_prob [B] float32)`, the latter under the distribution
      sampled from.
    """
    chex.assert_rank([logits, uniform, rows.top_k], [2, 1, 1])
    greedy = rows.temperature <= 0
    scaled = logits / jnp.where(greedy, 1.0, rows.temperature)[:, None]
    below = jnp.max(scaled, -1, keepdims=True) - scaled
    narrow = ((rows.top_k > 0) | (rows.top_p < 1)) & ~greedy
    kept = jax.lax.cond(
        jnp.any(narrow),
        lambda: _kept(below, rows) | ~narrow[:, None],
        lambda: jnp.ones(below.shape, bool),
    )
    weight = jnp.where(kept, jnp.exp(-below), 0)
    token, total = _inverse_cdf(weight, uniform)
    token = jnp.where(greedy, _first_zero(below), token)
    chosen = jnp.take_along_axis(below, token[:, None], axis=-1)[:, 0]
    return token, jnp.where(greedy, 0.0, -chosen - jnp.log(total))


def _kept(below: Array, rows: SamplingRows) -> Array:
    """`[B, V]` bool. `below >= 0` is how far a logit is under the largest one."""
    order = jax.lax.bitcast_convert_type(below, jnp.int32)  # same order: no sign bit
    size = below.shape[-1]
    count = jnp.where(rows.top_k > 0, rows.top_k, size).astype(jnp.float32)
    edge = _edge(order, jnp.ones_like(below), jnp.minimum(count, size))
    kept = order <= edge[:, None]
    weight = jnp.where(kept, jnp.exp(-below), 0)
    edge = _edge(order, weight, rows.top_p * jnp.sum(weight, -1))
    # with top_p = 1 rounding must not cut off the least likely tokens
    return kept & ((order <= edge[:, None]) | (rows.top_p >= 1)[:, None])


def _edge(order: Array, weight: Array, target: Array) -> Array:
    """`[B]`: the least int32 `e` such that the weights with `order <= e` reach target.

    Bisection over all non-negative integers; 2^31 - 1 where rounding misses the target.
    """

    def halve(bounds: tuple[Array, Array], _: None):
        low, high = bounds
        middle = low + (high - low) // 2
        mass = jnp.sum(jnp.where(order <= middle[:, None], weight, 0), -1)
        reached = mass >= target
        return (
            jnp.where(reached, low, middle + 1),
            jnp.where(reached, middle, high),
        ), None

    low = jnp.zeros(target.shape, jnp.int32)
    high = jnp.full(target.shape, jnp.iinfo(jnp.int32).max)
    return jax.lax.scan(halve, (low, high), None, length=_BITS)[0][1]


def _blocks(values: Array, fill: float) -> Array:
    """`[B, V]` to `[B, V / 256, 256]`, padded with `fill`."""
    padded = jnp.pad(
        values, ((0, 0), (0, -values.shape[1] % _BLOCK)), constant_values=fill
    )
    return padded.reshape(values.shape[0], -1, _BLOCK)


def _inverse_cdf(weight: Array, uniform: Array) -> tuple[Array, Array]:
    """First token whose cumulative weight exceeds `uniform * total`, and the total.

    Whole blocks are summed first and one block token by token, which reads the
    vocabulary once.
    """
    blocks = _blocks(weight, 0)
    mass = jnp.sum(blocks, -1)
    cumulative = jnp.cumsum(mass, -1)
    total = cumulative[:, -1]
    target = uniform * total
    block = _first_above(mass, cumulative, target)
    before = jnp.take_along_axis(cumulative, jnp.maximum(block - 1, 0)[:, None], 1)
    target = target - jnp.where(block > 0, before[:, 0], 0)
    inside = jnp.take_along_axis(blocks, block[:, None, None], axis=1)[:, 0]
    place = _first_above(inside, jnp.cumsum(inside, -1), target)
    return block * _BLOCK + place, total


def _first_above(weight: Array, cumulative: Array, target: Array) -> Array:
    """First index with any weight whose sum exceeds `target`, else the last with any.

    Rounding may leave the target above every sum, or raise a sum where nothing was
    added; neither may pick a token that was cut off.
    """
    above = (cumulative > target[:, None]) & (weight > 0)
    last = weight.shape[-1] - 1 - _first_true(weight[:, ::-1] > 0)
    return jnp.where(jnp.any(above, -1), _first_true(above), last)


def _first_zero(below: Array) -> Array:
    """First index of the largest logit; by blocks, as `argmax` is slow on a CPU."""
    blocks = _blocks(below, jnp.inf)
    block = _first_true(jnp.min(blocks, -1) == 0)
    inside = jnp.take_along_axis(blocks, block[:, None, None], axis=1)[:, 0]
    return block * _BLOCK + _first_true(inside == 0)


def _first_true(flags: Array) -> Array:
    size = flags.shape[-1]
    index = jnp.arange(size, dtype=jnp.int32)[None]
    return jnp.minimum(jnp.min(jnp.where(flags, index, size), -1), size - 1)

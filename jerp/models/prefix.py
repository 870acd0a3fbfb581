"""A prompt that many rows share: computed once, kept once, read by all of them.

A group of rollouts, or all candidates of a question, begin alike. Their rows keep what
is their own in a cache of their own and read the prompt's keys and values where they
lie: no row has a copy. Attention over both parts is the softmax over all positions,
put together from the two parts' sums; nothing is approximated.

Axes: `P` prompts, `R` rows of each, `B = P R` rows of which row `b` continues prompt
`b // R`; `T`, `S`, `H`, `G` and `D` as in `jerp.models.attention`.
"""

from __future__ import annotations

import chex
import jax
import jax.numpy as jnp
from flax import struct

from jerp.models.decoder import Decoder, hidden_states
from jerp.models.generate import Cache
from jerp.ops.checks import check_axes, check_values
from jerp.typing import Array, ArrayTree

__all__ = ["Prefix", "prefill_prefix", "shared_attention"]

_UNSEEN = -1e30
"""Finite, so that a part of which nothing is seen weighs 0 and is not NaN."""


class Prefix(struct.PyTreeNode):
    """Prompts that were read.

    Attributes:
      cache: keys `[P, G, D, S]` and values `[P, G, S, D]` of every layer.
      length: `[P]` int32, real tokens of each; what lies behind is not seen.
      hidden: `[P, F]` float32, the state of each last token: what comes next.
    """

    cache: Cache
    length: Array
    hidden: Array


def prefill_prefix(
    params: ArrayTree, tokens: Array, length: Array, *, decoder: Decoder
) -> Prefix:
    """Reads prompts, for any number of rows to go on from.

    Args:
      params: variables of `decoder`.
      tokens: `[P, S]` int32, padded on the right with any token.
      length: `[P]` int32, 1 to S.
      decoder: static.

    Returns:
      What rows need, see `jerp.models.continuation.append`.

    Raises:
      InputError, ShapeError: a length that is out of range, other axes.

    Example:
      >>> from jerp.models.decoder import DecoderConfig
      >>> config = DecoderConfig(8, 4, 4, 1, 1, 1, 4, context_length=8)
      >>> decoder, tokens = Decoder(config), jnp.ones((1, 3), jnp.int32)
      >>> params = decoder.init(jax.random.key(0), tokens)
      >>> prefix = prefill_prefix(params, tokens, jnp.array([2]), decoder=decoder)
      >>> prefix.hidden.shape
      (1, 4)
    """
    check_axes(tokens=(tokens, "P S", int), length=(length, "P", int))
    size = tokens.shape[1]
    check_values("length", length, lambda n: (n >= 1) & (n <= size), f"1 to {size}")
    positions = jnp.arange(size, dtype=jnp.int32)[None]
    hidden, cache = hidden_states(
        decoder, params, tokens, jnp.broadcast_to(positions, tokens.shape)
    )
    last = jnp.take_along_axis(hidden, (length - 1)[:, None, None], axis=1)[:, 0]
    return Prefix(cache=cache, length=length, hidden=last)


def shared_attention(
    query: Array,
    shared: tuple[Array, Array],
    shared_length: Array,
    own: tuple[Array, Array],
    mask: Array,
) -> Array:
    """Attention of rows over a prompt that they share and what is their own.

        out_t = (e^(m - M) u + e^(m' - M) u') / (e^(m - M) z + e^(m' - M) z')

    with `m` the largest score of a part, `z = sum_s e^(score_s - m)`,
    `u = sum_s e^(score_s - m) v_s`, and `M = max(m, m')`: the softmax over both parts.

    Args:
      query: `[B, T, H, D]` float32; row `b` reads prompt `b // (B / P)`.
      shared: keys `[P, G, D, S]` and values `[P, G, S, D]`.
      shared_length: `[P]` int32, how many positions of a prompt are seen.
      own: keys `[B, G, D, S']` and values `[B, G, S', D]`.
      mask: `[B, T, S']` bool, which of its own a token sees.

    Returns:
      `[B, T, H, D]` float32.

    Example:
      >>> one, none = jnp.ones((1, 1, 1, 2)), jnp.zeros((1, 1, 2, 1))
      >>> values = jnp.full((1, 1, 1, 2), 3.0)
      >>> seen = jnp.ones((1, 1, 1), bool)
      >>> length = jnp.ones(1, jnp.int32)
      >>> shared_attention(one, (none, values), length, (none, one), seen).tolist()
      [[[[2.0, 2.0]]]]

    Reference: Juravsky et al., "Hydragen", arXiv:2402.05099; Dao et al.,
    arXiv:2205.14135 (the sums of parts).
    """
    chex.assert_rank([query, *shared, *own, mask], [4, 4, 4, 4, 4, 3])
    batch, length, heads, dim = query.shape
    prompts, groups = shared[0].shape[:2]
    each = heads // groups
    query = query.reshape(batch, length, groups, each, dim) * dim**-0.5
    query = jnp.moveaxis(query, 1, 2).reshape(batch, groups, length * each, dim)
    # All rows of a prompt ask at once: to its keys they are one long query.
    asked = query.reshape(prompts, -1, *query.shape[1:])
    asked = jnp.moveaxis(asked, 1, 2).reshape(prompts, groups, -1, dim)
    place = jnp.arange(shared[1].shape[2])
    seen = place[None, None, None] < shared_length[:, None, None, None]
    parts = _part(asked, shared, seen)
    parts = [_by_row(x, (prompts, groups, batch // prompts)) for x in parts]
    mine = _part(query, own, jnp.repeat(mask, each, axis=1)[:, None])
    mixed = _joined(parts, mine).reshape(batch, groups, length, each, dim)
    return jnp.moveaxis(mixed, 2, 1).reshape(batch, length, heads, dim)


def _part(
    query: Array, layer: tuple[Array, Array], mask: Array
) -> tuple[Array, Array, Array]:
    """`(m, z, u)` of `[N, G, Q, D]` queries, the first two `[N, G, Q, 1]`."""
    keys, values = layer
    scores = jnp.where(mask, query @ keys, _UNSEEN)
    top = jax.lax.stop_gradient(jnp.max(scores, axis=-1, keepdims=True))
    weights = jnp.exp(scores - top)
    return top, jnp.sum(weights, axis=-1, keepdims=True), weights @ values


def _by_row(x: Array, sizes: tuple[int, int, int]) -> Array:
    """`[P, G, R Q, ...]` to `[P R, G, Q, ...]`."""
    x = jnp.moveaxis(x.reshape(*sizes, -1, x.shape[-1]), 2, 1)
    return x.reshape(-1, *x.shape[2:])


def _joined(left: list[Array], right: tuple[Array, Array, Array]) -> Array:
    top = jnp.maximum(left[0], right[0])
    a, b = jnp.exp(left[0] - top), jnp.exp(right[0] - top)
    total = a * left[1] + b * right[1]
    return (a * left[2] + b * right[2]) / total

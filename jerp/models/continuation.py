"""Going on from what rows have read: appended tokens, drawn tokens, turn after turn.

A conversation grows by what the world says and by what the policy says. Both go to the
end of a row's cache, and nothing is read twice. After every call a cache holds the
first `position` tokens of each row, those that were drawn included, without gaps: what
a row computes is what one forward pass over its tokens would. Token ids go in and token
ids come out; no text is between two turns.

Rows may begin with a prompt that they share, see `jerp.models.prefix`: then `cache` and
`position` are about what comes after it. A row whose tokens do not fit is masked, for
good: its position lies beyond the capacity from then on.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
from flax import struct

from jerp.models.attention import grouped_attention
from jerp.models.decoder import Decoder, hidden_states, output_logits
from jerp.models.generate import Cache, Generated
from jerp.models.prefix import Prefix, shared_attention
from jerp.models.sampling import SamplingRows, sample_tokens
from jerp.ops.checks import check_axes, check_values
from jerp.typing import Array, ArrayTree, Key

__all__ = ["Appended", "Turn", "append", "generate_turn"]


class Appended(struct.PyTreeNode):
    """Rows after tokens were appended.

    Attributes:
      cache: holds the first `position` tokens of every row.
      position: `[B]` int32, tokens so far.
      hidden: `[B, T, F]` float32, states of the appended tokens; padding's are without
        meaning.
      last: `[B, F]` float32, the state of the last real token, which says what comes
        next; 0 for a row to which nothing was appended: keep the one before.
      fits: `[B]` bool, False for a row that is beyond its capacity.
      num_full: `[]` int32, how many are.
    """

    cache: Cache
    position: Array
    hidden: Array
    last: Array
    fits: Array
    num_full: Array


class Turn(struct.PyTreeNode):
    """Rows after a turn was drawn.

    Attributes:
      cache, position, last: as in `Appended`, the drawn tokens included.
      generated: what was drawn; its mask ends where a row reaches its capacity.
      num_full: `[]` int32, rows that were cut off there.
    """

    cache: Cache
    position: Array
    last: Array
    generated: Generated
    num_full: Array


def append(
    params: ArrayTree,
    cache: Cache,
    position: Array,
    tokens: Array,
    length: Array,
    *,
    decoder: Decoder,
    prefix: Prefix | None = None,
) -> Appended:
    """Appends tokens to rows, each its own number of them.

    Args:
      params: variables of `decoder`.
      cache: of `B` rows, from `jerp.models.generate.init_cache` or a call before;
        donate it.
      position: `[B]` int32, how many tokens the cache holds.
      tokens: `[B, T]` int32, padded on the right with any token.
      length: `[B]` int32, 0 to T; a row of 0 stays as it is.
      decoder: static.
      prefix: what all rows began with, `B / P` rows a prompt.

    Returns:
      The rows, equal to a forward pass over all their tokens.

    Raises:
      InputError, ShapeError: a number out of range, other axes.

    Example:
      >>> from jerp.models.decoder import DecoderConfig
      >>> from jerp.models.generate import init_cache
      >>> config = DecoderConfig(8, 4, 4, 1, 1, 1, 4, context_length=8)
      >>> decoder, tokens = Decoder(config), jnp.ones((2, 3), jnp.int32)
      >>> params = decoder.init(jax.random.key(0), tokens)
      >>> cache, start = init_cache(config, batch_size=2, capacity=4), jnp.zeros(2, int)
      >>> length = jnp.array([3, 1])
      >>> rows = append(params, cache, start, tokens, length, decoder=decoder)
      >>> rows = append(
      ...     params, rows.cache, rows.position, tokens, length, decoder=decoder
      ... )
      >>> rows.position.tolist(), rows.fits.tolist(), int(rows.num_full)
      ([6, 2], [False, True], 1)
    """
    check_axes(
        position=(position, "B", int),
        tokens=(tokens, "B T", int),
        length=(length, "B", int),
    )
    size, capacity = tokens.shape[1], cache[0][1].shape[2]
    check_values("length", length, lambda n: (n >= 0) & (n <= size), f"0 to {size}")
    check_values("position", position, lambda n: n >= 0, ">= 0")
    place = position[:, None] + jnp.arange(size, dtype=jnp.int32)[None]
    before = jnp.zeros_like(position)
    if prefix is not None:
        rows = len(position) // len(prefix.length)
        before = jnp.repeat(prefix.length, rows, total_repeat_length=len(position))
    hidden, cache = hidden_states(
        decoder,
        params,
        tokens,
        before[:, None] + place,
        cache if prefix is None else tuple(zip(cache, prefix.cache, strict=True)),
        partial(
            _appending_mixer,
            place=place,
            prefix_length=None if prefix is None else prefix.length,
        ),
    )
    final = jnp.maximum(length - 1, 0)[:, None, None]
    last = jnp.take_along_axis(hidden, final, axis=1)[:, 0]
    position = position + length
    fits = position <= capacity
    return Appended(
        cache=cache,
        position=position,
        hidden=hidden,
        last=jnp.where(length[:, None] > 0, last, 0.0),
        fits=fits,
        num_full=jnp.sum(~fits, dtype=jnp.int32),
    )


def _appending_mixer(
    query: Array,
    key: Array,
    value: Array,
    cache: Any,
    *,
    place: Array,
    prefix_length: Array | None,
):
    """A token sees itself and all before it; what is beyond the capacity is dropped.

    Padding is written too: behind all that is seen, where the next tokens will be.
    """
    own, shared = (cache, None) if prefix_length is None else cache
    keys, values = own
    rows = jnp.arange(place.shape[0])[:, None]
    keys = keys.at[rows, :, :, place].set(key, mode="drop")
    values = values.at[rows, :, place].set(value, mode="drop")
    mask = jnp.arange(values.shape[2])[None, None] <= place[:, :, None]
    if shared is None or prefix_length is None:
        mixed = grouped_attention(query, keys, values, mask)
    else:
        mixed = shared_attention(query, shared, prefix_length, (keys, values), mask)
    return mixed, (keys, values)


def generate_turn(
    params: ArrayTree,
    cache: Cache,
    position: Array,
    last: Array,
    keys: Key,
    sampling: SamplingRows,
    stop_tokens: Array,
    *,
    decoder: Decoder,
    steps: int,
    prefix: Prefix | None = None,
) -> Turn:
    """Draws up to `steps` tokens a row, and keeps them.

    Draw `n` of a row uses `fold_in(key, n)`, as in `jerp.models.generate`. The stop
    token is drawn and kept too; a row that drew it waits for the others.

    Args:
      params: variables of `decoder`.
      cache: of `B` rows; donate it.
      position: `[B]` int32, how many tokens the cache holds.
      last: `[B, F]` float32, the state of each row's last token: `Appended.last`, or
        rows of `Prefix.hidden`.
      keys: `[B]` typed keys, consumed.
      sampling: how the rows draw.
      stop_tokens: `[K]` int32.
      decoder: static.
      steps: static.
      prefix: as in `append`.

    Returns:
      The rows and what they drew. Append the world's answer to go on.
    """
    check_axes(position=(position, "B", int), stop_tokens=(stop_tokens, "K", int))
    capacity = cache[0][1].shape[2]

    def step(carry: tuple[Cache, Array, Array, Array], n: Array):
        cache, position, last, stopped = carry
        uniform = jax.vmap(jax.random.uniform)(
            jax.vmap(jax.random.fold_in, (0, None))(keys, n)
        )
        logits = output_logits(decoder, params, last)
        token, log_prob = sample_tokens(logits, uniform, sampling)
        live = ~stopped & (position < capacity)
        rows = append(
            params,
            cache,
            position,
            token[:, None],
            live.astype(jnp.int32),
            decoder=decoder,
            prefix=prefix,
        )
        last = jnp.where(live[:, None], rows.last, last)
        stopped |= live & jnp.any(token[:, None] == stop_tokens[None], axis=-1)
        return (rows.cache, rows.position, last, stopped), (token, log_prob, live)

    start = (cache, position, last, jnp.zeros(position.shape, bool))
    end, drawn = jax.lax.scan(step, start, jnp.arange(steps))
    tokens, log_prob, mask = (x.T for x in drawn)
    return Turn(
        *end[:3],
        generated=Generated(tokens=tokens, log_prob=log_prob, mask=mask),
        num_full=jnp.sum(~end[3] & ~mask[:, -1], dtype=jnp.int32),
    )

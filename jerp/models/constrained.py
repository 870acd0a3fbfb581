"""Writing one of the admissible actions, token by token, and what that was worth.

An action is a sequence of L tokens, shorter ones padded with the end token. At every
place the distribution is renormalised over the tokens that continue some admissible
action: a trie, walked by a mask of the actions that agree with what was written so far.
So any text that can come out is an action, and the probabilities of all actions add to
one. A token without an alternative has log-probability 0.

Where an action is the beginning of another one, the padding behind it is a choice like
any other: the policy writes the end token, with the logit that it has, or goes on. Such
an end token was generated and is masked True; padding behind a finished action was not
and is masked False. Ids that no action ends in, and that pad them all, are for the
caller to choose: worlds use 0.

Axes: `B` rows, `A` actions, `L` tokens of an action, `V` words.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
from flax import struct

from jerp.models.continuation import append
from jerp.models.decoder import Decoder, output_logits
from jerp.models.generate import Cache
from jerp.ops.checks import check_axes
from jerp.ops.masked import categorical_entropy, masked_log_softmax
from jerp.typing import Array, ArrayTree, Key

__all__ = [
    "ConstrainedTokens",
    "Spoken",
    "constrained_log_probs",
    "constrained_mask",
    "generate_constrained",
]

_OFF_TRIE = -1e30
"""Finite, as in `jerp.ops.masked`."""


class ConstrainedTokens(struct.PyTreeNode):
    """Actions as token sequences under the distribution they are drawn from.

    Attributes:
      tokens: `[B, L]` int32, padded with the end token.
      token_log_prob: `[B, L]` float32; 0 where there was no alternative and in padding,
        -1e30 for a token that continues no admissible action.
      token_entropy: `[B, L]` float32, of the distribution of each token.
      token_mask: `[B, L]` bool, True for what the policy generated.
      choice: `[B, L]` bool, True for what of it had an alternative.
      action: `[B]` int32, the first action with these tokens; 0 if there is none.
      log_prob: `[B]` float32, of the action: the sum over its tokens.
    """

    tokens: Array
    token_log_prob: Array
    token_entropy: Array
    token_mask: Array
    choice: Array
    action: Array
    log_prob: Array


class Spoken(struct.PyTreeNode):
    """Rows after each has written an action.

    Attributes:
      cache, position, last: as in `continuation.Appended`, with what was written.
      written: the actions.
    """

    cache: Cache
    position: Array
    last: Array
    written: ConstrainedTokens


def constrained_mask(
    tokens: Array, action_tokens: Array, legal: Array, *, end_token: int = 0
) -> Array:
    """Which tokens of given actions a policy generates, without any logits.

    Args:
      tokens: `[B, L]` int32.
      action_tokens: `[A, L]` or `[B, A, L]` int32, padded with the end token.
      legal: `[B, A]` bool; a row without any is padding.
      end_token: of short actions.

    Returns:
      `[B, L]` bool: real tokens, and an end token where it was a choice.

    Example:
      >>> actions = jnp.array([[5, 0], [5, 6], [7, 0]])  # the first begins the second
      >>> legal = jnp.ones((2, 3), bool)
      >>> constrained_mask(jnp.array([[5, 0], [7, 0]]), actions, legal).tolist()
      [[True, True], [True, False]]
    """
    actions = _by_row(action_tokens, legal)
    return _walk(tokens, actions, _some(legal), end_token)[1]


def constrained_log_probs(
    logits: Array,
    tokens: Array,
    action_tokens: Array,
    legal: Array,
    *,
    end_token: int = 0,
) -> ConstrainedTokens:
    """Log-probabilities of given actions, as `generate_constrained` draws them.

        log p(c_j) = z(c_j) - log sum exp z(c)    over the tokens c that continue some
                                                  admissible action after c_1 .. c_(j-1)

    Args:
      logits: `[B, L, V]` float32, before each token.
      tokens: `[B, L]` int32, what was written, padded with the end token.
      action_tokens: `[A, L]`, or `[B, A, L]` where actions differ by row; int32, padded
        with the end token.
      legal: `[B, A]` bool; a row without any is padding: finite, without meaning.
      end_token: of short actions.

    Returns:
      The numbers of these tokens.

    Raises:
      ShapeError: axes that do not fit.

    Example:
      >>> actions = jnp.array([[5, 0], [5, 6], [7, 0]])
      >>> legal = jnp.array([[True, True, False]])
      >>> tokens = jnp.array([[5, 6]])
      >>> found = constrained_log_probs(jnp.zeros((1, 2, 8)), tokens, actions, legal)
      >>> jnp.exp(found.token_log_prob).tolist(), found.action.tolist()
      ([[1.0, 0.5]], [1])

    Deviations: renormalising token by token is not the model's distribution over whole
    sequences conditioned on the admissible ones; that one is what
    `jerp.models.scoring` and a softmax over its scores give.
    Reference: Willard and Louf, arXiv:2307.09702 (guided generation).
    """
    check_axes(
        logits=(logits, "B L V"),
        tokens=(tokens, "B L", int),
        legal=(legal, "B A", bool),
    )
    actions = _by_row(action_tokens, legal)
    alive, mask, written = _walk(tokens, actions, _some(legal), end_token)
    # [B, L, A]: of several actions that go on with one token, the first stands for it.
    words = jnp.moveaxis(actions, 1, 2)
    choice = _representatives(words, alive, logits.shape[-1])
    scores = jnp.take_along_axis(logits, words, axis=2)
    log_probs = masked_log_softmax(scores, choice)
    taken = choice & (words == tokens[..., None])
    chosen = jnp.sum(jnp.where(taken, log_probs, 0.0), axis=-1)
    chosen = jnp.where(jnp.any(taken, axis=-1), chosen, _OFF_TRIE)
    chosen = jnp.where(mask, chosen, 0.0)
    return ConstrainedTokens(
        tokens=tokens,
        token_log_prob=chosen,
        token_entropy=jnp.where(mask, categorical_entropy(log_probs), 0.0),
        token_mask=mask,
        choice=mask & (jnp.sum(choice, axis=-1) > 1),
        action=jnp.argmax(written, axis=-1).astype(jnp.int32),
        log_prob=jnp.sum(chosen, axis=-1),
    )


def generate_constrained(
    params: ArrayTree,
    cache: Cache,
    position: Array,
    last: Array,
    keys: Key,
    action_tokens: Array,
    legal: Array,
    *,
    decoder: Decoder,
    end_token: int = 0,
) -> Spoken:
    """Draws an admissible action a row, token by token, and keeps it in the cache.

    Draw `j` of a row uses `fold_in(key, j)`. A row without a legal action writes
    nothing: what is said to be drawn there has no meaning.

    Args:
      params: variables of `decoder`.
      cache: of `B` rows; donate it.
      position: `[B]` int32, how many tokens the cache holds.
      last: `[B, F]` float32, the state of each row's last token, see
        `jerp.models.continuation.Appended`.
      keys: `[B]` typed keys, consumed.
      action_tokens: `[A, L]`, or `[B, A, L]` where actions differ by row; int32, padded
        with the end token, distinct for legal actions.
      legal: `[B, A]` bool.
      decoder: static.
      end_token: static, of short actions.

    Returns:
      The rows and what they wrote; `constrained_log_probs` gives the same numbers for
      the same tokens.
    """
    check_axes(position=(position, "B", int), legal=(legal, "B A", bool))
    actions = _by_row(action_tokens, legal)
    live = jnp.any(legal, axis=-1)

    def step(carry: tuple, place: tuple[Array, Array]):
        cache, position, last, alive, ended = carry
        number, words = place
        logits = output_logits(decoder, params, last)
        choice = _representatives(words, alive, logits.shape[-1])
        scores = jnp.take_along_axis(logits, words, axis=1)
        log_probs = masked_log_softmax(scores, choice)
        drawn = jax.vmap(_draw, (0, None, 0))(keys, number, log_probs)[:, None]
        token = jnp.take_along_axis(words, drawn, axis=1)
        log_prob = jnp.take_along_axis(log_probs, drawn, axis=1)[:, 0]
        mask = _generated(token[:, 0], words, alive, ended, end_token)
        kept = (mask & live).astype(jnp.int32)
        rows = append(params, cache, position, token, kept, decoder=decoder)
        last = jnp.where(kept[:, None] > 0, rows.last, last)
        alive = alive & (words == token)
        ended = ended | (token[:, 0] == end_token)
        entropy = categorical_entropy(log_probs)
        numbers = jnp.where(mask, log_prob, 0.0), jnp.where(mask, entropy, 0.0)
        masks = mask, mask & (jnp.sum(choice, axis=-1) > 1)
        after = (rows.cache, rows.position, last, alive, ended)
        # In the order of `ConstrainedTokens`.
        return after, (token[:, 0], *numbers, *masks)

    start = (cache, position, last, _some(legal), jnp.zeros_like(live))
    places = (jnp.arange(actions.shape[2]), jnp.moveaxis(actions, 2, 0))
    (cache, position, last, alive, _), drawn = jax.lax.scan(step, start, places)
    tokens, log_prob, entropy, mask, choice = (x.T for x in drawn)
    action = jnp.argmax(alive, axis=-1).astype(jnp.int32)
    numbers = tokens, log_prob, entropy, mask, choice
    written = ConstrainedTokens(*numbers, action, jnp.sum(log_prob, axis=-1))
    return Spoken(cache=cache, position=position, last=last, written=written)


def _draw(key: Key, number: Array, log_probs: Array) -> Array:
    return jax.random.categorical(jax.random.fold_in(key, number), log_probs)


def _by_row(action_tokens: Array, legal: Array) -> Array:
    """`[B, A, L]`."""
    if jnp.ndim(action_tokens) == 2:
        check_axes(action_tokens=(action_tokens, "A L", int))
        action_tokens = jnp.broadcast_to(
            action_tokens[None], (legal.shape[0], *action_tokens.shape)
        )
    check_axes(legal=(legal, "B A", bool), action_tokens=(action_tokens, "B A L", int))
    return action_tokens


def _some(legal: Array) -> Array:
    """Rows without anything legal are padding: all is, to keep numbers finite."""
    return legal | ~jnp.any(legal, axis=-1, keepdims=True)


def _representatives(words: Array, alive: Array, num_words: int) -> Array:
    """`[..., A]` bool: of the alive actions with one token, the first."""
    size = words.shape[-1]
    place = jnp.broadcast_to(jnp.arange(size), words.shape)
    if size * size <= num_words:
        same = (words[..., :, None] == words[..., None, :]) & alive[..., None, :]
        return alive & (jnp.argmax(same, axis=-1) == place)
    # Of many actions there are more pairs than words.
    rows, ranks = words.reshape(-1, size), jnp.where(alive, place, size)
    row = jnp.arange(rows.shape[0])[:, None]
    first = jnp.full((rows.shape[0], num_words), size)
    first = first.at[row, rows].min(ranks.reshape(rows.shape))[row, rows]
    return alive & (first.reshape(words.shape) == place)


def _generated(
    token: Array, words: Array, alive: Array, ended: Array, end_token: int
) -> Array:
    """`[B]` bool: all but an end token that had no alternative, and what is behind."""
    forced = jnp.any(alive, axis=-1) & jnp.all(~alive | (words == end_token), axis=-1)
    return ~ended & ~(forced & (token == end_token))


def _walk(
    tokens: Array, actions: Array, legal: Array, end_token: int
) -> tuple[Array, Array, Array]:
    """Who agrees so far `[B, L, A]`, mask `[B, L]`, and who has all tokens `[B, A]`."""

    def step(carry: tuple[Array, Array], place: tuple[Array, Array]):
        alive, ended = carry
        token, words = place
        mask = _generated(token, words, alive, ended, end_token)
        after = alive & (words == token[:, None])
        return (after, ended | (token == end_token)), (alive, mask)

    start = (legal, jnp.zeros(legal.shape[0], bool))
    places = (tokens.T, jnp.moveaxis(actions, 2, 0))
    (written, _), (alive, mask) = jax.lax.scan(step, start, places)
    return jnp.moveaxis(alive, 0, 1), mask.T, written

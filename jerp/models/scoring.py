"""What a decoder gives to each of a few continuations: choosing without generating.

One prefill of the prompt, then all candidates in one pass that reads the prompt's keys
and values where they lie (`jerp.models.prefix`). The last token of a candidate is never
put through the decoder: nothing asks what comes after it.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp

from jerp.models.continuation import append
from jerp.models.decoder import Decoder, output_logits
from jerp.models.generate import init_cache
from jerp.models.prefix import Prefix, prefill_prefix
from jerp.ops.checks import check_axes, check_values
from jerp.typing import Array, ArrayTree

__all__ = ["score_candidates", "score_continuations"]

_NO_CANDIDATE = -1e30
"""Finite, as in `jerp.ops.masked`: its `exp` is 0, and no gradient is NaN."""


def score_candidates(
    params: ArrayTree,
    prompt_tokens: Array,
    prompt_length: Array,
    candidates: Array,
    candidate_length: Array,
    *,
    decoder: Decoder,
    normalise: bool = False,
) -> Array:
    """Log-probability of each candidate after the prompt.

        score_n = sum_j log p(c_nj | prompt, c_n1 .. c_n(j-1))     or, normalised,
        score_n / length_n

    Args:
      params: variables of `decoder`.
      prompt_tokens: `[S]` int32, or `[B, S]` for a batch of prompts; padded on the
        right with any token.
      prompt_length: `[]` or `[B]` int32, 1 to S.
      candidates: `[N, L]` or `[B, N, L]` int32, padded on the right with any token.
      candidate_length: `[N]` or `[B, N]` int32, 0 to L; 0 where there is no candidate.
      decoder: static.
      normalise: static; per token, so that long candidates are not at a disadvantage.

    Returns:
      `[N]` or `[B, N]` float32; -1e30 where there is no candidate. Under jit, NaN for
      a prompt whose length is out of range.

    Raises:
      InputError, ShapeError: a length that is out of range, other axes.

    Example:
      >>> from jerp.models.decoder import DecoderConfig
      >>> config = DecoderConfig(8, 4, 4, 1, 1, 1, 4, context_length=8)
      >>> decoder, prompt = Decoder(config), jnp.array([3, 1, 4])
      >>> params = decoder.init(jax.random.key(0), prompt[None])
      >>> candidates, length = jnp.array([[1, 5], [2, 0]]), jnp.array([2, 1])
      >>> score_candidates(
      ...     params, prompt, jnp.array(3), candidates, length, decoder=decoder
      ... ).shape
      (2,)

    Reference: Brown et al., arXiv:2005.14165, section 2.4 (scores per token).
    """
    if jnp.ndim(prompt_tokens) == 1:
        one = jax.tree.map(
            lambda x: jnp.asarray(x)[None],
            (prompt_tokens, prompt_length, candidates, candidate_length),
        )
        scores = score_candidates(params, *one, decoder=decoder, normalise=normalise)
        return scores[0]
    check_axes(
        prompt_tokens=(prompt_tokens, "B S", int),
        prompt_length=(prompt_length, "B", int),
        candidates=(candidates, "B N L", int),
    )
    _check_candidates(candidates, candidate_length)
    prefix = prefill_prefix(params, prompt_tokens, prompt_length, decoder=decoder)
    scores = score_continuations(
        params,
        prefix,
        candidates,
        candidate_length,
        decoder=decoder,
        normalise=normalise,
    )
    fits = (prompt_length >= 1) & (prompt_length <= prompt_tokens.shape[1])
    return jnp.where(fits[:, None], scores, jnp.nan)


def score_continuations(
    params: ArrayTree,
    prefix: Prefix,
    candidates: Array,
    candidate_length: Array,
    *,
    decoder: Decoder,
    normalise: bool = False,
) -> Array:
    """As `score_candidates`, after prompts that were read already.

    Args:
      params: variables of `decoder`.
      prefix: of `P` prompts, see `prefill_prefix`.
      candidates: `[P, N, L]` int32, padded on the right with any token.
      candidate_length: `[P, N]` int32, 0 to L; 0 where there is no candidate.
      decoder: static.
      normalise: static, per token.

    Returns:
      `[P, N]` float32; -1e30 where there is no candidate.
    """
    _check_candidates(candidates, candidate_length)
    size = candidates.shape[2]
    states = prefix.hidden[:, None]
    if size > 1:
        later = _later_states(params, prefix, candidates, candidate_length, decoder)
        states = jnp.concatenate([states, later], axis=1)
    # One product for all: on a CPU, reading the output matrix is what it costs.
    logits = output_logits(decoder, params, states)
    total = jax.nn.logsumexp(logits, axis=-1, keepdims=True)
    first = jnp.take_along_axis(logits[:, 0], candidates[..., 0], axis=1) - total[:, 0]
    later = candidates[..., 1:].reshape(len(candidates), -1, 1)
    later = jnp.take_along_axis(logits[:, 1:], later, axis=2) - total[:, 1:]
    parts = [first[..., None], later.reshape(*candidates.shape[:2], size - 1)]
    real = jnp.arange(size)[None, None] < candidate_length[..., None]
    scores = jnp.sum(jnp.where(real, jnp.concatenate(parts, axis=-1), 0.0), axis=-1)
    if normalise:
        scores = scores / jnp.maximum(candidate_length, 1)
    return jnp.where(candidate_length > 0, scores, _NO_CANDIDATE)


def _check_candidates(candidates: Array, candidate_length: Array) -> None:
    check_axes(
        candidates=(candidates, "P N L", int),
        candidate_length=(candidate_length, "P N", int),
    )
    size = candidates.shape[2]
    check_values(
        "candidate_length",
        candidate_length,
        lambda n: (n >= 0) & (n <= size),
        f"0 to {size}",
    )


def _later_states(
    params: ArrayTree,
    prefix: Prefix,
    candidates: Array,
    candidate_length: Array,
    decoder: Decoder,
) -> Array:
    """`[P, N (L - 1), F]` states after all tokens but the last."""
    prompts, number, size = candidates.shape
    batch = prompts * number
    rows = append(
        params,
        init_cache(decoder.config, batch_size=batch, capacity=size - 1),
        jnp.zeros(batch, jnp.int32),
        candidates.reshape(batch, size)[:, :-1],
        jnp.maximum(candidate_length.reshape(batch) - 1, 0),
        decoder=decoder,
        prefix=prefix,
    )
    return rows.hidden.reshape(prompts, number * (size - 1), -1)

"""Actions as texts of a policy: which can be told apart, and a log written out in them.

An action is L tokens, shorter ones padded with 0 at the end. What comes with
observations is asked the same by `jerp.envs.checks.check_environment`.
"""

from __future__ import annotations

from typing import cast

import jax
import jax.numpy as jnp

from jerp.errors import ConfigError
from jerp.models.constrained import constrained_mask
from jerp.trajectory import Trajectory
from jerp.typing import Array

__all__ = ["check_actions", "written_out"]


def check_actions(
    actions: tuple[tuple[int, ...], ...], *, num_tokens: int, vocab_size: int
) -> None:
    """Raises `ConfigError` unless actions are texts that differ.

    A text of nothing cannot be scored, the second of two equal ones is never written,
    and what stands behind a 0 is never read.

    Example:
      >>> check_actions(((5, 0), (5, 6)), num_tokens=2, vocab_size=7)
      >>> check_actions(((5, 6), (5, 6)), num_tokens=2, vocab_size=7)
      Traceback (most recent call last):
      ...
      jerp.errors.ConfigError: actions: expected different texts, got (5, 6) twice
    """
    seen = set()
    for tokens in actions:
        known = all(0 <= token < vocab_size for token in tokens)
        if len(tokens) != num_tokens or not known:
            raise ConfigError(
                f"actions: expected {num_tokens} tokens each, from 0 to "
                f"{vocab_size - 1}, got {tokens}"
            )
        words = [token for token in tokens if token]
        if not words or tokens[: len(words)] != tuple(words):
            raise ConfigError(
                f"actions: expected a token at least, and 0 at the end alone, where it "
                f"is padding, got {tokens}"
            )
        if tokens in seen:
            raise ConfigError(f"actions: expected different texts, got {tokens} twice")
        seen.add(tokens)


def written_out(trajectory: Trajectory, actions: Array) -> Trajectory:
    """A trajectory whose actions are written in tokens, as a policy would write them.

    Args:
      trajectory: `[B, T]`, with `legal`.
      actions: `[B, T, A, L]` int32, what could be written in each step.

    Returns:
      The trajectory with tokens. The log-probability of an action stands at its first
      token, 0 if it is unknown.
    """
    mask = trajectory.mask
    action = jnp.where(mask, trajectory.action, 0)[..., None, None]
    tokens = jnp.take_along_axis(actions, action, axis=2)[:, :, 0]
    tokens = jnp.where(mask[..., None], tokens, 0)
    legal = cast(Array, trajectory.legal)
    generated = jax.vmap(constrained_mask)(tokens, actions, legal)
    log_prob = trajectory.log_prob
    log_prob = jnp.zeros(mask.shape) if log_prob is None else log_prob
    first = jnp.arange(tokens.shape[2])[None, None] == 0
    return trajectory.replace(
        tokens=tokens,
        token_log_prob=jnp.where(first & mask[..., None], log_prob[..., None], 0.0),
        token_mask=generated & mask[..., None],
    )

"""What losses of episodes are over: steps, or the tokens that were written in them."""

from __future__ import annotations

import jax.numpy as jnp

from jerp.trajectory import Trajectory, valid_episodes
from jerp.typing import Array

__all__ = ["decisions", "flat_decisions", "sampler_gap"]


def decisions(data: Trajectory) -> Array:
    """`[B, D]` bool: steps, or the tokens that the policy generated in them."""
    if data.token_mask is None:
        return data.mask
    tokens = data.token_mask & data.mask[..., None]
    return tokens.reshape(tokens.shape[0], -1)


def flat_decisions(x: Array, *, like: Array) -> Array:
    """`[B, T]` or `[B, T, L]` as `[B, D]`; what is a step's goes to all its tokens."""
    if x.ndim < like.ndim:
        x = jnp.broadcast_to(x[..., None], like.shape)
    return x.reshape(x.shape[0], -1)


def sampler_gap(data: Trajectory, log_prob: Array) -> Array:
    """How far log-probabilities are from the sampler's, at most.

    Args:
      data: of episodes; those lost to a failed executor do not count.
      log_prob: `[B, D]` float32, of a policy with the parameters that sampled.

    Returns:
      `[]` float32; NaN where the sampler's are not known.
    """
    sampled = data.log_prob if data.token_mask is None else data.token_log_prob
    if sampled is None:
        return jnp.float32(jnp.nan)
    distance = jnp.abs(sampled.reshape(log_prob.shape) - log_prob)
    counted = decisions(data) & valid_episodes(data)[:, None]
    return jnp.max(jnp.where(counted, distance, 0.0))

"""Entropy of a policy's next-token distributions."""

from __future__ import annotations

import jax.numpy as jnp

from jerp.ops.checks import check_axes, check_finite, check_values
from jerp.ops.masked import categorical_entropy, masked_log_softmax
from jerp.typing import Array

__all__ = ["policy_entropy"]


def policy_entropy(logits: Array, mask: Array, *, legal: Array | None = None) -> Array:
    """Entropy of the distribution that each token was drawn from.

        H_it = - sum_v p_itv log p_itv,   p = softmax of the legal logits

    `aggregate_loss` makes a bonus of it: with the same aggregation as the loss,
    `loss.total - entropy_weight * entropy.total` is what to differentiate.

    Args:
      logits: `[B, L, V]` float. Padding and illegal entries may hold anything.
      mask: `[B, L]` bool, True for real tokens.
      legal: `[B, L, V]` bool, choices that could be drawn, such as the actions of a
        grammar; None for all. Mark them here: a logit of -inf is refused.

    Returns:
      `[B, L]` float32 in nats; 0 where `mask` is False.

    Raises:
      InputError: a NaN or infinite legal logit or no legal choice in a real token,
        where Python can see it. Under jit that token's entropy is NaN.

    Example:
      >>> logits, mask = jnp.zeros((1, 2, 4)), jnp.array([[True, False]])
      >>> [round(float(h), 4) for h in policy_entropy(logits, mask)[0]]
      [1.3863, 0.0]
    """
    legal = jnp.ones(logits.shape, bool) if legal is None else legal
    check_axes(logits=(logits, "B L V"), legal=(legal, "B L V"), mask=(mask, "B L"))
    counted = legal & mask[..., None]
    check_finite("logits", logits, counted)
    possible = jnp.any(legal, axis=-1)
    check_values("legal", possible | ~mask, lambda v: v, "a legal choice a real token")
    logits = jnp.where(counted, jnp.asarray(logits, jnp.float32), 0)
    entropy = categorical_entropy(masked_log_softmax(logits, counted))
    sound = possible & jnp.all(jnp.isfinite(logits), axis=-1)
    return jnp.where(mask, jnp.where(sound, entropy, jnp.nan), 0)

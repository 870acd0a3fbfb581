"""How much likelier a target policy makes a logged episode, step by step.

Symbols as in `jerp.estimators.ope`. Kept as logarithms, which cannot overflow.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp

from jerp.errors import InputError
from jerp.ops.checks import check_axes, check_finite, check_prefix, check_values
from jerp.typing import Array, ArrayLike

__all__ = ["check_probabilities", "log_weights"]


def log_weights(
    log_prob: ArrayLike | None, target_log_prob: ArrayLike, mask: ArrayLike
) -> Array:
    """How much likelier the target makes an episode up to each step.

        log rho_{0:t} = sum_{u <= t} (log pi(a_u | s_u) - log b(a_u | s_u))

    Args:
      log_prob: `[B, T]` float32, log b of the action taken.
      target_log_prob: `[B, T]` float32, log pi of the same action.
      mask: `[B, T]` bool, a prefix in every row.

    Returns:
      `[B, T]` float32; constant from the last real step on, -inf from the first action
      that the target never takes.

    Raises:
      InputError: see `jerp.importance_sampling`.

    Example:
      >>> b, pi = jnp.log(jnp.array([[[0.5, 0.5]], [[1.0, 0.25]]]))
      >>> jnp.exp(log_weights(b, pi, jnp.ones((1, 2), bool))).tolist()
      [[2.0, 1.0]]
    """
    behaviour = check_probabilities(log_prob, mask)
    target = jnp.asarray(target_log_prob, jnp.float32)
    check_axes(mask=(mask, "B T", bool), target_log_prob=(target, "B T"))
    at_most_0 = (lambda v: v <= 1e-5), "log-probabilities, at most 0"
    check_values("target_log_prob", target_log_prob, *at_most_0, mask=mask)
    return _summed(target, behaviour, mask)


def check_probabilities(log_prob: ArrayLike | None, mask: ArrayLike) -> Array:
    """The behaviour's log-probabilities, refused where there are none.

    Args:
      log_prob: `[B, T]` float32, log b of the action taken, or None.
      mask: `[B, T]` bool.

    Returns:
      `[B, T]` float32.

    Raises:
      InputError: see `jerp.importance_sampling`.

    Example:
      >>> check_probabilities(jnp.zeros((1, 1)), jnp.ones((1, 1), bool)).tolist()
      [[0.0]]
    """
    if log_prob is None:
        raise InputError(
            "log_prob: expected the behaviour's log-probabilities of the actions it "
            "took, got None; nothing can be evaluated off-policy without them. Log "
            "them when the agent acts, as jerp.EpisodeLog does"
        )
    check_axes(mask=(mask, "B T", bool), log_prob=(log_prob, "B T"))
    check_prefix("mask", mask)
    check_finite("log_prob", log_prob, mask)
    check_values("log_prob", log_prob, lambda v: v <= 1e-5, "at most 0", mask=mask)
    return jnp.asarray(log_prob, jnp.float32)


@jax.jit
def _summed(target: Array, behaviour: Array, mask: ArrayLike) -> Array:
    return jnp.cumsum(jnp.where(mask, target - behaviour, 0.0), axis=1)

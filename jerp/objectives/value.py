"""Squared errors of a value function, PPO's clipped form included.

Targets and old values are constants: no gradient flows through them. Means are over the
real entries, never over padding.
"""

from __future__ import annotations

import jax.numpy as jnp
from jax import lax

from jerp.errors import ConfigError
from jerp.objectives.entries import entry_mean, real_entries
from jerp.ops.checks import check_any, check_settings
from jerp.records import LossOutput
from jerp.typing import Array, ArrayLike

__all__ = ["value_loss"]


def value_loss(
    value: Array,
    target: Array,
    mask: Array,
    *,
    old_value: Array | None = None,
    clip: ArrayLike | None = None,
) -> LossOutput:
    """Half the squared error of a value function, PPO's clip as an option.

        L = mean of (V - G)^2 / 2
        L = mean of max((V - G)^2, (V_c - G)^2) / 2,
            V_c = V_old + clip(V - V_old, -clip, clip)

    The second where `old_value` and `clip` are given. The larger error counts: a value
    further than `clip` from the old one is not moved further away from it.

    Args:
      value: any shape, float: predictions. Padding may hold anything, NaN included.
      target: same shape: returns.
      mask: same shape, bool.
      old_value: same shape: predictions before the update. With `clip` or not at all.
      clip: > 0, in the units of the values.

    Returns:
      The loss, and metrics as means over the real entries: `invalid` (NaN or infinite
      entries; its `total` counts them) and, with a clip, `clip_fraction`, where the
      clipped error counts and the gradient is 0.

    Raises:
      ConfigError: one of `old_value` and `clip` without the other.
      InputError: a NaN or infinite real entry, an all-masked batch or a `clip` not > 0,
        where Python can see it. Under jit an invalid entry makes the loss NaN, and
        nothing real gives total and weight 0.

    Deviations: none. The paper does not clip values; its released code does.

    Reference: Schulman et al., "Proximal Policy Optimization Algorithms",
      arXiv:1707.06347, eq. 9.

    Example:
      >>> v, g, mask = jnp.array([1.0, 9.0]), jnp.array([3.0, 0.0]), jnp.ones(2, bool)
      >>> float(value_loss(v, g, mask).loss.value())
      21.25
      >>> out = value_loss(v, g, mask, old_value=jnp.array([0.0, 9.5]), clip=0.2)
      >>> round(float(out.loss.value()), 4), float(out.metrics["clip_fraction"].value())
      (23.5825, 1.0)
    """
    if (old_value is None) != (clip is None):
        given = "clip" if old_value is None else "old_value"
        raise ConfigError(
            f"old_value, clip: expected both or neither, got {given} alone"
        )
    poison = check_settings(clip=(clip, lambda v: v > 0, "> 0"))
    check_any("mask", mask)
    old = {} if old_value is None else {"old_value": old_value}
    real, invalid = real_entries(mask, value=value, target=target, **old)
    error = jnp.square(real["value"] + poison - lax.stop_gradient(real["target"]))
    metrics = {"invalid": entry_mean(invalid, mask)}
    if clip is not None:
        bound = lax.stop_gradient(_error_at_the_bound(real, clip))
        held = bound > error
        error = jnp.where(held, bound, error)
        metrics["clip_fraction"] = entry_mean(held, mask)
    return LossOutput(loss=entry_mean(0.5 * error, mask), metrics=metrics)


def _error_at_the_bound(real: dict[str, Array], clip: ArrayLike) -> Array:
    """Squared error of the value where the clip stops it; -1 where it does not.

    Inside the clip `old + (value - old)` differs from `value` by rounding, which must
    not decide whether a value is moved.
    """
    old = real["old_value"]
    move = real["value"] - old
    bound = jnp.square(old + jnp.clip(move, jnp.negative(clip), clip) - real["target"])
    return jnp.where(jnp.abs(move) > clip, bound, -1)

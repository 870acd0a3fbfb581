"""What to do about sequences that run into the length limit: punish, or leave out.

A sequence cut at the limit has no answer, and its reward says little of its tokens.
DAPO names two ways: a penalty that grows over the last stretch before the limit, or no
loss on what was cut. Both are functions of the data; neither hides in a loss.
"""

from __future__ import annotations

import jax.numpy as jnp

from jerp.ops.checks import check_axes, check_settings, check_values, concrete
from jerp.typing import Array, ArrayLike

__all__ = ["overlong_filter", "overlong_penalty"]


def overlong_penalty(
    length: Array, *, max_length: ArrayLike, buffer: ArrayLike
) -> Array:
    """Soft punishment of long sequences, to be added to their reward.

        p = 0                                      n <= max_length - buffer
            (max_length - buffer - n) / buffer     between
            -1                                     n > max_length

    Args:
      length: any shape, int: tokens n of each sequence.
      max_length: where the punishment is full; the generator's limit.
      buffer: in (0, max_length], how many tokens before it begins.

    Returns:
      Shape of `length`, float32, in [-1, 0]. Keep it beside the reward, not folded in.

    Raises:
      InputError: a negative length, a bad `max_length` or `buffer`, where Python can
        see it. Under jit a negative length gives NaN.

    Deviations: none. DAPO has `max_length=20480, buffer=4096`.

    Reference: DAPO, Yu et al., arXiv:2503.14476, eq. 13.

    Example:
      >>> n = jnp.array([10, 80, 90, 100, 120])
      >>> overlong_penalty(n, max_length=100, buffer=20).tolist()
      [0.0, 0.0, -0.5, -1.0, -1.0]
    """
    check_values("length", length, lambda v: v >= 0, ">= 0")
    free = jnp.subtract(max_length, buffer)
    poison = check_settings(
        buffer=(buffer, lambda v: v > 0, "> 0"),
        max_length=(
            max_length if concrete(buffer) is not None else free,
            lambda v: v >= (0 if v is free else buffer),
            f"at least buffer = {buffer}",
        ),
    )
    # An unsigned or narrow length would wrap around in the difference.
    tokens = jnp.asarray(length).astype(jnp.float32)
    penalty = jnp.clip((free - tokens) / buffer, -1, 0) + poison
    return jnp.where(tokens >= 0, penalty, jnp.nan)


def overlong_filter(mask: Array, truncated: Array) -> Array:
    """Mask that leaves sequences without an end out of the loss.

        m'_it = m_it and not truncated_i

    They then enter neither numerator nor denominator of any aggregation. Their reward
    still counts in the baseline of their group, as in DAPO: mask the group's advantages
    too where it should not.

    Args:
      mask: `[B, L]` bool, True for real tokens.
      truncated: `[B]` bool, True where a budget ended the sequence.

    Returns:
      `[B, L]` bool.

    Reference: DAPO, Yu et al., arXiv:2503.14476, section 3.4.

    Example:
      >>> mask = jnp.ones((2, 3), bool)
      >>> overlong_filter(mask, jnp.array([False, True])).sum(1).tolist()
      [3, 0]
    """
    check_axes(mask=(mask, "B L", bool), truncated=(truncated, "B", bool))
    return mask & ~truncated[:, None]

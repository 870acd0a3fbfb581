"""Returns and advantages of one sequence: discounted, TD(lambda), GAE.

Functions take one `[T]` sequence; callers `vmap`. `reward[t]` belongs to the action at
`t`, `value[t]` to the state it was taken in. `mask` is a prefix. A natural end
(`terminated`) is worth 0; any other end (`truncated`, or the data stop) is worth
`bootstrap_value`, the value of the state after it.
"""

from __future__ import annotations

import chex
import jax.numpy as jnp
from jax import lax

from jerp.typing import Array, ArrayLike

__all__ = ["discounted_returns", "gae", "lambda_returns"]


def discounted_returns(reward: Array, mask: Array, *, discount: ArrayLike) -> Array:
    """Sum of the discounted rewards from each step on.

        G_t = r_t + discount G_{t+1},   G = 0 after the last real step

    Args:
      reward: `[T]` float32. Padding may hold anything, NaN included.
      mask: `[T]` bool, a prefix.
      discount: `gamma`, in [0, 1].

    Returns:
      `[T]` float32, 0 in padding.

    Example:
      >>> r, m = jnp.array([1.0, 0.0, 2.0]), jnp.ones(3, bool)
      >>> discounted_returns(r, m, discount=0.5).tolist()
      [1.5, 1.0, 2.0]
    """
    chex.assert_rank([reward, mask], 1)
    chex.assert_equal_shape([reward, mask])
    return _discounted_sums(jnp.where(mask, reward, 0), jnp.full_like(reward, discount))


def lambda_returns(
    reward: Array,
    value: Array,
    terminated: Array,
    truncated: Array,
    mask: Array,
    *,
    discount: ArrayLike,
    lambda_: ArrayLike,
    bootstrap_value: ArrayLike,
) -> Array:
    """TD(lambda) returns.

        G_t = r_t + discount [(1 - lambda) V_{t+1} + lambda G_{t+1}]

    with `V_{t+1} = G_{t+1} = 0` after a natural end and `= bootstrap_value` after any
    other. With `lambda_` 0 these are one-step targets, with 1 Monte-Carlo returns.

    Args:
      reward: `[T]` float32, at times 0..T-1. Padding may hold anything.
      value: `[T]` float32, `V` of the states at times 0..T-1.
      terminated: `[T]` bool, natural end; wins over `truncated`.
      truncated: `[T]` bool, end by budget or error.
      mask: `[T]` bool, a prefix. A last real step with neither flag counts as
        truncated: nothing is known of what followed.
      discount: `gamma`, in [0, 1].
      lambda_: in [0, 1].
      bootstrap_value: `[]`, or `[T]` where the sequence holds several episodes one
        after the other: the value of the state after each truncated step.

    Returns:
      `[T]` float32, 0 in padding.

    Example:
      >>> r, v = jnp.array([0.0, 1.0]), jnp.array([0.5, 0.5])
      >>> no, yes = jnp.zeros(2, bool), jnp.ones(2, bool)
      >>> lambda_returns(
      ...     r, v, no, no, yes, discount=1.0, lambda_=1.0, bootstrap_value=3.0
      ... ).tolist()
      [4.0, 4.0]

    Reference: Sutton & Barto, Reinforcement Learning, 2nd ed., eq. 12.18 (one value for
    the end state, as in the released code of arXiv:1910.00177).
    """
    sequences = [reward, value, terminated, truncated, mask]
    chex.assert_rank(sequences, 1)
    chex.assert_equal_shape(sequences)
    reward, value = jnp.where(mask, reward, 0), jnp.where(mask, value, 0)
    after_last = mask & ~jnp.append(mask[1:], False)
    cut = mask & ~terminated & (truncated | after_last)
    goes_on = mask & ~terminated & ~cut
    end_value = jnp.where(cut, jnp.broadcast_to(bootstrap_value, reward.shape), 0)
    next_value = jnp.where(goes_on, (1 - lambda_) * jnp.append(value[1:], 0), end_value)
    return _discounted_sums(
        reward + discount * next_value, jnp.where(goes_on, discount * lambda_, 0)
    )


def gae(
    reward: Array,
    value: Array,
    terminated: Array,
    truncated: Array,
    mask: Array,
    *,
    discount: ArrayLike,
    lambda_: ArrayLike,
    bootstrap_value: ArrayLike,
) -> Array:
    """Generalised advantage estimates.

        A_t = d_t + discount lambda A_{t+1},   d_t = r_t + discount V_{t+1} - V_t

    with `A_{t+1} = 0` after any end, `V_{t+1} = 0` after a natural end and
    `= bootstrap_value` after any other; computed as `lambda_returns - V`, which it is.

    Args:
      reward: `[T]` float32. Padding may hold anything, NaN included.
      value: `[T]` float32.
      terminated: `[T]` bool, natural end; wins over `truncated`.
      truncated: `[T]` bool, end by budget or error.
      mask: `[T]` bool, a prefix.
      discount: `gamma`, in [0, 1].
      lambda_: in [0, 1].
      bootstrap_value: `[]` or `[T]`, see `lambda_returns`.

    Returns:
      `[T]` float32, 0 in padding.

    Example:
      >>> r, v = jnp.array([0.0, 1.0]), jnp.array([0.5, 0.5])
      >>> end, no = jnp.array([False, True]), jnp.zeros(2, bool)
      >>> gae(
      ...     r, v, end, no, ~no, discount=1.0, lambda_=0.0, bootstrap_value=9.0
      ... ).tolist()
      [0.0, 0.5]

    Reference: Schulman et al., arXiv:1506.02438, eq. 16.
    """
    returns = lambda_returns(
        reward,
        value,
        terminated,
        truncated,
        mask,
        discount=discount,
        lambda_=lambda_,
        bootstrap_value=bootstrap_value,
    )
    return returns - jnp.where(mask, value, 0)


def _discounted_sums(x: Array, decay: Array) -> Array:
    """`y_t = x_t + decay_t y_{t+1}` for `[T]` arrays, `y_T = 0`."""

    def step(later: Array, now: tuple[Array, Array]) -> tuple[Array, Array]:
        x_t, decay_t = now
        total = x_t + decay_t * later
        return total, total

    _, total = lax.scan(step, jnp.zeros((), x.dtype), (x, decay), reverse=True)
    return total

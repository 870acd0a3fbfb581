"""Returns and advantages of one sequence: discounted, TD(lambda), GAE.

Functions take one `[T]` sequence; use `jax.vmap` for a batch of them. `reward[t]`
belongs to the action at `t`, `value[t]` to the state it was taken in. `mask` is a
prefix. A natural end (`terminated`) is worth 0; any other end (`truncated`, or the data
stop) is worth `bootstrap_value`, the value of the state after it. A NaN reaches the
steps before it in its own episode alone. Half precision comes in, float32 goes out.
"""

from __future__ import annotations

from typing import Literal, get_args

import jax.numpy as jnp
from jax import lax

from jerp.ops.checks import (
    check_axes,
    check_choice,
    check_finite,
    check_prefix,
    check_values,
)
from jerp.typing import Array, ArrayLike

__all__ = ["Method", "discounted_returns", "gae", "lambda_returns"]

Method = Literal["scan", "associative"]
"""How the recursion over time is computed: step by step, or in log2(T) parallel sweeps,
which long sequences on an accelerator want; on a CPU they take ten times as long to
compile and are no faster. Results agree up to rounding."""


def discounted_returns(
    reward: Array, mask: Array, *, discount: ArrayLike, method: Method = "scan"
) -> Array:
    """Sum of the discounted rewards from each step on.

        G_t = r_t + discount G_{t+1},   G = 0 after the last real step

    Args:
      reward: `[T]` float. Padding may hold anything, NaN included.
      mask: `[T]` bool, a prefix.
      discount: `gamma`, in [0, 1].
      method: see `Method`.

    Returns:
      `[T]` float32, 0 in padding.

    Raises:
      InputError: mask no prefix, a NaN or infinite reward, a discount out of range,
        where Python can see it. Under jit what they reach is NaN.

    Example:
      >>> r, m = jnp.array([1.0, 0.0, 2.0]), jnp.ones(3, bool)
      >>> discounted_returns(r, m, discount=0.5).tolist()
      [1.5, 1.0, 2.0]
    """
    check_axes(reward=(reward, "T"), mask=(mask, "T", bool))
    _check(mask, method, discount=discount)
    check_finite("reward", reward, mask)
    reward = jnp.where(mask, jnp.asarray(reward, jnp.float32), 0)
    decay = jnp.where(mask, _share(discount), 0)
    return _if_prefix(mask, _discounted_sums(reward, decay, mask, method))


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
    method: Method = "scan",
) -> Array:
    """TD(lambda) returns.

        G_t = r_t + discount [(1 - lambda) V_{t+1} + lambda G_{t+1}]

    with `V_{t+1} = G_{t+1} = 0` after a natural end and `= bootstrap_value` after any
    other. With `lambda_` 0 these are one-step targets, with 1 Monte-Carlo returns.

    Args:
      reward: `[T]` float, at times 0..T-1. Padding may hold anything.
      value: `[T]` float, `V` of the states at times 0..T-1.
      terminated: `[T]` bool, natural end; wins over `truncated`.
      truncated: `[T]` bool, end by budget or error.
      mask: `[T]` bool, a prefix. A last real step with neither flag counts as
        truncated: nothing is known of what followed.
      discount: `gamma`, in [0, 1].
      lambda_: in [0, 1].
      bootstrap_value: `[]`, or `[T]` where the sequence holds several episodes one
        after the other: the value of the state after each truncated step. Where an
        episode ends naturally it may hold anything.
      method: see `Method`.

    Returns:
      `[T]` float32, 0 in padding.

    Raises:
      InputError: mask no prefix, a NaN or infinite reward, value or bootstrap value
        that counts, a discount or lambda out of range, where Python can see it. Under
        jit what they reach is NaN.

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
    check_axes(
        reward=(reward, "T"),
        value=(value, "T"),
        terminated=(terminated, "T", bool),
        truncated=(truncated, "T", bool),
        mask=(mask, "T", bool),
    )
    _check(mask, method, discount=discount, lambda_=lambda_)
    check_finite("reward", reward, mask)
    check_finite("value", value, mask)
    discount, lambda_ = _share(discount), _share(lambda_)
    reward = jnp.where(mask, jnp.asarray(reward, jnp.float32), 0)
    value = jnp.where(mask, jnp.asarray(value, jnp.float32), 0)
    after_last = mask & ~jnp.append(mask[1:], False)
    cut = mask & ~terminated & (truncated | after_last)
    goes_on = mask & ~terminated & ~cut
    end_value = jnp.broadcast_to(jnp.asarray(bootstrap_value, jnp.float32), value.shape)
    check_finite("bootstrap_value", end_value, cut)
    end_value = jnp.where(cut, end_value, 0)
    next_value = jnp.where(goes_on, (1 - lambda_) * jnp.append(value[1:], 0), end_value)
    decay = jnp.where(goes_on, discount * lambda_, 0)
    returns = _discounted_sums(reward + discount * next_value, decay, goes_on, method)
    return _if_prefix(mask, returns)


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
    method: Method = "scan",
) -> Array:
    """Generalised advantage estimates.

        A_t = d_t + discount lambda A_{t+1},   d_t = r_t + discount V_{t+1} - V_t

    with `A_{t+1} = 0` after any end, `V_{t+1} = 0` after a natural end and
    `= bootstrap_value` after any other; computed as `lambda_returns - V`, which it is.

    Args:
      reward: `[T]` float. Padding may hold anything, NaN included.
      value: `[T]` float.
      terminated: `[T]` bool, natural end; wins over `truncated`.
      truncated: `[T]` bool, end by budget or error.
      mask: `[T]` bool, a prefix.
      discount: `gamma`, in [0, 1].
      lambda_: in [0, 1].
      bootstrap_value: `[]` or `[T]`, see `lambda_returns`.
      method: see `Method`.

    Returns:
      `[T]` float32, 0 in padding.

    Raises:
      InputError: see `lambda_returns`.

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
        method=method,
    )
    return returns - jnp.where(mask, jnp.asarray(value, jnp.float32), 0)


def _check(mask: Array, method: str, **shares: ArrayLike) -> None:
    check_choice("method", method, get_args(Method))
    for name, share in shares.items():
        check_values(name, share, lambda v: (v >= 0) & (v <= 1), "in [0, 1]")
    check_prefix("mask", mask)


def _if_prefix(mask: Array, returns: Array) -> Array:
    """NaN at the real steps of a mask that is none, 0 in padding."""
    gap = jnp.any(mask[1:] & ~mask[:-1])
    return jnp.where(mask, jnp.where(gap, jnp.nan, returns), 0)


def _share(x: ArrayLike) -> Array:
    """A discount or lambda in float32, NaN out of range."""
    x = jnp.asarray(x, jnp.float32)
    return jnp.where((x >= 0) & (x <= 1), x, jnp.nan)


def _discounted_sums(x: Array, decay: Array, goes_on: Array, method: str) -> Array:
    """`y_t = x_t + decay_t y_{t+1}` for `[T]` arrays, `x_t` alone at an end."""

    def join(later, now):
        (y, decay_y, goes_on_y), (x, decay, goes_on) = later, now
        # Not by a decay of 0 alone, which would let a NaN of the next episode through.
        total = x + jnp.where(goes_on, decay * y, 0)
        return total, decay * decay_y, goes_on & goes_on_y

    if method == "associative":
        return lax.associative_scan(join, (x, decay, goes_on), reverse=True)[0]

    def step(later, now):
        total, _, _ = join((later, 0, False), now)
        return total, total

    return lax.scan(step, jnp.zeros((), x.dtype), (x, decay, goes_on), reverse=True)[1]

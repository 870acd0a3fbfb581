"""Discounted sums carried to twice the digits of float32.

A float32 recursion over T steps is off by up to T roundings, which differ with the
order of the same rewards. Here every rounding error is carried along as a second
float32 and only the result is rounded, so that sums which are equal come out equal.
"""

from __future__ import annotations

import jax.numpy as jnp
from jax import lax

from jerp.typing import Array, ArrayLike

__all__ = ["compensated_returns"]

_HALVES = 4097.0
"""2^12 + 1: splits the 24 bits of a float32 into two halves of 12."""


def compensated_returns(reward: Array, *, discount: ArrayLike) -> Array:
    """Sum of the discounted rewards from each step on, rounded once.

        G_t = r_t + discount G_{t+1},   G_T = 0

    Args:
      reward: `[B, T]` float32, 0 in padding.
      discount: `gamma`, in [0, 1], as float32.

    Returns:
      `[B, T]` float32, off by 2^-24 |G_t| and a few 2^-48 of the sum of sizes. An
      infinite or NaN reward, or a sum beyond 1e34, makes its own return, and those of
      the steps before, infinite or NaN.

    Reference: Dekker, "A floating-point technique for extending the available
      precision", Numerische Mathematik 18 (1971).

    Example:
      >>> reward = jnp.array([[0.1] * 10, [0.2] * 5 + [0.0] * 5])
      >>> compensated_returns(reward, discount=1.0)[:, 0].tolist()
      [1.0, 1.0]
    """
    discount = jnp.asarray(discount, jnp.float32)

    def step(later: tuple[Array, Array], now: Array):
        product, product_error = _product(discount, later[0])
        total, sum_error = _sum(now, product)
        error = sum_error + (product_error + discount * later[1])
        rounded, rest = _sum(total, error)
        # Of an infinity there is no error, and NaN is what the arithmetic makes of it.
        finite = jnp.isfinite(total)
        value = jnp.where(finite, rounded, now + discount * later[0])
        return (value, jnp.where(finite, rest, 0)), value

    zero = jnp.zeros(reward.shape[:1], jnp.float32)
    rewards = jnp.asarray(reward, jnp.float32).T
    return lax.scan(step, (zero, zero), rewards, reverse=True)[1].T


def _sum(a: Array, b: Array) -> tuple[Array, Array]:
    """`a + b` rounded, and what rounding took (Knuth)."""
    total = a + b
    of_b = total - a
    return total, (a - (total - of_b)) + (b - of_b)


def _product(a: Array, b: Array) -> tuple[Array, Array]:
    """`a b` rounded, and what rounding took (Dekker)."""
    product = a * b
    (a_high, a_low), (b_high, b_low) = _halves(a), _halves(b)
    rest = ((a_high * b_high - product) + a_high * b_low + a_low * b_high) + (
        a_low * b_low
    )
    return product, rest


def _halves(x: Array) -> tuple[Array, Array]:
    spread = _HALVES * x
    high = spread - (spread - x)
    return high, x - high

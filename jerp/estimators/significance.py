"""Exact tests of paired outcomes, and what many of them at once are worth.

Symbols: `b` gains and `c` losses among paired tasks; p-values in [0, 1], two-sided
unless named otherwise. No normal or chi-squared approximation: the counts that matter
here are small.
"""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp

from jerp.estimators.arguments import broadcast_counts, row_axes
from jerp.ops.checks import check_axes, check_values
from jerp.typing import Array, ArrayLike

__all__ = ["SignTest", "holm", "mcnemar_exact", "mcnemar_one_sided", "sign_test"]

_RESCALE = 2.0**64
"""Binomials are kept below this times a power of it, far from float32's 2^128."""


@jax.jit
def _lower_tail(most: Array, total: Array) -> Array:
    """P(X <= most) of Binomial(total, 1 / 2), for most <= total / 2.

    By the ratios of neighbouring binomials, upwards in i, with C(n, i) = t and the sum
    of C(n, 0..i) = t s: all terms are positive, so that nothing cancels and each step
    adds one rounding.
    """

    def step(i: Array, state: tuple[Array, Array, Array]) -> tuple[Array, Array, Array]:
        term, turns, below = state
        ratio = (total - i + 1).astype(jnp.float32) / i.astype(jnp.float32)
        grown = term * ratio
        large = grown > _RESCALE
        new = (
            jnp.where(large, grown / _RESCALE, grown),
            turns + large.astype(jnp.int32),
            1.0 + below / ratio,
        )
        return jax.tree.map(lambda x, y: jnp.where(i <= most, x, y), new, state)

    start = (
        jnp.ones(total.shape),
        jnp.zeros(total.shape, jnp.int32),
        jnp.ones(total.shape),
    )
    last = jnp.max(most, initial=0)
    term, turns, below = jax.lax.fori_loop(1, last + 1, step, start)
    return jnp.where(most >= 0, jnp.ldexp(term * below, 64 * turns - total), 0.0)


@jax.jit
def _two_sided(gains: Array, losses: Array) -> Array:
    fewer = jnp.minimum(gains, losses)
    one_side = _lower_tail(fewer, gains + losses)
    p_value = jnp.where(gains == losses, 1.0, jnp.minimum(2.0 * one_side, 1.0))
    return jnp.where(fewer >= 0, p_value, jnp.nan)


@jax.jit
def _one_sided(gains: Array, losses: Array) -> Array:
    """Of the two tails the one below the middle: no sum is larger than a half."""
    more = gains > losses
    tail = _lower_tail(jnp.where(more, losses, gains - 1), gains + losses)
    p_value = jnp.where(more, tail, 1.0 - tail)
    return jnp.where(jnp.minimum(gains, losses) >= 0, p_value, jnp.nan)


def mcnemar_exact(gains: ArrayLike, losses: ArrayLike) -> Array:
    """Exact two-sided p-value of McNemar's test: are gains as likely as losses?

        p = min(1, 2 P(X <= min(b, c))),   X ~ Binomial(b + c, 1 / 2)

    Tasks that both agents solve, or neither, say nothing and do not enter.

    Args:
      gains: `[...]` int32, b: tasks solved by the second agent alone.
      losses: same shape, int32, c: tasks solved by the first alone.

    Returns:
      `[...]` float32; 1 without a discordant task. Relative error below 1e-5 for up to
      10,000 discordant tasks; below 1e-38 it is 0. NaN under jit for negative counts.

    Raises:
      InputError: counts that are seen to be negative or beyond int32. `ShapeError`, one
        of them: floats, or two shapes.

    Deviations: the chi-squared form, with or without correction, is not offered; at 9:1
      it says .011 or .027 for the exact .021.

    Reference: McNemar, Psychometrika 12 (1947), in the exact form (a sign test).

    Example:
      >>> [round(float(mcnemar_exact(b, c)), 3) for b, c in ((5, 1), (3, 7), (9, 1))]
      [0.219, 0.344, 0.021]
    """
    return _two_sided(*_pair(gains, losses))


def mcnemar_one_sided(gains: ArrayLike, losses: ArrayLike) -> Array:
    """Exact one-sided p-value of McNemar's test: are gains no likelier than losses?

        p = P(X >= b),   X ~ Binomial(b + c, 1 / 2)

    Small where gains outnumber losses. The mirror, where losses outnumber gains, is
    `mcnemar_one_sided(losses, gains)`; both p together are 1 + P(X = b).

    Args:
      gains: `[...]` int32, b: tasks solved by the second agent alone.
      losses: same shape, int32, c: tasks solved by the first alone.

    Returns:
      `[...]` float32; 1 without a gain. Relative error below 1e-5 for up to 10,000
      discordant tasks; below 1e-38 it is 0. NaN under jit for negative counts.

    Raises:
      InputError: see `mcnemar_exact`. `ShapeError`, one of them: floats, or two shapes.

    Deviations: see `mcnemar_exact`. Where gains outnumber losses this is half of its p.

    Reference: see `mcnemar_exact`.

    Example:
      >>> p = mcnemar_one_sided(jnp.array([5, 3, 9]), jnp.array([1, 7, 1]))
      >>> [round(x, 3) for x in p.tolist()]
      [0.109, 0.945, 0.011]
    """
    return _one_sided(*_pair(gains, losses))


def _pair(gains: ArrayLike, losses: ArrayLike) -> tuple[Array, Array]:
    axes = row_axes(gains)
    check_axes(gains=(gains, axes), losses=(losses, axes))
    b, c = broadcast_counts(gains=gains, losses=losses)
    return b.astype(jnp.int32), c.astype(jnp.int32)  # their sum may be larger


class SignTest(NamedTuple):
    """How many differences are above and below 0, and how surprising that is.

    Attributes:
      positive, negative: `[]` int32 counts; ties and NaN are in neither.
      p_value: `[]` float32, exact, two-sided.
      smallest: `[]` float32, the p-value had all of them had one sign. Above .05 the
        test could not have rejected, whatever the differences.
    """

    positive: Array
    negative: Array
    p_value: Array
    smallest: Array


def sign_test(difference: ArrayLike) -> SignTest:
    """Exact sign test: is a difference as often above 0 as below?

        n = #{d > 0} + #{d < 0}
        p = min(1, 2 P(X <= min(#{d > 0}, #{d < 0}))),   X ~ Binomial(n, 1 / 2)
        smallest = min(1, 2^(1 - n))

    Args:
      difference: `[N]` float32, one a domain or task; an exact 0 is a tie and does
        not count, NaN is no observation.

    Returns:
      `SignTest`.

    Reference: Dixon and Mood, "The statistical sign test", JASA 41 (1946).

    Example:
      >>> test = sign_test(jnp.array([0.1, 0.2, 0.3, 0.1, 0.2, 0.1]))
      >>> int(test.positive), float(test.p_value), float(test.smallest)
      (6, 0.03125, 0.03125)
    """
    d = jnp.asarray(difference, jnp.float32)
    check_axes(difference=(d, "N"))
    positive = jnp.sum(d > 0, dtype=jnp.int32)
    negative = jnp.sum(d < 0, dtype=jnp.int32)
    zero = jnp.zeros_like(positive)
    return SignTest(
        positive,
        negative,
        mcnemar_exact(positive, negative),
        mcnemar_exact(positive + negative, zero),
    )


def holm(p_values: ArrayLike, *, axis: int | None = None) -> Array:
    """Holm's adjustment of many p-values, valid however they depend on each other.

        p~_(i) = min(1, max_{j <= i} (m - j + 1) p_(j)),   p_(1) <= ... <= p_(m)

    Rejecting where p~ <= alpha makes any false rejection at most alpha likely.

    Args:
      p_values: `[...]` float32 in [0, 1]. A NaN is no test: it stays NaN and m does not
        count it.
      axis: the entries along it are a family of their own; None takes all entries as
        one family.

    Returns:
      `[...]` float32, at least the raw p-values. NaN under jit where a p is outside
      [0, 1].

    Reference: Holm, "A simple sequentially rejective multiple test procedure",
      Scandinavian J. of Statistics 6 (1979).

    Example:
      >>> holm(jnp.array([0.125, 0.5, 0.25, jnp.nan])).tolist()
      [0.375, 0.5, 0.5, nan]
    """
    p = jnp.asarray(p_values, jnp.float32)
    check_values(
        "p_values", p, lambda x: ~((x < 0) | (x > 1)), "in [0, 1], or NaN for no test"
    )
    p = jnp.where((p >= 0) & (p <= 1), p, jnp.nan)
    if axis is None:
        return _holm_last(p.reshape(-1)).reshape(p.shape)
    return jnp.moveaxis(_holm_last(jnp.moveaxis(p, axis, -1)), -1, axis)


def _holm_last(p: Array) -> Array:
    """One family along the last axis; NaN sorts last."""
    order = jnp.argsort(p, axis=-1)
    ordered = jnp.take_along_axis(p, order, axis=-1)
    tests = jnp.sum(~jnp.isnan(p), axis=-1, keepdims=True)
    left = tests - jax.lax.broadcasted_iota(jnp.int32, p.shape, p.ndim - 1)
    scaled = jnp.where(jnp.isnan(ordered), 0.0, ordered * left.astype(jnp.float32))
    steps = jnp.minimum(jax.lax.cummax(scaled, axis=p.ndim - 1), 1.0)
    adjusted = jnp.take_along_axis(steps, jnp.argsort(order, axis=-1), axis=-1)
    return jnp.where(jnp.isnan(p), jnp.nan, adjusted)

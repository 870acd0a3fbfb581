"""May a revision replace its parent? A paired test that holds whenever one looks.

Symbols: pairs of a run of the revision and one of its parent, of one task and one
sample index; `g` gains, which the revision alone won, `l` losses, `n = g + l`. Under
"the revision is no better" a discordant pair is a gain with a chance of at most 1 / 2,
whatever was seen before. The runs have to be drawn after the revision was written: of
runs that it was written from, or that its parent was chosen by, the parent's failures
are known beforehand, and luck alone would turn them into gains.
"""

from __future__ import annotations

from enum import IntEnum
from typing import Literal

import jax
import jax.numpy as jnp
import numpy as np

from jerp.estimators.arguments import broadcast_counts
from jerp.ops.checks import check_choice, check_settings, check_values, concrete
from jerp.typing import Array, ArrayLike

__all__ = [
    "SequentialVerdict",
    "Spending",
    "paired_e_value",
    "sequential_verdict",
    "spent_alpha",
]

Spending = Literal["harmonic_squared", "halving"]
"""How the alpha of a tree is shared out among its tests."""

SPENDINGS: tuple[Spending, ...] = ("harmonic_squared", "halving")

_RESCALE = 2.0**64
"""Sums are kept below this times a power of it, far from float32's 2^128."""


class SequentialVerdict(IntEnum):
    """What a test says so far."""

    UNDECIDED = 0
    """Run another pair."""
    ACCEPTED = 1
    """The revision is better than its parent; it may replace it."""
    REJECTED = 2
    """Not shown, and no longer to be shown with the pairs that are left."""


def paired_e_value(gains: ArrayLike, losses: ArrayLike) -> Array:
    """Logarithm of the evidence that gains are likelier than losses.

        E(g, l) = 2 integral from 1/2 to 1 of (2 p)^g (2 (1 - p))^l dp
                = sum_{i <= g} C(n + 1, i) / ((n + 1) C(n, g))

    E is a bet on every chance p of a gain above 1 / 2 alike. It begins at 1, and where
    gains are no likelier than losses no pair is expected to raise it: by Ville's
    inequality it is ever above 1 / alpha with a chance of at most alpha. So one may
    look after every pair and stop at any.

    Args:
      gains: `[...]` int32, g.
      losses: same shape, int32, l; they broadcast.

    Returns:
      `[...]` float32, log E, to 1e-5 where it is below 50 and there are up to 1,000
      pairs. NaN under jit for negative counts.

    Raises:
      InputError: counts that are seen to be negative or beyond int32. `ShapeError`, one
        of them: floats, or shapes that do not broadcast.

    Deviations: the mixture is uniform; one that expects small gains would be sooner
      convinced by these, and later by large ones.

    Reference: Ville (1939); Robbins, "Statistical methods related to the law of the
      iterated logarithm", Annals of Math. Statistics 41 (1970): mixtures of likelihood
      ratios; Ramdas et al., "Game-theoretic statistics and safe anytime-valid
      inference", Statistical Science 38 (2023).

    Example:
      >>> [round(float(jnp.exp(paired_e_value(g, 1))), 2) for g in (0, 1, 5, 10)]
      [0.5, 0.67, 2.86, 30.93]
    """
    g, losses = broadcast_counts(gains=gains, losses=losses)
    return _log_e(g.astype(jnp.int32), losses.astype(jnp.int32))


def spent_alpha(
    number: ArrayLike,
    *,
    alpha: ArrayLike = 0.05,
    spending: Spending = "harmonic_squared",
) -> Array:
    """The level of one test of many, whose number need not be known beforehand.

        alpha_j = alpha 6 / (pi j)^2     "harmonic_squared"
                = alpha / 2^j            "halving"

    Either sums to alpha over all j, so that a tree in which nothing is better has a
    revision accepted with a chance of at most alpha. Tests are numbered in the order in
    which they begin, over the whole tree, whatever becomes of them.

    Args:
      number: `[...]` int32, j >= 1.
      alpha: in (0, 1), of the tree.
      spending: halving gives the second to the fifth test more, and from then on far
        less: the tenth 1 / 1024 of alpha in place of 1 / 164.

    Returns:
      `[...]` float32. NaN under jit for a number below 1 or an alpha out of range.

    Raises:
      InputError: the same, seen. `UnknownNameError`: another spending.

    Reference: Foster and Stine, "Alpha-investing", JRSS B 70 (2008), of which this is
      the part that earns nothing back: it holds for the tree as a whole.

    Example:
      >>> [round(a, 4) for a in spent_alpha(jnp.array([1, 2, 3])).tolist()]
      [0.0304, 0.0076, 0.0034]
      >>> spent_alpha(jnp.array([1, 2, 3]), alpha=0.5, spending="halving").tolist()
      [0.25, 0.125, 0.0625]
    """
    check_choice("spending", spending, SPENDINGS)
    poison = check_settings(
        number=(number, lambda v: v >= 1, ">= 1"), alpha=(alpha, _inside, "in (0, 1)")
    )
    j = jnp.asarray(number).astype(jnp.float32)
    share = 6.0 / (np.pi * j) ** 2 if spending == "harmonic_squared" else 2.0**-j
    return jnp.asarray(alpha, jnp.float32) * share + poison


def sequential_verdict(
    gains: ArrayLike,
    losses: ArrayLike,
    num_pairs: ArrayLike,
    *,
    max_pairs: ArrayLike,
    number: ArrayLike,
    alpha: ArrayLike = 0.05,
    spending: Spending = "harmonic_squared",
) -> Array:
    """Whether a revision is accepted, rejected, or needs another pair.

        accepted:  E(g, l) >= 1 / alpha_j
        rejected:  E(g + max_pairs - num_pairs, l) < 1 / alpha_j
        undecided: neither

    Rejected is what could not be accepted if all pairs that are left were gains. Stop
    at the first verdict that is not undecided: more pairs may lower E again, and the
    first time that it was above holds.

    Args:
      gains: `[...]` int32, g, each task counted once; see `first_discordant`.
      losses: same shape, int32, l.
      num_pairs: same shape, int32, pairs so far both runs of which were answered, the
        concordant ones too.
      max_pairs: same shape, int32, after which there are no more; at least `num_pairs`.
        `pairs_needed` says what it takes.
      number: same shape, int32, j >= 1, see `spent_alpha`. All of these broadcast.
      alpha: of the tree.
      spending: of the tree.

    Returns:
      `[...]` int32, see `SequentialVerdict`. Under jit counts and settings that cannot
      be meant are undecided; nothing is accepted on them.

    Raises:
      InputError: a number that is seen to be out of range. `ShapeError`, one of them:
        other types or shapes.

    Reference: see `paired_e_value` and `spent_alpha`.

    Example:
      >>> found = sequential_verdict(
      ...     jnp.array([8, 3, 2]),
      ...     jnp.array([0, 1, 4]),
      ...     jnp.array([20, 20, 20]),
      ...     max_pairs=30,
      ...     number=1,
      ... )
      >>> [SequentialVerdict(v).name for v in found.tolist()]
      ['ACCEPTED', 'UNDECIDED', 'REJECTED']
    """
    counts = broadcast_counts(
        gains=gains,
        losses=losses,
        num_pairs=num_pairs,
        max_pairs=max_pairs,
        number=number,
    )
    g, losses, pairs, most, j = (count.astype(jnp.int32) for count in counts)
    _check_least("num_pairs", pairs, g + losses, "gains + losses")
    _check_least("max_pairs", most, pairs, "num_pairs")
    level = spent_alpha(j, alpha=alpha, spending=spending)
    return _verdict(g, losses, pairs, most, -jnp.log(level))


@jax.jit
def _log_e(gains: Array, losses: Array) -> Array:
    """By s_i = sum of C(n + 1, 0..i) / C(n + 1, i), upwards in i: E = s_g / (l + 1).

    With the ratio of neighbouring binomials s_i = 1 + s_{i-1} / ratio_i. All terms are
    positive, so that nothing cancels and each step adds two roundings.
    """
    one = jnp.ones(gains.shape)
    top = gains + losses + 2

    def step(i: Array, state: tuple[Array, Array, Array]) -> tuple[Array, Array, Array]:
        total, unit, turns = state
        ratio = (top - i).astype(jnp.float32) / i.astype(jnp.float32)
        grown = unit + total / ratio
        scale = jnp.where(grown > _RESCALE, 1.0 / _RESCALE, 1.0)
        turned = turns + (grown > _RESCALE).astype(jnp.int32)
        new = (grown * scale, unit * scale, turned)
        return jax.tree.map(lambda x, y: jnp.where(i <= gains, x, y), new, state)

    start = (one, one, jnp.zeros(gains.shape, jnp.int32))
    last = jnp.max(gains, initial=0)
    total, _, turns = jax.lax.fori_loop(1, last + 1, step, start)
    turned = turns.astype(jnp.float32) * np.float32(np.log(_RESCALE))
    log_e = jnp.log(total / (losses + 1).astype(jnp.float32)) + turned
    return jnp.where(jnp.minimum(gains, losses) >= 0, log_e, jnp.nan)


@jax.jit
def _verdict(
    gains: Array, losses: Array, pairs: Array, most: Array, needed: Array
) -> Array:
    left = most - pairs
    meant = (left >= 0) & (gains + losses <= pairs)
    accepted = meant & (_log_e(gains, losses) >= needed)
    rejected = meant & (_log_e(gains + left, losses) < needed)
    found = jnp.where(rejected, SequentialVerdict.REJECTED, SequentialVerdict.UNDECIDED)
    return jnp.where(accepted, SequentialVerdict.ACCEPTED, found).astype(jnp.int32)


def _check_least(name: str, value: Array, least: Array, words: str) -> None:
    if (seen := concrete(least)) is not None:
        check_values(name, value, lambda v: v >= seen, f"at least {words}")


def _inside(value: Array) -> Array:
    return (value > 0) & (value < 1)

"""Whether two numbers of the same things are ordered alike.

Ranks, not values: a prediction in another unit, or one that is biased by a constant,
still orders well. Symbols: `N` things, `x` and `y` two numbers of each.
"""

from __future__ import annotations

from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp

from jerp.ops.checks import check_axes, check_count
from jerp.typing import Array, ArrayLike, Key

__all__ = ["RankCorrelation", "rank_correlation"]


class RankCorrelation(NamedTuple):
    """Spearman's coefficient and its permutation test.

    Attributes:
      coefficient: `[]` float32 in [-1, 1]; NaN where one side is constant or fewer than
        two pairs are left.
      p_value: `[]` float32, two-sided; NaN with the coefficient.
      num_pairs: `[]` int32, pairs without a NaN.
    """

    coefficient: Array
    p_value: Array
    num_pairs: Array


def rank_correlation(
    key: Key, x: ArrayLike, y: ArrayLike, *, num_permutations: int = 10_000
) -> RankCorrelation:
    """Spearman's rank correlation with a permutation p-value.

        r(x)_i = #{x_j < x_i} + (#{x_j = x_i} + 1) / 2        (ties share their ranks)
        rho = cov(r(x), r(y)) / (sd(r(x)) sd(r(y)))
        p = (#{|rho_perm| >= |rho|} + 1) / (R + 1)

    Args:
      key: consumed.
      x: `[N]` float32.
      y: `[N]` float32; a pair with a NaN on either side is left out.
      num_permutations: R.

    Returns:
      `RankCorrelation`. The p-value takes the pairs for independent: it is too small
      for pairs that share a task or a domain.

    Raises:
      InputError: R below 1. `ShapeError`, one of them: lengths that differ.

    Reference: Spearman, "The proof and measurement of association between two things",
      American J. of Psychology 15 (1904).

    Example:
      >>> key = jax.random.key(0)
      >>> r = rank_correlation(key, jnp.arange(5.0), jnp.arange(5.0) ** 3)
      >>> float(r.coefficient), int(r.num_pairs), bool(r.p_value < 0.05)
      (1.0, 5, True)
    """
    x, y = jnp.asarray(x, jnp.float32), jnp.asarray(y, jnp.float32)
    check_axes(x=(x, "N"), y=(y, "N"))
    check_count("num_permutations", num_permutations)
    return _correlation(key, x, y, num_permutations)


@partial(jax.jit, static_argnames="num_permutations")
def _correlation(
    key: Key, x: Array, y: Array, num_permutations: int
) -> RankCorrelation:
    kept = ~(jnp.isnan(x) | jnp.isnan(y))
    count = jnp.sum(kept).astype(jnp.float32)
    ranks = _ranks(x, kept), _ranks(y, kept)
    centre = count * ((count + 1) / 2) ** 2
    spread = [jnp.sum(rank**2) - centre for rank in ranks]
    scale = jnp.sqrt(spread[0] * spread[1])
    agreement = jnp.sum(ranks[0] * ranks[1]) - centre
    # Only kept pairs trade places; the others have rank 0 and come last on both sides.
    paired = ranks[0][jnp.argsort(~kept, stable=True)]

    def shuffled(key: Key) -> Array:
        order = jnp.argsort(jnp.where(kept, jax.random.uniform(key, x.shape), 2.0))
        return jnp.sum(paired * ranks[1][order]) - centre

    keys = jax.random.split(key, num_permutations)
    others = jax.lax.map(shuffled, keys, batch_size=min(1000, num_permutations))
    rounding = 1e-6 * centre
    as_far = jnp.sum(jnp.abs(others) >= jnp.abs(agreement) - rounding)
    p_value = (as_far + 1.0) / (num_permutations + 1.0)
    defined = (count >= 2) & (spread[0] > 0) & (spread[1] > 0)
    return RankCorrelation(
        jnp.where(defined, agreement / jnp.where(defined, scale, 1.0), jnp.nan),
        jnp.where(defined, p_value, jnp.nan),
        jnp.sum(kept, dtype=jnp.int32),
    )


def _ranks(x: Array, kept: Array) -> Array:
    """Ranks from 1 among the kept, ties at their mean rank; 0 for the others."""
    below = jnp.sum((x[None] < x[:, None]) & kept[None], axis=1)
    equal = jnp.sum((x[None] == x[:, None]) & kept[None], axis=1)
    return jnp.where(kept, below + (equal + 1) / 2, 0.0)

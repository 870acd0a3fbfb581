"""Closed-form intervals of a success rate: counts in, no key, no resamples.

For independent trials, such as one rollout for each of many tasks. Rollouts of one task
are not independent of each other: these intervals are then too narrow, and
`jerp.estimators.intervals.bootstrap_interval` with `cluster` is right.
"""

from __future__ import annotations

import jax.numpy as jnp
from jax.scipy.special import ndtri

from jerp.estimators.arguments import broadcast_counts, check_level
from jerp.ops.checks import check_values, concrete
from jerp.records import Interval
from jerp.typing import Array, ArrayLike

__all__ = ["wilson_interval"]


def wilson_interval(
    num_successes: ArrayLike, num_trials: ArrayLike, *, level: float = 0.95
) -> Interval:
    """Wilson's score interval of a binomial proportion.

        {p : |c / n - p| <= z sqrt(p (1 - p) / n)},   z = Phi^-1((1 + level) / 2)
        low = 2 c^2 / (n (2 c + z^2 + z sqrt(z^2 + 4 c (n - c) / n)))
        high = 1 - low with failures in the place of successes

    It stays inside [0, 1] and has a width also where nothing or all succeeded.

    Args:
      num_successes: `[...]` int32, c in [0, n].
      num_trials: `[...]` int32, n. The two counts broadcast against each other.
      level: nominal coverage.

    Returns:
      `Interval` of shape `[...]`, with `num_values` n. NaN where n = 0, and under jit
      where the counts cannot be.

    Raises:
      InputError: counts that are seen to be negative, beyond int32 or more than the
        trials, and a level out of range. `ShapeError`, one of them: floats, or shapes
        that do not broadcast.

    Deviations: no correction for continuity, so that the coverage is the nominal one on
      average over p, not at least it for every p.

    Reference: Wilson, JASA 22 (1927); Brown, Cai and DasGupta, "Interval estimation for
      a binomial proportion", Statistical Science 16 (2001).

    Example:
      >>> i = wilson_interval(0, 20)
      >>> float(i.point), float(i.low), round(float(i.high), 4)
      (0.0, 0.0, 0.1611)
    """
    check_level(level)
    c, n = broadcast_counts(num_successes=num_successes, num_trials=num_trials)
    if (trials := concrete(n)) is not None:
        check_values("num_successes", c, lambda c: c <= trials, "<= num_trials")
    defined = (n > 0) & (c >= 0) & (c <= n)
    # The small tail keeps its digits in float32, the large one does not.
    z = -ndtri(jnp.float32((1 - level) / 2))
    low, high = _lower(c, n, z), 1.0 - _lower(n - c, n, z)
    point = c.astype(jnp.float32) / jnp.where(n > 0, n, 1).astype(jnp.float32)
    return Interval(
        point=jnp.where(defined, point, jnp.nan),
        low=jnp.where(defined, low, jnp.nan),
        high=jnp.where(defined, high, jnp.nan),
        level=level,
        num_values=n,
    )


def _lower(c: Array, n: Array, z: Array) -> Array:
    """The lower root, written without a difference: exactly 0 for c = 0."""
    successes, failures = c.astype(jnp.float32), (n - c).astype(jnp.float32)
    trials = jnp.maximum(n, 1).astype(jnp.float32)
    inner = jnp.maximum(z**2 + 4.0 * successes * failures / trials, 0.0)
    below = trials * (2.0 * successes + z**2 + z * jnp.sqrt(inner))
    return 2.0 * successes**2 / jnp.where(below > 0, below, 1.0)

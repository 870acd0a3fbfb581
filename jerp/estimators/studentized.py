"""Limits from resampled t-statistics: for estimates that vary with their own spread.

A log that lacks the large importance weights by chance gives a low estimate and, at
the same time, a small spread. Percentiles of resamples repeat that spread; how far
resamples lie from the estimate, each in units of its own spread, does not. Symbols:
`R` resamples, `theta` the estimate, `s` its standard error.
"""

from __future__ import annotations

import jax.numpy as jnp

from jerp.estimators.quantiles import quantile, resolution
from jerp.typing import Array

__all__ = ["studentized_limits"]

_UNBOUNDED = 1e30
"""Stands for infinity, which `quantile` could not interpolate."""


def studentized_limits(
    point: Array,
    error: Array,
    replicate: Array,
    replicate_error: Array,
    *,
    level: float,
    symmetric: bool = False,
) -> tuple[Array, Array, Array]:
    """Two-sided limits and a one-sided lower bound.

        t_r = (theta_r - theta) / s_r
        equal-tailed: theta - q s,  q the (1 + level) / 2 and (1 - level) / 2 quantiles
          of t_r; the bound with the quantile `level`
        symmetric: theta -+ q s,  q the quantile `level` of |t_r|; the bound with
          2 level - 1

    Args:
      point: `[...]` float32, theta.
      error: `[...]` float32, s.
      replicate: `[R, ...]` float32, theta_r; NaN is left out.
      replicate_error: `[R, ...]` float32, s_r. Where it is 0 and theta_r is not theta,
        t_r is infinite: with two or three rows the limits are.
      level: of the interval, and of the bound.
      symmetric: takes the quantiles of |t|, which does not rely on the skew of t.

    Returns:
      `(low, high, bound)`, each `[...]` float32; all theta where s is 0.

    Reference: Efron, "Nonparametric standard errors and confidence intervals", Canadian
      Journal of Statistics 9 (1981); Hall, "On symmetric bootstrap confidence
      intervals", JRSS B 50 (1988).

    Example:
      >>> r = jnp.array([0.0, 1.0, 2.0, 3.0, 4.0])
      >>> low, high, bound = studentized_limits(
      ...     jnp.float32(2.0), jnp.float32(1.0), r, jnp.full(5, 0.5), level=0.5
      ... )
      >>> float(low), float(high), float(bound)
      (0.0, 4.0, 2.0)
    """
    grain, shift = resolution(replicate)[None], replicate - point[None]
    spread = replicate_error > grain
    beyond = jnp.where(jnp.abs(shift) > grain, jnp.sign(shift) * _UNBOUNDED, 0.0)
    t = jnp.where(spread, shift / jnp.where(spread, replicate_error, 1.0), beyond)
    t = jnp.where(jnp.isnan(replicate), jnp.nan, t)

    def beside(t: Array, share: float, side: float) -> Array:
        steps = quantile(t, jnp.float32(share))
        steps = jnp.where(jnp.abs(steps) > 1e-6 * _UNBOUNDED, steps * jnp.inf, steps)
        return point + side * jnp.where(error > 0, steps * error, 0.0 * error)

    if symmetric:
        size = jnp.abs(t)
        least = beside(size, max(2 * level - 1, 0.0), -1.0)
        return beside(size, level, -1.0), beside(size, level, 1.0), least
    low, high = beside(t, (1 + level) / 2, -1.0), beside(t, (1 - level) / 2, -1.0)
    return low, high, beside(t, level, -1.0)

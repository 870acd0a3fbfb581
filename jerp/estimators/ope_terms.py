"""What episodes add to an estimate of a value: a sum of ratios of sums.

Every estimator of `jerp.estimators.ope` and `jerp.estimators.fitted_q` is one, so that
resamples, differences and standard errors are the same for all. Symbols: `B` rows,
episodes or the sums of a task's; `K` terms; `w` how often a row counts.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
from flax import struct

from jerp.estimators.resampling import weighted_mean
from jerp.typing import Array, ArrayLike

__all__ = ["OpeTerms", "less", "value_and_error"]


class OpeTerms(struct.PyTreeNode):
    """What every episode adds to an estimate: a sum of K ratios of sums.

        V(w) = sum_k (sum_e w_e n_ek) / (sum_e w_e d_ek)

    Counting an episode w_e times, as a resample does, needs nothing else. A mean has
    one term and denominators 1. Rows may be sums over the episodes of a task.

    Attributes:
      numerator: `[B, ..., K]` float32, n; 0 for rows that are no episode.
      denominator: `[B, ..., K]` float32, d; 0 for rows that are no episode.
    """

    numerator: Array
    denominator: Array

    def value(self, weight: ArrayLike | None = None) -> Array:
        """`[...]`, V(w); every episode once without `weight` `[B]`. NaN for 0 / 0."""
        rows = self.numerator.shape[0]
        weight = jnp.ones(rows) if weight is None else jnp.asarray(weight, jnp.float32)
        return _value(self, weight)


def less(terms: OpeTerms, others: OpeTerms) -> OpeTerms:
    """The terms of a difference of two values, of the same rows.

    Args:
      terms: `[B, ..., K]`.
      others: `[B, ..., L]`.

    Returns:
      `[B, ..., K + L]`; its value is that of `terms` less that of `others`.

    Example:
      >>> x, y = jnp.array([[3.0], [5.0]]), jnp.array([[1.0], [2.0]])
      >>> one = jnp.ones((2, 1))
      >>> float(less(OpeTerms(x, one), OpeTerms(y, one)).value())
      2.5
    """
    return OpeTerms(
        jnp.concatenate([terms.numerator, -others.numerator], axis=-1),
        jnp.concatenate([terms.denominator, others.denominator], axis=-1),
    )


def value_and_error(terms: OpeTerms, weight: Array) -> Array:
    """The value and its standard error over rows that are independent.

        psi_i = sum_k (n_ik - V_k d_ik) / mean_w(d_k),  V_k = sum w n_k / sum w d_k
        SE^2  = sum_i w_i psi_i^2 / (W (W - 1)),        W = sum_i w_i

    The standard error of a mean; of a ratio, that of its linearisation.

    Args:
      terms: `[B, ..., K]`.
      weight: `[B]` float32, whole numbers, 0 for rows that are left out.

    Returns:
      `[2, ...]` float32, value and error; error NaN with a single row.

    Reference: Cochran, "Sampling techniques" (1977), section 6.4, for one ratio; Owen,
      "Monte Carlo theory, methods and examples" (2013), section 9.2, for weights.

    Example:
      >>> mean = OpeTerms(jnp.array([[0.0], [0.0], [3.0]]), jnp.ones((3, 1)))
      >>> value_and_error(mean, jnp.ones(3)).tolist()
      [1.0, 1.0]
    """
    below = weighted_mean(terms.denominator, weight)
    below = jnp.where(below == 0, jnp.nan, below)
    ratio = weighted_mean(terms.numerator, weight) / below
    left = terms.numerator - ratio[None] * terms.denominator
    influence = jnp.sum(left / below[None], axis=-1)
    total = jnp.sum(weight)
    # A row of weight 0 may be one where 0 / 0 is all that there is.
    counts = (weight > 0).reshape((-1,) + (1,) * (influence.ndim - 1))
    square = weighted_mean(jnp.where(counts, influence**2, 0.0), weight)
    error = jnp.sqrt(square / jnp.where(total > 1, total - 1, jnp.nan))
    return jnp.stack([jnp.sum(ratio, axis=-1), error])


@jax.jit
def _value(terms: OpeTerms, weight: Array) -> Array:
    above = weighted_mean(terms.numerator, weight)
    below = weighted_mean(terms.denominator, weight)
    return jnp.sum(above / jnp.where(below == 0, jnp.nan, below), axis=-1)

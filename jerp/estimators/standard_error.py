"""Standard error of a mean when values of one task hang together, and what it detects.

Closed forms beside the bootstrap of `jerp.estimators.intervals`: no key, no resamples.
Invalid and NaN values enter nothing. NaN with fewer than two clusters.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jax.scipy.special import ndtri

from jerp.errors import InputError
from jerp.estimators.arguments import as_array, check_rows
from jerp.estimators.clusters import kept_rows
from jerp.estimators.resampling import weighted_mean
from jerp.ops.checks import check_axes
from jerp.ops.segments import dense_group_ids
from jerp.typing import Array, ArrayLike

__all__ = ["clustered_standard_error", "smallest_detectable_difference"]


def clustered_standard_error(
    values: ArrayLike,
    *,
    cluster: ArrayLike | None = None,
    mask: ArrayLike | None = None,
) -> Array:
    """Standard error of the mean when values of one cluster hang together.

        SE^2 = C / (C - 1) sum_c (sum_{i in c} (x_i - mean))^2 / n^2

    Args:
      values: `[N]` float32; NaN is left out.
      cluster: `[N]` int; None takes every value as its own, which gives the plain
        standard error of the mean (ddof 1).
      mask: `[N]` bool, False leaves a value out.

    Returns:
      `[]` float32; NaN with fewer than two clusters.

    Raises:
      InputError: see `jerp.estimators.bands.simultaneous_band`.

    Reference: Liang and Zeger, Biometrika 73 (1986); with the usual C / (C - 1).

    Example:
      >>> x = jnp.array([0.0, 0.0, 1.0, 1.0])
      >>> float(clustered_standard_error(x, cluster=jnp.array([0, 0, 1, 1])))
      0.5
    """
    values = as_array(values)
    check_axes(values=(values, "N"))
    values, cluster, mask, _ = check_rows(values, cluster, mask)
    return _standard_error(values, cluster, mask)


@jax.jit
def _standard_error(
    values: Array, cluster: ArrayLike | None, mask: ArrayLike | None
) -> Array:
    values, cluster, mask = kept_rows(values, cluster, mask)
    index, count = dense_group_ids(cluster, mask=mask)
    weight = mask.astype(jnp.float32)
    number = jnp.sum(weight)
    residual = jnp.where(mask, values - weighted_mean(values, weight), 0.0)
    total = jax.ops.segment_sum(residual, index, num_segments=index.shape[0] + 1)
    clusters = count.astype(jnp.float32)
    small_sample = clusters / jnp.maximum(clusters - 1.0, 1.0)
    error = jnp.sqrt(small_sample * jnp.sum(total**2)) / jnp.maximum(number, 1.0)
    return jnp.where(count >= 2, error, jnp.nan)


def smallest_detectable_difference(
    difference: ArrayLike,
    *,
    cluster: ArrayLike | None = None,
    mask: ArrayLike | None = None,
    level: float = 0.95,
    power: float = 0.8,
) -> Array:
    """The true mean difference that a paired design like this one would detect.

        (z_{(1 + level) / 2} + z_power) SE

    with the clustered standard error of the differences seen, normal approximation.

    Args:
      difference: `[N]` float32, of paired values.
      cluster: `[N]` int, see `clustered_standard_error`.
      mask: `[N]` bool, False leaves a pair out.
      level: of the two-sided interval that must exclude 0.
      power: probability of detection.

    Returns:
      `[]` float32, in the units of `difference`; NaN with fewer than two clusters.

    Example:
      >>> d = jnp.array([0.0, 1.0, 0.0, 1.0])
      >>> round(float(smallest_detectable_difference(d)), 3)
      0.809
    """
    for name, value in (("level", level), ("power", power)):
        if not 0 < value < 1:
            raise InputError(f"{name}: expected in (0, 1), got {value}")
    error = clustered_standard_error(difference, cluster=cluster, mask=mask)
    return (ndtri((1.0 + level) / 2.0) + ndtri(power)) * error

"""What a mean is at least, with high confidence and without any normal approximation.

For evaluation before deployment: a bound that holds at the sizes there are, however
skewed the weights, at the price of being wide. Symbols: `N` values, `C` clusters
(tasks), `x` what each cluster adds to the mean, `delta = 1 - level`.
"""

from __future__ import annotations

from functools import partial

import jax
import jax.numpy as jnp

from jerp.estimators.arguments import as_array, check_level, check_rows
from jerp.estimators.clusters import kept_rows
from jerp.ops.checks import check_axes, check_settings, check_values
from jerp.ops.segments import dense_group_ids
from jerp.typing import Array, ArrayLike

__all__ = ["bernstein_lower_bound"]


def bernstein_lower_bound(
    values: ArrayLike,
    *,
    cluster: ArrayLike | None = None,
    mask: ArrayLike | None = None,
    level: float = 0.95,
    truncation: ArrayLike = 2.0,
) -> Array:
    """Lower bound of the mean of values that are at least 0 and may have a long tail.

        x_c = C / N sum_{i in c} values_i,  y_c = min(x_c, truncation)
        mean(y) - sqrt(2 log(2 / delta) var(y) / C)
                - 7 truncation log(2 / delta) / (3 (C - 1))

    Cutting off the tail can only lower the mean, and what is left is bounded: the
    empirical Bernstein inequality then holds at every C, for clusters that are
    independent, whatever hangs together within them.

    Args:
      values: `[N]` float32, >= 0, such as importance weights times scores in [0, 1]:
        the numerators of ordinary importance sampling. NaN is left out.
      cluster: `[N]` int, equal iff same task; None takes every value as its own.
      mask: `[N]` bool, False leaves a value out.
      level: confidence.
      truncation: > 0, chosen before looking at the values. Means over the episodes of
        a task, each with expectation at most 1, are seldom above 2; single weighted
        scores often are.

    Returns:
      `[]` float32; below 0 where there is too little to say anything. NaN with fewer
      than two clusters.

    Raises:
      InputError: a value that is seen to be negative or infinite, a setting out of
        range; under jit these make NaN. `ShapeError`, one of them: other axes.

    Deviations: one truncation for all, fixed in advance, where the paper chooses it on
      a part of the data.

    Reference: Thomas, Theocharous and Ghavamzadeh, "High-confidence off-policy
      evaluation", AAAI 2015, theorem 1; Maurer and Pontil, "Empirical Bernstein bounds
      and sample variance penalization", COLT 2009, theorem 11.

    Example:
      >>> x = jnp.tile(jnp.array([0.0, 1.0, 3.0]), 1000)
      >>> round(float(bernstein_lower_bound(x)), 3)
      0.954
    """
    check_level(level)
    poison = check_settings(truncation=(truncation, lambda v: v > 0, "> 0"))
    values = as_array(values)
    check_axes(values=(values, "N"))
    values, cluster, mask, _ = check_rows(values, cluster, mask)
    kept = ~jnp.isnan(values) if mask is None else mask & ~jnp.isnan(values)
    check_values("values", values, lambda v: v >= 0, ">= 0", mask=kept)
    return _bound(values, cluster, mask, truncation, poison, level=level)


@partial(jax.jit, static_argnames="level")
def _bound(
    values: ArrayLike,
    cluster: ArrayLike | None,
    mask: ArrayLike | None,
    truncation: ArrayLike,
    poison: ArrayLike,
    *,
    level: float,
) -> Array:
    values, cluster, mask = kept_rows(values, cluster, mask)
    index, count = dense_group_ids(cluster, mask=mask)
    number = jnp.maximum(jnp.sum(mask, dtype=jnp.float32), 1.0)
    clusters = count.astype(jnp.float32)
    total = jax.ops.segment_sum(values, index, num_segments=index.shape[0] + 1)[:-1]
    real = jnp.arange(index.shape[0]) < count
    y = jnp.where(real, jnp.minimum(total * clusters / number, truncation), 0.0)
    mean = jnp.sum(y) / jnp.maximum(clusters, 1.0)
    fewer = jnp.maximum(clusters - 1.0, 1.0)
    variance = jnp.sum(jnp.where(real, y - mean, 0.0) ** 2) / fewer
    doubt = jnp.log(2.0 / (1.0 - level))
    bound = mean - jnp.sqrt(2.0 * doubt * variance / jnp.maximum(clusters, 1.0))
    bound -= 7.0 * truncation * doubt / (3.0 * fewer)
    valid = (
        (count >= 2) & jnp.all(jnp.asarray(values) >= 0) & jnp.all(jnp.isfinite(values))
    )
    return jnp.where(valid, bound + poison, jnp.nan)

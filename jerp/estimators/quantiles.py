"""Reading an interval off a bootstrap distribution: plain and BCa quantiles.

Symbols: `R` resamples, `N` rows that bound the number of clusters. A resample in which
the statistic is undefined is NaN and left out.
"""

from __future__ import annotations

from functools import partial

import jax
import jax.numpy as jnp
from jax.scipy.special import ndtr, ndtri

from jerp.estimators.clusters import Clusters
from jerp.typing import Array

__all__ = ["bca_levels", "cluster_influence", "quantile", "resolution"]


def quantile(replicate: Array, level: Array) -> Array:
    """Linearly interpolated quantile of what is not NaN, one level a component.

    `jnp.nanquantile` takes one level for all components; BCa has its own for each.

    Args:
      replicate: `[R, ...]` float32.
      level: `[]` or `[...]` float32 in [0, 1].

    Returns:
      `[...]` float32; NaN where all are NaN.

    Example:
      >>> float(quantile(jnp.array([3.0, jnp.nan, 1.0]), jnp.float32(0.25)))
      1.5
    """
    ordered = jnp.sort(replicate, axis=0)
    last = jnp.maximum(jnp.sum(~jnp.isnan(replicate), axis=0) - 1, 0)
    position = jnp.broadcast_to(level, last.shape) * last.astype(jnp.float32)
    lower = jnp.floor(position)
    pick = partial(jnp.take_along_axis, ordered, axis=0)
    low = pick(lower.astype(jnp.int32)[None])[0]
    high = pick(jnp.ceil(position).astype(jnp.int32)[None])[0]
    return low + (high - low) * (position - lower)


def bca_levels(level: Array, point: Array, replicate: Array, influence: Array) -> Array:
    """Where BCa reads the bootstrap distribution for a nominal quantile.

        Phi(z0 + (z0 + z) / (1 - a (z0 + z))),  z = Phi^-1(level)
        z0 = Phi^-1(share of resamples below the point, ties to rounding half)
        a  = sum_c u_c^3 / (6 (sum_c u_c^2)^1.5)

    Args:
      level: `[]` float32, in (0, 1).
      point: `[...]` float32, the estimate.
      replicate: `[R, ...]` float32; NaN is left out.
      influence: `[N, ...]` float32, u, from `cluster_influence`; any scale.

    Returns:
      `[...]` float32 levels, finite also when all resamples are equal.

    Reference: Efron, "Better bootstrap confidence intervals", JASA 82 (1987).

    Example:
      >>> r = jnp.array([0.0, 1.0, 2.0])
      >>> a = bca_levels(jnp.float32(0.9), jnp.float32(1.0), r, r - 1.0)
      >>> round(float(a), 4)
      0.9
    """
    above = replicate - point[None]
    tie = jnp.abs(above) <= resolution(replicate)[None]
    side = jnp.where(tie, 0.5, jnp.where(above < 0, 1.0, 0.0))
    defined = jnp.sum(~jnp.isnan(replicate), axis=0).astype(jnp.float32)
    # The added half keeps z0 finite when all resamples lie on one side.
    bias = ndtri((jnp.sum(side, axis=0) + 0.5) / (defined + 1.0))
    # Scaled before cubing, which would underflow for small influences.
    scale = jnp.max(jnp.abs(influence), axis=0, initial=0.0)
    influence = influence / jnp.where(scale > 0, scale, 1.0)[None]
    square = jnp.sum(influence**2, axis=0)
    skew = jnp.sum(influence**3, axis=0) / jnp.where(square > 0, square, 1.0) ** 1.5
    shifted = bias + ndtri(level)
    return ndtr(bias + shifted / (1.0 - skew / 6.0 * shifted))


def resolution(replicate: Array) -> Array:
    """Differences between resamples that may be rounding alone.

        16 eps max_r |theta_r|

    Sums of the same terms in another order differ by a few units in the last place.

    Args:
      replicate: `[R, ...]` float32; NaN is left out.

    Returns:
      `[...]` float32; 0 where all are NaN.

    Example:
      >>> float(resolution(jnp.array([1.0, -2.0, jnp.nan]))) < 1e-5
      True
    """
    size = jnp.abs(jnp.where(jnp.isnan(replicate), 0.0, replicate))
    return 16 * jnp.finfo(replicate.dtype).eps * jnp.max(size, axis=0)


def cluster_influence(left_out: Array, clusters: Clusters) -> Array:
    """How much each cluster moves the statistic, by leaving it out.

        u_c = (n - 1) / n (mean_d theta_(d) - theta_(c)),  c and d of one stratum of n

    Args:
      left_out: `[N, ...]` float32, theta without cluster c, from
        `jerp.estimators.resampling.jackknife`.
      clusters: of the N rows.

    Returns:
      `[N, ...]` float32; 0 where `left_out` is NaN and for a cluster alone in its
      stratum, which no resample can replace.

    Reference: Davison and Hinkley, "Bootstrap methods and their application" (1997),
      section 5.3.2, for one sample and for several.

    Example:
      >>> from jerp.estimators.clusters import resampling_clusters
      >>> c = resampling_clusters(jnp.arange(4), jnp.ones(4, bool))
      >>> cluster_influence(jnp.array([0.0, 0.0, 0.0, 4.0]), c).tolist()
      [0.75, 0.75, 0.75, -2.25]
    """
    number = left_out.shape[0]
    real = ~jnp.isnan(left_out)

    def of_stratum(x: Array) -> Array:
        return jax.ops.segment_sum(x, clusters.first, num_segments=number)[
            clusters.first
        ]

    defined = of_stratum(real.astype(jnp.float32))
    total = of_stratum(jnp.where(real, left_out, 0.0))
    offset = jnp.where(real, total / jnp.maximum(defined, 1.0) - left_out, 0.0)
    size = jnp.maximum(clusters.size.astype(jnp.float32), 1.0)
    share = ((size - 1.0) / size).reshape((number,) + (1,) * (left_out.ndim - 1))
    return share * offset

"""Confidence intervals in which the task is the cluster.

Rollouts of one task belong together, so clusters are resampled whole, never single
rollouts. Symbols: `N` values, `C` clusters, `R` resamples, `w` the weight (number of
times drawn) of a value; `jerp.estimators.resampling` has the parts. Invalid and NaN
values enter nothing and are counted. With fewer than two clusters there is no spread
to see: the limits are NaN.
"""

from __future__ import annotations

from functools import partial
from typing import Any, Literal, get_args

import jax
import jax.numpy as jnp

from jerp.errors import ConfigError, InputError
from jerp.estimators.arguments import as_array, check_resampling, check_rows
from jerp.estimators.clusters import kept_rows, resampling_clusters
from jerp.estimators.quantiles import (
    bca_levels,
    cluster_influence,
    quantile,
    resolution,
)
from jerp.estimators.resampling import (
    Statistic,
    evaluate,
    jackknife,
    replicates,
    weighted_mean,
)
from jerp.ops.checks import check_axes, check_choice
from jerp.records import Interval
from jerp.typing import Array, ArrayLike, ArrayTree, Key

__all__ = [
    "Method",
    "Statistic",
    "bootstrap_interval",
    "paired_difference",
    "weighted_mean",
]

Method = Literal["percentile", "bca"]


def bootstrap_interval(
    key: Key,
    values: ArrayTree,
    statistic: Statistic = weighted_mean,
    *,
    cluster: ArrayLike | None = None,
    mask: ArrayLike | None = None,
    strata: ArrayLike | None = None,
    resample_within: bool = False,
    num_resamples: int = 2000,
    level: float = 0.95,
    method: Method = "percentile",
) -> Interval:
    """Cluster-bootstrap confidence interval of a statistic.

        theta_r = statistic(x, w_r),  w_ri = times that the cluster of i was drawn in r
        percentile: the (1 - level) / 2 and (1 + level) / 2 quantiles of theta_r
        bca: quantiles at Phi(z0 + (z0 + z) / (1 - a (z0 + z))) for the two z, with
          z0 the median bias of theta_r and a the acceleration from the jackknife
          over clusters

    Args:
      key: consumed.
      values: tree of `[N, ...]` arrays. A row with a NaN in any of them is left out.
      statistic: see `Statistic`. It may return an array of any shape. It is a static
        argument: pass a module-level function, a fresh lambda compiles again.
      cluster: `[N]` int, equal iff same task; None takes every value as its own.
      mask: `[N]` bool, False leaves a value out; None keeps all.
      strata: `[N]` int, equal iff same stratum (domain, difficulty). As many clusters
        of each stratum are drawn as it has. Right if a repetition of the study would
        have the same numbers. A stratum with one cluster shows no spread and makes
        the interval too narrow. None draws from all clusters.
      resample_within: draw the values of each drawn cluster anew as well. With
        `weighted_mean` alone: a pass@k of resampled rollouts counts copies as samples
        and is biased low. For means it is hardly needed: drawing whole tasks already
        shows the spread of their rollouts, and drawing these adds it a second time.
      num_resamples: R. Memory does not grow with it.
      level: nominal coverage.
      method: "percentile", or "bca" for skewed statistics.

    Returns:
      `Interval` in the shape of the statistic, with the numbers of values used, left
      out, and clusters. NaN limits with fewer than two clusters (in every stratum), and
      under jit where a cluster is in two strata; where all clusters agree the width is
      0 or float32's rounding. Resamples in which the statistic is NaN are left out.
      Without any value all is NaN and `num_values` 0, which is no error: that
      everything failed has to be reported.

    Raises:
      InputError: a number of resamples or a level out of range, a key or statistic that
        is none, and, where Python can see it, an infinite value (under jit it makes NaN
        of the limits), ids beyond int32 or a cluster in two strata. `ShapeError`, one
        of them: other axes or types.
      UnknownNameError: another method.
      ConfigError: `resample_within` without a cluster or with another statistic.

    Deviations: none of the methods widens for few clusters; below about 20 both are
      known to be too narrow.

    Reference: Efron, "Better bootstrap confidence intervals", JASA 82 (1987); Davison
      and Hinkley, "Bootstrap methods and their application" (1997), chapters 2, 3, 5,
      section 3.8 for drawing within clusters.

    Example:
      >>> x = jnp.array([0.0, 0.0, 1.0, 1.0])
      >>> task = jnp.array([0, 0, 1, 1])
      >>> i = bootstrap_interval(jax.random.key(0), x, cluster=task)
      >>> float(i.point), float(i.low), float(i.high), int(i.num_clusters)
      (0.5, 0.0, 1.0, 2)
    """
    check_resampling(key, statistic, num_resamples=num_resamples, level=level)
    _check_draws(method, cluster, statistic, resample_within)
    interval, _ = _bootstrap(
        key,
        *check_rows(values, cluster, mask, strata),
        _tails(level),
        statistic=statistic,
        resample_within=resample_within,
        num_resamples=num_resamples,
        method=method,
    )
    return interval.replace(level=level)


def paired_difference(
    key: Key,
    a: ArrayLike,
    b: ArrayLike,
    *,
    cluster: ArrayLike | None = None,
    mask: ArrayLike | None = None,
    strata: ArrayLike | None = None,
    resample_within: bool = False,
    num_resamples: int = 2000,
    level: float = 0.95,
    method: Method = "percentile",
) -> Interval:
    """Mean of `a - b`, paired by position, with a cluster-bootstrap interval.

        d_i = a_i - b_i
        p = min(1, 2 (min(#{mean_r d <= 0}, #{mean_r d >= 0}) + 1) / (R + 1))

    Args:
      key: consumed.
      a: `[N]` float32.
      b: `[N]` float32; `b[i]` is of the same task and sample as `a[i]`. A pair with a
        NaN on either side is left out.
      cluster: `[N]` int, equal iff same task; None takes every pair as its own.
      mask: `[N]` bool, False leaves a pair out.
      strata: see `bootstrap_interval`.
      resample_within: see `bootstrap_interval`; pairs are drawn, never their halves.
      num_resamples: R, see `bootstrap_interval`.
      level: nominal coverage.
      method: see `bootstrap_interval`.

    Returns:
      `Interval` with `p_value`, never exactly 0: the smallest that R resamples can
      show is 2 / (R + 1).

    Raises:
      InputError, UnknownNameError, ConfigError: see `bootstrap_interval`.

    Deviations: the code of arXiv 2607.05458 resamples rollouts as if they were
      independent (here: `cluster=None`) and may report p = 0.

    Reference: Davison and Hinkley (1997), section 4.2 for the added one.

    Example:
      >>> base = jnp.array([0.1, 0.5, 0.3])
      >>> d = paired_difference(jax.random.key(0), base + 0.25, base)
      >>> round(float(d.point), 4), round(float(d.high - d.low), 4)
      (0.25, 0.0)
    """
    check_resampling(key, weighted_mean, num_resamples=num_resamples, level=level)
    _check_draws(method, cluster, weighted_mean, resample_within)
    pair = {"a": as_array(a), "b": as_array(b)}
    check_axes(a=(pair["a"], "N"), b=(pair["b"], "N"))
    pair, *rows = check_rows(pair, cluster, mask, strata, name="")
    a, b = jnp.asarray(pair["a"], jnp.float32), jnp.asarray(pair["b"], jnp.float32)
    interval, replicate = _bootstrap(
        key,
        a - b,
        *rows,
        _tails(level),
        statistic=weighted_mean,
        resample_within=resample_within,
        num_resamples=num_resamples,
        method=method,
    )
    zero = resolution(replicate)  # an exact 0 comes out a rounding to either side
    tail = jnp.minimum(jnp.sum(replicate <= zero), jnp.sum(replicate >= -zero))
    p_value = 2.0 * (tail.astype(jnp.float32) + 1.0) / (num_resamples + 1.0)
    undefined = jnp.isnan(interval.low)
    p_value = jnp.where(undefined, jnp.nan, jnp.minimum(p_value, 1.0))
    return interval.replace(level=level, p_value=p_value)


def _check_draws(
    method: str, cluster: ArrayLike | None, statistic: Statistic, resample_within: bool
) -> None:
    check_choice("method", method, get_args(Method))
    if not isinstance(resample_within, bool):
        raise InputError(
            f"resample_within: expected True or False, got {resample_within!r}"
        )
    if resample_within and statistic is not weighted_mean:
        raise ConfigError(
            "resample_within: expected the statistic weighted_mean, for other ones "
            "copies would pass for samples, got "
            f"{getattr(statistic, '__name__', repr(statistic))}. Drop one of the two"
        )
    if resample_within and cluster is None:
        raise ConfigError(
            "resample_within: expected a cluster with values to draw from, got "
            "cluster=None, where every value is its own. Name the tasks, or drop it"
        )


def _tails(level: float) -> Array:
    return jnp.array([(1 - level) / 2, (1 + level) / 2], jnp.float32)


@partial(
    jax.jit,
    static_argnames=("statistic", "resample_within", "num_resamples", "method"),
)
def _bootstrap(
    key: Key,
    values: Any,
    cluster: ArrayLike | None,
    mask: ArrayLike | None,
    strata: ArrayLike | None,
    tails: Array,
    *,
    statistic: Statistic,
    resample_within: bool,
    num_resamples: int,
    method: str,
) -> tuple[Interval, Array]:
    """The interval, and the statistic of every resample `[R, ...]`."""
    values, cluster, mask = kept_rows(values, cluster, mask)
    clusters = resampling_clusters(cluster, mask, strata=strata)
    point = evaluate(statistic, values, mask.astype(jnp.float32))
    replicate = replicates(
        key,
        values,
        clusters,
        statistic,
        num_resamples=num_resamples,
        resample_within=resample_within,
    )
    if method == "bca":
        influence = cluster_influence(jackknife(values, clusters, statistic), clusters)
        tails = jax.vmap(bca_levels, (0, None, None, None))(
            tails, point, replicate, influence
        )
    low, high = jax.vmap(quantile, (None, 0))(replicate, tails)
    interval = Interval(
        point=point,
        low=jnp.where(clusters.varies, low, jnp.nan),
        high=jnp.where(clusters.varies, high, jnp.nan),
        num_values=jnp.sum(mask, dtype=jnp.int32),
        num_excluded=jnp.sum(~mask, dtype=jnp.int32),
        num_clusters=clusters.count,
    )
    return interval, replicate

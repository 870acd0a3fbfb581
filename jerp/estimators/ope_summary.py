"""Terms of many policies made estimates: intervals over tasks, bounds, refusals.

Policies and methods share their resamples of tasks, and what the behaviour itself
scored is resampled with them. Symbols: `C` policies, `M` methods, `N` tasks, `K` terms.
"""

from __future__ import annotations

from functools import partial

import jax
import jax.numpy as jnp
from flax import struct
from jax import lax

from jerp.estimators.clusters import resampling_clusters
from jerp.estimators.lower_bound import bernstein_lower_bound
from jerp.estimators.ope_methods import Limits, LowerBound
from jerp.estimators.ope_terms import OpeTerms, less, value_and_error
from jerp.estimators.overlap import Overlap, Refusal
from jerp.estimators.quantiles import bca_levels, cluster_influence, quantile
from jerp.estimators.resampling import jackknife, replicates
from jerp.estimators.studentized import studentized_limits
from jerp.records import Interval
from jerp.typing import Array, ArrayLike, Key

__all__ = ["OpeEstimate", "PolicyEvaluation", "summarise"]


class OpeEstimate(struct.PyTreeNode):
    """One estimator's answer for `C` policies; NaN where it is refused.

    Attributes:
      point, low, high: `[C]` float32, the value and its interval.
      lower_bound: `[C]` float32, one-sided, at the same level.
      gain: `Interval` of `[C]`: the value less the behaviour's own mean return, both
        of the same resamples.
      reason: `[C]` int32, a `jerp.Refusal`.
    """

    point: Array
    low: Array
    high: Array
    lower_bound: Array
    gain: Interval
    reason: Array


class PolicyEvaluation(struct.PyTreeNode):
    """What a log says of `C` policies.

    Attributes:
      estimates: by method.
      overlap: leaves `[C]`.
      behaviour: mean return of the log itself; counts its episodes, tasks, and the rows
        that are no valid episode.
    """

    estimates: dict[str, OpeEstimate]
    overlap: Overlap
    behaviour: Interval


def summarise(
    key: Key,
    terms: tuple[OpeTerms, ...],
    logged: OpeTerms,
    reason: Array,
    *,
    level: float,
    interval: Limits,
    symmetric: tuple[bool, ...],
    lower_bound: LowerBound,
    truncation: ArrayLike,
    num_resamples: int,
) -> tuple[list[OpeEstimate], Interval]:
    """Estimates of M methods for C policies, and the behaviour's own mean.

    Args:
      key: consumed.
      terms: of each method, summed over the episodes of a task: `[N, C, K]`.
      logged: of the returns, `[N, 1]`; denominators are numbers of episodes.
      reason: `[C]` int32, from `jerp.estimators.overlap.refusal`.
      level: see `evaluate_policies`, as the others.
      interval: of `Limits`.
      symmetric: of each method, whether "studentized" is.
      lower_bound: see `evaluate_policies`.
      truncation: of "bernstein".
      num_resamples: R.

    Returns:
      One `OpeEstimate` a method, and the behaviour's `Interval`.

    Example:
      >>> mean = OpeTerms(jnp.array([[0.0], [1.0]]), jnp.ones((2, 1)))
      >>> one = jax.tree.map(lambda x: x[:, None], mean)
      >>> (e,), behaviour = summarise(
      ...     jax.random.key(0), (one,), mean, jnp.zeros(1, jnp.int32), level=0.95,
      ...     interval="percentile", symmetric=(False,), lower_bound="bootstrap",
      ...     truncation=2.0, num_resamples=100,
      ... )
      >>> e.point.tolist(), e.low.tolist(), e.high.tolist(), float(behaviour.point)
      ([0.5], [0.0], [1.0], 0.5)
    """
    values, episodes = (terms, logged), logged.denominator[:, 0]
    rows = jnp.arange(episodes.shape[0])
    clusters = resampling_clusters(rows, episodes > 0)
    weight = (episodes > 0).astype(jnp.float32)
    point = _values(values, weight)
    resampled = partial(replicates, key, values, clusters, num_resamples=num_resamples)
    if interval == "studentized":
        errors, both = _with_errors(values, weight)[:, 1], resampled(_with_errors)
        limits = _studentized(point, errors, both, (False, *symmetric), level)
    else:
        influence = None
        if interval == "bca":
            left_out = jackknife(values, clusters, _values)
            influence = cluster_influence(left_out, clusters)
        limits = _quantiles(point, resampled(_values), influence, level)
    low, high, least = (jnp.where(clusters.varies, x, jnp.nan) for x in limits)
    bounds = list(least[1:, 0])
    if lower_bound == "bernstein":
        bounds = [_bernstein(t, episodes, level, truncation) for t in terms]
    each = Interval(point=point, low=low, high=high, level=level)
    estimates = [
        _estimate(jax.tree.map(lambda x, row=row: x[row], each), bound, reason)
        for row, bound in enumerate(bounds, start=1)
    ]
    behaviour: Interval = jax.tree.map(lambda x: x[0, 0, 0], each)
    return estimates, behaviour.replace(num_clusters=clusters.count)


def _values(values: tuple[tuple[OpeTerms, ...], OpeTerms], weight: Array) -> Array:
    """`[1 + M, 2, C]`: behaviour, then the methods; the value, and that less its."""
    terms, logged = values
    behaviour = logged.value(weight)
    rows = [t.value(weight) for t in terms]
    table = jnp.stack([jnp.full_like(rows[0], behaviour), *rows])
    return jnp.stack([table, table - behaviour], axis=1)


def _with_errors(values: tuple[tuple[OpeTerms, ...], OpeTerms], weight: Array) -> Array:
    """`[1 + M, 2, 2, C]`: as `_values`, each with its standard error.

    One policy after the other, because errors need every row of every term.
    """
    terms, logged = values

    def of(one: OpeTerms) -> Array:
        both = value_and_error(one, weight), value_and_error(less(one, logged), weight)
        return jnp.stack(both, axis=1)

    def of_policies(each: OpeTerms) -> Array:
        first = jax.tree.map(lambda x: jnp.moveaxis(x, 1, 0), each)
        return jnp.moveaxis(lax.map(of, first), 0, -1)

    rows = [of_policies(each) for each in terms]
    behaviour = jnp.broadcast_to(of(logged)[..., None], rows[0].shape)
    return jnp.stack([behaviour, *rows])


def _studentized(
    point: Array,
    errors: Array,
    resamples: Array,
    symmetric: tuple[bool, ...],
    level: float,
) -> tuple[Array, ...]:
    """Low, high and lower bound `[1 + M, 2, C]`."""
    rows = [
        studentized_limits(
            point[i],
            errors[i],
            resamples[:, i, 0],
            resamples[:, i, 1],
            level=level,
            symmetric=same,
        )
        for i, same in enumerate(symmetric)
    ]
    return tuple(map(jnp.stack, zip(*rows, strict=True)))


def _quantiles(
    point: Array, replicate: Array, influence: Array | None, level: float
) -> tuple[Array, ...]:
    """Low, high and lower bound: percentiles, with `influence` those of BCa."""
    tails = jnp.array([(1 - level) / 2, (1 + level) / 2, 1 - level], jnp.float32)
    if influence is not None:
        tails = jax.vmap(bca_levels, (0, None, None, None))(
            tails, point, replicate, influence
        )
    return tuple(jax.vmap(quantile, (None, 0))(replicate, tails))


def _estimate(both: Interval, bound: Array, reason: Array) -> OpeEstimate:
    """`both` has leaves `[2, C]`: value and gain."""
    undefined = (reason == Refusal.NONE) & ~jnp.isfinite(both.point[0])
    reason = jnp.where(undefined, jnp.int32(Refusal.UNDEFINED), reason)
    has_limits = reason == Refusal.NONE
    has_point = has_limits | (reason == Refusal.FEW_TASKS)

    def shown(x: Array, where: Array) -> Array:
        return jnp.where(where, x, jnp.nan)

    value, gain = (
        both.replace(
            point=shown(both.point[i], has_point),
            low=shown(both.low[i], has_limits),
            high=shown(both.high[i], has_limits),
        )
        for i in (0, 1)
    )
    return OpeEstimate(
        point=value.point,
        low=value.low,
        high=value.high,
        lower_bound=shown(bound, has_limits),
        gain=gain,
        reason=reason,
    )


def _bernstein(
    terms: OpeTerms, episodes: Array, level: float, truncation: ArrayLike
) -> Array:
    """`[C]`, of what each task adds to the mean."""
    bound = partial(
        bernstein_lower_bound, mask=episodes > 0, level=level, truncation=truncation
    )
    share = jnp.sum(episodes > 0) / jnp.maximum(jnp.sum(episodes), 1.0)
    return jax.vmap(bound)(share * terms.numerator[..., 0].T)

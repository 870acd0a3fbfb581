"""Exact values of policies in a fitted simulator, by dynamic programming over its log.

What simulation estimates from episodes this computes from the tables: no random error,
so that close controllers can be ranked.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
from flax import struct
from jax import lax

from jerp.envs.fitted_sim import ENDED, FittedTables, counted_features
from jerp.harness.state import FEATURES
from jerp.ops.checks import check_axes
from jerp.typing import Array, ArrayLike

__all__ = ["ExpectedEpisode", "expected_episode", "features_at"]

_PROGRESS = FEATURES.index("progress")
_COST = FEATURES.index("cost_share")


class ExpectedEpisode(struct.PyTreeNode):
    """Means over simulated episodes of each difficulty; NaN for one never logged.

    Attributes:
      score: `[D]` float32.
      steps: `[D]` float32.
      unsupported: `[D]` float32, steps for which the log had no pair.
    """

    score: Array
    steps: Array
    unsupported: Array


def expected_episode(tables: FittedTables, action_prob: Array) -> ExpectedEpisode:
    """The exact expectation of what `FittedSim` simulates.

        U_T(v) = (truncated score, 0, 0)
        U_t(v) = sum_a pi_t(a | v) [(0, 1, unsupported(v, a)) + mean_r U_{t+1}(v_r)]

    over the logged steps r in the pool of the state of v and a; v_r is what followed r,
    and (score of r, 0, 0) stands for its value where r ended its episode.

    Args:
      tables: a fitted log.
      action_prob: `[T, V, A]` float32, probability of each action at step t at each
        logged step; zero for illegal actions. T is the step budget.

    Returns:
      `ExpectedEpisode`.

    Raises:
      ShapeError: other axes.
    """
    visits, actions = tables.state.shape[0], tables.legal.shape[1]
    check_axes(
        tables=(jnp.zeros((visits, actions)), "V A"), action_prob=(action_prob, "T V A")
    )
    entries = jnp.arange(tables.pooled.shape[0])
    pool = jnp.searchsorted(tables.pool_start, entries, side="right") - 1
    num_pools = tables.pool_start.shape[0]
    size = jnp.maximum(jnp.diff(tables.pool_start, append=tables.pool_start[-1:]), 1)
    following = tables.following[tables.pooled]
    ended = _per_step(tables.score[tables.pooled], 0.0, 0.0)
    cut = _per_step(tables.truncated_score, 0.0, 0.0)
    taken = _per_step(jnp.zeros(tables.pool.shape), 1.0, ~tables.supported)

    def back(value: Array, prob: Array) -> tuple[Array, None]:
        after = jnp.where((following == ENDED)[:, None], ended, value[following])
        mean = jax.ops.segment_sum(after, pool, num_pools) / size[:, None]
        pair = taken + mean.at[0].set(cut)[tables.pool]
        return jnp.einsum("va,vak->vk", prob, pair[tables.state]), None

    start = jnp.broadcast_to(cut, (visits, 3))
    value, _ = lax.scan(back, start, action_prob, reverse=True)
    episode = jnp.arange(tables.first.shape[0])
    level = jnp.searchsorted(tables.first_start, episode, side="right") - 1
    count = jnp.diff(tables.first_start)
    total = jax.ops.segment_sum(value[tables.first], level, count.shape[0])
    mean = total / jnp.where(count > 0, count, jnp.nan)[:, None]
    return ExpectedEpisode(score=mean[:, 0], steps=mean[:, 1], unsupported=mean[:, 2])


def features_at(
    tables: FittedTables, step: ArrayLike, *, max_steps: int = 10, step_cost: float
) -> Array:
    """What a policy sees where an episode stands at a logged step, at another time.

        progress = t / max_steps,  remaining = 1 - progress,
        cost = logged cost + step_cost (t - logged t)

    Args:
      tables: a fitted log.
      step: `[]` int32, t.
      max_steps: step budget.
      step_cost: share of the cost budget that a step without a call costs. The cost is
        the simulated one where calls cost alike, since states tell calls apart.

    Returns:
      `[V, F]` float32, for the probabilities that `expected_episode` takes.
    """
    logged = tables.features[:, _PROGRESS] * max_steps
    cost = tables.features[:, _COST] + step_cost * (step - logged)
    return counted_features(tables.features, step, cost, max_steps=max_steps)


def _per_step(score: ArrayLike, steps: ArrayLike, unsupported: ArrayLike) -> Array:
    """`[..., 3]` float32, one of each field of `ExpectedEpisode`."""
    parts = jnp.broadcast_arrays(*map(jnp.asarray, (score, steps, unsupported)))
    return jnp.stack([part.astype(jnp.float32) for part in parts], axis=-1)

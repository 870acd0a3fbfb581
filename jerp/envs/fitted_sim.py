"""A harness simulated from logged episodes: every step replays a logged one.

An episode stands at a logged step. Its next step is that which followed a random logged
step with the same action in the same abstract state, so outcomes have the frequencies
and features the joint distribution that the log has; progress, remaining budget and
cost are the simulated episode's own. What the log cannot say is borrowed from coarser
states or ends the episode, and both are counted, see `fit_simulator`. These are the
artificial trajectories of Fonteneau et al., "Batch mode reinforcement learning based on
the synthesis of artificial trajectories" (2013), with abstract states for distances.
"""

from __future__ import annotations

from dataclasses import dataclass

import jax
import jax.numpy as jnp
from flax import struct

from jerp.envs.base import TimeStep
from jerp.harness.state import FEATURES
from jerp.trajectory import Trajectory
from jerp.typing import Array, ArrayLike, Key, Outcome

__all__ = [
    "ENDED",
    "HALTED",
    "FittedSim",
    "FittedState",
    "FittedTables",
    "counted_features",
    "unsupported",
]

ENDED, HALTED = 0, 1
"""The first two rows of the tables of logged steps and of states: a submitted episode,
and one for whose action no logged step was found."""

_PROGRESS = FEATURES.index("progress")
_COST = FEATURES.index("cost_share")
_REMAINING = FEATURES.index("remaining")


class FittedTables(struct.PyTreeNode):
    """A log, indexed; made by `jerp.envs.fitting.fit_simulator`.

    `V` logged steps, `S` abstract states, `P` pools of logged steps to draw from, `L`
    entries of all pools, `E` episodes, `D` difficulties; all but `D` are padded.

    Attributes:
      features: `[V, F]` float32, what was seen before the step.
      state: `[V]` int32, the abstract state.
      following: `[V]` int32, the logged step after this one; `ENDED` after a submit.
      cost: `[V]` float32, what the step added to the cost share.
      usage: `[V, U]` float32, what it used.
      score: `[V]` float32, of the episode, where the step ended it.
      outcome: `[V]` int32, likewise.
      legal: `[S, A]` bool.
      pool: `[S, A]` int32, where the action's next step is drawn from; 0 is empty.
      supported: `[S, A]` bool, that pool is of the state itself, nothing is borrowed.
      pool_start: `[P + 1]` int32; pool `p` is `pooled[pool_start[p]:pool_start[p+1]]`.
      pooled: `[L]` int32, logged steps.
      first_start: `[D + 1]` int32, likewise for the first steps of each difficulty.
      first: `[E]` int32, first steps.
      truncated_score: `[]` float32, mean score of logged episodes that were cut.
      num_states: `[]` int32, S before padding, `ENDED` and `HALTED` included.
      num_invalid: `[]` int32, episodes that the infrastructure lost; left out.
    """

    features: Array
    state: Array
    following: Array
    cost: Array
    usage: Array
    score: Array
    outcome: Array
    legal: Array
    pool: Array
    supported: Array
    pool_start: Array
    pooled: Array
    first_start: Array
    first: Array
    truncated_score: Array
    num_states: Array
    num_invalid: Array


class FittedState(struct.PyTreeNode):
    """One episode in progress; leaves `[]`.

    Attributes:
      visit: int32, the logged step where it stands.
      step: int32, steps taken.
      cost: float32, share of the cost budget that was spent; may pass 1.
    """

    visit: Array
    step: Array
    cost: Array


@dataclass(frozen=True, eq=False)
class FittedSim:
    """The environment of a log; a task is its difficulty, `[]` int32.

    Hashable by identity, so that it can be a static argument. To compile once for many
    logs, pass the tables as data and make the environment inside the jitted function.

    Attributes:
      tables: see `FittedTables`.
      max_steps: step budget of an episode.
    """

    tables: FittedTables
    max_steps: int = 10

    def reset(self, key: Key, params: Array) -> tuple[FittedState, TimeStep]:
        """Starts at the first step of a random logged episode of that difficulty.

        A difficulty that was never logged starts `HALTED`, which is an unsupported
        episode of no step.
        """
        t = self.tables
        known = (params >= 0) & (params < len(t.first_start) - 1)
        visit, found = _draw(key, t.first, t.first_start, jnp.where(known, params, 0))
        state = FittedState(
            visit=jnp.where(known & found, visit, HALTED),
            step=jnp.zeros((), jnp.int32),
            cost=jnp.zeros((), jnp.float32),
        )
        return state, self._time_step(state, jnp.zeros((), jnp.int32), jnp.array(False))

    def step(
        self, key: Key, state: FittedState, action: Array, params: Array
    ) -> tuple[FittedState, TimeStep]:
        """Replays a logged step; an illegal action only costs the step."""
        del params
        t = self.tables
        now = t.state[state.visit]
        logged, found = _draw(key, t.pooled, t.pool_start, t.pool[now, action])
        plays = t.legal[now, action]
        following = jnp.where(found, t.following[logged], HALTED)
        after = FittedState(
            visit=jnp.where(plays, following, state.visit),
            step=state.step + 1,
            cost=state.cost + jnp.where(plays & found, t.cost[logged], 0.0),
        )
        return after, self._time_step(after, logged, plays & found)

    def _time_step(self, state: FittedState, logged: Array, played: Array) -> TimeStep:
        """What is seen at `state`, and what the logged step brought if played."""
        t = self.tables
        where = t.state[state.visit]
        submitted = played & (state.visit == ENDED)
        spent = (state.step >= self.max_steps) | (state.visit == HALTED)
        truncated = ~submitted & spent
        cut_score = jnp.where(truncated, t.truncated_score, 0.0)
        score = jnp.where(submitted, t.score[logged], cut_score)
        return TimeStep(
            observation=counted_features(
                t.features[state.visit],
                state.step,
                state.cost,
                max_steps=self.max_steps,
            ),
            legal=t.legal[where] & ~truncated,
            reward=score,
            terminated=submitted,
            truncated=truncated,
            outcome=jnp.where(submitted, t.outcome[logged], Outcome.TRUNCATED),
            score=score,
            anchor=where,
            usage=jnp.where(played, t.usage[logged], 0.0),
        )


def counted_features(
    features: Array, step: ArrayLike, cost: ArrayLike, *, max_steps: int
) -> Array:
    """Logged features with the counters of another episode.

    Args:
      features: `[..., F]` float32, as logged.
      step: `[...]` or `[]` int32, steps taken.
      cost: `[...]` or `[]` float32, share of the cost budget that was spent.
      max_steps: step budget.

    Returns:
      `[..., F]` float32 with progress, remaining and cost_share replaced.
    """
    column = jnp.arange(len(FEATURES))
    progress = jnp.asarray(step / max_steps, jnp.float32)[..., None]
    spent = jnp.clip(cost, 0.0, 1.0)[..., None]
    features = jnp.where(column == _PROGRESS, progress, features)
    features = jnp.where(column == _REMAINING, 1.0 - progress, features)
    return jnp.where(column == _COST, spent, features)


def unsupported(tables: FittedTables, trajectory: Trajectory) -> Array:
    """Steps of simulated episodes for which the log itself had too little.

    Args:
      tables: that the episodes were simulated from.
      trajectory: simulated episodes; their `anchor` is the abstract state.

    Returns:
      `[B, T]` bool: real steps whose pair of state and action was borrowed from coarser
      states or not found at all.
    """
    known = tables.supported[trajectory.anchor, trajectory.action]
    return trajectory.mask & ~known


def _draw(key: Key, entries: Array, start: Array, pool: Array) -> tuple[Array, Array]:
    """A uniform entry of `entries[start[pool]:start[pool + 1]]`, and whether any is."""
    begin, end = start[pool], start[pool + 1]
    size = end - begin
    place = (jax.random.uniform(key) * size).astype(jnp.int32)
    # A product just below the size may round up to it.
    return entries[begin + jnp.clip(place, 0, jnp.maximum(size - 1, 0))], size > 0

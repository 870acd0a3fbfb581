"""Moves that are as good as the oracle's, be they its own or not.

Where several ways are equally short an oracle takes one of them, always the same: size
before colour, one of two searches that find the same. A rule that says the other is not
what the oracle does, and no worse. So each action is tried: it is taken, and the oracle
goes on from there, to no lower score and in no more steps than by its own.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from experiments.joint_rules.oracle import LEAST_VISITS, NOISE
from experiments.joint_rules.places import Place
from jerp.envs.base import TimeStep
from jerp.envs.rule_language import Situated
from jerp.rollout.demonstrations import noisy_oracle
from jerp.rollout.scan import rollout
from jerp.typing import Array, Key

__all__ = ["as_good_moves", "judged_moves"]

SAME_SCORE = 1e-6
"""Scores nearer to each other than this are the same."""

AT_ONCE = 128
"""Episodes, of which every action of every step is in memory."""


def as_good_moves(key: Key, place: Place, number: int) -> np.ndarray:
    """How often a move is as good as what the oracle does.

    Args:
      key: consumed.
      place: a world without chance.
      number: of training tasks, in which an oracle that errs is played.

    Returns:
      `[K, S, M]` by type of task, situation and move: over the visits from which the
      oracle still gains something, the mean share of the move's admissible actions that
      are as good; NaN of rare situations.
    """
    drawing, playing = jax.random.split(key)
    tasks = place.tasks(drawing, number, "train")
    good, visits = map(np.asarray, _counts(playing, tasks, place=place))
    share = good / np.maximum(visits, 1)[..., None]
    return np.where((visits >= LEAST_VISITS)[..., None], share, np.nan)


@dataclass(frozen=True)
class _Bare:
    """A world that shows its state and its oracle's action."""

    env: Situated

    def reset(self, key: Key, params: Any) -> tuple[Any, TimeStep]:
        return self._shown(params, *self.env.reset(key, params))

    def step(
        self, key: Key, state: Any, action: Array, params: Any
    ) -> tuple[Any, TimeStep]:
        return self._shown(params, *self.env.step(key, state, action, params))

    def _shown(self, params: Any, state: Any, now: TimeStep) -> tuple[Any, TimeStep]:
        shown = {"state": state, "oracle": self.env.oracle(state, params)}
        return state, now.replace(observation=shown)


@partial(jax.jit, static_argnames="place")
def _counts(key: Key, tasks: Any, *, place: Place) -> tuple[Array, Array]:
    """`[K, S, M]` sums of shares, and `[K, S]` visits."""
    number = jax.tree.leaves(tasks)[0].shape[0]
    playing, trying = jax.random.split(key)
    data = rollout(
        *(playing, _Bare(place.env), tasks, noisy_oracle, jnp.float32(NOISE)),
        num_steps=place.horizon,
        batch_size=number,
    )
    shown: Any = data.observation

    def by_step(episode: tuple[Key, Any, Array, Any]) -> tuple[Array, Array, Array]:
        judged = partial(judged_moves, place)
        return jax.vmap(judged, (None, 0, 0, None))(*episode)

    keys = jax.random.split(trying, number)
    episodes = (keys, shown["state"], shown["oracle"], tasks)
    situation, good, known = lax.map(by_step, episodes, batch_size=AT_ONCE)
    counted = (data.mask & known).astype(jnp.float32)
    kind = jnp.broadcast_to(place.type_of(tasks)[:, None], situation.shape)
    sums = jnp.zeros((len(place.types), *place.rule_sizes))
    visits = jnp.zeros(sums.shape[:2])
    return (
        sums.at[kind, situation].add(counted[..., None] * good),
        visits.at[kind, situation].add(counted),
    )


def judged_moves(
    place: Place, key: Key, state: Any, oracle: Array, params: Any
) -> tuple[Array, Array, Array]:
    """What can be done in one state as well as the oracle does it.

    Args:
      place: a world without chance.
      key: decides nothing.
      state: of an episode that has not ended.
      oracle: `[]` int32, its action.
      params: of the task.

    Returns:
      The situation, of each move `[M]` the share of its admissible actions that are as
      good, and whether the oracle still gains anything.
    """
    env, actions = place.env, jnp.arange(place.env.num_actions)
    score, steps = jax.vmap(partial(_tried, place, key, state, params))(actions)
    legal = env.admissible(state, params)
    as_high = score >= score[oracle] - SAME_SCORE
    good = legal & as_high & (steps <= steps[oracle])
    situation = env.language.situation(state, params)
    move = jax.vmap(env.language.move, (0, None, None))(actions, situation, params)
    none = jnp.zeros(len(env.language.moves))
    every, sound = (none.at[move].add(x.astype(jnp.float32)) for x in (legal, good))
    return situation, sound / jnp.maximum(every, 1), score[oracle] > 0


def _tried(
    place: Place, key: Key, state: Any, params: Any, action: Array
) -> tuple[Array, Array]:
    """Score and steps of the oracle after an action; no score without an end."""
    env, (first, then) = place.env, jax.random.split(key)

    def goes_on(carry: tuple[Any, TimeStep, Array]) -> Array:
        _, now, steps = carry
        return ~(now.terminated | now.truncated) & (steps < place.horizon)

    def oracle_step(carry: tuple[Any, TimeStep, Array]) -> tuple[Any, TimeStep, Array]:
        state, _, steps = carry
        action = env.oracle(state, params)
        after = env.step(jax.random.fold_in(then, steps), state, action, params)
        return *after, steps + 1

    begun = env.step(first, state, action, params)
    _, last, steps = lax.while_loop(
        goes_on, oracle_step, (*begun, jnp.zeros((), jnp.int32))
    )
    return jnp.where(last.terminated, last.score, 0.0), steps

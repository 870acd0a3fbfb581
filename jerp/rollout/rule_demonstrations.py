"""Episodes of someone who does as the rules say, and elsewhere as the oracle does.

A policy that is cloned from them learns what a rule in its prompt means: of two
episodes of one task, those with another rule go another way. Where no rule applies
the demonstrator knows what the oracle knows, but in the situations that are left to
rules: there it does anything, or now and then hits upon what the oracle does.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jerp.envs.base import TimeStep
from jerp.envs.rule_language import Situated
from jerp.ops.checks import check_axes, check_settings, check_values
from jerp.rollout.scan import rollout
from jerp.trajectory import Trajectory
from jerp.typing import Array, ArrayLike, Key

__all__ = ["rule_demonstrations"]

NONE = -1


def rule_demonstrations(
    key: Key,
    env: Situated,
    env_params: Any,
    rules: Array,
    working_set: Array,
    *,
    num_steps: int,
    batch_size: int,
    noise: ArrayLike = 0.0,
    unknown: tuple[int, ...] = (),
    guess: float = 0.0,
) -> Trajectory:
    """Plays a follower of rules, with probability `noise` anything admissible instead.

        pi(a) = (1 - noise) f(a) + noise u(a)

    with `u` uniform over what is admissible, and `f` uniform over the admissible
    actions that make the move of the first rule whose situation this is and whose move
    can be made; without such a rule the oracle's action `o`, but in a situation of
    `unknown` the mixture `(1 - guess) u + guess o`.

    Args:
      key: consumed.
      env: says of each step which situation it is; static under `jit`.
      env_params: leaves `[N, ...]`, one row a task.
      rules: `[M, 2]` int32, situation and move of every rule, by its id.
      working_set: `[N, R]` int32, ids of the rules of each task, -1 for none.
      num_steps: T.
      batch_size: B.
      noise: in [0, 1].
      unknown: situations that are left to rules; static under `jit`.
      guess: chance that the oracle's action is hit upon in one of them, in [0, 1];
        static under `jit`.

    Returns:
      Episodes as `rollout` gives them, with their working sets, and the probabilities
      of the mixture: NaN where only the device sees that `noise` or any id is out of
      range.

    Raises:
      InputError: `noise` or `guess` beyond [0, 1], an id without a rule, or a
        situation that the language does not have.
      ShapeError: rules that are no pairs, or working sets that are not a row a task.
    """
    _check_rules(env, env_params, rules, working_set, unknown)
    check_values("guess", guess, lambda v: (v >= 0) & (v <= 1), "in [0, 1]")
    in_range = (noise, lambda v: (v >= 0) & (v <= 1), "in [0, 1]")
    noise = jnp.asarray(noise, jnp.float32) + check_settings(noise=in_range)
    rules, working_set = jnp.asarray(rules), jnp.asarray(working_set)
    known = (working_set >= NONE) & (working_set < rules.shape[0])
    noise = jnp.where(jnp.all(known), noise, jnp.nan)
    # What -1 names is the last row, of a situation that no step is.
    pairs = jnp.concatenate([rules, jnp.full((1, 2), NONE, rules.dtype)])[working_set]
    data = rollout(
        key,
        _Followed(env, unknown, guess),
        (env_params, pairs),
        _shown_share,
        noise,
        num_steps=num_steps,
        batch_size=batch_size,
    )
    observation: Any = data.observation
    final: Any = data.final_observation
    return data.replace(
        observation=observation["seen"],
        final_observation=final["seen"],
        working_set=working_set[data.task_id],
    )


def _check_rules(
    env: Situated,
    env_params: Any,
    rules: Array,
    working_set: Array,
    unknown: tuple[int, ...],
) -> None:
    check_axes(situation_and_move=(jnp.empty(2), "W"), rules=(rules, "M W", int))
    for leaf in jax.tree.leaves(env_params):
        tasks = (jnp.empty(jnp.shape(leaf)[:1]), "N")
        check_axes(env_params=tasks, working_set=(working_set, "N R", int))
    last = rules.shape[0] - 1
    check_values(
        "working_set",
        working_set,
        lambda v: (v >= NONE) & (v <= last),
        f"ids from 0 to {last}, or -1 for none",
    )
    number = len(env.language.situations)
    check_values(
        "unknown",
        np.asarray(unknown, np.int32),
        lambda v: (v > 0) & (v < number),
        f"situations from 1 to {number - 1}",
    )


@dataclass(frozen=True)
class _Followed:
    """A world that shows what the follower would do beside every observation."""

    env: Situated
    unknown: tuple[int, ...]
    guess: float

    def reset(self, key: Key, params: Any) -> tuple[Any, TimeStep]:
        return self._shown(params, *self.env.reset(key, params[0]))

    def step(
        self, key: Key, state: Any, action: Array, params: Any
    ) -> tuple[Any, TimeStep]:
        return self._shown(params, *self.env.step(key, state, action, params[0]))

    def _shown(self, params: Any, state: Any, now: TimeStep) -> tuple[Any, TimeStep]:
        task, pairs = params
        share = self._share(state, task, pairs, now.legal)
        return state, now.replace(observation={"seen": now.observation, "share": share})

    def _share(self, state: Any, task: Any, pairs: Array, legal: Array) -> Array:
        """`[A]`, probabilities."""
        language, actions = self.env.language, jnp.arange(legal.shape[0])
        situation = language.situation(state, task)
        moves = jax.vmap(language.move, (0, None, None))(actions, situation, task)
        allowed = (moves[None] == pairs[:, 1:]) & legal[None]
        applies = (pairs[:, 0] == situation) & jnp.any(allowed, axis=1)
        first = applies & (jnp.cumsum(applies) == 1)
        followed = jnp.any(allowed & first[:, None], axis=0)
        unknown = jnp.any(situation == jnp.asarray(self.unknown, jnp.int32))
        oracle = actions == self.env.oracle(state, task)
        anything = legal / jnp.maximum(jnp.sum(legal), 1)
        guessed = (1 - self.guess) * anything + self.guess * oracle
        chosen = jnp.where(jnp.any(applies), followed, oracle)
        chosen = chosen / jnp.maximum(jnp.sum(chosen), 1)
        return jnp.where(unknown & ~jnp.any(applies), guessed, chosen)


def _shown_share(noise: Array, key: Key, shown: Any, legal: Array):
    number = jnp.maximum(jnp.sum(legal), 1)
    share = (1 - noise) * shown["share"] + noise * legal / number
    log_prob = jnp.log(jnp.where(jnp.any(legal), share, 1.0))
    action = jax.random.categorical(key, log_prob).astype(jnp.int32)
    return action, log_prob[action]

"""What is trained, in what, how, and which groups of episodes an iteration plays."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp

from jerp.envs.base import World
from jerp.errors import ConfigError
from jerp.models.policy import SequencePolicy
from jerp.rollout.live_groups import play_live_groups, play_live_groups_from_host
from jerp.rollout.scan import rollout
from jerp.training.group_advantage import live_groups
from jerp.training.group_settings import GroupConfig, GroupHyper
from jerp.trajectory import Trajectory
from jerp.typing import Array, Key

__all__ = ["Play", "PolicyTask", "play_batch", "play_groups"]

Play = Callable[..., Trajectory]
"""Plays episodes; the signature of `jerp.rollout.scan.rollout`."""


@dataclass(frozen=True)
class PolicyTask:
    """What is trained, in what, how; hashable.

    Attributes:
      env: the world.
      policy: the policy.
      config: of the algorithm; its `num_groups` tasks are drawn an iteration.
      group_size: episodes of a task that are compared.
      num_steps: step budget of an episode.
      max_rounds: groups that teach nothing are replaced by fresh ones, for at most so
        many rounds of groups; 1 replaces none. DAPO needs several, and an algorithm
        that compares groups; what is still dead then is for `drop_dead` to leave out.
    """

    env: World
    policy: SequencePolicy
    config: GroupConfig
    group_size: int
    num_steps: int
    max_rounds: int = 1

    def __post_init__(self):
        for name in ("group_size", "num_steps"):
            if getattr(self, name) < 1:
                raise ConfigError(
                    f"{name}: expected at least 1, got {getattr(self, name)}"
                )
        compares = self.config.advantage not in ("return", "gae")
        if self.group_size < 2 and compares:
            raise ConfigError(
                f"group_size: expected at least 2 episodes to compare, got "
                f"{self.group_size}"
            )
        if self.max_rounds != 1 and not (self.max_rounds > 1 and compares):
            raise ConfigError(
                f"max_rounds: expected 1, or more for an algorithm that compares "
                f"groups, got {self.max_rounds} for {self.config.advantage!r}"
            )
        # A value beyond its field's size would be read as another field's.
        for name in ("field_sizes", "num_actions"):
            own, worlds = (getattr(x, name, None) for x in (self.policy, self.env))
            if None not in (own, worlds) and own != worlds:
                raise ConfigError(
                    f"policy.{name}: expected the world's, {worlds}, got {own}; make "
                    "the policy of the world's sizes"
                )


def play_groups(
    key: Key,
    task: PolicyTask,
    env_params: Any,
    params: Any,
    *,
    play: Play = rollout,
    working_set: Array | None = None,
) -> Trajectory:
    """Draws tasks without replacement and plays a group of each; starts are shared.

    Args:
      key: consumed.
      task: static.
      env_params: leaves `[N, ...]`, at least `num_groups` tasks.
      params: of the policy.
      play: plays the episodes.
      working_set: `[N, R]` int32, ids of the rules in the prompt of each task.

    Returns:
      `[num_groups * group_size, T]` episodes; `task_id` indexes `env_params`,
      `group_id` the groups.
    """
    choosing, playing = jax.random.split(key)
    number = jax.tree.leaves(env_params)[0].shape[0]
    groups = task.config.num_groups
    chosen = jax.random.choice(choosing, number, (groups,), replace=False)
    rules = {} if working_set is None else {"working_set": working_set[chosen]}
    data = play(
        playing,
        task.env,
        jax.tree.map(lambda x: x[chosen], env_params),
        task.policy,
        params,
        num_steps=task.num_steps,
        batch_size=groups * task.group_size,
        shared_start=True,
        **rules,
    )
    return data.replace(task_id=chosen[data.task_id].astype(jnp.int32))


def play_batch(
    key: Key,
    task: PolicyTask,
    hyper: GroupHyper,
    env_params: Any,
    params: Any,
    *,
    play: Play | None = None,
    working_set: Array | None = None,
) -> tuple[Trajectory, dict[str, Array]]:
    """The groups of one update, dead ones replaced where the task says so.

    Args:
      key: consumed.
      task: static.
      hyper: what episodes are fined counts in whether they differ.
      env_params: leaves `[N, ...]`, at least `num_groups` tasks.
      params: of the policy.
      play: plays episodes from the host; None plays them inside a compiled program.
      working_set: `[N, R]` int32, see `play_groups`.

    Returns:
      Episodes as `play_groups` has them, in which a task may come in several groups;
      and with `max_rounds` above 1, the metrics `rounds`, how many were played, and
      `dead_share_played`, dead groups of the first. What is said of the batch, its
      success included, is then of groups that were chosen for being live.
    """
    rules = {} if working_set is None else {"working_set": working_set}
    once = partial(
        play_groups,
        **rules,
        task=task,
        env_params=env_params,
        params=params,
        play=rollout if play is None else play,
    )
    if task.max_rounds == 1:
        return once(key), {}
    fill = play_live_groups if play is None else play_live_groups_from_host
    found = fill(
        key, once, partial(_live, task.config, hyper), max_rounds=task.max_rounds
    )
    rounds = found.rounds.astype(jnp.float32)
    return found.data, {"rounds": rounds, "dead_share_played": found.dead_share}


_live = jax.jit(live_groups, static_argnums=0)

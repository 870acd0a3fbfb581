"""What is trained, in what, how, and which groups of episodes an iteration plays."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp

from jerp.envs.base import World
from jerp.errors import ConfigError
from jerp.models.policy import SequencePolicy
from jerp.rollout.scan import rollout
from jerp.training.group_settings import GroupConfig
from jerp.trajectory import Trajectory
from jerp.typing import Key

__all__ = ["Play", "PolicyTask", "play_groups"]

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
    """

    env: World
    policy: SequencePolicy
    config: GroupConfig
    group_size: int
    num_steps: int

    def __post_init__(self):
        if self.group_size < 2 and self.config.advantage not in ("return", "gae"):
            raise ConfigError(
                f"group_size: expected at least 2 episodes to compare, got "
                f"{self.group_size}"
            )


def play_groups(
    key: Key,
    task: PolicyTask,
    env_params: Any,
    params: Any,
    *,
    play: Play = rollout,
) -> Trajectory:
    """Draws tasks without replacement and plays a group of each; starts are shared.

    Args:
      key: consumed.
      task: static.
      env_params: leaves `[N, ...]`, at least `num_groups` tasks.
      params: of the policy.
      play: plays the episodes.

    Returns:
      `[num_groups * group_size, T]` episodes; `task_id` indexes `env_params`,
      `group_id` the groups.
    """
    choosing, playing = jax.random.split(key)
    number = jax.tree.leaves(env_params)[0].shape[0]
    groups = task.config.num_groups
    chosen = jax.random.choice(choosing, number, (groups,), replace=False)
    data = play(
        playing,
        task.env,
        jax.tree.map(lambda x: x[chosen], env_params),
        task.policy,
        params,
        num_steps=task.num_steps,
        batch_size=groups * task.group_size,
        shared_start=True,
    )
    return data.replace(task_id=chosen[data.task_id].astype(jnp.int32))

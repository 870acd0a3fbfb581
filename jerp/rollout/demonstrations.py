"""Episodes of a world's oracle, with noise: what a policy is cloned from.

A policy sees observations and an oracle states, so the oracle's action is shown beside
the observation while these episodes are played, and taken away afterwards.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp

from jerp.envs.base import TimeStep, World
from jerp.ops.checks import check_settings
from jerp.rollout.scan import rollout
from jerp.trajectory import Trajectory
from jerp.typing import Array, ArrayLike, Key

__all__ = ["WithOracle", "demonstrations", "noisy_oracle"]


@dataclass(frozen=True)
class WithOracle:
    """A world that shows its oracle's action beside every observation.

    Observations are a dict of what is `seen` and the `oracle`'s action.

    Attributes:
      env: what is played.
    """

    env: World

    def reset(self, key: Key, params: Any) -> tuple[Any, TimeStep]:
        """Starts an episode. Consumes `key`."""
        return self._shown(self.env.reset(key, params), params)

    def step(
        self, key: Key, state: Any, action: Array, params: Any
    ) -> tuple[Any, TimeStep]:
        """Plays `action`. Consumes `key`."""
        return self._shown(self.env.step(key, state, action, params), params)

    def _shown(self, after: tuple[Any, TimeStep], params: Any) -> tuple[Any, TimeStep]:
        state, now = after
        shown = {"seen": now.observation, "oracle": self.env.oracle(state, params)}
        return state, now.replace(observation=shown)


def demonstrations(
    key: Key,
    env: World,
    env_params: Any,
    *,
    num_steps: int,
    batch_size: int,
    noise: ArrayLike = 0.0,
) -> Trajectory:
    """Plays the oracle, with probability `noise` any admissible action instead.

        pi(a) = (1 - noise) [a is the oracle's] + noise [a admissible] / number of those

    Args:
      key: consumed.
      env: with an oracle; static under `jit`.
      env_params: leaves `[N, ...]`, one row a task.
      num_steps: T.
      batch_size: B.
      noise: in [0, 1].

    Returns:
      Episodes as `rollout` gives them, with the probabilities of the mixture: NaN where
      only the device sees that `noise` is out of range.

    Raises:
      InputError: `noise` beyond [0, 1].
    """
    in_range = (noise, lambda v: (v >= 0) & (v <= 1), "in [0, 1]")
    noise = jnp.asarray(noise, jnp.float32) + check_settings(noise=in_range)
    data = rollout(
        key,
        WithOracle(env),
        env_params,
        noisy_oracle,
        noise,
        num_steps=num_steps,
        batch_size=batch_size,
    )
    observation: Any = data.observation
    final: Any = data.final_observation
    return data.replace(
        observation=observation["seen"], final_observation=final["seen"]
    )


def noisy_oracle(
    noise: Array, key: Key, shown: Any, legal: Array
) -> tuple[Array, Array]:
    """A `jerp.typing.PolicyFn` of `WithOracle`, whose parameters are the noise."""
    number = jnp.maximum(jnp.sum(legal), 1)
    chosen = jnp.arange(legal.shape[0]) == shown["oracle"]
    share = (1 - noise) * chosen + noise * legal / number
    log_prob = jnp.log(jnp.where(jnp.any(legal), share, 1.0))
    action = jax.random.categorical(key, log_prob).astype(jnp.int32)
    return action, log_prob[action]

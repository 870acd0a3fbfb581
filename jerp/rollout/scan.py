"""Episodes of a pure JAX world as one compiled scan over time.

Batch-native: the body acts on all episodes at once. Episode `b` depends on the key, its
index and its task, not on what shares its batch. Nothing is reset inside: an episode
that ended is frozen and masked.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, cast

import jax
import jax.numpy as jnp
from jax import lax

from jerp.envs.base import Environment
from jerp.errors import ConfigError
from jerp.models.policy import Acted, SequencePolicy
from jerp.ops.checks import check_count
from jerp.rollout.episodes import (
    Now,
    StepRecord,
    begun_memory,
    finish_episodes,
    keys_at,
    start_episodes,
    step_episodes,
    working_sets_of,
)
from jerp.trajectory import Trajectory
from jerp.typing import Array, Key, PolicyFn

__all__ = ["batched", "rollout"]


def rollout(
    key: Key,
    env: Environment,
    env_params: Any,
    policy: PolicyFn | SequencePolicy,
    params: Any,
    *,
    num_steps: int,
    batch_size: int,
    shared_start: bool = False,
    working_set: Array | None = None,
) -> Trajectory:
    """Plays `batch_size` episodes of at most `num_steps` steps.

    Episode `b` plays task `b % N`; its action at step `t` is drawn with
    `fold_in(keys[b], t)`, where `keys[b]` is folded from the policy's half of `key`.

    Args:
      key: consumed.
      env: static under `jit`, like `policy`.
      env_params: leaves `[N, ...]`, one row a task.
      policy: unbatched and without memory, see `jerp.typing.PolicyFn`; or one over
        whole episodes, see `jerp.models.policy.SequencePolicy`.
      params: of the policy.
      num_steps: T; an episode that is not over by then is truncated.
      batch_size: B.
      shared_start: all episodes of a task start alike, as those that are compared with
        each other must; without, each draws its own start.
      working_set: `[N, R]` int32, ids of the rules that a policy that reads rules is
        given before an episode of each task, -1 for none.

    Returns:
      `[B, T]` trajectory with `legal` and `log_prob` (and tokens, of a policy that
      generates), zeros in padding. `task_id` and `group_id` are the task, `seed` is how
      many earlier episodes play it.

    Raises:
      ConfigError: more steps than the policy can remember, or rules for one that reads
        none.
      InputError: no steps, no tasks, or no episodes.
    """
    check_count("num_steps", num_steps)
    _check_steps(policy, num_steps)
    seat, begun = start_episodes(
        key, env, env_params, batch_size=batch_size, shared_start=shared_start
    )
    actor = batched(policy)

    def body(carry: tuple[Any, Now], t: Array) -> tuple[tuple[Any, Now], StepRecord]:
        memory, (state, now) = carry
        keys = keys_at(seat.policy_keys, t)
        memory, acted = actor.act(params, memory, keys, now.observation, now.legal)
        after = step_episodes(env, seat, (state, now), acted.action, t)
        return (memory, after), StepRecord(now, acted, after[1])

    rules = working_sets_of(seat, env_params, working_set)
    start = (begun_memory(actor, params, batch_size, rules), begun)
    (_, (_, last)), record = lax.scan(body, start, jnp.arange(num_steps))
    record = jax.tree.map(lambda x: x.swapaxes(0, 1), record)
    return finish_episodes(seat, record, last, working_set=rules)


def _check_steps(policy: Any, num_steps: int) -> None:
    longest = getattr(policy, "max_steps", num_steps)
    if num_steps > longest:
        raise ConfigError(
            f"num_steps: expected at most {longest}, the steps that the policy "
            f"remembers, got {num_steps}; play fewer, or make a policy of more"
        )


def batched(policy: PolicyFn | SequencePolicy) -> SequencePolicy:
    """A policy over whole episodes: itself, or a `PolicyFn` that remembers nothing."""
    return cast(
        SequencePolicy, policy if hasattr(policy, "act") else _Memoryless(policy)
    )


@dataclass(frozen=True)
class _Memoryless:
    """A `PolicyFn` as a policy over a batch that remembers nothing."""

    policy_fn: Any

    def start(self, params: Any, batch_size: int) -> tuple[()]:
        return ()

    def act(
        self, params: Any, memory: Any, keys: Key, observation: Any, legal: Array
    ) -> tuple[Any, Acted]:
        act = jax.vmap(self.policy_fn, (None, 0, 0, 0))
        return memory, Acted(*act(params, keys, observation, legal))

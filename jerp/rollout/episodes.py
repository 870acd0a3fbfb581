"""What loops over worlds are made of: the start, a step, and the trajectory at the end.

`jerp.rollout.scan` puts them into one compiled program, `jerp.bridge.world_episodes`
calls them from the host: the random numbers, and so the episodes, are the same.
"""

from __future__ import annotations

from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from jerp.envs.base import Environment, TimeStep
from jerp.errors import ConfigError, InputError
from jerp.models.policy import Acted, SequencePolicy
from jerp.ops.checks import check_axes, check_count
from jerp.ops.segments import dense_group_ids
from jerp.trajectory import Trajectory
from jerp.typing import Array, Key, Outcome

__all__ = [
    "Now",
    "Seat",
    "StepRecord",
    "begun_memory",
    "finish_episodes",
    "keys_at",
    "start_episodes",
    "step_episodes",
    "working_sets_of",
]

Now = tuple[Any, TimeStep]
"""States and time steps of a batch of episodes, leaves `[B, ...]`."""


class Seat(NamedTuple):
    """What does not change in a batch of episodes.

    Attributes:
      policy_keys, env_keys: `[B]`; at step `t` the step's number is folded in.
      tasks: parameters of the worlds, leaves `[B, ...]`.
      task_id: `[B]` int32, which task that is.
      seed: `[B]` int32, how many earlier episodes play it.
    """

    policy_keys: Key
    env_keys: Key
    tasks: Any
    task_id: Array
    seed: Array


class StepRecord(NamedTuple):
    """One step of all episodes, leaves `[B, ...]`; of many, `[B, T, ...]`.

    Attributes:
      now: before the step.
      acted: what the policy did.
      after: after it; equal to `now` for episodes that had ended.
    """

    now: TimeStep
    acted: Acted
    after: TimeStep


def start_episodes(
    key: Key,
    env: Environment,
    env_params: Any,
    *,
    batch_size: int,
    shared_start: bool = False,
) -> tuple[Seat, Now]:
    """Seats `B` episodes and starts their worlds; see `jerp.rollout.scan.rollout`.

    Args:
      key: consumed.
      env: static under `jit`.
      env_params: leaves `[N, ...]`, one row a task.
      batch_size: B.
      shared_start: all episodes of a task start alike.

    Raises:
      InputError: no tasks, or no episodes.
    """
    check_count("batch_size", batch_size)
    num_tasks = _number_of_tasks(env_params)
    episode = jnp.arange(batch_size, dtype=jnp.int32)
    task = episode % num_tasks
    tasks = jax.tree.map(lambda x: jnp.asarray(x)[task], env_params)
    policy_keys, env_keys = (
        jax.vmap(jax.random.fold_in, (None, 0))(half, episode)
        for half in jax.random.split(key)
    )
    # Time 0 of the world's stream is its reset, so its steps count from 1.
    starts = env_keys[task] if shared_start else env_keys
    now = jax.vmap(env.reset)(keys_at(starts, 0), tasks)
    return Seat(policy_keys, env_keys, tasks, task, episode // num_tasks), now


def _number_of_tasks(env_params: Any) -> int:
    shapes = [jnp.shape(x) for x in jax.tree.leaves(env_params)]
    sizes = {shape[:1] for shape in shapes}
    if len(sizes) != 1 or sizes <= {(), (0,)}:
        raise InputError(
            "env_params: expected leaves [N, ...] of N tasks, at least one, got "
            f"shapes {shapes}"
        )
    return shapes[0][0]


def working_sets_of(
    seat: Seat, env_params: Any, working_set: Array | None
) -> Array | None:
    """`[B, R]` rule ids of the episodes, from those of the tasks `[N, R]`.

    Raises:
      ShapeError: not a row a task.
    """
    if working_set is None:
        return None
    tasks = (jnp.empty(_number_of_tasks(env_params)), "N")
    check_axes(env_params=tasks, working_set=(working_set, "N R", int))
    return jnp.asarray(working_set)[seat.task_id]


def begun_memory(
    policy: SequencePolicy, params: Any, batch_size: int, working_set: Array | None
) -> Any:
    """What a policy remembers before the first step: the rules that it was given.

    Raises:
      ConfigError: rules for a policy that reads none.
    """
    if working_set is None:
        return policy.start(params, batch_size)
    if not getattr(policy, "num_rules", 0):
        raise ConfigError(
            "working_set: expected None for a policy that reads no rules, got "
            f"{list(working_set.shape)} of them; it would act without"
        )
    start: Any = policy.start
    return start(params, batch_size, working_set)


def step_episodes(
    env: Environment, seat: Seat, before: Now, action: Array, t: Array
) -> Now:
    """All worlds after step `t`; those of episodes that ended stay as they are."""
    state, now = before
    stepped = jax.vmap(env.step)(
        keys_at(seat.env_keys, t + 1), state, action, seat.tasks
    )
    ended = now.terminated | now.truncated
    return jax.tree.map(partial(_select, ended), before, stepped)


def keys_at(keys: Key, t: Array | int) -> Key:
    """`[B]` keys of one step."""
    return jax.vmap(jax.random.fold_in, (0, None))(keys, t)


def finish_episodes(
    seat: Seat,
    record: StepRecord,
    last: TimeStep,
    *,
    working_set: Array | None = None,
) -> Trajectory:
    """Masks what came after the end, and truncates what did not end.

    Args:
      seat: of the episodes.
      record: leaves `[B, T, ...]`.
      last: time steps after the last step.
      working_set: `[B, R]`, rules that they were played with.
    """
    now, acted, after = record
    mask = ~(now.terminated | now.truncated)
    cut = ~(last.terminated | last.truncated)
    final_step = jnp.arange(mask.shape[1]) == mask.shape[1] - 1

    def real(x: Array) -> Array:
        return _select(mask, x, jnp.zeros((), x.dtype).reshape((1,) * x.ndim))

    return Trajectory(
        observation=jax.tree.map(real, now.observation),
        action=real(acted.action),
        reward=real(after.reward),
        terminated=real(after.terminated),
        truncated=real(after.truncated) | (cut[:, None] & final_step[None]),
        mask=mask,
        anchor=_numbered(now.anchor, mask),
        usage=real(after.usage),
        final_observation=last.observation,
        task_id=seat.task_id,
        group_id=seat.task_id,
        seed=seat.seed,
        outcome=jnp.where(cut, Outcome.TRUNCATED, last.outcome),
        score=jnp.where(cut, 0.0, last.score),
        version=jnp.zeros(mask.shape[:1], jnp.int32),
        legal=real(now.legal),
        log_prob=real(acted.log_prob),
        working_set=working_set,
        **_written(acted, real),
    )


def _written(acted: Acted, real: Any) -> dict[str, Any]:
    """Tokens of a policy that generates."""
    names = ("tokens", "token_log_prob", "token_mask")
    found = {name: getattr(acted, name) for name in names}
    return {n: None if x is None else real(x) for n, x in found.items()}


def _select(condition: Array, yes: Array, no: Array) -> Array:
    """Rows of `yes` where `[B]` or `[B, T]` `condition`, else of `no`."""
    shape = condition.shape + (1,) * (no.ndim - condition.ndim)
    return jnp.where(condition.reshape(shape), yes, no)


def _numbered(anchor: Array, mask: Array) -> Array:
    """`[B, T]` anchors; of `[B, T, W]` words, equal iff all words are."""
    if anchor.ndim == 2:
        return jnp.where(mask, anchor, 0)
    words = jnp.moveaxis(anchor.reshape(-1, anchor.shape[-1]), 1, 0)
    index = dense_group_ids(*words, mask=mask.reshape(-1)).index
    return jnp.where(mask, index.reshape(mask.shape), 0)

"""Episodes of a pure JAX world as one compiled scan over time.

Batch-native: the body acts on all episodes at once. Episode `b` depends on the key, its
index and its task, not on what shares its batch. Nothing is reset inside: an episode
that ended is frozen and masked.
"""

from __future__ import annotations

from functools import partial
from typing import Any, cast

import jax
import jax.numpy as jnp
from jax import lax

from jerp.envs.base import Environment, TimeStep
from jerp.trajectory import Trajectory
from jerp.typing import Array, Key, Outcome, PolicyFn

__all__ = ["rollout"]


def rollout(
    key: Key,
    env: Environment,
    env_params: Any,
    policy_fn: PolicyFn,
    params: Any,
    *,
    num_steps: int,
    batch_size: int,
) -> Trajectory:
    """Plays `batch_size` episodes of at most `num_steps` steps.

    Episode `b` plays task `b % N`; its action at step `t` is drawn with
    `fold_in(keys[b], t)`, where `keys[b]` is folded from the policy's half of `key`.

    Args:
      key: consumed.
      env: static under `jit`, like `policy_fn`.
      env_params: leaves `[N, ...]`, one row a task.
      policy_fn: unbatched, see `jerp.typing.PolicyFn`.
      params: of the policy.
      num_steps: T; an episode that is not over by then is truncated.
      batch_size: B.

    Returns:
      `[B, T]` trajectory with `legal` and `log_prob`, zeros in padding. `task_id` and
      `group_id` are the task, `seed` is how many earlier episodes play it.
    """
    num_tasks = jax.tree.leaves(env_params)[0].shape[0]
    episode = jnp.arange(batch_size, dtype=jnp.int32)
    task = episode % num_tasks
    tasks = jax.tree.map(lambda x: x[task], env_params)
    policy_keys, env_keys = (
        jax.vmap(jax.random.fold_in, (None, 0))(half, episode)
        for half in jax.random.split(key)
    )
    # Time 0 of the world's stream is its reset, so its steps count from 1.
    carry = jax.vmap(env.reset)(_at(env_keys, 0), tasks)

    def body(carry: tuple[Any, TimeStep], t: Array):
        state, now = carry
        action, log_prob = jax.vmap(policy_fn, (None, 0, 0, 0))(
            params, _at(policy_keys, t), cast(Array, now.observation), now.legal
        )
        stepped = jax.vmap(env.step)(_at(env_keys, t + 1), state, action, tasks)
        ended = now.terminated | now.truncated
        carry = jax.tree.map(partial(_select, ended), carry, stepped)
        return carry, (now, action, log_prob, carry[1])

    (_, last), record = lax.scan(body, carry, jnp.arange(num_steps))
    trajectory = _trajectory(jax.tree.map(lambda x: x.swapaxes(0, 1), record), last)
    return trajectory.replace(task_id=task, group_id=task, seed=episode // num_tasks)


def _at(keys: Key, t: Array | int) -> Key:
    return jax.vmap(jax.random.fold_in, (0, None))(keys, t)


def _select(condition: Array, yes: Array, no: Array) -> Array:
    """Rows of `yes` where `[B]` or `[B, T]` `condition`, else of `no`."""
    shape = condition.shape + (1,) * (no.ndim - condition.ndim)
    return jnp.where(condition.reshape(shape), yes, no)


def _trajectory(
    record: tuple[TimeStep, Array, Array, TimeStep], last: TimeStep
) -> Trajectory:
    """Masks what came after the end, and truncates what did not end."""
    now, action, log_prob, after = record
    mask = ~(now.terminated | now.truncated)
    cut = ~(last.terminated | last.truncated)
    final_step = jnp.arange(mask.shape[1]) == mask.shape[1] - 1

    def real(x: Array) -> Array:
        return _select(mask, x, jnp.zeros((), x.dtype).reshape((1,) * x.ndim))

    zeros = jnp.zeros(mask.shape[:1], jnp.int32)
    return Trajectory(
        observation=jax.tree.map(real, now.observation),
        action=real(action),
        reward=real(after.reward),
        terminated=real(after.terminated),
        truncated=real(after.truncated) | (cut[:, None] & final_step[None]),
        mask=mask,
        anchor=real(now.anchor),
        usage=real(after.usage),
        final_observation=last.observation,
        task_id=zeros,
        group_id=zeros,
        seed=zeros,
        outcome=jnp.where(cut, Outcome.TRUNCATED, last.outcome),
        score=jnp.where(cut, 0.0, last.score),
        version=zeros,
        legal=real(now.legal),
        log_prob=real(log_prob),
    )

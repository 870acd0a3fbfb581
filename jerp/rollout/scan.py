"""Episodes of a pure JAX world as one compiled scan over time.

Batch-native: the body acts on all episodes at once. Episode `b` depends on the key, its
index and its task, not on what shares its batch. Nothing is reset inside: an episode
that ended is frozen and masked.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any, cast

import jax
import jax.numpy as jnp
from jax import lax

from jerp.envs.base import Environment, TimeStep
from jerp.models.policy import Acted, SequencePolicy
from jerp.ops.segments import dense_group_ids
from jerp.trajectory import Trajectory
from jerp.typing import Array, Key, Outcome, PolicyFn

__all__ = ["rollout"]


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

    Returns:
      `[B, T]` trajectory with `legal` and `log_prob` (and tokens, of a policy that
      generates), zeros in padding. `task_id` and `group_id` are the task, `seed` is how
      many earlier episodes play it.
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
    starts = env_keys[task] if shared_start else env_keys
    carry = jax.vmap(env.reset)(_at(starts, 0), tasks)
    actor = cast(
        SequencePolicy, policy if hasattr(policy, "act") else _Memoryless(policy)
    )

    def body(carry: tuple[Any, tuple[Any, TimeStep]], t: Array):
        memory, (state, now) = carry
        memory, acted = actor.act(
            params, memory, _at(policy_keys, t), now.observation, now.legal
        )
        stepped = jax.vmap(env.step)(_at(env_keys, t + 1), state, acted.action, tasks)
        ended = now.terminated | now.truncated
        world = jax.tree.map(partial(_select, ended), (state, now), stepped)
        return (memory, world), (now, acted, world[1])

    start = (actor.start(params, batch_size), carry)
    (_, (_, last)), record = lax.scan(body, start, jnp.arange(num_steps))
    trajectory = _trajectory(jax.tree.map(lambda x: x.swapaxes(0, 1), record), last)
    return trajectory.replace(task_id=task, group_id=task, seed=episode // num_tasks)


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


def _at(keys: Key, t: Array | int) -> Key:
    return jax.vmap(jax.random.fold_in, (0, None))(keys, t)


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


def _trajectory(record: tuple[TimeStep, Acted, TimeStep], last: TimeStep) -> Trajectory:
    """Masks what came after the end, and truncates what did not end."""
    now, acted, after = record
    mask = ~(now.terminated | now.truncated)
    cut = ~(last.terminated | last.truncated)
    final_step = jnp.arange(mask.shape[1]) == mask.shape[1] - 1

    def real(x: Array) -> Array:
        return _select(mask, x, jnp.zeros((), x.dtype).reshape((1,) * x.ndim))

    zeros = jnp.zeros(mask.shape[:1], jnp.int32)
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
        task_id=zeros,
        group_id=zeros,
        seed=zeros,
        outcome=jnp.where(cut, Outcome.TRUNCATED, last.outcome),
        score=jnp.where(cut, 0.0, last.score),
        version=zeros,
        legal=real(now.legal),
        log_prob=real(acted.log_prob),
        tokens=None if acted.tokens is None else real(acted.tokens),
        token_log_prob=(
            None if acted.token_log_prob is None else real(acted.token_log_prob)
        ),
        token_mask=None if acted.token_mask is None else real(acted.token_mask),
    )

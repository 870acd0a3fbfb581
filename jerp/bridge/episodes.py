"""Episodes of a session from a host loop, as a trajectory.

The policy runs jitted and vmapped over all `B` episodes at every step, ended ones
included, so that there is one trace; the session does the rest. An episode's key at
step `t` is `fold_in(keys[b], t)`: it does not depend on what shares its batch.
`jerp.bridge.callback` does the same inside one `lax.scan`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import ArrayLike

from jerp.bridge.session import Session, Workspace
from jerp.errors import ConfigError
from jerp.records import Task
from jerp.trajectory import Trajectory, check_trajectory
from jerp.typing import Array, ArrayTree, Key, PolicyFn

__all__ = ["Episodes", "StepRecord", "act", "assemble", "check_request", "run_episodes"]


class Episodes(NamedTuple):
    """Finished episodes: arrays for learning, workspaces for their text."""

    trajectory: Trajectory
    workspaces: tuple[Workspace, ...]


class StepRecord(NamedTuple):
    """One step of all episodes as the loop saw it; arrays `[B, ...]`.

    `feature` and `legal` are from before the step, the rest is what it came to. Rows
    that had ended hold anything.
    """

    feature: Any
    legal: Any
    action: Any
    log_prob: Any
    reward: Any
    terminated: Any
    truncated: Any
    outcome: Any
    usage: Any


def act(
    policy_fn: PolicyFn,
    params: ArrayTree,
    keys: Key,
    step: Array,
    feature: Array,
    legal: Array,
) -> tuple[Array, Array]:
    """Actions and log-probabilities of `B` episodes at one step.

    Args:
      policy_fn: unbatched, see `jerp.typing.PolicyFn`.
      params: of the policy, shared by all episodes.
      keys: `[B]`, of whole episodes; not consumed, `step` is folded in.
      step: `[]` int32.
      feature: `[B, F]` float32.
      legal: `[B, A]` bool. A row without any (an ended episode) is offered all actions,
        so that no policy meets an empty set; what it answers is ignored.

    Returns:
      Actions `[B]` int32 and log-probabilities `[B]` float32.
    """
    key = jax.vmap(jax.random.fold_in, (0, None))(keys, step)
    offered = legal | ~legal.any(axis=-1, keepdims=True)
    return jax.vmap(policy_fn, (None, 0, 0, 0))(params, key, feature, offered)


_act = jax.jit(act, static_argnames="policy_fn")


def run_episodes(
    session: Session,
    policy_fn: PolicyFn,
    params: ArrayTree,
    keys: Key,
    tasks: Sequence[Task],
    sample_index: ArrayLike,
    *,
    num_steps: int,
    task_id: ArrayLike,
    group_id: ArrayLike,
    seed: ArrayLike,
    version: ArrayLike = 0,
) -> Episodes:
    """Runs one episode a task, all side by side, and returns them complete.

    Everything the episodes rest on is in the executor's store, on disk, before they are
    returned. An interrupt (Ctrl-C) propagates and leaves no episode behind.

    Args:
      session: steps the episodes.
      policy_fn: unbatched; the same function object every time, or it compiles anew.
      params: of the policy.
      keys: `[B]` typed keys, one an episode; consumed.
      tasks: `B` of them.
      sample_index: `[B]` int32, of every request of the episode.
      num_steps: `T`; an episode that has not ended by then is TRUNCATED.
      task_id: `[B]` int32, goes into the trajectory as it is.
      group_id: `[B]` int32, too.
      seed: `[B]` int32, too.
      version: `[]` or `[B]` int32, of the policy.

    Returns:
      The trajectory, `[B, T]` NumPy arrays that pass `check_trajectory`, and the
      workspaces. INFRASTRUCTURE episodes stay in the batch, with that outcome.

    Raises:
      JerpError: see `Session.step`.
    """
    check_request(keys, tasks, num_steps)
    handle, feature, legal = session.open(tasks, sample_index)
    try:
        records: list[StepRecord] = []
        for t in range(num_steps):
            action, log_prob = jax.device_get(
                _act(policy_fn, params, keys, np.int32(t), feature, legal)
            )
            step = session.step(handle, action)
            records.append(StepRecord(feature, legal, action, log_prob, *step[2:]))
            feature, legal = step.feature, step.legal
            if (step.terminated | step.truncated).all():
                break
        session.flush()
        return assemble(
            session,
            handle,
            jax.tree.map(lambda *xs: np.stack(xs, axis=1), *records),
            feature,
            num_steps=num_steps,
            task_id=task_id,
            group_id=group_id,
            seed=seed,
            version=version,
        )
    finally:
        session.close(handle)


def check_request(keys: Key, tasks: Sequence[Task], num_steps: int) -> None:
    """Raises `ConfigError` unless there is one typed key a task and a step to take."""
    if not jnp.issubdtype(keys.dtype, jax.dtypes.prng_key):
        raise ConfigError(
            f"keys: expected typed keys (jax.random.key), got {keys.dtype}"
        )
    if keys.shape != (len(tasks),):
        raise ConfigError(
            f"keys: expected one for each of the {len(tasks)} tasks, got shape "
            f"{list(keys.shape)}"
        )
    if num_steps < 1:
        raise ConfigError(f"num_steps: expected at least 1, got {num_steps}")


def assemble(
    session: Session,
    handle: np.ndarray,
    record: StepRecord,
    final_feature: np.ndarray,
    *,
    num_steps: int,
    task_id: ArrayLike,
    group_id: ArrayLike,
    seed: ArrayLike,
    version: ArrayLike,
) -> Episodes:
    """Episodes from a loop's records, each field `[B, T', ...]` with `T' <= num_steps`.

    Padding is zero, and a row that never ended is truncated at its last step.
    """
    batch = len(handle)
    ended = record.terminated | record.truncated
    mask = ~np.pad(ended, ((0, 0), (1, 0)))[:, :-1]

    def pad(value: np.ndarray) -> Any:
        shape = mask.shape + (1,) * (value.ndim - 2)
        kept = np.where(mask.reshape(shape), value, np.zeros((), value.dtype))
        steps = num_steps - value.shape[1]
        return np.pad(kept, [(0, 0), (0, steps)] + [(0, 0)] * (value.ndim - 2))

    last = mask.sum(axis=1) - 1
    rows = np.arange(batch)
    truncated = record.truncated.copy()
    truncated[rows, last] |= ~ended[rows, last]
    step = StepRecord(*map(pad, record._replace(truncated=truncated)))
    trajectory = Trajectory(
        observation=step.feature,
        final_observation=final_feature,
        action=step.action.astype(np.int32),
        legal=step.legal,
        log_prob=step.log_prob.astype(np.float32),
        reward=step.reward,
        terminated=step.terminated,
        truncated=step.truncated,
        mask=pad(mask),
        anchor=_intern(session, handle, num_steps),
        usage=step.usage,
        task_id=_per_episode(task_id, batch),
        group_id=_per_episode(group_id, batch),
        seed=_per_episode(seed, batch),
        outcome=record.outcome[rows, last],
        score=step.reward.sum(axis=1),
        version=_per_episode(version, batch),
    )
    workspaces = tuple(session.workspace(h) for h in handle)
    return Episodes(check_trajectory(trajectory), workspaces)


def _per_episode(value: ArrayLike, batch: int) -> Any:
    return np.broadcast_to(np.asarray(value, np.int32), (batch,)).copy()


def _intern(session: Session, handle: np.ndarray, num_steps: int) -> Any:
    """`[B, T]` int32: 0, 1, ... in order of first appearance of (task, anchor).

    Numbers belong to this batch alone: a function of its episodes, so that a resumed
    run finds the same ones.
    """
    number: dict[object, int] = {}
    anchor = np.zeros((len(handle), num_steps), np.int32)
    for row, h in enumerate(handle):
        task = session.workspace(h).task.key
        for t, state in enumerate(session.anchors(h)):
            anchor[row, t] = number.setdefault((task, state), len(number))
    return anchor

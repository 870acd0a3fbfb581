"""Iterations of training: groups are played, and learned from.

Iteration i depends on the key, i and the state alone, wherever its episodes are played:
inside one compiled program with the update, or from the host.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jerp.ops.masked import masked_mean
from jerp.runs.policy.groups import Play, PolicyTask, play_batch
from jerp.training.group import make_group_step
from jerp.training.group_settings import GroupHyper
from jerp.training.sharding import keep_layout, replicate, split_batch
from jerp.training.state import TrainState
from jerp.trajectory import Trajectory, valid_episodes
from jerp.typing import Array, Key, Outcome

__all__ = [
    "LEARN",
    "compiled_iterations",
    "episode_metrics",
    "host_iterations",
    "is_sound",
    "stream_of",
    "whole_params",
]

PLAY, CHOOSE, LEARN = range(3)
"""Streams of random keys of a run."""


@partial(jax.jit, static_argnames=("task", "size", "keep"), donate_argnames=("state",))
def compiled_iterations(
    task: PolicyTask,
    key: Key,
    hyper: GroupHyper,
    env_params: Any,
    reference: Any,
    frozen: Mapping[str, Any] | None,
    state: TrainState,
    first: int,
    *,
    size: int,
    keep: bool = False,
) -> tuple[TrainState, Any]:
    """`size` iterations from `first` on; with `keep`, the episodes as well.

    `state` is consumed: what comes after takes its place in memory.

    Returns:
      The state, and metrics by name, `[size]`; with `keep`, a pair of these and the
      episodes `[size, B, T, ...]`.
    """

    def one(state: TrainState, number: Array) -> tuple[TrainState, Any]:
        data, played = play_batch(
            stream_of(key, number), task, hyper, env_params, whole_params(state, frozen)
        )
        state, metrics = _learned(task, hyper, reference, frozen, state, data)
        metrics = replicate(metrics | played)
        return state, (metrics, replicate(data)) if keep else metrics

    return jax.lax.scan(one, state, first + jnp.arange(size))


def host_iterations(
    play: Play,
    task: PolicyTask,
    key: Key,
    hyper: GroupHyper,
    env_params: Any,
    reference: Any,
    frozen: Mapping[str, Any] | None,
    state: TrainState,
    first: int,
    *,
    size: int,
    keep: bool = False,
) -> tuple[TrainState, Any]:
    """As `compiled_iterations`, with episodes that `play` plays from the host.

    Ends with an iteration that is not sound: nothing can be played after it.
    """
    found = []
    for number in range(first, first + size):
        stream = stream_of(key, np.int32(number))
        whole = whole_params(state, frozen)
        data, played = play_batch(stream, task, hyper, env_params, whole, play=play)
        state, metrics = _learn(task, hyper, reference, frozen, state, data)
        metrics |= played
        found.append((metrics, data) if keep else metrics)
        if not is_sound(metrics):
            break
    return state, jax.tree.map(lambda *xs: np.stack(jax.device_get(xs)), *found)


def is_sound(metrics: Mapping[str, Any]) -> bool:
    """Whether an iteration's loss and gradient are numbers."""
    return bool(np.isfinite(metrics["loss"]) and np.isfinite(metrics["grad_norm"]))


def stream_of(key: Key, number: Any) -> Key:
    """The random key of an iteration's episodes."""
    return jax.random.fold_in(jax.random.fold_in(key, PLAY), number)


def whole_params(state: TrainState, frozen: Mapping[str, Any] | None) -> Any:
    """What the policy plays with: what is trained, and what is not."""
    trained: Any = state.params
    return trained if frozen is None else {**frozen, **trained}


def _learned(
    task: PolicyTask,
    hyper: GroupHyper,
    reference: Any,
    frozen: Mapping[str, Any] | None,
    state: TrainState,
    data: Trajectory,
) -> tuple[TrainState, dict[str, Array]]:
    """One update, and what its episodes came to.

    On a mesh, episodes are dealt out, here and where they were played: XLA carries the
    layout back to there.
    """
    data = split_batch(data)
    _, step = make_group_step(task.config, task.policy)
    state, metrics = step(state, hyper, data, reference, frozen)
    return keep_layout(state), metrics | episode_metrics(data)


def episode_metrics(data: Trajectory) -> dict[str, Array]:
    """What episodes came to, `[]` float32 each."""
    return {
        "success": _mean(data, data.outcome == Outcome.SUCCESS),
        "truncated": _mean(data, data.outcome == Outcome.TRUNCATED),
        "score": _mean(data, data.score),
        "steps": _mean(data, jnp.sum(data.mask, axis=1)),
        "lost_episodes": jnp.sum(~valid_episodes(data)).astype(jnp.float32),
    }


def _mean(data: Trajectory, value: Array) -> Array:
    """`[]` float32, over the episodes that were not lost to a failed executor."""
    return masked_mean(value.astype(jnp.float32), valid_episodes(data))


_learn = jax.jit(_learned, static_argnames="task", donate_argnames="state")

"""Which episodes a harness run collects, and their collection into folders.

Each batch of episodes becomes one shard of a trajectory folder, so that a killed run
continues at the first shard that is missing and ends with the same files. A key belongs
to its episode (seed, role, task, rollout), never to a batch.
"""

from __future__ import annotations

import hashlib
import zlib
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jerp.bridge.episodes import run_episodes
from jerp.bridge.session import Session
from jerp.domains.base import ControlledDomain
from jerp.harness.actions import ACTIONS
from jerp.harness.state import FEATURE_VERSION, FEATURES
from jerp.models.controller import log_probs
from jerp.records import Task
from jerp.storage.trajectories import TrajectoryFolder, TrajectoryMeta
from jerp.trajectory import Trajectory
from jerp.typing import Key, PolicyFn

__all__ = [
    "EpisodePlan",
    "HarnessSizes",
    "collect",
    "episode_keys",
    "evaluation_plan",
    "split_tasks",
    "training_plan",
]


@dataclass(frozen=True)
class HarnessSizes:
    """How much of everything.

    Attributes:
      num_tasks: of each domain's 300 tasks.
      held_out: share of tasks, by difficulty, that no controller trains on.
      rollouts: behaviour episodes a training task.
      samples: distinct sample indices; rollout `r` asks with sample index
        `r % samples`, in every arm (common random numbers).
      eval_samples: episodes a held-out task, arm and training seed; None: `samples`.
      epsilon: share of uniform legal actions in the behaviour policy.
      epochs: of training.
      chunk: episodes that run side by side and form one shard.
    """

    num_tasks: int = 300
    held_out: float = 0.2
    rollouts: int = 20
    samples: int = 5
    eval_samples: int | None = None
    epsilon: float = 0.25
    epochs: int = 20
    chunk: int = 180


@dataclass(frozen=True)
class EpisodePlan:
    """Episodes to run, in order: all that distinguishes one from another.

    Attributes:
      tasks: the task of each episode.
      task_id: `[E]` int32, index of the task within its domain.
      rollout: `[E]` int32.
      sample_index: `[E]` int32.
    """

    tasks: tuple[Task, ...]
    task_id: np.ndarray
    rollout: np.ndarray
    sample_index: np.ndarray

    def rows(self, chunk: int) -> list[tuple[str, np.ndarray]]:
        """Names and row numbers of the shards."""
        count = len(self.tasks)
        return [
            (f"{start:06d}", np.arange(start, min(start + chunk, count)))
            for start in range(0, count, chunk)
        ]


def split_tasks(
    tasks: Sequence[Task], *, num_tasks: int, held_out: float
) -> tuple[np.ndarray, np.ndarray]:
    """Training and held-out tasks, stratified by difficulty.

    Within a difficulty the order is that of the SHA-256 of the task's key, so the split
    depends on neither process nor platform, and a smaller `num_tasks` takes a subset.

    Returns:
      Two int32 arrays of indices into `tasks`.
    """
    strata: dict[int, list[int]] = {}
    for index, task in enumerate(tasks):
        strata.setdefault(task.difficulty, []).append(index)
    train, test = [], []
    for members in strata.values():
        members.sort(key=lambda i: hashlib.sha256(tasks[i].key.encode()).digest())
        kept = members[: max(2, round(len(members) * num_tasks / len(tasks)))]
        cut = max(1, round(len(kept) * held_out))
        test += kept[:cut]
        train += kept[cut:]
    return np.sort(np.asarray(train, np.int32)), np.sort(np.asarray(test, np.int32))


def _plan(
    tasks: Sequence[Task], index: np.ndarray, rollouts: int, samples: int
) -> EpisodePlan:
    task_id = np.repeat(index, rollouts).astype(np.int32)
    rollout = np.tile(np.arange(rollouts, dtype=np.int32), len(index))
    return EpisodePlan(
        tasks=tuple(tasks[i] for i in task_id.tolist()),
        task_id=task_id,
        rollout=rollout,
        sample_index=(rollout % samples).astype(np.int32),
    )


def training_plan(
    tasks: Sequence[Task], index: np.ndarray, sizes: HarnessSizes
) -> EpisodePlan:
    """`rollouts` behaviour episodes of each training task."""
    return _plan(tasks, index, sizes.rollouts, sizes.samples)


def evaluation_plan(
    tasks: Sequence[Task], index: np.ndarray, sizes: HarnessSizes
) -> EpisodePlan:
    """One episode of each held-out task and sample index."""
    samples = sizes.eval_samples or sizes.samples
    return _plan(tasks, index, samples, sizes.samples)


def episode_keys(seed: int, role: str, task_id: np.ndarray, rollout: np.ndarray) -> Key:
    """`[E]` keys: each depends on its own episode alone, never on its batch."""
    stream = jax.random.fold_in(jax.random.key(seed), zlib.crc32(role.encode()))

    def one(task, number):
        return jax.random.fold_in(jax.random.fold_in(stream, task), number)

    return jax.vmap(one)(jnp.asarray(task_id), jnp.asarray(rollout))


def collect(
    folder: Path,
    domain: ControlledDomain,
    session: Session,
    policy_fn: PolicyFn,
    params: Sequence[Any],
    plan: EpisodePlan,
    *,
    role: str,
    seed: int,
    chunk: int,
    meta: dict[str, Any],
    on_progress: Callable[[int], None],
) -> TrajectoryFolder:
    """Runs the episodes of `plan` that `folder` does not hold yet, once per parameters.

    Args:
      folder: a trajectory folder, made if absent.
      domain: whose tasks these are.
      session: steps the episodes.
      policy_fn: acts; the same function for all `params`.
      params: one entry a training seed; its position is the trajectories' version.
      plan: which episodes.
      role: names the stream of random keys.
      seed: root of all keys.
      chunk: episodes a shard.
      meta: goes into the folder's `meta.json` as `extra`.
      on_progress: called with the number of episodes just finished or found.
    """
    store = _open_folder(folder, domain, session, plan, meta)
    present = set(store.shards())
    for version, version_params in enumerate(params):
        for shard, rows in plan.rows(chunk):
            name = f"{version}-{shard}"
            if name not in present:
                episodes = run_episodes(
                    session,
                    policy_fn,
                    version_params,
                    episode_keys(
                        seed,
                        f"{role}/{version}",
                        plan.task_id[rows],
                        plan.rollout[rows],
                    ),
                    [plan.tasks[i] for i in rows],
                    plan.sample_index[rows],
                    num_steps=domain.max_steps,
                    task_id=plan.task_id[rows],
                    group_id=plan.task_id[rows],
                    seed=plan.rollout[rows],
                    version=version,
                )
                transcripts = [_transcript(w) for w in episodes.workspaces]
                _add_probabilities(transcripts, episodes.trajectory, version_params)
                store.write_shard(name, episodes.trajectory, transcripts)
            on_progress(len(rows))
    return store


def _open_folder(
    folder: Path,
    domain: ControlledDomain,
    session: Session,
    plan: EpisodePlan,
    meta: dict[str, Any],
) -> TrajectoryFolder:
    keys = dict(zip(plan.task_id.tolist(), (t.key for t in plan.tasks), strict=True))
    return TrajectoryFolder.create(
        folder,
        TrajectoryMeta(
            feature_names=FEATURES,
            feature_version=FEATURE_VERSION,
            action_names=ACTIONS,
            task_keys={str(i): k for i, k in sorted(keys.items())},
            model_fingerprint=session.executor.fingerprint,
            extra={"domain": domain.name, **meta},
        ),
    )


def _transcript(workspace: Any) -> list[dict[str, Any]]:
    """JSON-able text of an episode; the process trace rides along, step by step."""
    steps = [
        {**entry, "process": asdict(step)}
        for entry, step in zip(workspace.transcript, workspace.trace, strict=False)
    ]
    steps += [dict(entry) for entry in workspace.transcript[len(steps) :]]
    if workspace.verdict is not None and steps:
        steps[-1]["verdict"] = {
            "score": workspace.verdict.score,
            "success": workspace.verdict.success,
            "criteria": [asdict(c) for c in workspace.verdict.criteria],
        }
    return steps


def _add_probabilities(
    transcripts: list[list[dict[str, Any]]], trajectory: Trajectory, params: Any
) -> None:
    """Writes a learned controller's probabilities beside each step's text."""
    if not jax.tree.leaves(params):
        return
    observation = jnp.asarray(trajectory.observation)
    legal = jnp.asarray(trajectory.legal)
    probability = np.exp(np.asarray(_log_probs(params, observation, legal)))
    for row, steps in enumerate(transcripts):
        for number, step in enumerate(steps):
            step["probabilities"] = probability[row, number].round(4).tolist()


_log_probs = jax.jit(log_probs)

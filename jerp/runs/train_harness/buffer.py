"""Episodes of several trajectory folders as one buffer to learn from.

The folders must name the same features and actions. Tasks of the same key are the same
task, wherever they were logged.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import jax
import numpy as np

from jerp.errors import ConfigError, InputError
from jerp.storage.documents import difference
from jerp.storage.trajectories import TrajectoryFolder, TrajectoryMeta
from jerp.trajectory import (
    Trajectory,
    check_trajectory,
    concatenate,
    pad_steps,
    valid_episodes,
)

__all__ = ["Buffer", "Source", "read_buffer", "source_of"]

LAYOUT = ("feature_names", "feature_version", "action_names")


@dataclass(frozen=True)
class Source:
    """A folder that a buffer was read from.

    Attributes:
      folder: as it was named.
      fingerprint: SHA-256 of its meta and its episodes, however they are sharded.
      episodes, tasks: how many of each.
      probabilities: the behaviour's are there, as evaluation off-policy needs.
      legal: the legal actions are there.
      without_arrays: shards whose text alone is there; no episode of theirs was read.
      without_text: shards whose arrays alone are there.
    """

    folder: str
    fingerprint: str
    episodes: int
    tasks: int
    probabilities: bool
    legal: bool
    without_arrays: tuple[str, ...] = ()
    without_text: tuple[str, ...] = ()


@dataclass(frozen=True)
class Buffer:
    """Episodes to learn from, and what names them.

    Attributes:
      data: NumPy arrays; without `tokens` and `working_set`, and with `legal`, all
        actions where the log has none. `log_prob` is there if every folder has it.
      meta: layout of features and actions.
      sources: the folders, in order.
    """

    data: Trajectory
    meta: TrajectoryMeta
    sources: tuple[Source, ...]


def read_buffer(folders: Sequence[Path]) -> Buffer:
    """Reads every shard of `folders`.

    Raises:
      ConfigError: folders of different layouts, or of none, and the field is named; or
        two of the same episodes.
      TrajectoryError: an episode breaks its contract; shard, row and step are named.
      InputError: there is no valid step, or an end that learning bootstraps from is
        not finite.
      StorageError: a folder has no episodes, or is corrupt.
    """
    opened = [TrajectoryFolder.open(path) for path in folders]
    meta = opened[0].meta
    for folder in opened:
        _check_layout(folder, opened[0])
    parts = [folder.load() for folder in opened]
    sources = [source_of(*pair) for pair in zip(opened, parts, strict=True)]
    _check_different(sources)
    data = _joined(opened, parts, len(meta.action_names))
    valid = np.asarray(valid_episodes(data))
    if not np.asarray(data.mask)[valid].any():
        raise InputError(
            f"{', '.join(map(str, folders))}: expected steps to learn from, got "
            f"{len(valid)} episodes without a valid one; `jerp trajectories show` says "
            "how they ended"
        )
    _check_ends(data, valid, meta.feature_names)
    return Buffer(data, meta, tuple(sources))


def source_of(folder: TrajectoryFolder, data: Trajectory) -> Source:
    """What is known of a folder; `data` is what it loads."""
    digest = hashlib.sha256(json.dumps(asdict(folder.meta), sort_keys=True).encode())
    for leaf in jax.tree.leaves(data):
        digest.update(np.ascontiguousarray(leaf).tobytes())
    return Source(
        folder=str(folder.folder),
        fingerprint=digest.hexdigest(),
        episodes=len(data.mask),
        tasks=len(np.unique(data.task_id)),
        probabilities=data.log_prob is not None,
        legal=data.legal is not None,
        without_arrays=folder.incomplete(),
        without_text=folder.without_text(),
    )


def _check_layout(folder: TrajectoryFolder, first: TrajectoryFolder) -> None:
    for name in ("feature_names", "action_names"):
        if not getattr(folder.meta, name):
            raise ConfigError(
                f"{folder.folder}: {name}: expected names in meta.json, got none; a "
                "controller learns from features and actions that have names"
            )
    kept, given = (
        {name: getattr(one.meta, name) for name in LAYOUT} for one in (first, folder)
    )
    found = difference(*(json.loads(json.dumps(one)) for one in (kept, given)))
    if found:
        raise ConfigError(
            f"{folder.folder} is of another layout than {first.folder}: {found}; "
            "train on folders of one layout"
        )


def _check_different(sources: Sequence[Source]) -> None:
    """Raises `ConfigError` if the episodes of a folder would count twice."""
    known: dict[str, Source] = {}
    for source in sources:
        other = known.setdefault(source.fingerprint, source)
        if other is not source:
            raise ConfigError(
                f"{other.folder} and {source.folder}: expected different episodes, got "
                f"the same {source.episodes} episodes twice; name one of the two"
            )


def _joined(
    folders: Sequence[TrajectoryFolder], parts: Sequence[Trajectory], num_actions: int
) -> Trajectory:
    """All episodes, `T` the longest, with task ids that name the same task in all."""
    longest = max(part.mask.shape[1] for part in parts)
    is_logged = all(part.log_prob is not None for part in parts)
    ids: dict[str, int] = {}
    joined = []
    for folder, part in zip(folders, parts, strict=True):
        keys = [_task_key(folder, i) for i in np.asarray(part.task_id).tolist()]
        task_id: Any = np.array([ids.setdefault(k, len(ids)) for k in keys], np.int32)
        legal: Any = part.legal
        if legal is None:
            legal = np.ones((*part.mask.shape, num_actions), bool)
        fields: dict[str, Any] = {
            "tokens": None,
            "token_log_prob": None,
            "token_mask": None,
            "working_set": None,
            "log_prob": part.log_prob if is_logged else None,
            "legal": legal,
            "task_id": task_id,
        }
        # Again, because actions of a log without legal ones were not looked at.
        part = check_trajectory(part.replace(**fields))
        joined.append(pad_steps(part, longest))
    return concatenate(joined)


def _task_key(folder: TrajectoryFolder, task_id: int) -> str:
    """Its key; a task without one is known within its own folder alone."""
    return folder.meta.task_keys.get(str(task_id), f"{folder.folder}#{task_id}")


def _check_ends(data: Trajectory, valid: np.ndarray, names: Sequence[str]) -> None:
    """Raises `InputError` if a truncated episode ends in features that are no number.

    Nobody looks at where the others ended.
    """
    final = np.asarray(data.final_observation)
    cut = valid & np.asarray(data.truncated).any(axis=1)
    wrong = np.argwhere(~np.isfinite(final) & cut[:, None])
    if len(wrong):
        row, column = wrong[0].tolist()
        raise InputError(
            "trajectory.final_observation: expected finite where an episode was "
            f"truncated, got {final[row, column]} for {names[column]!r} in row {row}"
        )

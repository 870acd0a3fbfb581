"""What a log of episodes begins with: its settings, and what its folder has of it.

A folder keeps one seed, so that logs which are filled side by side explore differently
and each can be repeated.
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from jerp.errors import ConfigError, StorageError
from jerp.models.acting_checks import layout_names
from jerp.storage.atomic import make_folder
from jerp.storage.documents import plain
from jerp.storage.trajectories import TrajectoryFolder, TrajectoryMeta

__all__ = [
    "check_seed",
    "check_version",
    "checked_meta",
    "continued",
    "log_folder",
    "next_number",
    "shard_name",
]

_SEED = "log_seed"


def checked_meta(
    features: Sequence[str],
    actions: Sequence[str],
    feature_version: int,
    extra: Mapping[str, Any] | None,
) -> TrajectoryMeta:
    """The meta of a log with these settings; raises `ConfigError` for the first wrong.

    `extra` leaves the place of the log's seed free.
    """
    for name, given in (("features", features), ("actions", actions)):
        if not isinstance(given, Iterable):
            raise ConfigError(f"{name}: expected different texts, got {given!r}")
    check_version("feature_version", feature_version)
    if extra is not None and not isinstance(extra, Mapping):
        raise ConfigError(f"extra: expected a dict, or None, got {extra!r}")
    try:
        extra = plain(extra or {})
    except StorageError as error:
        raise ConfigError(f"extra: {error}") from error
    if _SEED in extra:
        raise ConfigError(
            f"extra: expected keys of your own, got {_SEED!r}, under which the log "
            "keeps its seed; use `seed` to set it"
        )
    return TrajectoryMeta(
        feature_names=layout_names("features", features),
        feature_version=int(feature_version),
        action_names=layout_names("actions", actions),
        extra=extra,
    )


def check_seed(seed: int | None) -> None:
    """Raises `ConfigError` unless it is one."""
    if seed is not None and not _is_whole(seed):
        raise ConfigError(f"seed: expected a whole number, or None, got {seed!r}")


def check_version(name: str, version: int) -> None:
    """Raises `ConfigError` unless it is one, as int32 keeps it."""
    if not (_is_whole(version) and 0 <= version < 2**31):
        raise ConfigError(
            f"{name}: expected a whole number in [0, 2**31), got {version!r}"
        )


def log_folder(folder: Path | str) -> Path:
    """The folder, made if need be, which is empty or a trajectory folder.

    Hidden files do not count: they are what a log that was killed at once leaves.

    Raises:
      ConfigError: no path, or a folder that holds something else.
      StorageError: a file is in the way, or the disk refuses.
    """
    if not isinstance(folder, str | os.PathLike) or not os.fspath(folder):
        raise ConfigError(f"folder: expected a path, got {folder!r}")
    path = Path(folder)
    make_folder(path)
    try:
        held = {name for name in os.listdir(path) if not name.startswith(".")}
    except OSError as error:
        raise StorageError(
            f"{path}: cannot be read ({error.strerror}); name another folder"
        ) from error
    if held and "meta.json" not in held:
        raise ConfigError(
            f"folder: expected a new folder, or a log's, got {path}, which holds "
            f"{min(held)!r} and no meta.json; name another one"
        )
    return path


def continued(
    path: Path, meta: TrajectoryMeta, seed: int | None
) -> tuple[TrajectoryMeta, int]:
    """`meta` with what an earlier log of the folder left there, and the seed.

    The folder of a jerp that kept no seed goes on without: it is this session's alone.
    """
    keeps_seed, old = True, None
    if (path / "meta.json").exists():
        kept = TrajectoryFolder.open(path).meta
        meta = replace(meta, task_keys=kept.task_keys)
        keeps_seed, old = _SEED in kept.extra, kept.extra.get(_SEED)
    seed = old if seed is None else int(seed)
    # Readers of JSON in other languages keep 53 bits of a number.
    seed = secrets.randbits(53) if seed is None else seed
    if keeps_seed:
        meta = replace(meta, extra={**meta.extra, _SEED: seed})
    return meta, seed


def next_number(shards: Sequence[str]) -> int:
    """One more than the last of the shards that are there."""
    foreign = [name for name in shards if not name.isdigit()]
    if foreign:
        raise StorageError(
            f"shard {foreign[0]!r}: expected a log's own, which are numbered; this "
            "folder was written by something else, log to another one"
        )
    return int(shards[-1]) + 1 if shards else 0


def shard_name(number: int) -> str:
    """The name of a log's shard; names sort as the numbers do."""
    return f"{number:08d}"


def _is_whole(value: Any) -> bool:
    return isinstance(value, int | np.integer) and not isinstance(value, bool)

"""What a log of episodes takes over from its folder: tasks, seed, number of shards.

A folder keeps one seed, so that logs which are filled side by side explore differently
and each can be repeated.
"""

from __future__ import annotations

import secrets
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from jerp.errors import ConfigError, StorageError
from jerp.storage.trajectories import TrajectoryFolder, TrajectoryMeta

__all__ = ["check_seed", "continued", "next_number", "shard_name"]

_SEED = "log_seed"


def check_seed(seed: int | None, extra: Mapping[str, Any]) -> None:
    """Raises `ConfigError` unless it is one, and `extra` leaves its place free."""
    is_whole = isinstance(seed, int | np.integer) and not isinstance(seed, bool)
    if seed is not None and not is_whole:
        raise ConfigError(f"seed: expected a whole number, or None, got {seed!r}")
    if _SEED in extra:
        raise ConfigError(
            f"extra: expected keys of your own, got {_SEED!r}, under which the log "
            "keeps its seed; use `seed` to set it"
        )


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

"""The response store: what an executor or sandbox answered, kept by what was asked.

An experiment re-runs from its store with no model and no network. Entries are generic
(kind, key, record) and live in the files of `jerp.bridge.shards`; the newest record of
a key counts. `StoredExecutor` puts a store between a session and a model.
"""

from __future__ import annotations

import os
import threading
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, get_args

from jerp.bridge.diversity import Diversity, sample_diversity
from jerp.bridge.shards import (
    Entry,
    ShardWriter,
    entry_line,
    read_shard,
    shard_paths,
    write_packed,
)
from jerp.bridge.stored import COMPLETION, StoredExecutor
from jerp.errors import ConfigError, StorageError, UnknownNameError

__all__ = [
    "Mode",
    "ResponseStore",
    "StoreStats",
    "StoredExecutor",
    "compact",
]

Mode = Literal["record", "replay", "replay_then_live", "off"]
BATCH = 256
"""Entries gathered before the store writes of its own accord."""
MEASURED = frozenset({"seconds", "log_probs"})
"""Fields in which two answers to one request may differ: clocks, rounding."""


@dataclass(frozen=True)
class StoreStats:
    """What was asked of a store since it was opened, by kind of entry."""

    hits: dict[str, int]
    misses: dict[str, int]
    distinct: dict[str, int]
    diversity: Diversity


class ResponseStore:
    """Records by (kind, key): read from files, kept in memory, appended to a folder.

    Each process appends to a shard of its own; `flush` (or `close`, or enough entries)
    puts on disk what `put` gathered. Safe to use from several threads.

    Args:
      folder: of the growing store; None keeps new records in memory alone.
      mode: `replay_then_live` answers from the files and records what is missing;
        `replay` records nothing; `record` answers from this process's own records
        alone, so that everything is asked anew; `off` neither answers nor records.
      read_only: further files or folders to answer from; a record in `folder` wins.

    Attributes:
      problems: what was cut, ignored or contradictory, in words, for the report.
      conflicts: the contradictory keys among these.
      fingerprints: of the executors whose answers these are.

    Raises:
      StorageError: a file is missing, corrupt or of another version.
    """

    def __init__(
        self,
        folder: Path | str | None,
        *,
        mode: Mode = "replay_then_live",
        read_only: Sequence[Path | str] = (),
    ):
        if mode not in get_args(Mode):
            raise UnknownNameError("store mode", mode, get_args(Mode))
        if mode == "record" and folder is None:
            raise ConfigError('mode: "record" needs a folder to record to, got None')
        self.mode: Mode = mode
        self.folder = None if folder is None else Path(folder)
        self.problems: list[str] = []
        self.conflicts: list[str] = []
        self.fingerprints: tuple[str, ...] = ()
        self._fingerprint: str | None = None
        self._records: dict[str, dict[str, dict[str, Any]]] = {}
        self._own: set[tuple[str, str]] = set()
        self._pending: list[bytes] = []
        self._writer: ShardWriter | None = None
        self._writer_pid = 0
        self._hits: Counter[str] = Counter()
        self._misses: Counter[str] = Counter()
        self._touched: dict[str, set[str]] = {}
        self._lock = threading.RLock()
        if mode != "off":
            self._load([Path(p) for p in read_only])

    def get(self, kind: str, key: str) -> dict[str, Any] | None:
        """The record of `key`, or None. Counts a hit or a miss."""
        if self.mode == "off":
            return None
        with self._lock:
            self._touched.setdefault(kind, set()).add(key)
            record = self._records.get(kind, {}).get(key)
            if self.mode == "record" and (kind, key) not in self._own:
                record = None
            (self._misses if record is None else self._hits)[kind] += 1
            return record

    def stored(self, kind: str) -> int:
        """How many records of a kind there are."""
        with self._lock:
            return len(self._records.get(kind, {}))

    def put(self, kind: str, key: str, record: Mapping[str, Any]) -> None:
        """Keeps a JSON-able record under `key`.

        Raises:
          StorageError: it was time to write, and that failed; see `flush`.
        """
        if self.mode == "off":
            return
        entry = Entry(kind, key, dict(record))
        with self._lock:
            self._own.add((kind, key))
            if not self._merge(entry) or self.mode == "replay" or self.folder is None:
                return
            self._pending.append(entry_line(entry))
            if len(self._pending) >= BATCH:
                self.flush()

    def flush(self) -> None:
        """Returns once everything put so far is on disk.

        Raises:
          StorageError: for example a full disk; the records are kept in memory and
            written by the next `flush` that succeeds.
        """
        with self._lock:
            if not self._pending or self.folder is None:
                return
            if self._writer is None or self._writer_pid != os.getpid():
                # A forked child must not append to its parent's shard.
                self._writer = ShardWriter(self.folder, self._fingerprint)
                self._writer_pid = os.getpid()
            self._writer.append(self._pending)
            self._pending = []

    def close(self) -> None:
        """Flushes and releases the shard; a later `put` opens a new one."""
        with self._lock:
            try:
                self.flush()
            finally:
                if self._writer is not None and self._writer_pid == os.getpid():
                    self._writer.close()
                self._writer = None

    def attach(self, fingerprint: str) -> None:
        """Names the executor whose answers follow; it goes into the shard's header."""
        with self._lock:
            if fingerprint == self._fingerprint:
                return
            self.close()
            self._fingerprint = fingerprint
            if self.fingerprints and fingerprint not in self.fingerprints:
                self.problems.append(
                    f"the store holds answers of {', '.join(self.fingerprints)}, the "
                    f"executor is {fingerprint}: none of them can be reused"
                )
            if fingerprint not in self.fingerprints:
                self.fingerprints += (fingerprint,)

    def entries(self) -> list[Entry]:
        """All entries, sorted by kind and key."""
        with self._lock:
            return [
                Entry(kind, key, record)
                for kind, records in sorted(self._records.items())
                for key, record in sorted(records.items())
            ]

    @property
    def stats(self) -> StoreStats:
        """Hits, misses, distinct keys asked for, and diversity of samples."""
        with self._lock:
            completions = self._records.get(COMPLETION, {})
            touched = self._touched.get(COMPLETION, set())
            return StoreStats(
                hits=dict(self._hits),
                misses=dict(self._misses),
                distinct={kind: len(keys) for kind, keys in self._touched.items()},
                diversity=sample_diversity(
                    [completions[key] for key in touched if key in completions]
                ),
            )

    def __enter__(self) -> ResponseStore:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def _load(self, read_only: list[Path]) -> None:
        own = self.folder if self.folder is not None and self.folder.is_dir() else None
        if self.mode == "replay" and self.folder is not None and own is None:
            raise StorageError(f"{self.folder}: no response store to replay here")
        for source in [*read_only, *([own] if own else [])]:
            if not source.exists():
                raise StorageError(f"{source}: this response store does not exist")
            repair = source is own and self.mode != "replay"
            for path in shard_paths(source) if source.is_dir() else [source]:
                shard = read_shard(path, repair=repair)
                if shard.problem:
                    self.problems.append(shard.problem)
                if shard.fingerprint and shard.fingerprint not in self.fingerprints:
                    self.fingerprints += (shard.fingerprint,)
                for entry in shard.entries:
                    self._merge(entry)

    def _merge(self, entry: Entry) -> bool:
        """Takes in an entry; False if an equal one was there."""
        records = self._records.setdefault(entry.kind, {})
        known = records.get(entry.key)
        if known is not None:
            if _settled(known) == _settled(entry.record):
                return False
            self.conflicts.append(entry.key)
            self.problems.append(
                f"two different answers to {entry.kind} {entry.key}; the newer counts"
            )
        records[entry.key] = entry.record
        return True


def compact(sources: Sequence[Path | str], target: Path | str) -> int:
    """Packs stores into one read-only `.jsonl.xz`, entries sorted by kind and key.

    Equal entries give equal bytes.

    Returns:
      The number of entries.

    Raises:
      StorageError: the sources are of several executors, or contradict each other.
    """
    store = ResponseStore(None, mode="replay", read_only=sources)
    if len(store.fingerprints) > 1:
        raise StorageError(
            f"{target}: expected answers of one executor, got "
            f"{', '.join(store.fingerprints)}: pack them one by one"
        )
    if store.conflicts:
        raise StorageError(
            f"{target}: {len(store.conflicts)} requests have two different answers, "
            f"such as {store.conflicts[0]}: record them anew in a fresh folder"
        )
    entries = store.entries()
    write_packed(Path(target), next(iter(store.fingerprints), None), entries)
    return len(entries)


def _settled(value: Any) -> Any:
    """A record without what is measured."""
    if isinstance(value, dict):
        return {k: _settled(v) for k, v in value.items() if k not in MEASURED}
    return value

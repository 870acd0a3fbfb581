"""Trajectories on disk, format version 1: shards of arrays beside shards of text.

A folder holds `meta.json`, and a shard is two files: `trajectories-NAME.safetensors`
(the arrays of a `Trajectory`) and `transcripts-NAME.jsonl` (the text). The text is
written first and the arrays last, each atomically: a shard whose arrays are there is
complete, and what a killed writer leaves is removed by the next one. A folder has one
writer at a time and any number of readers. `docs/trajectories.md` has every field.
"""

from __future__ import annotations

import dataclasses
import hashlib
import logging
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from jerp.errors import ConfigError, StorageError, TrajectoryError
from jerp.storage.atomic import make_folder, read_bytes, temporaries, write_bytes
from jerp.storage.documents import difference, read_json, write_json
from jerp.storage.tensors import load_tree, save_tree
from jerp.storage.trajectory_meta import SCHEMA_VERSION, TrajectoryMeta, read_meta
from jerp.storage.transcripts import decode_transcripts, encode_transcripts
from jerp.trajectory import Trajectory, check_trajectory, concatenate, pad_steps

__all__ = ["SCHEMA_VERSION", "ShardReport", "TrajectoryFolder", "TrajectoryMeta"]

FIELDS = tuple(f.name for f in dataclasses.fields(Trajectory))
NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]*")

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class ShardReport:
    """What `TrajectoryFolder.check` found of one shard; `problem` is empty if whole."""

    name: str
    episodes: int
    steps: int
    problem: str


@dataclass(frozen=True)
class TrajectoryFolder:
    """A folder of trajectory shards; `create` and `open` make one."""

    folder: Path
    meta: TrajectoryMeta

    @classmethod
    def create(cls, folder: Path | str, meta: TrajectoryMeta) -> TrajectoryFolder:
        """A folder to write to: a new one, or one with the same meta to continue.

        Half-written leftovers of a killed writer are removed and logged.

        Raises:
          ConfigError: the folder has another meta; the differing field is named.
          StorageError: the folder cannot be written, or its meta is corrupt.
        """
        path = Path(folder) / "meta.json"
        make_folder(path.parent)
        document = meta.document()
        if not path.exists():
            write_json(path, document)
        found = difference(read_meta(path), document)
        if found:
            raise ConfigError(
                f"{folder} holds trajectories of another kind: {found}. Use another "
                "folder, or the settings that made this one"
            )
        trajectories = cls.open(folder)
        for name in trajectories.leftovers():
            (path.parent / name).unlink(missing_ok=True)
            logger.warning("removed %s, which a killed run left half-written", name)
        return trajectories

    @classmethod
    def open(cls, folder: Path | str) -> TrajectoryFolder:
        """An existing folder, to read.

        Raises:
          StorageError: it is no trajectory folder, or of another format version.
        """
        path = Path(folder) / "meta.json"
        if not path.exists():
            # A run has them two folders down; whoever names it means one of these.
            below = sorted(path.parent.glob("*/meta.json"))
            below = below or sorted(path.parent.glob("*/*/meta.json"))
            example = below[0].parent if below else "RUN/DOMAIN/buffer"
            raise StorageError(
                f"{folder}: not a trajectory folder (it has no meta.json); name one, "
                f"such as {example}"
            )
        return cls(path.parent, TrajectoryMeta.parse(path, read_meta(path)))

    def shards(self) -> tuple[str, ...]:
        """Names of the complete shards, sorted."""
        return _names(self.folder, "trajectories-", ".safetensors")

    def holds(self, name: str) -> bool:
        """Whether the shard of that name is there and complete."""
        return self._arrays(name).exists()

    def incomplete(self) -> tuple[str, ...]:
        """Names of the shards whose text is there and whose arrays are not, sorted."""
        texts = _names(self.folder, "transcripts-", ".jsonl")
        return tuple(sorted({*texts} - {*self.shards()}))

    def without_text(self) -> tuple[str, ...]:
        """Names of the complete shards whose text somebody took away, sorted."""
        texts = _names(self.folder, "transcripts-", ".jsonl")
        return tuple(sorted({*self.shards()} - {*texts}))

    def leftovers(self) -> tuple[str, ...]:
        """Half-written files: of a live writer, or left by a killed one."""
        orphans = (self._text(name).name for name in self.incomplete())
        return (*(path.name for path in temporaries(self.folder)), *orphans)

    def write_shard(
        self,
        name: str,
        trajectory: Trajectory,
        transcripts: Sequence[Sequence[Mapping[str, Any]]] | None = None,
    ) -> None:
        """Adds one shard: on the disk when this returns, absent if it raises.

        Args:
          name: letters, digits, `_`, `.` and `-`; shards load in the order of names.
          trajectory: `B` episodes.
          transcripts: for each episode one JSON-able dict a step, without the keys
            `episode` and `step`; None where there is no text.

        Raises:
          TrajectoryError: the episodes break their contract or this folder's meta.
          StorageError: the name is odd or taken, or the disk refuses.
        """
        if not NAME.fullmatch(name):
            raise StorageError(
                f"shard name: expected letters, digits, '_', '.' and '-', got {name!r}"
            )
        if self.holds(name):
            raise StorageError(
                f"{self._arrays(name)}: this shard is complete, and complete shards "
                "are not overwritten; choose another name, or remove its two files"
            )
        self._checked(trajectory)
        episodes, steps = np.shape(trajectory.mask)
        transcripts = [[]] * episodes if transcripts is None else transcripts
        if len(transcripts) != episodes:
            raise TrajectoryError(
                "transcripts", f"B={episodes} episodes", f"{len(transcripts)}"
            )
        text = encode_transcripts(transcripts, num_steps=steps)
        document = {
            "format": "jerp trajectories",
            "schema_version": SCHEMA_VERSION,
            "transcripts_sha256": hashlib.sha256(text).hexdigest(),
        }
        write_bytes(self._text(name), text)
        tree = {field: getattr(trajectory, field) for field in FIELDS}
        save_tree(self._arrays(name), tree, document)

    def load(self, names: Sequence[str] | None = None) -> Trajectory:
        """The episodes of the shards `names`, or of all, padded to the longest `T`.

        Raises:
          StorageError: there is none, or one is corrupt; the file is named.
          TrajectoryError: an episode breaks its contract.
        """
        parts = [self._load_shard(name)[0] for name in self._chosen(names)]
        longest = max(part.mask.shape[1] for part in parts)
        return concatenate([pad_steps(part, longest) for part in parts])

    def transcripts(
        self, names: Sequence[str] | None = None
    ) -> list[list[dict[str, Any]]]:
        """The step dicts of each episode, in the order of `load`.

        Raises:
          StorageError: there is no shard, or one is corrupt; the file is named.
        """
        chosen = self._chosen(names)
        return [steps for name in chosen for steps in self._load_text(name)]

    def annotate(self, columns: Mapping[str, Sequence[Any]]) -> None:
        """Keeps what is known of the episodes only later, such as training weights.

        Args:
          columns: one JSON-able value an episode, in the order of `load`; replaces all
            that was annotated before.
        """
        write_json(self.folder / "annotations.json", columns)

    def annotations(self) -> dict[str, list[Any]]:
        """The columns that `annotate` kept last; empty without any."""
        path = self.folder / "annotations.json"
        return read_json(path) if path.exists() else {}

    def check(self) -> tuple[ShardReport, ...]:
        """Reads every shard whole, arrays and text, and says what is wrong with it.

        A shard of which only one file is there is reported too.
        """
        names = sorted({*self.shards(), *self.incomplete()})
        return tuple(self._check_shard(name) for name in names)

    def _check_shard(self, name: str) -> ShardReport:
        for path in (self._arrays(name), self._text(name)):
            if not path.exists():
                problem = f"lacks {path.name}; a run that writes here may still add it"
                return ShardReport(name, 0, 0, f"{problem}. {self._advice(name)}")
        try:
            mask = self._load_shard(name)[0].mask
            self._load_text(name)
        except (StorageError, TrajectoryError) as error:
            return ShardReport(name, 0, 0, str(error))
        return ShardReport(name, len(mask), int(np.sum(mask)), "")

    def _load_shard(self, name: str) -> tuple[Trajectory, dict[str, Any]]:
        path = self._arrays(name)
        try:
            tree, document = load_tree(path)
        except StorageError as error:
            raise StorageError(f"{error}. {self._advice(name)}") from error
        if document.get("schema_version") != SCHEMA_VERSION:
            raise StorageError(
                f"{path}: expected format version {SCHEMA_VERSION}, got "
                f"{document.get('schema_version')}; read it with the jerp that wrote it"
            )
        found = {*tree} if isinstance(tree, dict) else set()
        for field in sorted(found ^ {*FIELDS}):
            fault = "unknown" if field in found else "missing"
            raise StorageError(
                f"{path}: {fault} field {field}: not a shard that jerp wrote. "
                f"{self._advice(name)}"
            )
        try:
            trajectory = self._checked(Trajectory(**tree))
        except TrajectoryError as error:
            raise TrajectoryError(
                error.field, error.expected, f"{error.actual}, in {path}"
            ) from error
        return trajectory, document

    def _checked(self, trajectory: Trajectory) -> Trajectory:
        names = self.meta.feature_names
        trajectory = check_trajectory(trajectory, feature_names=names)
        self.meta.check(trajectory)
        return trajectory

    def _load_text(self, name: str) -> list[list[dict[str, Any]]]:
        trajectory, document = self._load_shard(name)
        path = self._text(name)
        try:
            data = read_bytes(path)
            if hashlib.sha256(data).hexdigest() != document["transcripts_sha256"]:
                raise StorageError(f"{path}: truncated or altered (checksum differs)")
        except StorageError as error:
            raise StorageError(f"{error}. {self._advice(name)}") from error
        return decode_transcripts(path, data, num_episodes=len(trajectory.mask))

    def _chosen(self, names: Sequence[str] | None) -> Sequence[str]:
        chosen = self.shards() if names is None else names
        if not chosen:
            raise StorageError(
                f"{self.folder}: no episodes have been written here yet; run the "
                "command that collects them"
            )
        return chosen

    def _arrays(self, name: str) -> Path:
        return self.folder / f"trajectories-{name}.safetensors"

    def _text(self, name: str) -> Path:
        return self.folder / f"transcripts-{name}.jsonl"

    def _advice(self, name: str) -> str:
        return (
            "Other shards of the folder are untouched: move what there is of shard "
            f"{name} away and run the command that collected it again"
        )


def _names(folder: Path, prefix: str, suffix: str) -> tuple[str, ...]:
    names = (path.name for path in folder.glob(f"{prefix}*{suffix}"))
    return tuple(sorted(name[len(prefix) : -len(suffix)] for name in names))

"""What all shards of a trajectory folder have in common: its `meta.json`."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import jax
import numpy as np

from jerp.errors import StorageError, TrajectoryError
from jerp.storage.documents import plain, read_json
from jerp.trajectory import Trajectory

__all__ = ["SCHEMA_VERSION", "TrajectoryMeta", "read_meta"]

SCHEMA_VERSION = 1


@dataclass(frozen=True)
class TrajectoryMeta:
    """Names that give the arrays of a folder their meaning.

    Attributes:
      feature_names: of the observation's last axis; empty where it has no fixed layout.
      feature_version: of that layout.
      action_names: of the last axis of `legal`.
      task_keys: from `str(task_id)` to the task's stable key.
      model_fingerprint: of the executor that acted.
      store_hash: of the response store that the episodes came from.
      extra: JSON-able; `jerp view` shows `domain` and `arm`.
    """

    feature_names: tuple[str, ...] = ()
    feature_version: int = 0
    action_names: tuple[str, ...] = ()
    task_keys: Mapping[str, str] = field(default_factory=dict)
    model_fingerprint: str = ""
    store_hash: str = ""
    extra: Mapping[str, Any] = field(default_factory=dict)

    def document(self) -> dict[str, Any]:
        """What `meta.json` holds."""
        return plain({"schema_version": SCHEMA_VERSION, **asdict(self)})

    @classmethod
    def parse(cls, path: Path, document: Mapping[str, Any]) -> TrajectoryMeta:
        """The meta that `document` describes; `path` is named in errors.

        Raises:
          StorageError: another format version, or other fields.
        """
        version = document.get("schema_version")
        if version != SCHEMA_VERSION:
            raise StorageError(
                f"{path}: expected format version {SCHEMA_VERSION}, got {version}; "
                "read it with the jerp that wrote it"
            )
        fields = {k: v for k, v in document.items() if k != "schema_version"}
        expected = sorted(f.name for f in dataclasses.fields(cls))
        if sorted(fields) != expected:
            raise StorageError(
                f"{path}: expected the fields {expected}, got {sorted(fields)}"
            )
        for name in ("feature_names", "action_names"):
            fields[name] = tuple(fields[name])
        return cls(**fields)

    def check(self, trajectory: Trajectory) -> None:
        """The tasks, actions and features of `trajectory` are the ones named here.

        Raises:
          TrajectoryError: names the field that does not fit.
        """
        unknown = {str(i) for i in np.unique(trajectory.task_id)} - {*self.task_keys}
        if self.task_keys and unknown:
            raise TrajectoryError(
                "task_id", "ids that meta.task_keys has", f"{sorted(unknown)}"
            )
        for name, names in (
            ("legal", self.action_names),
            ("observation", self.feature_names),
        ):
            for leaf in jax.tree.leaves(getattr(trajectory, name)):
                if names and leaf.shape[-1] != len(names):
                    raise TrajectoryError(
                        name, f"a last axis of {len(names)}", f"{leaf.shape[-1]}"
                    )


def read_meta(path: Path) -> dict[str, Any]:
    """The document of a `meta.json`.

    Raises:
      StorageError: it cannot be read, or is corrupt; it says where to get another one.
    """
    try:
        return read_json(path)
    except StorageError as error:
        raise StorageError(
            f"{error}. The shards beside it are untouched: copy the meta.json of the "
            "same domain from another folder of the run and set its extra.arm, or move "
            "this folder away and run the command that collected it again"
        ) from error

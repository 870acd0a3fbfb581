"""What became of each setting of a sweep: a small file beside its run folder.

    <out>/harness_control/0/       the run folder
    <out>/harness_control/0.json   config, status, tries, seconds, error, log

The process that runs a setting writes it when a try begins and when it ends; a record
that still says "running" when that process is gone tells of one that was killed. A
setting is done with if its record says "finished" for the config at hand and its
`results.json` can be read: then it is never run again.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Literal

from experiments.settings import Setting
from jerp.errors import StorageError
from jerp.storage.atomic import make_folder
from jerp.storage.documents import plain, read_json, write_json

__all__ = [
    "Record",
    "is_finished",
    "read_record",
    "results_of",
    "write_record",
    "written_config",
]


@dataclass(frozen=True)
class Record:
    """What became of a setting.

    Attributes:
      status: "waiting" if it was never begun, or only with another config.
      tries: how often it was begun, over all sessions.
      seconds: that the last try took, if it came to an end of its own.
      error: the last line of what went wrong.
      log: where the last try's output is.
    """

    status: Literal["waiting", "running", "finished", "failed"] = "waiting"
    tries: int = 0
    seconds: float | None = None
    error: str | None = None
    log: str | None = None


def read_record(setting: Setting) -> Record:
    """The record of a setting that is placed, see `Setting.placed`."""
    path = _path(setting)
    if not path.exists():
        return Record()
    document = read_json(path)
    if document.pop("config") != written_config(setting):
        return Record()
    return Record(**document)


def is_finished(setting: Setting) -> bool:
    """Whether a setting came to its end and its results can be read."""
    status = read_record(setting).status
    return status == "finished" and results_of(setting) is not None


def write_record(setting: Setting, record: Record) -> Record:
    """Writes the record, complete or not at all, and returns it."""
    make_folder(_path(setting).parent)
    document = {"config": written_config(setting), **asdict(record)}
    write_json(_path(setting), document)
    return record


def results_of(setting: Setting) -> dict[str, Any] | None:
    """The `results.json` of a setting; None if there is none that can be read."""
    try:
        return read_json(setting.config.out / "results.json")
    except StorageError:
        return None


def written_config(setting: Setting) -> dict[str, Any]:
    """A setting's config as files have it, without its folder, which may be moved."""
    config = plain(asdict(replace(setting.config, out=None)))
    del config["out"]
    return config


def _path(setting: Setting) -> Path:
    folder: Path = setting.config.out
    return folder.with_name(f"{folder.name}.json")

"""One document of a whole sweep, `<out>/sweep.json`, and its table.

It is there from the beginning and written anew at every change, complete or not at all:
which sweep the folder is of, what became of each setting, its results, and which jobs
are still in a launcher's hands.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from experiments.settings import Setting
from experiments.sweep.keeper import Submitted
from experiments.sweep.records import read_record, results_of, written_config
from jerp.errors import ConfigError, StorageError
from jerp.storage.documents import difference, read_json, write_json

__all__ = ["earlier_jobs", "print_sweep", "write_sweep"]

VERSION = 1
COLOURS = {"finished": "green", "failed": "red"}


def write_sweep(
    out: Path,
    identity: dict[str, Any],
    settings: Sequence[Setting],
    running: Sequence[Submitted] = (),
    *,
    launcher: str,
) -> dict[str, Any]:
    """Merges what is known of all settings into `<out>/sweep.json`, and returns it."""
    document = {
        "sweep_version": VERSION,
        **identity,
        "settings": {setting.id: _merged(setting) for setting in settings},
        "jobs": [
            {
                "launcher": launcher,
                "folder": str(submitted.job.paths.folder),
                "job_id": submitted.job.job_id,
                "settings": [setting.id for setting in submitted.shard.settings],
                "tries": submitted.tries,
            }
            for submitted in running
        ],
    }
    write_json(out / "sweep.json", document)
    return document


def _merged(setting: Setting) -> dict[str, Any]:
    record = read_record(setting)
    return {
        "config": written_config(setting),
        "command": setting.config.command,
        **asdict(record),
        "results": results_of(setting) if record.status == "finished" else None,
    }


def earlier_jobs(out: Path, identity: dict[str, Any]) -> list[dict[str, Any]]:
    """Jobs that an earlier session of the same sweep in this folder left.

    Raises:
      ConfigError: the folder belongs to another sweep or holds other files.
      StorageError: its `sweep.json` is of another version or cannot be read.
    """
    path = out / "sweep.json"
    if not path.exists():
        others = sorted(p.name for p in out.iterdir() if not p.name.startswith("."))
        if others:
            raise ConfigError(
                f"{out}: expected a new or empty folder, or one of this sweep, got one "
                f"that holds {others[0]!r}; name another folder"
            )
        return []
    kept = read_json(path)
    if kept.get("sweep_version") != VERSION:
        raise StorageError(
            f"{path}: expected sweep version {VERSION}, got "
            f"{kept.get('sweep_version')}; name another folder"
        )
    found = difference({name: kept[name] for name in identity}, identity)
    if found:
        raise ConfigError(
            f"{out} belongs to another sweep: {found}. Name another folder, or repeat "
            "its command to go on with it"
        )
    return kept["jobs"]


def print_sweep(console: Console, document: dict[str, Any]) -> None:
    """The table of a sweep, and where to look for what failed."""
    table = Table("id", "command", "status", "tries", "time", box=None)
    for name, entry in document["settings"].items():
        status = entry["status"]
        colour = COLOURS.get(status, "yellow")
        table.add_row(
            name,
            entry["command"].partition(" --out ")[0],
            f"[{colour}]{status}[/{colour}]",
            str(entry["tries"]),
            _duration(entry["seconds"]),
        )
    console.print(table)
    for name, entry in document["settings"].items():
        if entry["status"] == "failed":
            for line in (f"{name}: {entry['error']}", f"    log: {entry['log']}"):
                console.print(line, markup=False, soft_wrap=True)


def _duration(seconds: float | None) -> str:
    if seconds is None:
        return ""
    return f"{seconds:.0f} s" if seconds < 120 else f"{seconds / 60:.0f} min"

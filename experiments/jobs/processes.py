"""Processes of an experiment side by side, watched until all are done."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import jax

import jerp
from jerp.errors import TrainingError

__all__ = ["run_together"]

WORKER = (sys.executable, "-m", "experiments.jobs.worker")

LITTLE_ROOM = 16 * 2**20
"""Bytes of a disk that is as good as full."""


def run_together(
    module: str,
    arguments: Sequence[Sequence[str]],
    folder: Path,
    watch: Callable[[], None],
    *,
    environment: Mapping[str, str] | None = None,
) -> None:
    """Runs `python -m module` once for each of `arguments`, at the same time.

    They end with this process, even if it is killed.

    Args:
      module: to run.
      arguments: of each process.
      folder: of the run; what they say is kept there (`process-<i>.log`), and compiled
        programs, for all to share.
      watch: called now and then, and once all are done.
      environment: variables beside those of this process.

    Raises:
      TrainingError: a process failed; what it said last. The others are stopped.
    """
    logs = [folder / f"process-{i}.log" for i in range(len(arguments))]
    variables = {**_variables(folder), **(environment or {})}
    workers = [
        _started([*WORKER, str(os.getpid()), module, *words], log, variables)
        for words, log in zip(arguments, logs, strict=True)
    ]
    try:
        while None in [worker.poll() for worker in workers]:
            watch()
            if any(worker.returncode for worker in workers):
                break
            time.sleep(0.5)
        watch()
        failed = [i for i, worker in enumerate(workers) if worker.returncode]
    finally:
        for worker in workers:
            if worker.poll() is None:
                worker.terminate()
                worker.wait()
    if failed:
        log = logs[failed[0]]
        raise TrainingError(
            f"a process of {module} {_end(workers[failed[0]].returncode)}: "
            f"{_last(log)}; {log} has all that it said; once that is put right, the "
            "same command goes on"
        )


def _variables(folder: Path) -> dict[str, str]:
    """Of the processes: this one's backend and packages, and a cache to share."""
    root = str(Path(jerp.__file__).parents[1])
    path = [root, *filter(None, [os.environ.get("PYTHONPATH")])]
    return {
        **os.environ,
        "JAX_COMPILATION_CACHE_DIR": str(folder / "compiled"),
        "JAX_PLATFORMS": jax.default_backend(),
        "PYTHONPATH": os.pathsep.join(path),
    }


def _started(
    words: Sequence[str], log: Path, variables: Mapping[str, str]
) -> subprocess.Popen[bytes]:
    """A process that writes what it says to a file: a full pipe would stop it."""
    with log.open("wb") as file:
        return subprocess.Popen(words, env=variables, stderr=file)


def _end(status: int) -> str:
    """How a process ended, in words."""
    if status >= 0:
        return f"ended with {status}"
    known = -status in [*signal.Signals]
    name = signal.Signals(-status).name if known else f"signal {-status}"
    killed = ", as when memory runs out" if name == "SIGKILL" else ""
    return f"was ended by {name}{killed}"


def _last(log: Path) -> str:
    """The last line that a process wrote, or why there may be none."""
    lines = log.read_text(encoding="utf-8", errors="replace").strip().splitlines()
    if lines:
        return lines[-1].removeprefix("error: ")
    room = shutil.disk_usage(log.parent).free
    if room < LITTLE_ROOM:
        return (
            f"it could say nothing, because the disk of {log.parent} is full: "
            f"{room / 2**20:.1f} MiB are left; make room"
        )
    return "it said nothing"

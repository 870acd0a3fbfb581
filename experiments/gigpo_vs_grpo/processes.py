"""Processes of this experiment side by side, watched until all are done."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import jax

import jerp
from jerp.errors import TrainingError

__all__ = ["run_together"]


def run_together(
    module: str,
    arguments: Sequence[Sequence[str]],
    folder: Path,
    watch: Callable[[], None],
    *,
    environment: Mapping[str, str] | None = None,
) -> None:
    """Runs `python -m module` once for each of `arguments`, at the same time.

    Args:
      module: to run.
      arguments: of each process.
      folder: of the run; compiled programs are kept there, for all to share.
      watch: called now and then, and once all are done.
      environment: variables beside those of this process.

    Raises:
      TrainingError: a process failed; what it said last.
    """
    root = str(Path(jerp.__file__).parents[1])
    path = [root, *filter(None, [os.environ.get("PYTHONPATH")])]
    variables = {
        **os.environ,
        "JAX_COMPILATION_CACHE_DIR": str(folder / "compiled"),
        "JAX_PLATFORMS": jax.default_backend(),
        "PYTHONPATH": os.pathsep.join(path),
        **(environment or {}),
    }
    workers = [
        subprocess.Popen(
            [sys.executable, "-m", module, *words],
            env=variables,
            stderr=subprocess.PIPE,
            text=True,
        )
        for words in arguments
    ]
    try:
        while any(worker.poll() is None for worker in workers):
            watch()
            time.sleep(0.5)
        watch()
    finally:
        for worker in workers:
            worker.terminate()
    for worker in workers:
        _, said = worker.communicate()
        if worker.returncode:
            last = (said or "").strip().splitlines()[-1:] or ["no message"]
            raise TrainingError(
                f"a process of {module} ended with {worker.returncode}: "
                f"{last[0].removeprefix('error: ')}; the same command resumes"
            )

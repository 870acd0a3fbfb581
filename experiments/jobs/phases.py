"""Phases of an experiment: the jobs of each in processes side by side, and a bar."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from rich.progress import Progress

from experiments.jobs.job import Job, iterations_done
from experiments.jobs.processes import run_together

__all__ = ["Phase", "run_phase"]

HASTE = {"JAX_DISABLE_MOST_OPTIMIZATIONS": "1"}
"""Programs of a smoke run are compiled in half the time, to run slower."""


class Phase(NamedTuple):
    """Jobs that do not wait for each other.

    Attributes:
      name: on its bar, and for its processes.
      jobs: of all processes.
      iterations: of a job.
      processes: side by side.
    """

    name: str
    jobs: Sequence[Job]
    iterations: int
    processes: int


def run_phase(
    phase: Phase,
    module: str,
    folder: Path,
    settings: Mapping[str, Any],
    progress: Progress,
    *,
    hasty: bool = False,
) -> None:
    """Runs the jobs that are not done, if there are any, and shows how far all are.

    Args:
      phase: to run.
      module: run as `python -m module FOLDER INDEX/COUNT SETTINGS PHASE`, it does one
        part of the jobs.
      folder: of the run.
      settings: for the processes, in the types of JSON.
      progress: gets a bar.
      hasty: compile in haste.

    Raises:
      TrainingError: a process failed; what it said last.
    """
    name, jobs, each, count = phase
    folder = folder.resolve()
    bar = progress.add_task(name, total=each * len(jobs))

    def watch() -> None:
        progress.update(bar, completed=iterations_done(folder, jobs, each))

    watch()
    if all(job.is_done(folder) for job in jobs):
        return
    text = json.dumps(settings)
    run_together(
        module,
        [[str(folder), f"{i}/{count}", text, name] for i in range(count)],
        folder,
        watch,
        environment=HASTE if hasty else None,
    )

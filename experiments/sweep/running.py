"""One session of a sweep: begins it or goes on with it, and merges what it has.

    <out>/sweep.json      what became of all settings, with their results
    <out>/<id>/           a run folder a setting; what became of it in <out>/<id>.json
    <out>/jobs/<number>/  what was submitted, and its log

One session at a time uses a folder.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import Progress

from experiments.settings import Setting
from experiments.settings import shard as part_of
from experiments.sweep.config import Sweep
from experiments.sweep.keeper import Keeper
from experiments.sweep.launchers import open_launcher
from experiments.sweep.merge import earlier_jobs, print_sweep, write_sweep
from experiments.sweep.records import is_finished, read_record
from jerp.errors import ConfigError
from jerp.runs.progress import progress_bars
from jerp.storage.atomic import make_folder
from jerp.storage.locks import lock_folder

__all__ = ["run_sweep"]


def run_sweep(
    sweep: Sweep, settings: Sequence[Setting], *, console: Console | None = None
) -> dict[str, Any]:
    """Runs what is not finished of `settings`; returns what `sweep.json` holds.

    Args:
      sweep: how.
      settings: all that belong to it.
      console: where the progress and the table go.

    Raises:
      MissingExtraError: submitit is not installed.
      ConfigError: a launcher that is not here, or the folder of another sweep.
      StorageError: another process uses the folder, or jobs of an earlier session do.
      KeyboardInterrupt: Ctrl-C; local jobs are stopped, those of Slurm are not, and
        the same command goes on.
    """
    console = console or Console()
    out = sweep.folder
    launcher = open_launcher(sweep.launcher, out / "jobs", sweep.resources)
    placed = tuple(s.placed(out, smoke=sweep.smoke) for s in settings)
    make_folder(out)
    with lock_folder(out):
        jobs = earlier_jobs(out, sweep.identity)
        for job in jobs:
            _check_job(job, sweep.launcher)
        save = partial(
            write_sweep, out, sweep.identity, placed, launcher=sweep.launcher
        )
        with progress_bars(console) as progress:
            keeper = Keeper(
                launcher,
                placed,
                retries=sweep.retries,
                on_change=lambda: save(keeper.running),
                say=partial(progress.console.print, markup=False, soft_wrap=True),
            )
            _session(sweep, placed, keeper, jobs, progress)
        document = save()
        print_sweep(console, document)
        console.print(f"merged: {out / 'sweep.json'}", soft_wrap=True)
    return document


def _check_job(job: dict[str, Any], launcher: str) -> None:
    """Raises an error if a job of an earlier session may run that is not taken on."""
    if job["launcher"] != launcher:
        raise ConfigError(
            f"launcher: job {job['job_id']} of launcher {job['launcher']!r} may still "
            f"run {', '.join(job['settings'])}; go on with --launcher {job['launcher']}"
        )
    folder = Path(job["folder"])
    if launcher == "local" and folder.exists():
        lock_folder(folder).close()


def _session(
    sweep: Sweep,
    settings: tuple[Setting, ...],
    keeper: Keeper,
    jobs: Sequence[dict[str, Any]],
    progress: Progress,
) -> None:
    """Takes on what still runs of an earlier session, submits the rest, and waits."""
    bar = progress.add_task(sweep.name, total=len(settings))

    def show() -> None:
        finished = sum(read_record(s).status == "finished" for s in settings)
        progress.update(bar, completed=finished)

    missing = {s.id: s for s in settings if not is_finished(s)}
    try:
        for job in jobs if sweep.launcher == "slurm" else ():
            left = tuple(missing.pop(i) for i in job["settings"] if i in missing)
            if left:
                keeper.attach(left, job["folder"], job["job_id"], job["tries"])
        rest = tuple(missing.values())
        count = min(sweep.shards, len(rest))
        keeper.submit(part_of(rest, f"{i}/{count}") for i in range(count))
        keeper.wait(show)
    finally:
        keeper.stop()
    show()

"""Runs the experiment in processes side by side, and reports.

The run folder then holds manifest.json, results.json, and a folder a seed with
parameters, metrics, checkpoints, and all drafts and runs.
"""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Any

import jax
from rich.console import Console
from rich.progress import Progress

import jerp
from experiments.jobs.job import iterations_done
from experiments.jobs.processes import run_together
from experiments.wer.analysis import analyse, base_standing
from experiments.wer.config import WerConfig
from experiments.wer.jobs import PHASES, Work, jobs_of
from experiments.wer.report import standing_lines
from jerp.runs.progress import progress_bars
from jerp.storage.documents import defined, write_json
from jerp.storage.manifest import open_run

__all__ = ["run"]

ANALYSIS = 1_000_000
"""Stream of random keys; those below belong to seeds."""

HASTE = {"JAX_DISABLE_MOST_OPTIMIZATIONS": "1"}
"""Programs of a smoke run are compiled in half the time, to run slower."""


def run(config: WerConfig, *, console: Console | None = None) -> dict[str, Any]:
    """Runs or resumes the experiment; returns what `results.json` holds."""
    console = console or Console()
    work = Work(config.sizes, config.evidence, config.seed, config.num_seeds)
    key = jax.random.fold_in(jax.random.key(config.seed), ANALYSIS)
    keys = jax.random.split(key)
    with open_run(config.folder, _identity(config), seeds=[*range(config.num_seeds)]):
        base: dict[str, Any] = {}
        for phase in PHASES:
            with progress_bars(console) as progress:
                _in_processes(config, work, phase, progress)
            if phase == "base":
                base = base_standing(keys[0], config)
                for line in standing_lines(base):
                    console.print(line)
        results = defined(
            {
                "command": config.command,
                "version": jerp.__version__,
                "smoke": config.smoke,
                "seeds": config.num_seeds,
                "evidence": config.evidence,
                "sizes": _sizes(config),
                "base": base,
                **analyse(keys[1], config),
            }
        )
        write_json(config.folder / "results.json", results)
    return results


def _identity(config: WerConfig) -> dict[str, Any]:
    """The settings that must agree for a run to be resumed."""
    return {
        "experiment": "wer",
        "seed": config.seed,
        "evidence": config.evidence,
        "sizes": _sizes(config),
    }


def _sizes(config: WerConfig) -> dict[str, Any]:
    """As JSON has them."""
    return json.loads(json.dumps(asdict(config.sizes)))


def _in_processes(
    config: WerConfig, work: Work, phase: str, progress: Progress
) -> None:
    """Runs a phase's jobs, `workers` processes at once, and shows how far they are."""
    settings = {**vars(work), "sizes": config.scale}
    jobs, folder = jobs_of(phase, work), config.folder.resolve()
    each = config.sizes.total if phase == "train" else 1
    bar = progress.add_task(phase, total=each * len(jobs))
    progress.update(bar, completed=iterations_done(folder, jobs, each))
    if all(job.is_done(folder) for job in jobs):
        return
    count = min(config.workers, len(jobs))
    arguments = [
        [str(folder), f"{i}/{count}", json.dumps(settings), phase] for i in range(count)
    ]
    run_together(
        "experiments.wer.jobs",
        arguments,
        folder,
        lambda: progress.update(bar, completed=iterations_done(folder, jobs, each)),
        environment=HASTE if config.smoke else None,
    )

"""Runs the study of PASS@(k, T) in processes side by side, and reports.

The run folder then holds manifest.json, results.json, report.md, report.html, figures/,
outcomes/ and a folder a seed and policy, with metrics, checkpoints, parameters and what
was answered.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from typing import Any

import jax
from rich.console import Console
from rich.progress import Progress

import jerp
from experiments.jobs.job import iterations_done
from experiments.jobs.processes import run_together
from experiments.pass_surface.analysis import analyse, evaluations_of
from experiments.pass_surface.config import PassSurfaceConfig
from experiments.pass_surface.figures import write_figures
from experiments.pass_surface.harness_run import run_harness_arms
from experiments.pass_surface.jobs import PHASES, Work, jobs_of
from experiments.pass_surface.report import STAND_IN, document, terminal
from experiments.pass_surface.surfaces import write_outcomes
from jerp.runs.page import write_page
from jerp.runs.progress import progress_bars
from jerp.storage.documents import defined, write_json
from jerp.storage.manifest import open_run

__all__ = ["run"]

ANALYSIS = 1_000_000
"""Stream of random keys; those below belong to seeds."""

HASTE = {"JAX_DISABLE_MOST_OPTIMIZATIONS": "1"}
"""Programs of a smoke run are compiled in half the time, to run slower."""

NO_OPTIMIZATION = "jax_disable_most_optimizations"
"""The same setting of this process."""


def run(config: PassSurfaceConfig, *, console: Console | None = None) -> dict[str, Any]:
    """Runs or resumes the study; returns what `results.json` holds."""
    console = console or Console()
    if config.executor != "none":
        return run_harness_arms(config, console)
    work = Work(config.sizes, config.arms, config.seed, config.num_seeds)
    with open_run(config.folder, _identity(config), seeds=[*range(config.num_seeds)]):
        with progress_bars(console) as progress:
            for phase in PHASES:
                _in_processes(config, work, phase, progress)
        key = jax.random.fold_in(jax.random.key(config.seed), ANALYSIS)
        evaluations = evaluations_of(config)
        write_outcomes(config, evaluations)
        with _haste(config):
            found = analyse(key, config, evaluations)
        results = defined(
            {
                "command": config.command,
                "version": jerp.__version__,
                "smoke": config.smoke,
                "seeds": config.num_seeds,
                "sizes": _sizes(config),
                "stand_in": STAND_IN,
                **found,
            }
        )
        _write(results, config, console)
    return results


@contextmanager
def _haste(config: PassSurfaceConfig) -> Iterator[None]:
    """Compiles as the processes of a run do."""
    before = jax.config.read(NO_OPTIMIZATION)
    jax.config.update(NO_OPTIMIZATION, config.smoke or before)
    try:
        yield
    finally:
        jax.config.update(NO_OPTIMIZATION, before)


def _identity(config: PassSurfaceConfig) -> dict[str, Any]:
    """The settings that must agree for a run to be resumed."""
    return {
        "experiment": "pass_surface",
        "executor": config.executor,
        "seed": config.seed,
        "arms": list(config.arms),
        "sizes": _sizes(config),
    }


def _sizes(config: PassSurfaceConfig) -> dict[str, Any]:
    """As JSON has them."""
    return json.loads(json.dumps(asdict(config.sizes)))


def _in_processes(
    config: PassSurfaceConfig, work: Work, phase: str, progress: Progress
) -> None:
    """Runs a phase's jobs, `workers` processes at once, and shows how far they are."""
    settings = {**vars(work), "sizes": config.scale}
    jobs, folder = jobs_of(phase, work), config.folder.resolve()
    each = config.sizes.iterations if phase == "arms" else 1
    bar = progress.add_task(phase, total=each * len(jobs))
    progress.update(bar, completed=iterations_done(folder, jobs, each))
    if all(job.is_done(folder) for job in jobs):
        return
    # A smoke run's base takes hardly longer than its compilations, and those of the
    # evaluation are kept for the arms.
    count = 1 if config.smoke and phase == "base" else min(config.workers, len(jobs))
    arguments = [
        [str(folder), f"{i}/{count}", json.dumps(settings), phase] for i in range(count)
    ]
    run_together(
        "experiments.pass_surface.jobs",
        arguments,
        folder,
        lambda: progress.update(bar, completed=iterations_done(folder, jobs, each)),
        environment=HASTE if config.smoke else None,
    )


def _write(
    results: dict[str, Any], config: PassSurfaceConfig, console: Console
) -> None:
    folder = config.folder
    write_json(folder / "results.json", results)
    write_figures(results, folder)
    page = write_page(document(results), folder)
    console.print(terminal(results))
    console.print(f"report: {page}", soft_wrap=True)

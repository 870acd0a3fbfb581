"""Runs the study of PASS@(k, T) in processes side by side, and reports.

The run folder then holds manifest.json, results.json, report.md, report.html, figures/,
outcomes/ and a folder a seed and policy, with metrics, checkpoints, parameters and what
was answered.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import jax
from rich.console import Console
from rich.progress import Progress

from experiments.jobs.phases import Phase, run_phase
from experiments.jobs.results import analysis_key, origin, sizes_document
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

NO_OPTIMIZATION = "jax_disable_most_optimizations"
"""What makes the processes of a smoke run compile in haste, of this process."""


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
        evaluations = evaluations_of(config)
        write_outcomes(config, evaluations)
        with _haste(config):
            found = analyse(analysis_key(config.seed), config, evaluations)
        results = defined(
            {
                **origin(config),
                "seeds": config.num_seeds,
                "sizes": sizes_document(config.sizes),
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
        "sizes": sizes_document(config.sizes),
    }


def _in_processes(
    config: PassSurfaceConfig, work: Work, name: str, progress: Progress
) -> None:
    jobs = jobs_of(name, work)
    iterations = config.sizes.iterations if name == "arms" else 1
    # A smoke run's base takes hardly longer than its compilations, and those of the
    # evaluation are kept for the arms.
    alone = config.smoke and name == "base"
    processes = 1 if alone else min(config.workers, len(jobs))
    phase = Phase(name, jobs, iterations, processes)
    settings = {**vars(work), "sizes": config.scale}
    module, folder = "experiments.pass_surface.jobs", config.folder
    run_phase(phase, module, folder, settings, progress, hasty=config.smoke)


def _write(
    results: dict[str, Any], config: PassSurfaceConfig, console: Console
) -> None:
    folder = config.folder
    write_json(folder / "results.json", results)
    write_figures(results, folder)
    page = write_page(document(results), folder)
    console.print(terminal(results))
    console.print(f"report: {page}", soft_wrap=True)

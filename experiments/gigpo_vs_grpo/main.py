"""Runs the comparison of GiGPO with GRPO in processes side by side, and reports.

The run folder then holds manifest.json, results.json, report.md, report.html, figures/
and a folder a seed and arm, with metrics, checkpoints and what was played.
"""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Any

import jax
from rich.console import Console
from rich.progress import Progress

import jerp
from experiments.gigpo_vs_grpo.analysis import analyse, curves
from experiments.gigpo_vs_grpo.config import GigpoConfig
from experiments.gigpo_vs_grpo.jobs import PHASES, jobs_of
from experiments.gigpo_vs_grpo.language_model_run import LANGUAGE_MODEL
from experiments.gigpo_vs_grpo.report import (
    document,
    gap_sentence,
    share_sentence,
    terminal_table,
    write_figures,
)
from experiments.jobs.job import iterations_done
from experiments.jobs.processes import run_together
from jerp.runs.page import write_page
from jerp.runs.progress import progress_bars
from jerp.storage.documents import defined, write_json
from jerp.storage.manifest import open_run

__all__ = ["run"]

ANALYSIS = 1_000_000
"""Stream of random keys; those below belong to seeds."""


def run(config: GigpoConfig, *, console: Console | None = None) -> dict[str, Any]:
    """Runs or resumes the experiment; returns what `results.json` holds."""
    console = console or Console()
    if config.reads:
        return LANGUAGE_MODEL.run(config, console)
    seeds = [*range(config.num_seeds)]
    with open_run(config.folder, _identity(config), seeds=seeds):
        with progress_bars(console) as progress:
            for phase in PHASES:
                _in_processes(config, phase, progress)
        key = jax.random.fold_in(jax.random.key(config.seed), ANALYSIS)
        results = defined(
            {
                "command": config.command,
                "version": jerp.__version__,
                "smoke": config.smoke,
                "seeds": config.num_seeds,
                "sizes": _sizes(config),
                **analyse(key, config),
            }
        )
        _write(results, config, console)
    return results


def _identity(config: GigpoConfig) -> dict[str, Any]:
    """The settings that must agree for a run to be resumed."""
    return {
        "experiment": "gigpo_vs_grpo",
        "seed": config.seed,
        "sizes": _sizes(config),
    }


def _sizes(config: GigpoConfig) -> dict[str, Any]:
    """As JSON has them."""
    return json.loads(json.dumps(asdict(config.sizes)))


def _in_processes(config: GigpoConfig, phase: str, progress: Progress) -> None:
    """Runs a phase's jobs, `workers` processes at once, and shows how far they are."""
    settings = {
        "scale": config.scale,
        "seed": config.seed,
        "num_seeds": config.num_seeds,
    }
    jobs = jobs_of(phase, config.sizes, config.num_seeds)
    folder = config.folder.resolve()
    each = config.sizes.iterations if phase == "arms" else 1
    bar = progress.add_task(phase, total=each * len(jobs))
    progress.update(bar, completed=iterations_done(folder, jobs, each))
    if all(job.is_done(folder) for job in jobs):
        return
    # A smoke run's bases take hardly longer than their one compilation, which every
    # process would do anew.
    count = 1 if config.smoke and phase == "base" else config.workers
    arguments = [
        [str(folder), f"{i}/{count}", json.dumps(settings), phase] for i in range(count)
    ]
    run_together(
        "experiments.gigpo_vs_grpo.jobs",
        arguments,
        folder,
        lambda: progress.update(bar, completed=iterations_done(folder, jobs, each)),
    )


def _write(results: dict[str, Any], config: GigpoConfig, console: Console) -> None:
    folder = config.folder
    write_json(folder / "results.json", results)
    for world in results["worlds"]:
        write_figures(results, world, curves(config, world), folder / "figures")
    page = write_page(document(results), folder)
    for world, found in results["worlds"].items():
        console.print(terminal_table(results, world))
        console.print(share_sentence(found))
        console.print(gap_sentence(found))
        for name, arm in found["arms"].items():
            for note in arm.get("warnings", ()):
                console.print(f"note: {name}, {note}")
    console.print(f"report: {page}", soft_wrap=True)

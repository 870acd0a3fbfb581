"""Runs the comparison of GiGPO with GRPO in processes side by side, and reports.

The run folder then holds manifest.json, results.json, report.md, report.html, figures/
and a folder a seed and arm, with metrics, checkpoints and what was played.
"""

from __future__ import annotations

from typing import Any

from rich.console import Console
from rich.progress import Progress

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
from experiments.jobs.phases import Phase, run_phase
from experiments.jobs.results import analysis_key, origin, sizes_document
from jerp.runs.page import write_page
from jerp.runs.progress import progress_bars
from jerp.storage.documents import defined, write_json
from jerp.storage.manifest import open_run

__all__ = ["run"]


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
        results = defined(
            {
                **origin(config),
                "seeds": config.num_seeds,
                "sizes": sizes_document(config.sizes),
                **analyse(analysis_key(config.seed), config),
            }
        )
        _write(results, config, console)
    return results


def _identity(config: GigpoConfig) -> dict[str, Any]:
    """The settings that must agree for a run to be resumed."""
    return {
        "experiment": "gigpo_vs_grpo",
        "seed": config.seed,
        "sizes": sizes_document(config.sizes),
    }


def _in_processes(config: GigpoConfig, name: str, progress: Progress) -> None:
    iterations = config.sizes.iterations if name == "arms" else 1
    # A smoke run's bases take hardly longer than their one compilation, which every
    # process would do anew.
    processes = 1 if config.smoke and name == "base" else config.workers
    jobs = jobs_of(name, config.sizes, config.num_seeds)
    settings = {
        "scale": config.scale,
        "seed": config.seed,
        "num_seeds": config.num_seeds,
    }
    phase = Phase(name, jobs, iterations, processes)
    run_phase(
        phase, "experiments.gigpo_vs_grpo.jobs", config.folder, settings, progress
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

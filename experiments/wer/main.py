"""Runs the experiment in processes side by side, and reports.

The run folder then holds manifest.json, results.json, report.md, report.html, figures/,
skills/, the drafts of WER's best seed after training in tree.jsonl, and a folder a seed
with parameters, metrics, checkpoints, and all drafts and runs.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jax
from rich.console import Console
from rich.progress import Progress

from experiments.jobs.job import Job
from experiments.jobs.phases import Phase, run_phase
from experiments.jobs.results import analysis_key, origin, sizes_document
from experiments.wer.analysis import analyse
from experiments.wer.answers import seed_folders
from experiments.wer.comparison_report import plan_sentence
from experiments.wer.comparisons import acceptance_plan
from experiments.wer.config import WerConfig
from experiments.wer.figures import write_figures
from experiments.wer.jobs import PHASES, Work, jobs_of
from experiments.wer.language_model_run import run_language_model
from experiments.wer.methods import LABELS, WER
from experiments.wer.report import (
    SMOKE,
    STAND_INS,
    directions,
    document,
    standing_lines,
    terminal_table,
)
from experiments.wer.skill_to_hand_on import hand_on
from experiments.wer.standing import base_standing
from jerp.runs.page import write_page
from jerp.runs.progress import progress_bars
from jerp.storage.atomic import write_bytes
from jerp.storage.documents import defined, write_json
from jerp.storage.manifest import open_run
from jerp.storage.skill_tree import read_tree

__all__ = ["run"]


def run(config: WerConfig, *, console: Console | None = None) -> dict[str, Any]:
    """Runs or resumes the experiment; returns what `results.json` holds."""
    console = console or Console()
    if config.reads:
        return run_language_model(config, console)
    ablations = config.trained_ablations
    work = Work(config.sizes, ablations, config.seed, config.num_seeds)
    keys = jax.random.split(analysis_key(config.seed))
    with open_run(config.folder, _identity(config), seeds=[*range(config.num_seeds)]):
        if config.smoke:
            console.print(SMOKE)
        console.print(plan_sentence(acceptance_plan(config.sizes)))
        base: dict[str, Any] = {}
        for phase in PHASES:
            if jobs := jobs_of(phase, work):
                with progress_bars(console) as progress:
                    _in_processes(config, work, phase, jobs, progress)
            if phase == "base":
                base = base_standing(keys[0], config)
                for line in standing_lines(base):
                    console.print(line)
        results = defined(
            {
                **origin(config),
                "seeds": config.num_seeds,
                "sizes": sizes_document(config.sizes),
                "stand_ins": STAND_INS,
                "base": base,
                **analyse(keys[1], config),
            }
        )
        _write(results, config, console)
    return results


def _identity(config: WerConfig) -> dict[str, Any]:
    """The settings that must agree for a run to be resumed."""
    return {
        "experiment": "wer",
        "seed": config.seed,
        "sizes": sizes_document(config.sizes),
    }


def _in_processes(
    config: WerConfig, work: Work, name: str, jobs: Sequence[Job], progress: Progress
) -> None:
    iterations = config.sizes.total if name in ("train", "ablations") else 1
    phase = Phase(name, jobs, iterations, min(config.workers, len(jobs)))
    settings = {**vars(work), "sizes": config.scale}
    module, folder = "experiments.wer.jobs", config.folder
    run_phase(phase, module, folder, settings, progress, hasty=config.smoke)


def _write(results: dict[str, Any], config: WerConfig, console: Console) -> None:
    folder = config.folder
    write_json(folder / "results.json", results)
    _write_skills(results, config)
    tree = seed_folders(config, "evaluation")[results["tree_seed"]] / WER / "tree.jsonl"
    write_bytes(folder / "tree.jsonl", tree.read_bytes())
    write_figures(results, folder / "figures", tree=read_tree(tree))
    page = write_page(document(results), folder)
    console.print(terminal_table(results))
    for line in directions(results):
        console.print(line)
    for note in results["training"]["warnings"]:
        console.print(f"note: {note}")
    console.print(STAND_INS)
    console.print(f"report: {page}", soft_wrap=True)


def _write_skills(results: dict[str, Any], config: WerConfig) -> None:
    """The best skill of each domain, as a file to hand on."""
    for domain, found in results["chosen"].items():
        hand_on(
            *(config, domain, found["skill"], found["effect"]),
            tasks=found["tasks"],
            model=f"decoder cloned for seed {found['seed']}",
            method=LABELS[found["method"]],
        )

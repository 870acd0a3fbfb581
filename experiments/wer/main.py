"""Runs the experiment in processes side by side, and reports.

The run folder then holds manifest.json, results.json, report.md, report.html, figures/,
skills/, the drafts of WER's best seed after training in tree.jsonl, and a folder a seed
with parameters, metrics, checkpoints, and all drafts and runs.
"""

from __future__ import annotations

import json
from dataclasses import asdict, replace
from typing import Any

import jax
from rich.console import Console
from rich.progress import Progress

import jerp
from experiments.jobs.job import iterations_done
from experiments.jobs.processes import run_together
from experiments.wer.analysis import analyse, seed_folders
from experiments.wer.config import WerConfig
from experiments.wer.figures import write_figures
from experiments.wer.jobs import PHASES, Work, jobs_of
from experiments.wer.methods import LABELS, WER
from experiments.wer.report import (
    STAND_INS,
    directions,
    document,
    standing_lines,
    terminal_table,
)
from experiments.wer.standing import base_standing
from jerp.runs.page import write_page
from jerp.runs.progress import progress_bars
from jerp.skills.document import parse_skill
from jerp.storage.atomic import write_bytes
from jerp.storage.documents import defined, write_json
from jerp.storage.manifest import open_run
from jerp.storage.skill_document import SkillDocument
from jerp.storage.skill_files import skill_path, write_skill

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


def _write(results: dict[str, Any], config: WerConfig, console: Console) -> None:
    folder = config.folder
    write_json(folder / "results.json", results)
    write_figures(results, folder / "figures")
    _write_skills(results, config)
    tree = seed_folders(config, "evaluation")[results["tree_seed"]] / WER / "tree.jsonl"
    write_bytes(folder / "tree.jsonl", tree.read_bytes())
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
    (config.folder / "skills").mkdir(exist_ok=True)
    for domain, found in results["chosen"].items():
        effect = found["effect"]
        known = effect["low"] is not None
        skill = SkillDocument(
            parse_skill(found["skill"]),
            domain,
            effect=effect["point"],
            interval=(effect["low"], effect["high"]) if known else None,
            tasks=found["tasks"],
            against="no skill",
            split="test",
            model=f"decoder cloned for seed {found['seed']}",
            run=f"{replace(config, out=None).command}, {LABELS[found['method']]}",
        )
        write_skill(skill_path(config.folder, domain), skill)

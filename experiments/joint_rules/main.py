"""Runs the experiment in processes side by side, and reports.

The run folder then holds manifest.json, results.json, report.md, report.html, figures/,
start.json if it began with rules, and a folder a seed and arm, with metrics,
checkpoints, pool and ledger.
"""

from __future__ import annotations

from typing import Any

from rich.console import Console
from rich.progress import Progress

from experiments.benchmark_rules.run import run_benchmark_rules
from experiments.jobs.phases import Phase, run_phase
from experiments.jobs.results import analysis_key, origin, sizes_document
from experiments.joint_rules.analysis import analyse
from experiments.joint_rules.config import ARMS, JerpConfig
from experiments.joint_rules.figures import write_figures
from experiments.joint_rules.jobs import PHASES, Work, jobs_of
from experiments.joint_rules.language_model_run import LANGUAGE_MODEL
from experiments.joint_rules.places import place_named
from experiments.joint_rules.report import (
    directions,
    document,
    stand_ins,
    terminal_table,
)
from experiments.joint_rules.training import check_start
from jerp.runs.page import write_page
from jerp.runs.progress import progress_bars
from jerp.storage.documents import defined, write_json
from jerp.storage.manifest import open_run
from jerp.storage.rule_documents import PoolDocument, PoolRule, pool_hash
from jerp.storage.rule_files import read_pool, write_pool

__all__ = ["run"]

START = "start.json"
"""The rules that a run began with, whatever becomes of the file that they were in."""

TAKE = (
    "When your hand is empty and what is wanted is within reach, take what is wanted."
)
PUT = "When you hold what is wanted ready where it belongs, put it down."
COOL = "When you hold what is wanted unready somewhere else, go to a fridge."

FIRST_RULES = PoolDocument(
    {
        kind: tuple(PoolRule(text, 5) for text in texts)
        for kind, texts in {"clean": (TAKE, PUT), "cool": (TAKE, COOL)}.items()
    }
)
"""Right ones of a smoke run in a house, of types that its base sometimes solves."""


def run(config: JerpConfig, *, console: Console | None = None) -> dict[str, Any]:
    """Runs or resumes the experiment; returns what `results.json` holds."""
    console = console or Console()
    if config.env:
        return run_benchmark_rules(config, console)
    if config.reads:
        return LANGUAGE_MODEL.run(config, console)
    start = _start_pool(config)
    kept = config.folder.resolve() / START
    work = Work(
        sizes=config.sizes,
        seed=config.seed,
        num_seeds=config.num_seeds,
        by=config.by,
        rules=None if start is None else str(kept),
    )
    seeds = [*range(config.num_seeds)]
    with open_run(config.folder, _identity(config, start), seeds=seeds):
        if start is not None:
            write_pool(kept, start)
        with progress_bars(console) as progress:
            for phase in PHASES:
                _in_processes(config, work, phase, progress)
        results = defined(
            {
                **origin(config),
                "seeds": config.num_seeds,
                "by": config.by,
                "start_pool": _texts(start),
                "sizes": sizes_document(config.sizes),
                **analyse(analysis_key(config.seed), config),
            }
        )
        _write(results, config, console)
    return results


def _start_pool(config: JerpConfig) -> PoolDocument | None:
    """The rules to begin with, which arms in all worlds can begin with."""
    if config.rules is None:
        # Otherwise so short a training would hardly show what is done with rules.
        houses = config.by == "type" and config.sizes.worlds == ("house",)
        return FIRST_RULES if config.smoke and houses else None
    document = read_pool(config.rules)
    arms = [ARMS[arm] for arm in config.sizes.arms]
    for world in config.sizes.worlds:
        check_start(config.rules, document, place_named(world), arms)
    return document


def _texts(start: PoolDocument | None) -> dict[str, list[str]]:
    pools = {} if start is None else start.pools
    return {key: [rule.text for rule in rules] for key, rules in pools.items()}


def _identity(config: JerpConfig, start: PoolDocument | None) -> dict[str, Any]:
    """The settings that must agree for a run to be resumed."""
    return {
        "experiment": "joint_rules",
        "seed": config.seed,
        "by": config.by,
        "rules": None if start is None else pool_hash(start),
        "sizes": sizes_document(config.sizes),
    }


def _in_processes(
    config: JerpConfig, work: Work, name: str, progress: Progress
) -> None:
    iterations = config.sizes.iterations if name == "arms" else 1
    # A smoke run's jobs take hardly longer than their compilations, which every process
    # would do anew.
    processes = 1 if config.smoke else config.workers
    phase = Phase(name, jobs_of(name, work), iterations, processes)
    settings = {**vars(work), "sizes": config.scale}
    module, folder = "experiments.joint_rules.jobs", config.folder
    run_phase(phase, module, folder, settings, progress, hasty=config.smoke)


def _write(results: dict[str, Any], config: JerpConfig, console: Console) -> None:
    folder = config.folder
    write_json(folder / "results.json", results)
    write_figures(results, folder / "figures")
    page = write_page(document(results), folder)
    for world, found in results["worlds"].items():
        console.print(terminal_table(results, world))
        for line in directions(found):
            console.print(line)
        for arm, numbers in found["arms"].items():
            for note in numbers["warnings"]:
                console.print(f"note: {arm}, {note}")
    console.print(stand_ins())
    console.print(f"report: {page}", soft_wrap=True)

"""The study with a real model: the frozen SmolLM2 under harness controllers as arms.

    jerp run pass-surface --executor smollm2

    <out>/harness/<domain>/<arm>/   the episodes, as `jerp run harness` has them
    <out>/outcomes/<unit>/<arm>.csv the runs, for `jerp passkt`
    <out>/<unit>/                   surfaces and figures, T in steps or in tokens
    <out>/report.md, report.html, results.json

Everything is played from the recorded responses, without weights and without network.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console

import jerp
from experiments.harness_control.config import HarnessConfig
from experiments.harness_control.domains import DOMAINS
from experiments.harness_control.executors import open_executor
from experiments.pass_surface.config import PassSurfaceConfig
from experiments.pass_surface.harness_arms import (
    HARNESS_ARMS,
    UNITS,
    ArmRuns,
    play_arms,
)
from experiments.pass_surface.harness_report import write_harness_report
from jerp.errors import StorageError
from jerp.readers.outcomes import SampleArrays
from jerp.runs.harness.arms import ARM_LABELS, LEARNED_ARMS
from jerp.runs.pass_surface.agents import Agent
from jerp.runs.pass_surface.analysis import analyse
from jerp.runs.pass_surface.figures import write_figures
from jerp.runs.pass_surface.inputs import Inputs
from jerp.runs.pass_surface.report import write_report
from jerp.runs.pass_surface.settings import PassktSettings
from jerp.runs.progress import progress_bars
from jerp.storage.atomic import make_folder, write_bytes
from jerp.storage.documents import defined, write_json
from jerp.storage.manifest import open_run
from jerp.typing import Outcome

__all__ = ["run_harness_arms"]

SMOKE_DOMAINS = ("coding", "research")

STEPS = (3.0, 4.0, 5.0, 6.0, 8.0, 10.0)
"""Horizons in steps; no run has more."""

PAIRS = (
    *((0, later) for later in range(1, len(HARNESS_ARMS))),
    *((1, HARNESS_ARMS.index(arm)) for arm in LEARNED_ARMS),
)
"""Who is held against whom: all against the base, the learned against variety alone."""

SHARES = (0.25, 0.5, 0.75, 0.9, 1.0)
"""Of all runs, that spent at most a horizon in tokens."""


def run_harness_arms(
    config: PassSurfaceConfig, console: Console | None = None
) -> dict[str, Any]:
    """Runs or resumes the study of controllers; returns what `results.json` holds.

    Raises:
      StorageError: a run asks for what was not recorded.
    """
    console, harness = console or Console(), _harness(config)
    with open_run(
        config.folder, _identity(config, harness), seeds=[*range(harness.seeds)]
    ):
        with (
            open_executor(
                "recorded", harness.folder, console, domains=harness.domain
            ) as opened,
            progress_bars(console) as progress,
        ):
            arms = play_arms(harness, opened, progress)
            executor = opened.description()
        _check_recorded(executor)
        for unit in UNITS:
            for name, runs in arms.items():
                path = config.folder / _outcomes(unit, name)
                _write_outcomes(path, runs, unit)
        results = defined(
            {
                "command": config.command,
                "version": jerp.__version__,
                "smoke": config.smoke,
                "seeds": harness.seeds,
                "sizes": asdict(harness.sizes),
                "executor": executor,
                "variants": {unit: _surfaces(config, arms, unit) for unit in UNITS},
            }
        )
        write_json(config.folder / "results.json", results)
        write_harness_report(results, config.folder, console)
    return results


def _harness(config: PassSurfaceConfig) -> HarnessConfig:
    """The settings of `jerp run harness` with the same arms."""
    return HarnessConfig(
        domain=SMOKE_DOMAINS if config.smoke else DOMAINS,
        seeds=config.seeds or (1 if config.smoke else HarnessConfig.seeds),
        out=config.folder / "harness",
        smoke=config.smoke,
        seed=config.seed,
    )


def _identity(config: PassSurfaceConfig, harness: HarnessConfig) -> dict[str, Any]:
    """The settings that must agree for a run to be resumed."""
    return {
        "experiment": "pass_surface",
        "executor": config.executor,
        "seed": config.seed,
        "domain": list(harness.domain),
        "sizes": asdict(harness.sizes),
    }


def _check_recorded(executor: Mapping[str, Any]) -> None:
    """Refuses numbers of runs that were not answered."""
    missed = executor["store"]["completion"]["misses"]
    if missed:
        raise StorageError(
            f"{missed} requests are not among the recorded responses, and their runs "
            "say nothing; reinstall jerp"
        )


def _outcomes(unit: str, arm: str) -> Path:
    """In the run folder."""
    return Path("outcomes") / unit / f"{arm}.csv"


def _write_outcomes(path: Path, runs: ArmRuns, unit: str) -> None:
    """A row a run, as `jerp passkt` reads it."""
    text = io.StringIO()
    table = csv.writer(text, lineterminator="\n")
    table.writerow(("task", "sample", "spent", "outcome", "category", "seed"))
    for row, (task, category, seed) in enumerate(
        zip(runs.task, runs.category, runs.replicate.tolist(), strict=True)
    ):
        pairs = zip(runs.spent[unit][row], runs.outcome[row], strict=True)
        for sample, (spent, outcome) in enumerate(pairs):
            name = Outcome(int(outcome)).name.lower()
            table.writerow((task, sample, int(spent), name, category, seed))
    make_folder(path.parent)
    write_bytes(path, text.getvalue().encode())


def _surfaces(
    config: PassSurfaceConfig, arms: Mapping[str, ArmRuns], unit: str
) -> dict[str, Any]:
    """The document of one unit, written to a folder of its own with its figures."""
    settings = PassktSettings(
        file=_outcomes(unit, "base"),
        by="category",
        replicates="seed",
        unit=unit,  # pyright: ignore[reportArgumentType]
        announced="no",
        seed=config.seed,
    )
    document = {
        **analyse(settings, _inputs(arms, unit)),
        "command": config.command,
        "files": [str(_outcomes(unit, name)) for name in arms],
    }
    folder = config.folder / unit
    make_folder(folder)
    document["figures"] = [path.name for path in write_figures(document, folder)]
    write_report(document, folder)
    write_json(folder / "results.json", document)
    return document


def _inputs(arms: Mapping[str, ArmRuns], unit: str) -> Inputs:
    base = arms["base"]
    agents = tuple(_agent(arms[name], ARM_LABELS[name], unit) for name in HARNESS_ARMS)
    samples = base.outcome.shape[1]
    category = np.array(base.category)
    return Inputs(
        agents=agents,
        tasks=base.task,
        parts=tuple((name, category == name) for name in dict.fromkeys(base.category)),
        protocol="nested",
        ks=_budgets(samples),
        horizons=STEPS if unit == "steps" else _token_horizons(arms),
        notes=_notes(samples),
        pairs=PAIRS,
        replicate=base.replicate,
        # A task has a row for each seed.
        cluster=np.unique(base.task, return_inverse=True)[1].astype(np.int32),
    )


def _agent(runs: ArmRuns, label: str, unit: str) -> Agent:
    arrays = SampleArrays(
        spent=runs.spent[unit].astype(np.float32),
        outcome=runs.outcome,
        mask=np.ones(runs.outcome.shape, bool),
        horizons=None,
    )
    return Agent(label, arrays, ())


def _token_horizons(arms: Mapping[str, ArmRuns]) -> tuple[float, ...]:
    spent = np.concatenate([runs.spent["tokens"].ravel() for runs in arms.values()])
    found = np.unique(np.quantile(spent, SHARES, method="inverted_cdf"))
    return tuple(found.astype(float).tolist())


def _budgets(samples: int) -> tuple[int, ...]:
    """Powers of two up to the samples that there are, and these."""
    powers = (2**i for i in range(samples.bit_length()))
    return tuple(dict.fromkeys((*powers, samples)))


def _notes(samples: int) -> tuple[str, ...]:
    return (
        f"k ends at {samples}, the recorded responses of a request that are taken: "
        f"what is never solved here may be solved once in {10 * samples} runs",
        "a controller sees how many of the 10 steps are left, and none sees T; the "
        "model is told neither",
        "equal requests have equal responses in all arms and seeds: arms differ by "
        "decisions, and the interval between seeds holds the luck of training, not "
        "that of the model's samples",
        "the base sequence draws nothing, so that its runs of a task differ by the "
        "model's samples alone; the same runs stand beside those of every training "
        "seed",
        "variety alone solves more tasks in k runs: the perturbed base takes a random "
        "legal action a quarter of the time and has learned nothing; what a learned "
        "controller gains beyond it is its own",
    )

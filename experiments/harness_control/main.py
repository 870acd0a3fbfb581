"""Runs the harness-control comparison and writes its report.

The run folder then holds manifest.json, results.json, report.md, report.html, figures/,
the controllers and every trajectory; live runs also hold their response store.
"""

from __future__ import annotations

from contextlib import closing
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import jax
from rich.console import Console
from rich.progress import Progress

import jerp
from experiments.executors.opened import OpenExecutor, resolved
from experiments.executors.spending import print_plan
from experiments.harness_control.config import HarnessConfig
from experiments.harness_control.domains import (
    TAU2,
    data_versions,
    make_domain,
    make_tasks,
)
from experiments.harness_control.executors import open_executor, recorded_reach
from experiments.harness_control.plan import domain_plan
from jerp.bridge.executor import Executor
from jerp.bridge.session import Session
from jerp.bridge.store import ResponseStore
from jerp.bridge.stored import COMPLETION
from jerp.domains.base import ControlledDomain
from jerp.runs.harness.claims import prediction_check, support_check
from jerp.runs.harness.document import write_report
from jerp.runs.harness.domain_run import DomainRun
from jerp.runs.harness.figures import write_figures
from jerp.runs.harness.loop import run_domain
from jerp.runs.harness.overall import overall
from jerp.runs.harness.report import render_tables
from jerp.runs.progress import progress_bars
from jerp.storage.documents import defined, write_json
from jerp.storage.manifest import open_run

__all__ = ["run"]

OVER_DOMAINS = 1_000
"""Stream of random keys; those below belong to single domains."""


def run(config: HarnessConfig, *, console: Console | None = None) -> dict[str, Any]:
    """Runs or resumes the experiment; returns what `results.json` holds."""
    console = console or Console()
    config = replace(config, endpoint=resolved(config.executor, config.endpoint))
    if config.plan:
        return _plan(config, console)
    with (
        open_run(config.folder, _identity(config), seeds=[*range(config.seeds)]),
        open_executor(
            config.executor,
            config.folder,
            console,
            domains=config.domain,
            endpoint=config.endpoint,
        ) as executor,
    ):
        results: dict[str, Any] = {
            "command": config.command,
            "version": jerp.__version__,
            "smoke": config.smoke,
            "seeds": config.seeds,
            "sizes": asdict(config.sizes),
            "domains": {},
        }
        with progress_bars(console, below=executor.spent) as progress:
            for name in config.domain:
                results["domains"][name] = _one(name, config, executor, progress)
        results |= _over_domains(config.seed, results["domains"])
        results["executor"] = executor.description()
        if spent := executor.spent():
            console.print(f"asked of {config.executor}: {spent}")
        results = defined(results)
        _write(results, config.folder, console)
    return results


def _plan(config: HarnessConfig, console: Console) -> dict[str, Any]:
    """Prints what would be asked; nothing is, and nothing is written."""
    kept = config.folder / "store"
    store = ResponseStore(kept if kept.exists() else None, mode="replay")
    parts = []
    for name in config.domain:
        with closing(_domain(name, store, config)) as domain:
            parts += domain_plan(
                config, domain, make_tasks(domain, config.generator_seed)
            )
    price = config.endpoint.price(config.endpoint.model)
    return print_plan(parts, price, store.stored(COMPLETION), console)


def _domain(
    name: str,
    store: ResponseStore,
    config: HarnessConfig,
    executor: Executor | None = None,
) -> ControlledDomain:
    user = executor if config.user == "executor" else None
    return make_domain(name, store, config.data, calling=config.calling, user=user)


def _identity(config: HarnessConfig) -> dict[str, Any]:
    """The settings that must agree for a run to be resumed."""
    versions = data_versions(config.domain, config.data)
    return {
        "experiment": "harness_control",
        **({"data": versions} if versions else {}),
        "domain": list(config.domain),
        "executor": config.executor,
        **({"model": config.endpoint.model} if config.endpoint.model else {}),
        **({"calling": config.calling} if config.calling != "text" else {}),
        **({"user": config.user} if {*TAU2} & {*config.domain} else {}),
        "seeds": config.seeds,
        "seed": config.seed,
        "generator_seed": config.generator_seed,
        "sizes": asdict(config.sizes),
    }


def _one(
    name: str, config: HarnessConfig, executor: OpenExecutor, progress: Progress
) -> dict[str, Any]:
    with closing(_domain(name, executor.store, config, executor.executor)) as domain:
        if config.live:
            for protection, how in domain.preflight().items():
                progress.console.print(f"{name}: sandbox protects {protection}: {how}")
        tasks = make_tasks(domain, config.generator_seed)
        run = DomainRun(
            domain=domain,
            session=Session(domain, executor.executor),
            folder=config.folder / name,
            sizes=config.sizes,
            seeds=config.seeds,
            seed=config.seed,
            progress=progress,
        )
        reach = None if config.live else recorded_reach(name)
        return {**run_domain(run, tasks), "reach": reach}


def _over_domains(seed: int, domains: dict[str, Any]) -> dict[str, Any]:
    keys = jax.random.split(jax.random.fold_in(jax.random.key(seed), OVER_DOMAINS), 3)
    return {
        "overall": overall(keys[0], domains),
        "support": support_check(keys[1], domains),
        "prediction_check": prediction_check(keys[2], domains),
    }


def _write(results: dict[str, Any], folder: Path, console: Console) -> None:
    write_json(folder / "results.json", results)
    write_figures(results, folder / "figures")
    report = write_report(results, folder)
    for table in render_tables(results):
        console.print(table)
    console.print(f"report: {report}", soft_wrap=True)
    for name in results["domains"]:
        console.print(f"episodes of {name}: jerp view {folder / name}", soft_wrap=True)

"""Runs the language model that reads rules in a process of its own, and counts.

The run folder then holds manifest.json, results.json, report.md, report.html, figures/
and what `language_model` keeps.
"""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

import jax
from rich.console import Console
from rich.progress import Progress

import jerp
from experiments.jobs.processes import run_together
from experiments.joint_rules.config import JerpConfig
from experiments.joint_rules.language_model import JOINT, PARTS, is_done
from experiments.joint_rules.language_model_analysis import analyse
from experiments.joint_rules.language_model_config import ReaderSizes
from experiments.joint_rules.language_model_report import (
    curves,
    document,
    sentences,
    table,
)
from jerp.runs.page import write_page
from jerp.runs.progress import progress_bars
from jerp.storage.documents import defined, write_json
from jerp.storage.manifest import open_run

__all__ = ["run_language_model", "stages"]

ANALYSIS = 1_000_000
"""Stream of random keys."""

LATE = "--xla_cpu_scheduler_type=CPU_SCHEDULER_TYPE_MEMORY_OPTIMIZED"
"""By default XLA computes on a CPU as early as it can, and so keeps all layers that a
gradient was to compute a second time: five times the memory."""


def run_language_model(config: JerpConfig, console: Console) -> dict[str, Any]:
    """Runs or resumes; returns what `results.json` holds."""
    sizes = _sizes(config)
    identity = {
        "experiment": "joint_rules",
        "policy": config.policy,
        "seed": config.seed,
        "sizes": sizes,
    }
    with open_run(config.folder, identity, seeds=[0]):
        with progress_bars(console) as progress:
            _in_a_process(config, progress)
        key = jax.random.fold_in(jax.random.key(config.seed), ANALYSIS)
        results = defined(
            {
                "command": config.command,
                "version": jerp.__version__,
                "smoke": config.smoke,
                "policy": config.policy,
                "sizes": sizes,
                **analyse(key, config.folder, config.reader_sizes),
            }
        )
        _write(results, config.folder, console)
    return results


def _sizes(config: JerpConfig) -> dict[str, Any]:
    """As JSON has them."""
    return json.loads(json.dumps(asdict(config.reader_sizes)))


def _in_a_process(config: JerpConfig, progress: Progress) -> None:
    folder, sizes = config.folder.resolve(), config.reader_sizes
    settings = {
        "policy": _absolute(config.policy),
        "seed": config.seed,
        "sizes": _sizes(config),
    }
    bars = [progress.add_task(p, total=n) for p, _, n in stages(folder, sizes)]

    def watch() -> None:
        for bar, found in zip(bars, stages(folder, sizes), strict=True):
            progress.update(bar, description=found[0], completed=found[1])

    watch()
    if all(is_done(folder, part) for part in PARTS):
        return
    cpu = {"XLA_FLAGS": LATE} if jax.default_backend() == "cpu" else {}
    run_together(
        "experiments.joint_rules.language_model",
        [[str(folder), json.dumps(settings)]],
        folder,
        watch,
        environment=cpu,
    )


def stages(folder: Path, sizes: ReaderSizes) -> list[tuple[str, int, int]]:
    """What each part is at, the steps of it that are behind it, and all of them.

    Args:
      folder: of the run; its files say it, because another process makes them.
      sizes: numbers of iterations.
    """
    known, found, before = sizes.joint_iterations, [], True
    for part in PARTS:
        where, done = folder / part, is_done(folder, part)
        steps = known.get(part, 1 if part == "base" else 0)
        behind = int((where / "adapters.safetensors").exists())
        if part in known:
            rows = where / "metrics.jsonl"
            behind = rows.read_bytes().count(b"\n") if rows.exists() else 0
        now = "waits" if not before else "begins" if not behind else "trains"
        now = "evaluates" if before and behind >= steps > 0 else now
        found.append((f"{part}: {'done' if done else now}", behind + done, steps + 1))
        before = done
    return found


def _absolute(policy: str) -> str:
    """A path stays one in a process with another working directory."""
    return str(Path(policy).resolve()) if Path(policy).exists() else policy


def _write(results: dict[str, Any], folder: Path, console: Console) -> None:
    write_json(folder / "results.json", results)
    (folder / "figures").mkdir(exist_ok=True)
    curves(results).savefig(folder / "figures" / "curve.png", dpi=120)
    page = write_page("\n\n".join(document(results)) + "\n", folder)
    console.print(table(results))
    for line in sentences(results):
        console.print(line)
    for part in JOINT:
        for note in results["runs"][part]["warnings"]:
            console.print(f"note: {part}, {note}")
    console.print(f"report: {page}", soft_wrap=True)

"""Runs a language model in the house in a process of its own, and reports.

The run folder then holds manifest.json, results.json, report.md, report.html, figures/
and what `language_model` keeps.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

import jax
import numpy as np
from matplotlib.figure import Figure
from rich.console import Console
from rich.progress import Progress
from rich.table import Table

import jerp
from experiments.gigpo_vs_grpo.config import GigpoConfig
from experiments.gigpo_vs_grpo.job_files import (
    read_job_json,
    read_job_metrics,
    read_job_tree,
)
from experiments.gigpo_vs_grpo.language_model import PARTS, is_done
from experiments.gigpo_vs_grpo.processes import run_together
from jerp.estimators.intervals import bootstrap_interval, paired_difference
from jerp.records import Interval
from jerp.runs.cells import interval, markdown_table, number
from jerp.runs.page import write_page
from jerp.runs.progress import progress_bars
from jerp.storage.documents import defined, write_json
from jerp.storage.manifest import open_run
from jerp.typing import Key, Outcome

__all__ = ["run_language_model"]

ANALYSIS = 1_000_000
"""Stream of random keys."""

LATE = "--xla_cpu_scheduler_type=CPU_SCHEDULER_TYPE_MEMORY_OPTIMIZED"
"""By default XLA computes on a CPU as early as it can, and so keeps all layers that a
gradient was to compute a second time: five times the memory."""

PROCESS = ("peak_memory_bytes", "compile_seconds")
"""What a part notes of its process, and the tables show."""

LABELS = {"base": "cloned", "trained": "trained"}
WINDOW = 10
"""Iterations that a curve is averaged over."""


def run_language_model(config: GigpoConfig, console: Console) -> dict[str, Any]:
    """Runs or resumes; returns what `results.json` holds."""
    sizes = asdict(config.reader_sizes)
    identity = {
        "experiment": "gigpo_vs_grpo",
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
                **_analyse(key, config.folder, sizes["iterations"]),
            }
        )
        _write(results, config.folder, console)
    return results


def _in_a_process(config: GigpoConfig, progress: Progress) -> None:
    folder = config.folder.resolve()
    settings = {
        "policy": _absolute(config.policy),
        "seed": config.seed,
        "sizes": asdict(config.reader_sizes),
    }
    iterations = config.reader_sizes.iterations
    bars = [
        progress.add_task(name, total=total)
        for name, total in (("clone, evaluate", 1), ("train, evaluate", iterations + 1))
    ]

    def watch() -> None:
        progress.update(bars[0], completed=is_done(folder, "base"))
        rows = folder / "trained" / "metrics.jsonl"
        done = rows.read_bytes().count(b"\n") if rows.exists() else 0
        progress.update(bars[1], completed=done + is_done(folder, "trained"))

    watch()
    if all(is_done(folder, part) for part in PARTS):
        return
    cpu = {"XLA_FLAGS": LATE} if jax.default_backend() == "cpu" else {}
    run_together(
        "experiments.gigpo_vs_grpo.language_model",
        [[str(folder), json.dumps(settings)]],
        folder,
        watch,
        environment=cpu,
    )


def _absolute(policy: str) -> str:
    """A path stays one in a process with another working directory."""
    return str(Path(policy).resolve()) if Path(policy).exists() else policy


def _analyse(key: Key, folder: Path, iterations: int) -> dict[str, Any]:
    rates = {part: _rate(folder, part) for part in PARTS}
    streams = jax.random.split(key, 3)
    _, cloned = read_job_tree(folder / "base", "adapters.safetensors")
    noted = read_job_json(folder / "trained", "warnings.json", ["warnings"])
    rows = read_job_metrics(folder / "trained", iterations)
    return {
        "parts": {
            part: {
                "success": _plain(bootstrap_interval(stream, rates[part])),
                "steps": float(_read(folder, part)["steps"].mean()),
                **read_job_json(folder / part, "process.json", PROCESS),
            }
            for part, stream in zip(PARTS, streams, strict=False)
        },
        "difference": _plain(
            paired_difference(streams[2], rates["trained"], rates["base"])
        ),
        "cloning_loss": cloned["loss"],
        "curve": [row["success"] for row in rows],
        "sampler_gap": max(row["sampler_gap"] for row in rows),
        "at_the_end": {
            name: float(np.mean([row[name] for row in rows[-WINDOW:]]))
            for name in ("success", "entropy", "dead_share", "anchor_size_mean")
        },
        "warnings": noted["warnings"],
    }


def _read(folder: Path, part: str) -> dict[str, Any]:
    return read_job_tree(folder / part, "evaluation.safetensors")[0]


def _rate(folder: Path, part: str) -> np.ndarray:
    success = _read(folder, part)["outcome"] == Outcome.SUCCESS
    return success.mean(axis=1).astype(np.float32)


def _plain(found: Interval) -> dict[str, float]:
    return {name: float(getattr(found, name)) for name in ("point", "low", "high")}


def _write(results: dict[str, Any], folder: Path, console: Console) -> None:
    write_json(folder / "results.json", results)
    (folder / "figures").mkdir(exist_ok=True)
    _draw(results).savefig(folder / "figures" / "curve.png", dpi=120)
    page = write_page("\n\n".join(_document(results)) + "\n", folder)
    console.print(_table(results))
    console.print(_gap(results))
    for note in results["warnings"]:
        console.print(f"note: {note}")
    console.print(f"report: {page}", soft_wrap=True)


def _title(results: Mapping[str, Any]) -> str:
    sizes = results["sizes"]
    return (
        f"house, small, in words: {results['policy']} with adapters of rank "
        f"{sizes['rank']}, {sizes['iterations']} iterations of {sizes['arm']} with "
        f"{sizes['num_groups']} x {sizes['group_size']} episodes of at most "
        f"{sizes['num_steps']} steps; {sizes['held_out']} held-out tasks x "
        f"{sizes['samples']} episodes"
    )


def _gap(results: Mapping[str, Any]) -> str:
    """Whether what was sampled is what was trained."""
    return (
        "Sampled and trained log-probabilities differ by "
        f"{results['sampler_gap']:.0e} at most."
    )


HEADER = ("policy", "success", "steps", "peak memory", "compile s")


def _rows(results: Mapping[str, Any]) -> Iterator[tuple[str, ...]]:
    for part, found in results["parts"].items():
        yield (
            LABELS[part],
            interval(found["success"], digits=2),
            number(found["steps"], 1),
            f"{found['peak_memory_bytes'] / 2**20:.0f} MiB",
            number(found["compile_seconds"], 0),
        )
    change = interval(results["difference"], digits=2, sign=True)
    yield ("trained - cloned", change, "", "", "")


def _table(results: Mapping[str, Any]) -> Table:
    table = Table(title=_title(results), title_justify="left", box=None)
    for place, name in enumerate(HEADER):
        table.add_column(name, justify="right" if place else "left", no_wrap=True)
    for row in _rows(results):
        table.add_row(*row)
    return table


def _document(results: Mapping[str, Any]) -> Iterator[str]:
    yield "# A language model in the house"
    yield f"Made by `{results['command']}` with jerp {results['version']}."
    if results["smoke"]:
        yield "**Smoke run: it checks the plumbing; its numbers mean nothing.**"
    yield f"{_title(results)}. Intervals: 95%, tasks resampled."
    yield markdown_table(HEADER, _rows(results))
    yield "![success while training](figures/curve.png)"
    losses = ", ".join(number(x, 3) for x in results["cloning_loss"])
    yield (
        f"Loss of cloning by epoch: {losses}. {_gap(results)} At the end of training: "
        + ", ".join(
            f"{name.replace('_', ' ')} {number(x, 2)}"
            for name, x in results["at_the_end"].items()
        )
        + "."
    )
    if results["warnings"]:
        yield "\n".join(f"- {note}" for note in results["warnings"])


def _draw(results: Mapping[str, Any]) -> Figure:
    curve = np.asarray(results["curve"])
    width = min(WINDOW, len(curve))
    mean = np.convolve(curve, np.ones(width) / width, mode="valid")
    figure = Figure(figsize=(7, 4), layout="tight")
    axis = figure.subplots()
    axis.plot(curve, ".", alpha=0.4, label="an iteration")
    axis.plot(np.arange(width - 1, len(curve)), mean, label=f"mean of {width}")
    axis.set_xlabel("iteration")
    axis.set_ylabel("success in training")
    axis.set_ylim(0, 1)
    axis.legend()
    return figure

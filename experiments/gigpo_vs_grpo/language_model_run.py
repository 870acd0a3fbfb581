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
from experiments.gigpo_vs_grpo.language_model import PARTS, is_done
from experiments.gigpo_vs_grpo.report import SMOKE, iteration_axis
from experiments.jobs.job_files import (
    read_job_json,
    read_job_metrics,
    read_job_tree,
)
from experiments.jobs.processes import run_together
from jerp.estimators.intervals import bootstrap_interval, paired_difference
from jerp.runs.cells import interval, markdown_table, number, plain_interval
from jerp.runs.page import write_page
from jerp.runs.progress import progress_bars
from jerp.storage.documents import defined, write_json
from jerp.storage.manifest import open_run
from jerp.typing import Key, Outcome

__all__ = ["run_language_model", "stages"]

ANALYSIS = 1_000_000
"""Stream of random keys."""

LATE = "--xla_cpu_scheduler_type=CPU_SCHEDULER_TYPE_MEMORY_OPTIMIZED"
"""By default XLA computes on a CPU as early as it can, and so keeps all layers that a
gradient was to compute a second time: five times the memory."""

PROCESS = ("peak_memory_bytes", "compile_seconds")
"""What a part notes of its process, and the tables show."""

LABELS = {"base": "cloned", "trained": "trained"}
WINDOW = 10
"""Iterations that a curve is averaged over, if there are twice as many."""


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
    bars = [progress.add_task("", total=total) for total in (2, iterations + 1)]

    def watch() -> None:
        for bar, found in zip(bars, stages(folder, iterations), strict=True):
            stage, completed = found
            progress.update(bar, description=stage, completed=completed)

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


def stages(folder: Path, iterations: int) -> tuple[tuple[str, int], tuple[str, int]]:
    """What cloning and training are at, and how many of their steps are behind them.

    Args:
      folder: of the run; its files say it, because another process makes them.
      iterations: of training.
    """
    cloned = (folder / "base" / "adapters.safetensors").exists()
    done = [is_done(folder, part) for part in PARTS]
    first = "load model" if not (folder / "base").exists() else "demonstrate, clone"
    if cloned:
        first = "clone: done" if done[0] else "clone: evaluate"
    rows = folder / "trained" / "metrics.jsonl"
    trained = rows.read_bytes().count(b"\n") if rows.exists() else 0
    second = "train" if done[0] else "train: waits"
    if trained >= iterations:
        second = "train: done" if done[1] else "train: evaluate"
    return (first, cloned + done[0]), (second, trained + done[1])


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
                "success": plain_interval(bootstrap_interval(stream, rates[part])),
                "steps": float(_read(folder, part)["steps"].mean()),
                **read_job_json(folder / part, "process.json", PROCESS),
            }
            for part, stream in zip(PARTS, streams, strict=False)
        },
        "difference": plain_interval(
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
    title = _title(results)
    if results["smoke"]:
        title = f"{SMOKE}\n{title}"
    table = Table(title=title, title_justify="left", box=None)
    for place, name in enumerate(HEADER):
        table.add_column(name, justify="right" if place else "left", no_wrap=True)
    for row in _rows(results):
        table.add_row(*row)
    return table


def _document(results: Mapping[str, Any]) -> Iterator[str]:
    yield "# A language model in the house"
    yield f"Made by `{results['command']}` with jerp {results['version']}."
    if results["smoke"]:
        yield f"**{SMOKE}**"
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
    figure = Figure(figsize=(7, 4), layout="tight")
    axis = figure.subplots()
    axis.plot(curve, ".", alpha=0.4, label="an iteration")
    if len(curve) >= 2 * WINDOW:
        mean = np.convolve(curve, np.ones(WINDOW) / WINDOW, mode="valid")
        axis.plot(np.arange(WINDOW - 1, len(curve)), mean, label=f"mean of {WINDOW}")
    iteration_axis(axis, len(curve))
    axis.set_ylabel("success in training")
    # Dots at 0 and 1 are whole.
    axis.set_ylim(-0.04, 1.04)
    axis.legend()
    return figure

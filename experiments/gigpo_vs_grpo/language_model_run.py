"""How the language model in the house is run, counted and reported.

See `experiments.jobs.language_model_run`; `language_model` says what the parts keep.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import jax
import numpy as np
from matplotlib.figure import Figure
from rich.table import Table

from experiments.gigpo_vs_grpo.config import ReaderSizes
from experiments.gigpo_vs_grpo.language_model import PARTS
from experiments.gigpo_vs_grpo.report import SMOKE, iteration_axis
from experiments.jobs.job import is_done
from experiments.jobs.job_files import (
    read_job_json,
    read_job_metrics,
    read_job_tree,
)
from experiments.jobs.language_model_run import LanguageModelRun, Report, Stage
from jerp.estimators.intervals import bootstrap_interval, paired_difference
from jerp.runs.cells import interval, markdown_table, number, plain_interval
from jerp.typing import Key, Outcome

__all__ = ["LANGUAGE_MODEL", "stages"]

PROCESS = ("peak_memory_bytes", "compile_seconds")
"""What a part notes of its process, and the tables show."""

LABELS = {"base": "cloned", "trained": "trained"}
WINDOW = 10
"""Iterations that a curve is averaged over, if there are twice as many."""


def stages(folder: Path, sizes: ReaderSizes) -> tuple[Stage, Stage]:
    """What cloning and training are at."""
    iterations = sizes.iterations
    cloned = (folder / "base" / "adapters.safetensors").exists()
    done = [is_done(folder / part) for part in PARTS]
    first = "load model" if not (folder / "base").exists() else "demonstrate, clone"
    if cloned:
        first = "clone: done" if done[0] else "clone: evaluate"
    rows = folder / "trained" / "metrics.jsonl"
    trained = rows.read_bytes().count(b"\n") if rows.exists() else 0
    second = "train" if done[0] else "train: waits"
    if trained >= iterations:
        second = "train: done" if done[1] else "train: evaluate"
    return (
        Stage(first, cloned + done[0], 2),
        Stage(second, trained + done[1], iterations + 1),
    )


def _analyse(key: Key, folder: Path, sizes: ReaderSizes) -> dict[str, Any]:
    rates = {part: _rate(folder, part) for part in PARTS}
    streams = jax.random.split(key, 3)
    _, cloned = read_job_tree(folder / "base", "adapters.safetensors")
    noted = read_job_json(folder / "trained", "warnings.json", ["warnings"])
    rows = read_job_metrics(folder / "trained", sizes.iterations)
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


def _report(results: dict[str, Any]) -> Report:
    notes = [f"note: {note}" for note in results["warnings"]]
    lines = [_gap(results), *notes]
    return Report(_draw(results), _document(results), _table(results), lines)


LANGUAGE_MODEL = LanguageModelRun("gigpo_vs_grpo", PARTS, stages, _analyse, _report)

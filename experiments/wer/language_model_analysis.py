"""Numbers of a language model that writes skills, from the files of its parts."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import jax
import numpy as np

from experiments.jobs.job_files import (
    read_job_json,
    read_job_metrics,
    read_job_tree,
)
from experiments.wer.language_model import PARTS
from experiments.wer.language_model_config import ReaderSizes
from experiments.wer.language_model_evaluation import NONE, WAYS, WER
from jerp.estimators.intervals import bootstrap_interval, paired_difference
from jerp.runs.cells import plain_interval
from jerp.typing import Key, Outcome

__all__ = ["analyse"]

PROCESS = ["peak_memory_bytes", "compilations", "compile_seconds", "seconds"]

CURVES = ("phase", "success", "parsed", "mixed", "reward")


def analyse(key: Key, folder: Path, sizes: ReaderSizes) -> dict[str, Any]:
    """What `results.json` holds beside the settings."""
    found, written = read_job_tree(folder / "evaluation", "evaluation.safetensors")
    streams = jax.random.split(key, 3 * len(found["test"]))
    rates = {name: _rate(outcome) for name, outcome in found["test"].items()}
    rows = {}
    for number, name in enumerate((NONE, *WAYS)):
        rate = rates[name]
        row = {
            "success": plain_interval(bootstrap_interval(streams[number], rate)),
            "lost_runs": _lost(found["test"][name]),
            **written["ways"].get(name, {}),
        }
        if name != WER:
            above = paired_difference(streams[len(rates) + number], rates[WER], rate)
            row["wer_above"] = plain_interval(above)
        if name != NONE:
            stream = streams[2 * len(rates) + number]
            row["effect"] = plain_interval(paired_difference(stream, rate, rates[NONE]))
        rows[name] = row
    return {
        "rows": rows,
        "best": max(WAYS, key=lambda name: _validated(rows[name])),
        "tasks": len(rates[NONE]),
        "base": _base(folder),
        "training": _training(folder, sizes),
        "process": {
            part: read_job_json(folder / part, "process.json", PROCESS)
            for part in PARTS
        },
    }


def _rate(outcome: np.ndarray) -> np.ndarray:
    """`[N]` float32, success of each task; NaN where nobody answered."""
    answered = (outcome != Outcome.INFRASTRUCTURE).sum(axis=1)
    won = (outcome == Outcome.SUCCESS).sum(axis=1)
    share = won / np.maximum(answered, 1)
    return np.where(answered > 0, share, np.nan).astype(np.float32)


def _validated(row: dict[str, Any]) -> float:
    """What validation said of a way's skill; of none it was not asked."""
    share = row["validation"][row["made"]]
    return -1.0 if row["skill"] is None or np.isnan(share) else share


def _lost(outcome: np.ndarray) -> int:
    return int((outcome == Outcome.INFRASTRUCTURE).sum())


def _base(folder: Path) -> dict[str, Any]:
    """Where the clone stands: its loss, and what first drafts come to."""
    found, noted = read_job_tree(folder / "base", "evaluation.safetensors")
    _, cloned = read_job_tree(folder / "base", "adapters.safetensors")
    outcome = found["outcome"]
    won, lost = (
        (outcome == kind).any(axis=1) for kind in (Outcome.SUCCESS, Outcome.FAILURE)
    )
    faults: dict[str, int] = {}
    for name in (name for row in noted["faults"] for name in row):
        faults[name] = faults.get(name, 0) + 1
    return {
        "loss": cloned["loss"],
        "drafts": len(found["parsed"]),
        "parsed": float(found["parsed"].mean()),
        "executed": len(outcome),
        "mixed": float((won & lost).mean()) if len(outcome) else None,
        "success": float((outcome == Outcome.SUCCESS).mean()) if len(outcome) else None,
        "faults": faults,
    }


def _training(folder: Path, sizes: ReaderSizes) -> dict[str, Any]:
    names = (*CURVES, "executor_calls", "executor_tokens", "draft_tokens")
    names = (*names, "sampler_gap", "lost_drafts")
    rows = read_job_metrics(folder / "trained", sizes.total, names)
    found, noted = read_job_tree(folder / "trained", "evaluation.safetensors")
    return {
        "curves": {name: [row[name] for row in rows] for name in CURVES},
        "calls": sum(row["executor_calls"] for row in rows) + noted["seed_calls"],
        "tokens": sum(row["executor_tokens"] for row in rows),
        "draft_tokens": sum(row["draft_tokens"] for row in rows) + noted["seed_tokens"],
        "lost_drafts": sum(row["lost_drafts"] for row in rows),
        "sampler_gap": max(row["sampler_gap"] for row in rows),
        "kept": int(found["retained"].sum()),
        "warnings": noted["warnings"],
    }

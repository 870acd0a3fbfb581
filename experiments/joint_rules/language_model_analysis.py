"""Numbers of a language model that reads rules, from the files of its parts alone."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import jax
import numpy as np

from experiments.jobs.job_files import (
    read_job_json,
    read_job_metrics,
    read_job_tree,
)
from experiments.joint_rules.language_model import PARTS
from experiments.joint_rules.language_model_config import ReaderSizes
from jerp.estimators.intervals import bootstrap_interval, paired_difference
from jerp.rules.edits import EditOp
from jerp.runs.cells import plain_interval
from jerp.storage.rule_files import read_pool
from jerp.typing import Key, Outcome

__all__ = ["analyse"]

PROCESS = ("peak_memory_bytes", "compilations", "compile_seconds")
"""What a part notes of its process."""

Numbers = Mapping[str, Any]

DIFFERENCES = {
    "right rules - none": (("base", "right"), ("base", "without")),
    "wrong rules - none": (("base", "wrong"), ("base", "without")),
    "JERP - cloned, both without rules": (("jerp", "without"), ("base", "without")),
    "JERP's rules - none": (("jerp", "with"), ("jerp", "without")),
    "retrieved right rules - cloned with right ones": (
        ("similar", "with"),
        ("base", "right"),
    ),
}
"""Of success, on the same instances with the same keys."""


def analyse(key: Key, folder: Path, sizes: ReaderSizes) -> dict[str, Any]:
    """All numbers of `results.json` but sizes and versions.

    Args:
      key: consumed.
      folder: of a run whose parts are done.
      sizes: of the run.
    """
    streams = _streams(key)
    found = {
        part: read_job_tree(folder / part, "evaluation.safetensors")[0]
        for part in PARTS
    }
    _, cloned = read_job_tree(folder / "base", "adapters.safetensors")
    base = found["base"]
    rows = [
        {"part": part, "told": told, **_row(streams, played, base)}
        for part in PARTS
        for told, played in found[part]["played"].items()
    ]
    return {
        "rows": rows,
        "differences": {
            label: plain_interval(
                paired_difference(
                    next(streams),
                    *(_rates(found[part]["played"][told]) for part, told in pair),
                )
            )
            for label, pair in DIFFERENCES.items()
        },
        "cloning": {name: cloned[name] for name in ("loss", "success")},
        "runs": {
            part: _run(folder / part, number)
            for part, number in sizes.joint_iterations.items()
        },
        "retrieved_otherwise": _otherwise(found["similar"]),
        "notes": read_job_json(
            folder / "prompted", "notes.json", ("notes", "rejected", "said")
        ),
        "process": {
            part: read_job_json(folder / part, "process.json", PROCESS)
            for part in PARTS
        },
    }


def _streams(key: Key) -> Iterator[Key]:
    number = 0
    while True:
        yield jax.random.fold_in(key, number)
        number += 1


def _rates(played: Numbers) -> np.ndarray:
    """`[N]` float32, success of each instance."""
    success = played.get("solved", None)
    if success is None:
        success = played["outcome"] == Outcome.SUCCESS
    return np.asarray(success, np.float32).mean(axis=1)


def _row(streams: Iterator[Key], played: Numbers, base: Numbers) -> dict[str, Any]:
    rate = _rates(played)
    row: dict[str, Any] = {
        "instances": len(rate),
        "episodes": int(played["steps"].size),
        "success": plain_interval(bootstrap_interval(next(streams), rate)),
        "steps": float(played["steps"].mean()),
    }
    if "unparsed" in played:
        row["unparsed"] = float(played["unparsed"].sum() / played["steps"].sum())
    if "move" in played:
        for which in ("right", "wrong"):
            row[which] = _followed(next(streams), played, base[which])
    return row


def _followed(key: Key, played: Numbers, told: np.ndarray) -> dict[str, Any]:
    """Of the steps in situations that rules `[N, R, 2]` speak of those that obey."""
    situation, move = played["situation"], played["move"]
    speaks = (situation[..., None] == told[:, None, None, :, 0]) & (
        situation[..., None] > 0
    )
    obeys = np.any(speaks & (move[..., None] == told[:, None, None, :, 1]), axis=-1)
    spoken = np.any(speaks, axis=-1)
    cluster = np.broadcast_to(np.arange(len(situation))[:, None, None], situation.shape)
    interval = bootstrap_interval(
        key,
        obeys.reshape(-1).astype(np.float32),
        cluster=cluster.reshape(-1).astype(np.int32),
        mask=spoken.reshape(-1),
    )
    return {**plain_interval(interval), "num_steps": int(spoken.sum())}


def _run(where: Path, iterations: int) -> dict[str, Any]:
    """What a training was: its curve, its edits, its pool."""
    fields = ("success", "sampler_gap", "rules", "references", "rejected")
    rows = read_job_metrics(where, iterations, fields)
    rejected: Counter[str] = Counter()
    for row in rows:
        for name, count in row.items():
            if name.startswith("rejected_"):
                rejected[name.removeprefix("rejected_")] += int(count)
    pools = read_pool(where / "pool.json").pools
    return {
        "iterations": iterations,
        "curve": [row["success"] for row in rows],
        "sampler_gap": max(row["sampler_gap"] for row in rows),
        "references": int(rows[-1]["references"]),
        "operations": {
            op.name: [
                int(sum(row[f"{what}_{op.name.lower()}"] for row in rows))
                for what in ("applied", "dropped")
            ]
            for op in EditOp
        },
        "rejected": dict(sorted(rejected.items())),
        "pool": {
            key: [[rule.text, rule.score, rule.uses, rule.wins] for rule in rules]
            for key, rules in pools.items()
            if rules
        },
        **read_job_json(where, "warnings.json", ("warnings",)),
    }


def _otherwise(similar: Numbers) -> float:
    """Share of the retrieved rules that the scores would not have chosen."""
    rules, best = similar["rules"], similar["best"]
    there = rules >= 0
    same = np.any(rules[:, :, None] == best[:, None, :], axis=-1)
    return float(np.mean(~same[there])) if there.any() else float("nan")

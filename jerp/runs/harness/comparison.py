"""From trajectory folders to the numbers of the comparison.

Everything is read back from disk, so that the numbers are those of the files a reader
can open. The task is the cluster of every interval; differences are paired by task.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jerp.estimators.intervals import bootstrap_interval, paired_difference
from jerp.estimators.standard_error import smallest_detectable_difference
from jerp.harness.actions import ACTIONS
from jerp.harness.maturity import maturity
from jerp.objectives.awr import effective_sample_size
from jerp.records import Interval, ProcessStep, ProcessTrace
from jerp.storage.trajectories import TrajectoryFolder
from jerp.typing import USAGE_KINDS, Key, Outcome

__all__ = [
    "EpisodeTable",
    "arm_summary",
    "buffer_support",
    "contrast",
    "detectable_q",
    "mix_summary",
    "read_episodes",
]

CALLS = USAGE_KINDS.index("executor_calls")
TOKENS = slice(USAGE_KINDS.index("tokens_in"), USAGE_KINDS.index("tokens_out") + 1)


@dataclass(frozen=True)
class EpisodeTable:
    """One row an episode; `[E]` NumPy arrays.

    Attributes:
      task_id: index of the task.
      valid: not INFRASTRUCTURE.
      outcome: see `jerp.typing.Outcome`.
      score: Q, the verifier's score.
      hms: harness maturity, attainable normalisation.
      steps, calls, tokens: what the episode used.
      events: name to (applicable, fired) pairs of bool arrays.
    """

    task_id: np.ndarray
    valid: np.ndarray
    outcome: np.ndarray
    score: np.ndarray
    hms: np.ndarray
    steps: np.ndarray
    calls: np.ndarray
    tokens: np.ndarray
    events: Mapping[str, tuple[np.ndarray, np.ndarray]]


def read_episodes(folder: TrajectoryFolder, domain: Any) -> EpisodeTable:
    """Reads a trajectory folder and measures each episode's process maturity."""
    trajectory = folder.load()
    mask = np.asarray(trajectory.mask)
    usage = np.where(mask[..., None], np.asarray(trajectory.usage), 0).sum(1)
    scores = np.asarray(trajectory.score)
    results = [
        maturity(_process_trace(steps, domain, float(score)))
        for steps, score in zip(folder.transcripts(), scores, strict=True)
    ]
    names = list(results[0].events)
    return EpisodeTable(
        task_id=np.asarray(trajectory.task_id),
        valid=np.asarray(trajectory.outcome) != Outcome.INFRASTRUCTURE,
        outcome=np.asarray(trajectory.outcome),
        score=scores,
        hms=np.asarray([r.score for r in results], np.float32),
        steps=mask.sum(1),
        calls=usage[:, CALLS],
        tokens=usage[:, TOKENS].sum(-1),
        events={
            name: (
                np.asarray([r.events[name].applicable for r in results]),
                np.asarray([r.events[name].fired for r in results]),
            )
            for name in names
        },
    )


def _process_trace(
    steps: Sequence[Mapping[str, Any]], domain: Any, score: float
) -> ProcessTrace:
    """The trace that `collect` wrote beside the text."""
    records = []
    for step in steps:
        fields = dict(step.get("process", {"action": step["action"], "error": True}))
        if fields.get("missing") is not None:
            fields["missing"] = tuple(fields["missing"])
        records.append(ProcessStep(**fields))
    verdict = steps[-1].get("verdict") if steps else None
    criteria = verdict["criteria"] if verdict else []
    missing = np.mean([c["score"] < 1 for c in criteria]) if criteria else 1.0
    return ProcessTrace(
        steps=tuple(records),
        max_steps=domain.max_steps,
        cost_budget=domain.cost_budget,
        tools=ACTIONS,
        score=score if verdict is not None else None,
        missing_share=float(missing),
        runs_code=domain.runs_code,
        needs_evidence=domain.needs_evidence,
        chose_submit=verdict is not None,
    )


def task_means(table: EpisodeTable, column: str) -> tuple[np.ndarray, np.ndarray]:
    """Task ids and each task's mean of a column, over valid episodes (NaN: none)."""
    ids, inverse = np.unique(table.task_id, return_inverse=True)
    value = np.asarray(getattr(table, column), np.float64)
    counts = table.valid & ~np.isnan(value)
    total = np.bincount(inverse, weights=np.where(counts, value, 0.0))
    count = np.bincount(inverse, weights=counts)
    return ids, np.where(count > 0, total / np.maximum(count, 1), np.nan)


def arm_summary(
    key: Key, arm: EpisodeTable, base: EpisodeTable | None
) -> dict[str, Any]:
    """Means with intervals, event rates, and paired differences against `base`."""
    summary: dict[str, Any] = {
        "episodes": len(arm.score),
        "invalid": int((~arm.valid).sum()),
        "outcomes": {
            o.name.lower(): int((arm.outcome == o).sum())
            for o in Outcome
            if (arm.outcome == o).any()
        },
        "events": {n: _event(arm, *pair) for n, pair in arm.events.items()},
    }
    columns = {"q": "score", "hms": "hms", "steps": "steps", "calls": "calls"}
    keys = iter(jax.random.split(key, 2 * len(columns)))
    for name, column in (*columns.items(), ("tokens", "tokens")):
        means = task_means(arm, column)[1]
        summary[name] = _plain(bootstrap_interval(next(keys), means))
    if base is not None:
        summary["difference"] = {
            name: _plain(
                paired_difference(
                    next(keys),
                    task_means(arm, columns[name])[1],
                    task_means(base, columns[name])[1],
                )
            )
            for name in ("q", "hms", "calls")
        }
    return summary


def contrast(key: Key, a: EpisodeTable, b: EpisodeTable) -> dict[str, float]:
    """Paired difference in Q of two arms, `a - b`."""
    return _plain(
        paired_difference(key, task_means(a, "score")[1], task_means(b, "score")[1])
    )


def detectable_q(arm: EpisodeTable, base: EpisodeTable) -> float:
    """Smallest difference in Q against base that these tasks detect with 80% power."""
    a, b = task_means(arm, "score")[1], task_means(base, "score")[1]
    return float(smallest_detectable_difference(a - b))


def _event(arm: EpisodeTable, applicable: np.ndarray, fired: np.ndarray) -> dict:
    counted = applicable & arm.valid
    number = int(counted.sum())
    rate = float((fired & counted).sum() / number) if number else None
    return {"applicable": number, "rate": rate}


def _plain(interval: Interval) -> dict[str, float]:
    return {k: float(getattr(interval, k)) for k in ("point", "low", "high")}


def buffer_support(
    table: EpisodeTable, weight: np.ndarray, base: EpisodeTable
) -> dict[str, Any]:
    """What the buffer can teach: spread, best return, weights.

    Args:
      table: the behaviour episodes.
      weight: `[E]` advantage weight of each, 0 where invalid.
      base: episodes of the base sequence on the same tasks.
    """
    valid = table.valid
    ids = np.unique(table.task_id[valid])
    per_task = [table.score[valid & (table.task_id == i)] for i in ids]
    spread = np.asarray([np.std(r) for r in per_task])
    size = float(effective_sample_size(jnp.asarray(weight), jnp.asarray(valid)))
    return {
        "episodes": int(valid.sum()),
        "tasks": len(ids),
        "mean_return": float(np.mean([r.mean() for r in per_task])),
        "best_return_per_task": float(np.mean([r.max() for r in per_task])),
        "base_return": float(np.nanmean(task_means(base, "score")[1])),
        "within_task_sd": float(spread.mean()),
        "tasks_with_spread": float((spread > 1e-6).mean()),
        "effective_sample_share": size / int(valid.sum()),
        "returns": table.score[valid].round(4).tolist(),
        "weights": weight[valid].round(4).tolist(),
    }


def mix_summary(tables: Sequence[EpisodeTable]) -> dict[str, Any]:
    """How hard the tasks are for the executor under the base sequence."""
    per_task = [
        table.score[(table.task_id == i) & table.valid]
        for table in tables
        for i in np.unique(table.task_id[table.valid])
    ]
    return {
        "tasks": len(per_task),
        "base_mean": float(np.mean([r.mean() for r in per_task])),
        "spread_share": float(np.mean([r.std() > 1e-6 for r in per_task])),
    }

"""The numbers of one domain: every arm, its differences, what the buffer supports.

The task is the cluster of every interval; differences are paired by task. Each interval
has its own stream of resamples.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jerp.estimators.intervals import bootstrap_interval, paired_difference
from jerp.estimators.standard_error import smallest_detectable_difference
from jerp.objectives.awr import effective_sample_size
from jerp.records import Interval
from jerp.runs.harness.episodes import EpisodeTable, task_means
from jerp.typing import Key, Outcome

__all__ = [
    "arm_summary",
    "buffer_support",
    "by_difficulty",
    "contrast",
    "detectable_q",
    "mix_summary",
]

COLUMNS = {"q": "score", "hms": "hms", "steps": "steps", "calls": "calls"}
"""Numbers of an arm, and the column of `EpisodeTable` that each is the mean of."""


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
    keys = iter(jax.random.split(key, len(COLUMNS) + 5))
    for name, column in (*COLUMNS.items(), ("tokens", "tokens")):
        summary[name] = plain(bootstrap_interval(next(keys), task_means(arm, column)))
    # The values behind every paired difference: macro averages are made of them.
    summary["q_by_task"] = task_means(arm, "score").tolist()
    summary["hms_by_task"] = task_means(arm, "hms").tolist()
    summary["q_by_seed"] = [
        plain(bootstrap_interval(k, task_means(arm, "score", arm.of_version(seed))))
        for seed, k in enumerate(jax.random.split(next(keys), 1 + arm.version.max()))
    ]
    if base is not None:
        summary["difference"] = {
            name: plain(
                paired_difference(
                    next(keys),
                    task_means(arm, COLUMNS[name]),
                    task_means(base, COLUMNS[name]),
                )
            )
            for name in ("q", "hms", "calls")
        }
    return summary


def contrast(key: Key, a: EpisodeTable, b: EpisodeTable) -> dict[str, float]:
    """Paired difference in Q of two arms, `a - b`."""
    return plain(paired_difference(key, task_means(a, "score"), task_means(b, "score")))


def by_difficulty(
    arm: EpisodeTable, base: EpisodeTable, difficulty: np.ndarray
) -> dict[str, float]:
    """Mean paired difference in Q within each difficulty.

    Args:
      arm: episodes.
      base: episodes on the same tasks.
      difficulty: `[tasks]` of the domain, by task id.
    """
    gain = task_means(arm, "score") - task_means(base, "score")
    level = difficulty[np.unique(arm.task_id)]
    return {str(d): float(np.nanmean(gain[level == d])) for d in np.unique(level)}


def detectable_q(arm: EpisodeTable, base: EpisodeTable) -> float:
    """Smallest difference in Q against base that these tasks detect with 80% power."""
    difference = task_means(arm, "score") - task_means(base, "score")
    return float(smallest_detectable_difference(difference))


def buffer_support(
    table: EpisodeTable, weight: np.ndarray, base: EpisodeTable, difficulty: np.ndarray
) -> dict[str, Any]:
    """What the buffer can teach: spread, best return, weights.

    Args:
      table: the behaviour episodes.
      weight: `[E]` advantage weight of each, 0 where invalid.
      base: episodes of the base sequence on the same tasks.
      difficulty: `[tasks]` of the domain, by task id.
    """
    valid = table.valid
    return {
        **_support(table, weight, valid),
        "base_return": float(np.nanmean(task_means(base, "score"))),
        "strata": {
            str(d): _support(table, weight, valid & (difficulty[table.task_id] == d))
            for d in np.unique(difficulty[table.task_id])
        },
        "returns": table.score[valid].round(4).tolist(),
        "weights": weight[valid].round(4).tolist(),
    }


def _support(
    table: EpisodeTable, weight: np.ndarray, kept: np.ndarray
) -> dict[str, float]:
    """Support of the kept episodes, tasks weighing alike."""
    ids = np.unique(table.task_id[kept])
    per_task = [table.score[kept & (table.task_id == i)] for i in ids]
    spread = np.asarray([np.std(r) for r in per_task])
    size = float(effective_sample_size(jnp.asarray(weight), jnp.asarray(kept)))
    return {
        "episodes": int(kept.sum()),
        "tasks": len(ids),
        "mean_return": float(np.mean([r.mean() for r in per_task])),
        "best_return_per_task": float(np.mean([r.max() for r in per_task])),
        "within_task_sd": float(spread.mean()),
        "tasks_with_spread": float((spread > 1e-6).mean()),
        "effective_sample_share": size / int(kept.sum()),
    }


def mix_summary(tables: Mapping[str, EpisodeTable]) -> dict[str, Any]:
    """How hard the tasks are for the executor under the base sequence."""
    per_task = [
        table.score[(table.task_id == i) & table.valid]
        for table in tables.values()
        for i in np.unique(table.task_id[table.valid])
    ]
    return {
        "tasks": len(per_task),
        "base_mean": float(np.mean([r.mean() for r in per_task])),
        "spread_share": float(np.mean([r.std() > 1e-6 for r in per_task])),
    }


def plain(interval: Interval) -> dict[str, float]:
    """An interval as JSON has it, with its p-value where one was tested."""
    numbers = {k: float(getattr(interval, k)) for k in ("point", "low", "high")}
    if interval.p_value is not None:
        numbers["p"] = float(interval.p_value)
    return numbers


def _event(arm: EpisodeTable, applicable: np.ndarray, fired: np.ndarray) -> dict:
    counted = applicable & arm.valid
    number = int(counted.sum())
    rate = float((fired & counted).sum() / number) if number else None
    return {"applicable": number, "rate": rate}

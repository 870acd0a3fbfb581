"""How far the maturity score hangs on where its events begin.

The same episodes are measured again while one threshold moves: a change of HMS that
turns with a threshold is a finding about the threshold (arXiv 2607.05458's research
domain goes from -2.6 to +9.6 points).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, replace
from typing import Any

import numpy as np

from jerp.harness.events import MaturityThresholds
from jerp.harness.maturity import threshold_sensitivity
from jerp.runs.harness.episodes import EpisodeTable, task_means

__all__ = ["MOVED", "threshold_rows"]

MOVED: Mapping[str, tuple[float, ...]] = {
    "early_progress": (0.15, 0.35, 0.45),
    "early_score": (0.3, 0.7),
    "early_missing": (0.3, 0.7),
    "coverage": (0.65, 1.0),
    "check_age": (1, 5),
    "revision_window": (1, 5),
    "evidence_share": (0.5, 0.9),
}
"""What each threshold takes besides its default."""


def threshold_rows(
    tables: Mapping[str, EpisodeTable], *, base: str = "base"
) -> list[dict[str, Any]]:
    """HMS against base, arm by arm, while one threshold moves.

    Args:
      tables: episodes by arm, `base` among them.
      base: the arm that the others are compared with.

    Returns:
      One row a setting: `threshold`, `value`, `default`, and `change`, by arm the mean
      over tasks of the difference in HMS. Each threshold's default is among its values.
    """
    default = asdict(MaturityThresholds())
    rows = []
    moved = {arm: _moved_means(table) for arm, table in tables.items()}
    for name, value in moved[base]:
        change = {
            arm: float(np.nanmean(means[name, value] - moved[base][name, value]))
            for arm, means in moved.items()
            if arm != base
        }
        rows.append(
            {
                "threshold": name,
                "value": value,
                "default": default[name],
                "change": change,
            }
        )
    return rows


def _moved_means(table: EpisodeTable) -> dict[tuple[str, float], np.ndarray]:
    """By threshold and value the mean HMS of each task, `[N]`."""
    place = {trace: i for i, trace in enumerate(dict.fromkeys(table.traces))}
    index = np.asarray([place[trace] for trace in table.traces])
    default = asdict(MaturityThresholds())
    means = {}
    for name, others in MOVED.items():
        values = sorted({*others, default[name]})
        # Arms share the executor's answers, so that few of the traces are distinct.
        for value, scores in threshold_sensitivity(
            tuple(place), name=name, values=values
        ):
            moved = replace(table, hms=np.asarray(scores)[index])
            means[name, value] = task_means(moved, "hms")
    return means

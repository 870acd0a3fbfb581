"""Successes of earlier groups, that reflection compares a group with.

A task key keeps the newest few; what is oldest goes first. They are part of a
checkpoint, to the bit, so that a run that resumes reflects as one that never stopped.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from jerp.bridge.reflection import Trial

__all__ = ["References"]

_STEPS = ("anchor", "situation", "move")
_PLAIN = ("success", "score", "outcome", "text", "task_digest", "episode")


class References:
    """T+ of every task key.

    Args:
      limit: of a task key, the newest are kept.
      a_group: of one group, the first are kept.
    """

    def __init__(self, *, limit: int, a_group: int):
        self._limit, self._a_group = limit, a_group
        self._kept: dict[str, tuple[Trial, ...]] = {}

    def of(self, task_key: str) -> tuple[Trial, ...]:
        """Those of a task key, the oldest first."""
        return self._kept.get(task_key, ())

    def extend(self, task_key: str, trials: Sequence[Trial]) -> None:
        """Takes up what succeeded of a group that has been reflected on."""
        successes = [trial for trial in trials if trial.success][: self._a_group]
        kept = (*self.of(task_key), *successes)
        # Of a limit of 0 the last 0 would be all.
        self._kept[task_key] = kept[len(kept) - min(self._limit, len(kept)) :]

    def __len__(self) -> int:
        return sum(map(len, self._kept.values()))

    def document(self) -> dict[str, list[dict[str, Any]]]:
        """As plain JSON."""
        return {key: [*map(_plain, kept)] for key, kept in self._kept.items() if kept}

    def take(self, document: Mapping[str, Sequence[Mapping[str, Any]]]) -> None:
        """Holds what `document` wrote, and nothing else."""
        self._kept = {key: tuple(map(_trial, kept)) for key, kept in document.items()}


def _plain(trial: Trial) -> dict[str, Any]:
    arrays = {name: np.asarray(getattr(trial, name)).tolist() for name in _STEPS}
    return {name: getattr(trial, name) for name in _PLAIN} | arrays


def _trial(row: Mapping[str, Any]) -> Trial:
    found: dict[str, Any] = {name: row[name] for name in _PLAIN}
    found |= {name: np.asarray(row[name], np.int32) for name in _STEPS}
    return Trial(**found)

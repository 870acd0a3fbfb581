"""One agent's runs on the tasks that count."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import jax
import numpy as np

from jerp.estimators.tally import Protocol, solved_in_first
from jerp.readers.outcomes import OutcomeTable, SampleArrays
from jerp.typing import Outcome

__all__ = ["Agent", "align", "counted", "listed", "shuffled_runs"]

DEAL = 0
"""Of the random order of runs: one for all, so that no verdict can be drawn for."""


@dataclass(frozen=True)
class Agent:
    """The runs of one file, on the tasks that count.

    Attributes:
      label: the file's name, or its path where both names are the same.
      runs: arrays by task and sample; with a leading axis of horizons in the rerun
        protocol.
      alone: tasks that the other file lacks, left out.
    """

    label: str
    runs: SampleArrays
    alone: tuple[str, ...]

    @property
    def valid(self) -> np.ndarray:
        """Runs that the infrastructure let finish, bool in the shape of the runs."""
        return self.runs.mask & (self.runs.outcome != Outcome.INFRASTRUCTURE)

    def solved(
        self, k: int, horizons: Sequence[float], protocol: Protocol
    ) -> np.ndarray:
        """`[N, H]` bool, of k answered runs a task, dealt out at random.

        Not the first k of the file: logs may be sorted by what came of the runs.
        """
        dealt = shuffled_runs(self.runs)
        return np.asarray(
            solved_in_first(
                *dealt[:3], k=k, horizons=tuple(horizons), protocol=protocol
            )
        )


def align(table: OutcomeTable, tasks: Sequence[str]) -> SampleArrays:
    """The table's arrays with its tasks in the order of `tasks`."""
    runs = table.arrays()
    row = {task: i for i, task in enumerate(table.tasks)}
    order = [row[task] for task in tasks]
    spent, outcome, mask = (x[..., order, :] for x in runs[:3])
    return SampleArrays(spent, outcome, mask, runs.horizons)


def shuffled_runs(runs: SampleArrays) -> SampleArrays:
    """The runs of every task in a random order, the same one whenever it is asked for.

    Agents with as many runs have them in the same order: what was sampled with equal
    luck stays side by side.
    """
    shape = runs.mask.shape[-2:]
    rank = np.asarray(jax.random.uniform(jax.random.key(DEAL), shape))
    order = np.broadcast_to(rank.argsort(axis=-1), runs.mask.shape)
    spent, outcome, mask = (
        np.take_along_axis(np.broadcast_to(x, runs.mask.shape), order, axis=-1)
        for x in runs[:3]
    )
    return SampleArrays(spent, outcome, mask, runs.horizons)


def counted(number: int, noun: str) -> str:
    """1 task, 2 tasks."""
    return f"{number} {noun}" + ("" if number == 1 else "s")


def listed(names: Sequence[str], most: int = 5) -> str:
    """The first few names, and how many more there are."""
    shown = ", ".join(map(repr, names[:most]))
    more = len(names) - most
    return f"{shown} and {more} more" if more > 0 else shown

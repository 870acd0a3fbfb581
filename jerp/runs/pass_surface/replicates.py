"""Tables in which a task has runs of several training seeds: a row for each of them.

A row takes the name of its task; where a task is there under several seeds, the seed
as well. From then on a row is what a task is without seeds.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from jerp.errors import InputError
from jerp.readers.outcomes import OutcomeTable

__all__ = ["Replicates", "split_by_replicate"]


class Replicates(NamedTuple):
    """Which task and seed each row of the tables is of.

    Attributes:
      tables: the tables, in whose `tasks` each name is of one task and seed.
      task: the task of each name.
      seed: the training seed of each name.
    """

    tables: list[OutcomeTable]
    task: dict[str, str]
    seed: dict[str, str]

    def seeds(self, names: Sequence[str]) -> np.ndarray:
        """The seed of each row, `[N]` text."""
        return np.array([self.seed[name] for name in names])

    def clusters(self, names: Sequence[str]) -> np.ndarray | None:
        """Equal numbers for rows of one task, `[N]`; None where all are of others."""
        tasks = [self.task[name] for name in names]
        index = {task: i for i, task in enumerate(dict.fromkeys(tasks))}
        if len(index) == len(names):
            return None
        return np.array([index[task] for task in tasks], np.int32)


def split_by_replicate(tables: Sequence[OutcomeTable], column: str) -> Replicates:
    """Makes a row of each task and seed, under the same names in all tables.

    Args:
      tables: read with the column as one of their `extra`.
      column: the training seed of a run.

    Raises:
      InputError: two rows would have one name.
    """
    pairs = [_pairs(table, column) for table in tables]
    seeds: dict[str, set[str]] = {}
    for task, seed in (pair for found, _ in pairs for pair in found):
        seeds.setdefault(task, set()).add(seed)
    made = Replicates([], {}, {})
    for table, (found, row) in zip(tables, pairs, strict=True):
        names = []
        for task, seed in found:
            name = task if len(seeds[task]) == 1 else f"{task} ({column} {seed})"
            if made.task.setdefault(name, task) != task:
                raise InputError(
                    f"{table.path}: task {task!r} under {column} {seed} would have the "
                    f"name of task {made.task[name]!r}; rename one of the two"
                )
            made.seed[name] = seed
            names.append(name)
        made.tables.append(replace(table, tasks=tuple(names), task_id=row))
    return made


def _pairs(
    table: OutcomeTable, column: str
) -> tuple[list[tuple[str, str]], np.ndarray]:
    """Each (task, seed) in the order of its first run, and which of them a run has."""
    known: dict[tuple[int, str], int] = {}
    row = np.array(
        [
            known.setdefault(pair, len(known))
            for pair in zip(table.task_id.tolist(), table.extra[column], strict=True)
        ],
        np.int32,
    )
    return [(table.tasks[task], seed) for task, seed in known], row

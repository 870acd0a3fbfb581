"""Tables of run outcomes, a row a run, from CSV, JSONL and Parquet files.

Columns: `task`, `sample`, `spent`, `outcome`, and `horizon` where every run was made
again for each horizon. Rows may come in any order, tasks may have different numbers of
samples; tasks keep the order in which they first appear. What is wrong is refused with
the file, the line (the row of a Parquet file) and the column.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np

from jerp.errors import InputError, StorageError
from jerp.readers.rows import Block, read_blocks
from jerp.readers.values import Interned, number, outcome_class
from jerp.typing import Outcome

__all__ = [
    "COLUMNS",
    "HORIZON",
    "OutcomeRows",
    "OutcomeTable",
    "SampleArrays",
    "read_outcomes",
]

COLUMNS = ("task", "sample", "spent", "outcome")
"""What every file must have."""

HORIZON = "horizon"
"""The column of files in which every run was made again for each horizon."""


class SampleArrays(NamedTuple):
    """Runs side by side, in the shape that `pass_at_k_t` takes.

    Attributes:
      spent: `[N, M]` float32, or `[H, N, M]` where the table has horizons; NaN where an
        INFRASTRUCTURE run has none.
      outcome: int32, of the same shape.
      mask: bool, of the same shape; False where a task has fewer than M samples.
      horizons: the H horizons in ascending order; None without a column of them.
    """

    spent: np.ndarray
    outcome: np.ndarray
    mask: np.ndarray
    horizons: tuple[float, ...] | None


@dataclass(frozen=True)
class OutcomeTable:
    """The rows of a file, `[R]` arrays.

    Attributes:
      path: where they come from.
      tasks: names of the N tasks, in order of first appearance.
      task_id: int32, index into `tasks`.
      spent: float64; NaN where an INFRASTRUCTURE run has none.
      outcome: int32, see `jerp.typing.Outcome`.
      horizon: float64, or None without such a column.
      extra: further columns that were asked for, as text.
      notes: what was chosen in reading it, in words; none for a table.
    """

    path: Path
    tasks: tuple[str, ...]
    task_id: np.ndarray
    spent: np.ndarray
    outcome: np.ndarray
    horizon: np.ndarray | None
    extra: Mapping[str, tuple[str, ...]]
    notes: tuple[str, ...] = ()

    def arrays(self) -> SampleArrays:
        """The runs by task and sample, in the order of the file."""
        if self.horizon is None:
            horizons, cell = None, np.zeros_like(self.task_id)
        else:
            found, cell = np.unique(self.horizon, return_inverse=True)
            horizons = tuple(found.tolist())
        group = cell.astype(np.int64) * len(self.tasks) + self.task_id
        order = np.argsort(group, kind="stable")
        starts = np.searchsorted(group[order], group[order], side="left")
        slot = np.empty(len(group), np.int64)
        slot[order] = np.arange(len(group)) - starts
        shape = (cell.max() + 1, len(self.tasks), slot.max() + 1)
        index = (cell, self.task_id, slot)

        def spread(values: np.ndarray | bool, dtype: type) -> np.ndarray:
            out = np.zeros(shape, dtype)
            out[index] = values
            return out if horizons is not None else out[0]

        return SampleArrays(
            spent=spread(self.spent, np.float32),
            outcome=spread(self.outcome, np.int32),
            mask=spread(True, bool),
            horizons=horizons,
        )

    def task_values(self, column: str) -> tuple[str, ...]:
        """The one value that each task has in an extra column, `[N]`.

        Raises:
          InputError: a task has two.
        """
        first: dict[int, str] = {}
        for task, value in zip(self.task_id.tolist(), self.extra[column], strict=True):
            if first.setdefault(task, value) != value:
                raise InputError(
                    f"{self.path}: {column}: expected one value a task, got "
                    f"{first[task]!r} and {value!r} for task {self.tasks[task]!r}. "
                    "Name a column that depends on the task alone"
                )
        return tuple(first[task] for task in range(len(self.tasks)))


def read_outcomes(
    path: Path | str, *, extra: Sequence[str] = (), apart: str | None = None
) -> OutcomeTable:
    """Reads a table of outcomes.

    Args:
      path: a file whose name ends in .csv (with a header, separated by commas), .jsonl
        (an object a line) or .parquet (needs the extra `parquet`). Text is UTF-8, with
        or without a byte order mark. The columns, in any order, among any others:
        `task` and `sample`: text or numbers; 3 and 3.0 are the same, whether they are
        numbers or texts, while 03 and 3e0 are texts of their own;
        `spent`: a finite number >= 0, which only INFRASTRUCTURE may lack; what float32
        takes for 0 or for infinity is refused;
        `outcome`: a name of `jerp.typing.Outcome` in any case, its number, or true
        (SUCCESS) or false (FAILURE);
        `horizon`, optional: a finite number >= 0, the budget that the run was given.
        Blanks around a value do not count.
      extra: further columns to keep, each with a text or a number in every row.
      apart: one of `extra`, such as a training seed, under each value of which a task
        may have the same samples again.

    Raises:
      StorageError: the file is missing, empty, or not of the kind its name says.
      InputError: a column is missing, a value is not what its column promises, or a
        task has the same sample twice (at the same horizon).
      MissingExtraError: a Parquet file, and pyarrow is not installed.
    """
    path = Path(path)
    rows = OutcomeRows(path, extra, apart)
    for block in read_blocks(path, (*COLUMNS, *extra), optional=HORIZON):
        rows.add(block)
    return rows.table()


class OutcomeRows:
    """Columns in the making, a block of rows at a time."""

    def __init__(
        self, path: Path, extra: Sequence[str], apart: str | None = None
    ) -> None:
        self.path, self.unit, self.apart = path, "line", apart
        self.tasks, self.samples = Interned(), Interned()
        self.extra = {name: Interned() for name in extra}
        self.parts: list[dict[str, np.ndarray]] = []

    def add(self, block: Block) -> None:
        """Takes in the rows of one block."""
        self.unit = block.unit
        values = {
            "number": np.asarray(block.numbers),
            "task": self.tasks.ids(block, "task"),
            "sample": self.samples.ids(block, "sample"),
            "outcome": outcome_class(block, "outcome"),
        }
        excused = values["outcome"] == Outcome.INFRASTRUCTURE
        values["spent"] = number(block, "spent", may_lack=excused)
        if HORIZON in block.columns:
            values[HORIZON] = number(block, HORIZON)
            _check_within(block, values["spent"], values[HORIZON])
        for name, interned in self.extra.items():
            values[f"extra {name}"] = interned.ids(block, name)
        self.parts.append(values)

    def table(self) -> OutcomeTable:
        """The whole, once it is known to hold each run once."""
        if not self.parts:
            raise StorageError(
                f"{self.path}: expected a row for each run, got none; the file is "
                "empty, or has nothing but a header"
            )
        joined = {
            name: np.concatenate([part[name] for part in self.parts])
            for name in self.parts[0]
        }
        self._check_once(joined)
        return OutcomeTable(
            path=self.path,
            tasks=tuple(self.tasks.names),
            task_id=joined["task"],
            spent=joined["spent"],
            outcome=joined["outcome"],
            horizon=joined.get(HORIZON),
            extra={
                name: tuple(interned.names[i] for i in joined[f"extra {name}"])
                for name, interned in self.extra.items()
            },
        )

    def _check_once(self, joined: Mapping[str, np.ndarray]) -> None:
        """Refuses a run that is there twice, naming the first such pair of rows."""
        names = ("sample", "task") + ((HORIZON,) if HORIZON in joined else ())
        if self.apart is not None:
            names += (f"extra {self.apart}",)
        keys = [joined[name] for name in names]
        order = np.lexsort(keys)
        same = _equal_neighbours(key[order] for key in keys)
        if not same.any():
            return
        again = order[1:][same]
        second = int(again.min())
        first = int(order[:-1][same][np.argmin(again)])
        horizon = f", horizon {joined[HORIZON][second]:g}" if HORIZON in joined else ""
        number = joined["number"]
        under = "" if self.apart is None else f" under each {self.apart}"
        raise InputError(
            f"{self.path}, {self.unit} {number[second]}: task "
            f"{self.tasks.names[joined['task'][second]]!r}, sample "
            f"{self.samples.names[joined['sample'][second]]!r}{horizon} is there "
            f"already, in {self.unit} {number[first]}. Take one of them out, or "
            f"number the samples of a task apart{under}"
        )


def _check_within(block: Block, spent: np.ndarray, horizon: np.ndarray) -> None:
    """Refuses a run that spent more than the budget it was given."""
    over = np.flatnonzero(spent.astype(np.float32) > horizon.astype(np.float32))
    if len(over):
        most = f"at most the horizon of the run, {horizon[over[0]]:g}"
        raise block.refusal(int(over[0]), "spent", most)


def _equal_neighbours(ordered: Iterable[np.ndarray]) -> np.ndarray:
    return np.logical_and.reduce([key[1:] == key[:-1] for key in ordered])

"""Runs of a foreign log as a table of outcomes, a block at a time."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from jerp.readers.log_options import LogOptions
from jerp.readers.rows import Block
from jerp.typing import Outcome

__all__ = [
    "UNSAID",
    "LoggedRun",
    "Reader",
    "SampleNumbers",
    "ends_noted",
    "run_blocks",
]

BLOCK_RUNS = 2**12

UNSAID = "without a word on whether its length ended the last answer"
"""What `ends_noted` says of runs that may have been cut short."""


class LoggedRun(NamedTuple):
    """What one run comes to.

    Attributes:
      number: of the run in the file, from 1.
      task: its name, a text or a number.
      sample: which run of the task.
      spent: None where an INFRASTRUCTURE run does not say.
      outcome: how it ended.
      extra: the further columns that were asked for.
    """

    number: int
    task: Any
    sample: Any
    spent: float | None
    outcome: Outcome
    extra: tuple[Any, ...]


Reader = Callable[
    [Path, LogOptions, Sequence[str], list[str]], tuple[str, Iterator[LoggedRun]]
]
"""`(path, options, extra, notes) -> (what a run is called there, the runs)`.

Notes are complete once the runs are exhausted.
"""


def run_blocks(
    path: Path, unit: str, runs: Iterator[LoggedRun], extra: Sequence[str]
) -> Iterator[Block]:
    """The runs as blocks of rows."""
    kept: list[LoggedRun] = []
    for run in runs:
        kept.append(run)
        if len(kept) == BLOCK_RUNS:
            yield _block(path, unit, kept, extra)
            kept = []
    if kept:
        yield _block(path, unit, kept, extra)


def _block(
    path: Path, unit: str, runs: Sequence[LoggedRun], extra: Sequence[str]
) -> Block:
    columns: dict[str, list[Any]] = {
        "task": [run.task for run in runs],
        "sample": [run.sample for run in runs],
        "spent": [run.spent for run in runs],
        "outcome": [int(run.outcome) for run in runs],
    }
    for i, name in enumerate(extra):
        columns.setdefault(name, [run.extra[i] for run in runs])
    return Block(path, unit, [run.number for run in runs], columns)


def ends_noted(counts: Mapping[str, int]) -> list[str]:
    """Notes on how many runs of a file came to what end."""
    return [
        f"{number} {'run' if number == 1 else 'runs'} {what}"
        for what, number in sorted(counts.items())
    ]


class SampleNumbers:
    """Numbers the runs of each task where the log does not, from 0."""

    def __init__(self) -> None:
        self._count: Counter[Any] = Counter()

    def __call__(self, task: Any) -> int:
        """The next number of a task."""
        number = self._count[task]
        self._count[task] += 1
        return number

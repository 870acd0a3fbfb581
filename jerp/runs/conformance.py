"""Checks of all benchmarks that are installed, as a table and as a document."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from jerp.domains.benchmark import Benchmark
from jerp.domains.catalogue import BENCHMARKS, make_benchmark
from jerp.domains.conformance import (
    Conformance,
    check_benchmark,
    sound_tasks,
    to_check,
)
from jerp.errors import ConfigError, JerpError, UnknownNameError

__all__ = ["Checks", "Watch", "check_all", "document", "render"]

COLUMNS = (
    *("adapter", "version", "split", "tasks", "oracle", "dropped", "wrong", "nothing"),
    *("steps/s", "faults"),
)
MOST_FAULTS = 20
"""Of these as many are told in words; the document has all."""

Watch = Callable[[str, int], Callable[[int], None]]
"""Of what is checked now, and of how many tasks; returns what counts them."""


@dataclass(frozen=True)
class Checks:
    """What was checked, and what was not.

    Attributes:
      found: a row for each split.
      left_out: why not, by benchmark.
    """

    found: tuple[Conformance, ...]
    left_out: Mapping[str, str]


def check_all(
    names: Sequence[str] = (),
    *,
    split: str | None = None,
    limit: int | None = None,
    data: Path | None = None,
    watch: Watch = lambda name, total: lambda done: None,
) -> Checks:
    """Checks some benchmarks.

    Args:
      names: of benchmarks; of none all are checked that can be, and of the others it is
        said why not.
      split: this one alone.
      limit: most tasks of a split.
      data: folder with files of the one benchmark that is named.
      watch: told of each split.

    Raises:
      ConfigError: `data`, and not one name; or as `make_benchmark` says.
      UnknownNameError: no such benchmark or split.
      MissingExtraError: a named benchmark is not installed.
      StorageError, SandboxError: it cannot be read, or run safely.
    """
    if data is not None and len(names) != 1:
        raise ConfigError("data: expected the name of the one benchmark whose it is")
    if limit is not None and limit < 1:
        raise ConfigError(f"limit: expected at least 1, got {limit}")
    for name in names:
        if name not in BENCHMARKS:
            raise UnknownNameError("benchmark", name, BENCHMARKS)
    found: list[Conformance] = []
    left_out: dict[str, str] = {}
    for name in dict.fromkeys(names or BENCHMARKS):
        try:
            with closing(make_benchmark(name, data)) as benchmark:
                found += _check(benchmark, split, limit, watch)
        except JerpError as error:
            if names:
                raise
            left_out[name] = str(error)
    return Checks(tuple(found), left_out)


def _check(
    benchmark: Benchmark, split: str | None, limit: int | None, watch: Watch
) -> list[Conformance]:
    found = []
    for part in benchmark.splits if split is None else (split,):
        total = len(to_check(sound_tasks(benchmark, part), limit))
        count = watch(f"{benchmark.name} {part}", total)
        found.append(check_benchmark(benchmark, part, limit=limit, on_progress=count))
    return found


def render(checks: Checks) -> RenderableType:
    """The table, the faults, and what was left out."""
    table = Table(*COLUMNS, box=None, pad_edge=False)
    for column in table.columns[3:]:
        column.justify = "right"
    for row in checks.found:
        marks = (row.oracle, row.dropped, row.wrong, row.nothing)
        table.add_row(
            *(row.benchmark, row.version, row.split, _counted(row)),
            *("-" if mark is None else f"{100 * mark:.1f}%" for mark in marks),
            *(f"{row.steps_per_second:,.0f}", str(len(row.faults))),
        )
    faults = [
        f"{row.benchmark} {row.split}, {fault.task}: {fault.check}: {fault.found}"
        for row in checks.found
        for fault in row.faults
    ]
    lines = faults[:MOST_FAULTS]
    if len(faults) > MOST_FAULTS:
        lines.append(f"and {len(faults) - MOST_FAULTS} more faults")
    lines += [f"{name} was left out: {why}" for name, why in checks.left_out.items()]
    # As text, because rich would take what stands in brackets for a style.
    return Group(*([table] if checks.found else []), *map(Text, lines))


def _counted(row: Conformance) -> str:
    """Tasks checked of those there are, and how many are broken."""
    checked = f"{row.checked}/{row.tasks}"
    return f"{checked} ({row.broken} broken)" if row.broken else checked


def document(checks: Checks) -> dict[str, Any]:
    """All of it, for a JSON file."""
    rows = [
        {**asdict(row), "steps_per_second": row.steps_per_second}
        for row in checks.found
    ]
    return {"found": rows, "left_out": dict(checks.left_out)}

"""Pass surfaces as terminal tables and as pages, from `results.json` alone.

Every table says its sizes, seeds, protocol and the command that made it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from rich.console import Group, RenderableType
from rich.table import Table as RichTable
from rich.text import Text

from jerp.runs.browse import printable
from jerp.runs.cells import markdown_table
from jerp.runs.page import write_page
from jerp.runs.pass_surface.figure_words import FIGURE_GUIDE, figure_lines
from jerp.runs.pass_surface.tables import Table, caption, tables
from jerp.runs.pass_surface.verdict_table import (
    VERDICT_NOTE,
    verdict_sentences,
    verdict_table,
)

__all__ = ["render", "write_report"]

READING_GUIDE = """## How to read this

Pass@(k, T) is the probability that at least one of k runs of at most T solves a task,
averaged over the tasks. Bands are simultaneous: at the stated level the true surface
lies inside of them everywhere at once. Tasks are resampled, never single runs. Runs
that the infrastructure did not let finish are neither successes nor failures: the
estimate leaves them out, the bounds let all of them fail or all succeed. A task is left
out of every number if at any T it has too few valid runs. "Solved" means at least once
in the runs that there are: a task that was not may still be solvable, hence the bound.
"""


def render(results: Mapping[str, Any]) -> RenderableType:
    """The tables at the width of a terminal, and the notes."""
    parts: list[RenderableType] = _verdicts(results)
    for part in results["parts"]:
        if part["name"] is not None:
            parts.append(printable(f"{results['settings']['by']} = {part['name']}\n"))
        parts.append(printable(caption(results, part) + "\n"))
        for table in tables(results, part):
            parts += _titled(table)
    parts += [printable(f"note: {note}") for note in results["notes"]]
    return Group(*parts)


def _verdicts(results: Mapping[str, Any]) -> list[RenderableType]:
    """What it all comes to, first."""
    table = verdict_table(results)
    if table is None:
        return []
    sentences = map(printable, verdict_sentences(results))
    return [*_titled(table), *sentences, Text(f"\n{VERDICT_NOTE}\n")]


def _titled(table: Table) -> list[RenderableType]:
    title = printable(table.title)
    title.stylize("bold")
    return [title, _rich(table), Text()]


def _rich(table: Table) -> RichTable:
    made = RichTable(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    for i, name in enumerate(table.header):
        made.add_column(printable(name), justify="right" if i else "left")
    for row in table.rows:
        # A band below its point: six horizons side by side fit 80 columns.
        made.add_row(*(printable(cell.replace(" [", "\n[")) for cell in row))
    return made


def write_report(results: Mapping[str, Any], folder: Path) -> Path:
    """Writes `report.md` beside its figures, and `report.html` with them inside.

    Returns:
      The page.
    """
    lines = ["# Pass@(k, T)\n", _sources(results)]
    lines += [f"- {note}" for note in results["notes"]]
    lines += _verdict_section(results)
    for part in results["parts"]:
        lines += _section(results, part)
    lines += [READING_GUIDE, FIGURE_GUIDE]
    return write_page("\n".join(lines) + "\n", folder)


def _sources(results: Mapping[str, Any]) -> str:
    files = " and ".join(f"`{name}`" for name in results["files"])
    return f"From {files}, with jerp {results['jerp']}: `{results['command']}`.\n"


def _verdict_section(results: Mapping[str, Any]) -> list[str]:
    table = verdict_table(results)
    if table is None:
        return []
    return [
        f"\n## {table.title}\n",
        f"{VERDICT_NOTE} Made by `{results['command']}`.\n",
        markdown_table(table.header, table.rows) + "\n",
        *(f"- {sentence}" for sentence in verdict_sentences(results)),
    ]


def _section(results: Mapping[str, Any], part: Mapping[str, Any]) -> Sequence[str]:
    name = part["name"]
    lines = ["" if name is None else f"\n## {results['settings']['by']} = {name}"]
    under = f"{caption(results, part)} Made by `{results['command']}`."
    for table in tables(results, part):
        lines += [f"\n### {table.title}\n", under + "\n"]
        lines.append(markdown_table(table.header, table.rows))
    lines += [f"\n{line}" for line in figure_lines(results, part)]
    return [*lines, ""]

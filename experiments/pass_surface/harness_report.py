"""The study of controllers in the terminal and as a page, from its results alone."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table as RichTable

from jerp.runs.cells import interval, markdown_table, number
from jerp.runs.page import write_page
from jerp.runs.pass_surface.settings import number_text
from jerp.runs.pass_surface.tables import Table

__all__ = ["arm_table", "write_harness_report"]

SMOKE = "This run checked the plumbing; its numbers mean nothing."


def write_harness_report(
    results: Mapping[str, Any], folder: Path, console: Console
) -> None:
    """Prints a table a unit, and writes `report.md` and `report.html`."""
    parts = [_opening(results)]
    if results["smoke"]:
        parts.append(f"**{SMOKE}**")
    for unit, document in results["variants"].items():
        table = arm_table(document, words=True)
        console.print(_rich(arm_table(document, words=False)))
        parts += [
            f"## T in {unit}",
            f"{table.title}. {_rests_on(results, document)}",
            markdown_table(table.header, table.rows),
            f"All surfaces and figures: [{unit}/report.html]({unit}/report.html).",
        ]
    notes = next(iter(results["variants"].values()))["notes"]
    parts += ["## What to know of it", "\n".join(f"- {note}." for note in notes)]
    page = write_page("\n\n".join(parts) + "\n", folder)
    for note in notes:
        console.print(f"note: {note}")
    if results["smoke"]:
        console.print(SMOKE)
    console.print(f"report: {page}", soft_wrap=True)


def _opening(results: Mapping[str, Any]) -> str:
    store = results["executor"]["store"]["completion"]
    return (
        "# Pass@(k, T) of a frozen model under harness controllers\n\n"
        "SmolLM2-135M-Instruct, its weights never changed, under the base sequence and "
        "under controllers learned from its own runs: does it solve tasks that it "
        "never solves under the base sequence? From its recorded responses: "
        f"{store['hits']:,} answered, {store['misses']} not recorded; those of one "
        f"request differ {100 * results['executor']['diversity']['distinct_share']:.0f}"
        f"% of the time. Made by `{results['command']}` with jerp {results['version']}."
    )


def _rests_on(results: Mapping[str, Any], document: Mapping[str, Any]) -> str:
    tasks = {part["name"]: part["num_kept"] for part in document["parts"]}
    return (
        f"{sum(tasks.values()) // results['seeds']} held-out tasks in {len(tasks)} "
        f"domains x {results['seeds']} training seeds x {document['ks'][-1]} samples; "
        "differences on the same tasks, with simultaneous bands; tasks are resampled, "
        "with all their seeds. + : -, tasks that more seeds gain than lose, and the "
        "mirror."
    )


def arm_table(document: Mapping[str, Any], *, words: bool) -> Table:
    """A row a domain and comparison: the ends of both curves at the largest T.

    Args:
      document: of `jerp.runs.pass_surface.analysis`.
      words: with differences and their bands, and the reason of a verdict; without,
        the table fits a terminal.
    """
    k, horizon = document["ks"][-1], number_text(document["horizons"][-1])
    header = ["domain", "arm", "beside", "Pass@1", f"Pass@{k}", "+ : -", "verdict"]
    if words:
        header[4:5] = ["difference", f"Pass@{k}", "difference"]
    return Table(
        f"Pass@(k, T = {horizon} {document['settings']['unit']}), arm and beside",
        header,
        [
            tuple(_cells(part, found, words=words))
            for part in document["parts"]
            for found in part["comparisons"]
        ],
    )


def _cells(
    part: Mapping[str, Any], found: Mapping[str, Any], *, words: bool
) -> Iterator[str]:
    yield part["name"]
    yield found["second_label"]
    yield found["first_label"]
    pair = [part["agents"][found[end]]["surface"] for end in ("second", "first")]
    for row in (0, -1):
        yield " ".join(number(surface["point"][row][-1], 2) for surface in pair)
        if words:
            band = found["difference"]
            cell = {name: band[name][row][-1] for name in ("point", "low", "high")}
            missing = cell["point"] is None
            yield "-" if missing else interval(cell, digits=2, sign=True)
    verdict = found["verdict"]
    yield f"{verdict['gains']} : {verdict['losses']}"
    yield verdict["words" if words else "verdict"]


def _rich(table: Table) -> RichTable:
    made = RichTable(
        title=table.title, box=None, title_justify="left", padding=(0, 1, 0, 0)
    )
    for name in table.header:
        made.add_column(name)
    for row in table.rows:
        made.add_row(*row)
    return made

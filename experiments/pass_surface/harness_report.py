"""The study of controllers in the terminal and as a page, from its results alone."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table as RichTable

from experiments.pass_surface.harness_arms import HARNESS_ARMS
from jerp.runs.cells import interval, markdown_table, number
from jerp.runs.page import write_page
from jerp.runs.pass_surface.settings import number_text
from jerp.runs.pass_surface.tables import Table

__all__ = ["arm_table", "horizon_table", "write_harness_report"]

SHORT = {
    "base": "base",
    "perturbed": "perturbed",
    "bc": "BC",
    "awr": "AWR",
    "awr-step": "AWR-step",
}
"""Arms in narrow columns; AWR is over trajectories, AWR-step over steps."""

SMOKE = "This run checked the plumbing; its numbers mean nothing."


def write_harness_report(
    results: Mapping[str, Any], folder: Path, console: Console
) -> None:
    """Prints the verdicts, and writes `report.md` and `report.html`."""
    # Runs are cut at T, and the largest T cuts none: the unit does not matter there.
    first, *_ = results["variants"].values()
    verdicts = arm_table(first, words=True)
    parts = [_opening(results)]
    if results["smoke"]:
        parts.append(f"**{SMOKE}**")
    parts += [
        "## Verdicts",
        f"{verdicts.title}. {_rests_on(results, first)}",
        markdown_table(verdicts.header, verdicts.rows),
    ]
    for unit, document in results["variants"].items():
        table = horizon_table(document)
        parts += [
            f"## T in {unit}",
            f"{table.title}. All surfaces, bands and figures: "
            f"[{unit}/report.html]({unit}/report.html).",
            markdown_table(table.header, table.rows),
        ]
    parts += ["## What to know of it", "\n".join(f"- {n}." for n in first["notes"])]
    page = write_page("\n\n".join(parts) + "\n", folder)
    console.print(_rich(arm_table(first, words=False)))
    for note in first["notes"]:
        console.print(f"note: {note}")
    if results["smoke"]:
        console.print(SMOKE)
    console.print(f"report: {page}", soft_wrap=True)


def _opening(results: Mapping[str, Any]) -> str:
    return (
        "# Pass@(k, T) of a frozen model under harness controllers\n\n"
        "SmolLM2-135M-Instruct, its weights never changed, under the base sequence and "
        "under controllers learned from its own runs: does it solve tasks that it "
        "never solves under the base sequence? All runs are made of its recorded "
        f"responses (`{results['executor']['fingerprint']}`). Made by "
        f"`{results['command']}` with jerp {results['version']}."
    )


def _rests_on(results: Mapping[str, Any], document: Mapping[str, Any]) -> str:
    tasks = [part["num_distinct"] for part in document["parts"]]
    return (
        f"{sum(tasks)} held-out tasks in {len(tasks)} "
        f"domains x {results['seeds']} training seeds x {document['ks'][-1]} samples; "
        "differences on the same tasks, with simultaneous bands; tasks are resampled, "
        "with all their seeds. + : -, tasks that more seeds gain than lose, and the "
        "mirror; beside the base, whose runs are the same under every seed, they are "
        "counted in one seed of each task, the seeds in turn, so that its luck is not "
        "every seed's. Holm's adjustment is over the domains of a pair, not over pairs."
    )


def arm_table(document: Mapping[str, Any], *, words: bool) -> Table:
    """A row a domain and comparison: the ends of both curves at the largest T.

    Args:
      document: of `jerp.runs.pass_surface.analysis`, agents as in `HARNESS_ARMS`.
      words: with differences and their bands, and the reason of a verdict; without,
        the table fits a terminal.
    """
    k = document["ks"][-1]
    header = ["domain", "arm / beside", "Pass@1", f"Pass@{k}", "+ : -", "verdict"]
    if words:
        header[3:4] = ["difference", f"Pass@{k}", "difference"]
    return Table(
        "All runs to their end; numbers of the arm and of the one beside",
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
    yield " / ".join(SHORT[HARNESS_ARMS[found[end]]] for end in ("second", "first"))
    pair = [part["agents"][found[end]]["surface"] for end in ("second", "first")]
    for row in (0, -1):
        yield " ".join(number(surface["point"][row][-1], 2) for surface in pair)
        if words:
            band = found["difference"]
            cell = {name: band[name][row][-1] for name in ("point", "low", "high")}
            missing = cell["point"] is None
            yield "-" if missing else interval(cell, digits=2, sign=True)
    verdict = found["verdict"]
    yield f"{verdict['gains']}:{verdict['losses']}"
    # Of "more efficient, boundary not shown to move" the first half.
    yield verdict["words"] if words else verdict["verdict"].split(",")[0]


def horizon_table(document: Mapping[str, Any]) -> Table:
    """A row a domain and arm: what is solved once in all samples, by T."""
    return Table(
        f"Pass@({document['ks'][-1]}, T) by T in {document['settings']['unit']}",
        ("domain", "arm", *map(number_text, document["horizons"])),
        [
            (
                part["name"],
                agent["label"],
                *(number(value, 2) for value in agent["surface"]["point"][-1]),
            )
            for part in document["parts"]
            for agent in part["agents"]
        ],
    )


def _rich(table: Table) -> RichTable:
    made = RichTable(
        title=table.title, box=None, title_justify="left", padding=(0, 1, 0, 0)
    )
    for name in table.header:
        made.add_column(name)
    for row in table.rows:
        made.add_row(*row)
    return made

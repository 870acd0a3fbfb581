"""The comparison as terminal tables, from `results.json` alone.

Every table says which executor it rests on and its sizes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from rich.console import (
    Console,
    ConsoleOptions,
    Group,
    RenderableType,
    RenderResult,
)
from rich.table import Table
from rich.text import Text

from jerp.runs.cells import interval, number
from jerp.runs.harness import tables
from jerp.runs.harness.arms import ARM_LABELS
from jerp.runs.harness.wording import (
    LEGEND,
    METHOD_LEGEND,
    SHORT_METHODS,
    SMOKE,
    caption,
    overview_title,
    recorded_line,
    support_line,
)

__all__ = ["prediction_table", "render_tables"]

COLUMNS = ("arm", "Q", "Q - base", "HMS", "steps", "calls", "tokens", "bad")


def render_tables(results: Mapping[str, Any]) -> list[RenderableType]:
    """The comparison at the width of a terminal: a group a domain, then all of them.

    The last table is README's, a column a domain, where the terminal is wide enough.
    """
    parts: list[RenderableType] = [
        _titled(
            f"{name}: {caption(results, domain)}",
            _table(COLUMNS, [_row(*arm) for arm in domain["arms"].items()]),
            f"{recorded_line(domain, results)} {support_line(domain)}",
        )
        for name, domain in results["domains"].items()
    ]
    count = len(results["domains"])
    if count > 1:
        title = f"Macro average of {count} domains; sign test over domains"
        parts.append(_titled(title, _table(*tables.macro(results, digits=2))))
    title = "Off-policy evaluation: Q predicted before, seen after"
    parts.append(_titled(title, _table(*tables.predictions(results))))
    title = "Rank correlation of what the buffer supports and the gain in Q"
    parts.append(_titled(title, _table(*tables.support(results))))
    if count > 1:
        table = _table(*tables.overview(results))
        parts.append(_WhereItFits(overview_title(results), table))
    notes = [LEGEND, SMOKE] if results["smoke"] else [LEGEND]
    return [*parts, *map(Text, notes)]


def prediction_table(name: str, predictions: Mapping[str, Any]) -> RenderableType:
    """What is predicted of a domain's controllers, before any is evaluated, or why not.

    Args:
      name: of the domain.
      predictions: by arm one prediction a training seed, see `predict_arms`.
    """
    first = next(iter(predictions.values()))
    methods = first[0]["methods"]
    header = ("arm", "ESS", *(SHORT_METHODS[method] for method in methods))
    rows = []
    for arm, seeds in predictions.items():
        size = sum(said["effective_sample_size"] for said in seeds) / len(seeds)
        cells = [_predicted(seeds, method) for method in methods]
        rows.append((ARM_LABELS[arm], number(size, 0), *cells))
    title = f"{name}: Q predicted from the buffer alone, mean of {len(first)} seeds"
    notes = "\n".join([METHOD_LEGEND, *_reasons(predictions)])
    return _titled(title, _table(header, rows), notes)


def _reasons(predictions: Mapping[str, Any]) -> Iterator[str]:
    """Of an arm with refused controllers the first reason; how many, where some are."""
    for arm, seeds in predictions.items():
        refused = {
            SHORT_METHODS[method]: [
                seed["methods"][method]["refused"]
                for seed in seeds
                if seed["methods"][method]["refused"]
            ]
            for method in seeds[0]["methods"]
        }
        first = next(filter(None, refused.values()), None)
        if first is None:
            continue
        counts = [
            f"{name} {len(found)}"
            for name, found in refused.items()
            if 0 < len(found) < len(seeds)
        ]
        some = f" ({', '.join(counts)} of {len(seeds)} seeds)" if counts else ""
        yield f"{ARM_LABELS[arm]}, refused{some}: {first[0]}"


def _predicted(seeds: Iterable[Mapping[str, Any]], method: str) -> str:
    """Mean over the seeds that the method judged, marked where those are not all."""
    points = [said["methods"][method]["point"] for said in seeds]
    judged = [point for point in points if point is not None]
    if not judged:
        return "refused"
    mean = number(sum(judged) / len(judged), 3)
    return mean + "*" * (len(judged) < len(points))


def _row(name: str, arm: Mapping[str, Any]) -> tuple[str, ...]:
    difference = arm.get("difference")
    return (
        ARM_LABELS[name],
        interval(arm["q"], digits=2),
        interval(difference["q"], digits=2, sign=True) if difference else "",
        number(arm["hms"]["point"], 2),
        number(arm["steps"]["point"], 1),
        number(arm["calls"]["point"], 2),
        number(arm["tokens"]["point"], 0),
        str(arm["invalid"]),
    )


def _table(header: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 1, 0, 0))
    for number_, column in enumerate(header):
        table.add_column(column, justify="right" if number_ else "left", no_wrap=True)
    for row in rows:
        table.add_row(*row)
    return table


@dataclass(frozen=True)
class _WhereItFits:
    """A table, or where else it is if the terminal is too narrow for it."""

    title: str
    table: Table

    def __rich_console__(
        self, console: Console, options: ConsoleOptions
    ) -> RenderResult:
        unbounded = options.update(max_width=1000)
        needed = console.measure(self.table, options=unbounded).maximum
        if needed <= options.max_width:
            yield _titled(self.title, self.table)
        else:
            yield Text(
                f"All arms in all domains: the first table of report.md, {needed} "
                "columns wide\n"
            )


def _titled(title: str, table: Table, note: str = "") -> Group:
    notes = [Text(note)] if note else []
    return Group(Text(title, style="bold"), table, *notes, Text())

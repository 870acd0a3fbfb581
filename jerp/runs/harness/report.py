"""The comparison as terminal tables, from `results.json` alone.

Every table says which executor it rests on and its sizes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from jerp.runs.cells import interval, number
from jerp.runs.harness import tables
from jerp.runs.harness.arms import ARM_LABELS
from jerp.runs.harness.wording import (
    LEGEND,
    SMOKE,
    caption,
    recorded_line,
    support_line,
)

__all__ = ["prediction_table", "render_tables"]

COLUMNS = ("arm", "Q", "Q - base", "HMS", "steps", "calls", "tokens", "bad")


def render_tables(results: Mapping[str, Any]) -> list[RenderableType]:
    """The comparison at the width of a terminal: a group a domain, then all of them."""
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
    notes = [LEGEND, SMOKE] if results["smoke"] else [LEGEND]
    return [*parts, *map(Text, notes)]


def prediction_table(name: str, predictions: Mapping[str, Any]) -> RenderableType:
    """What is predicted of a domain's controllers, before any is evaluated, or why not.

    Args:
      name: of the domain.
      predictions: by arm one prediction a training seed, see `predict_arms`.
    """
    first = next(iter(predictions.values()))
    header = ("arm", "ESS", *first[0]["methods"])
    rows = []
    for arm, seeds in predictions.items():
        size = sum(said["effective_sample_size"] for said in seeds) / len(seeds)
        cells = [_predicted(seeds, method) for method in first[0]["methods"]]
        rows.append((ARM_LABELS[arm], number(size, 0), *cells))
    title = f"{name}: Q predicted from the buffer alone, mean of {len(first)} seeds"
    return _titled(title, _table(header, rows), "\n".join(_reasons(predictions)))


def _reasons(predictions: Mapping[str, Any]) -> Iterator[str]:
    """Of every arm with a refused controller the first reason."""
    for arm, seeds in predictions.items():
        found = [said["refused"] for seed in seeds for said in seed["methods"].values()]
        reasons = list(filter(None, found))
        if reasons:
            yield f"{ARM_LABELS[arm]}, refused: {reasons[0]}"


def _predicted(seeds: Iterable[Mapping[str, Any]], method: str) -> str:
    """Mean over the seeds that the method judged; how many, if not all."""
    seeds = list(seeds)
    points = [said["methods"][method]["point"] for said in seeds]
    judged = [point for point in points if point is not None]
    if not judged:
        return "refused"
    mean = number(sum(judged) / len(judged), 3)
    return mean if len(judged) == len(seeds) else f"{mean} ({len(judged)} judged)"


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


def _titled(title: str, table: Table, note: str = "") -> Group:
    notes = [Text(note)] if note else []
    return Group(Text(title, style="bold"), table, *notes, Text())

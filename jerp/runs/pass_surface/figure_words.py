"""What a figure shows, in words with its main numbers: for whoever cannot see it.

From `results.json` alone; every number is one of the document's.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from jerp.runs.cells import number
from jerp.runs.pass_surface.figures import figure_kinds, figure_name
from jerp.runs.pass_surface.figures_questions import KINDS, question_cells
from jerp.runs.pass_surface.settings import number_text
from jerp.runs.pass_surface.tables import counted_tasks

__all__ = ["FIGURE_GUIDE", "alternative", "escaped", "figure_lines"]

FIGURE_GUIDE = """Curves: a panel a T over k, and below a panel a k over T, of up to six
and four; thin lines are the limits of the band, a ring is T*, a cross on the zero line
a k at which two curves cross, if the share of resamples in which they do is at least
the level. Questions: every task a cell, a dot if both solve it, a plus if only the
second agent does, a minus if only the first, a circle if neither, a cross if it is left
out; in the order of the first agent's solve rate, which is written beside each row, and
from the heavy line on the first agent solves none."""


def figure_lines(
    results: Mapping[str, Any], part: Mapping[str, Any], prefix: str = ""
) -> list[str]:
    """The part's figures as Markdown, each with its words; `prefix` leads to them."""
    return [
        f"![{escaped(alternative(results, part, kind))}]"
        f"({prefix}{figure_name(results, part, kind)}.png)"
        for kind in figure_kinds(part)
    ]


def escaped(text: str) -> str:
    """The text with what Markdown would read as markup escaped."""
    return re.sub(r"([\\`*_\[\]<>&!])", r"\\\1", " ".join(text.split()))


def alternative(results: Mapping[str, Any], part: Mapping[str, Any], kind: str) -> str:
    """What a figure of a part shows, and its values at the largest k and T."""
    about = counted_tasks(part)
    if part["name"] is not None:
        about += f", {results['settings']['by']} = {part['name']}"
    words = {
        "curves": _curves,
        "heatmap": _heatmap,
        "difference": _difference,
        "questions": _questions,
    }[kind](results, part)
    return f"{words} ({about})."


def _curves(results: Mapping[str, Any], part: Mapping[str, Any]) -> str:
    values = [_last(agent["label"], agent["surface"]) for agent in part["agents"]]
    return (
        "Lines with bands: Pass@(k, T) over k and over T. At "
        f"{_largest(results)}: {', '.join(values)}"
    )


def _heatmap(results: Mapping[str, Any], part: Mapping[str, Any]) -> str:
    ends = [
        f"{agent['label']} from {_cell(agent['surface'], 0)} to "
        f"{_cell(agent['surface'], -1)}"
        for agent in part["agents"]
    ]
    return (
        "Heat maps with a number in every cell: Pass@(k, T), k up and T across; from "
        f"the smallest to the largest k and T {', '.join(ends)}"
    )


def _difference(results: Mapping[str, Any], part: Mapping[str, Any]) -> str:
    values = [_last(_pair(c), c["difference"], sign=True) for c in part["comparisons"]]
    return (
        "Lines with bands: differences of Pass@(k, T) over k and over T. At "
        f"{_largest(results)}: {', '.join(values)}"
    )


def _questions(results: Mapping[str, Any], part: Mapping[str, Any]) -> str:
    counts = []
    for comparison in part["comparisons"]:
        kinds, _ = question_cells(results, part, comparison)
        found = ", ".join(f"{name} {kinds.count(name)}" for name in KINDS)
        counts.append(f"{_pair(comparison)}: {found}")
    return (
        "Map with a cell a task, which says who solves it at least once at "
        f"T = {number_text(results['horizons'][-1])}. {'; '.join(counts)}"
    )


def _pair(comparison: Mapping[str, Any]) -> str:
    return f"{comparison['second_label']} - {comparison['first_label']}"


def _largest(results: Mapping[str, Any]) -> str:
    return f"k = {results['ks'][-1]}, T = {number_text(results['horizons'][-1])}"


def _last(name: str, band: Mapping[str, Any], *, sign: bool = False) -> str:
    low, high = (number(band[limit][-1][-1], 2, sign=sign) for limit in ("low", "high"))
    return f"{name} {_cell(band, -1, sign=sign)} (band {low} to {high})"


def _cell(band: Mapping[str, Any], place: int, *, sign: bool = False) -> str:
    values: Sequence[Sequence[float | None]] = band["point"]
    return number(values[place][place], 2, sign=sign)

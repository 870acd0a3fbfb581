"""Points with intervals in rows, told apart by marks: filled, hollow, and shape."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from matplotlib.axes import Axes

from jerp.runs.pass_surface.figure_style import drawable

__all__ = ["Series", "dot_plot"]

Numbers = Mapping[str, Any]


class Series(NamedTuple):
    """Numbers of one meaning, one a row.

    Attributes:
      name: for the key.
      marker: its shape.
      filled: whether the mark is.
      values: mappings with `point`, `low` and `high`; None, or a number in it that is
        None, is not drawn.
    """

    name: str
    marker: str
    filled: bool
    values: Sequence[Numbers | None]


def dot_plot(axes: Axes, rows: Sequence[str], series: Sequence[Series]) -> None:
    """Draws each row's numbers one below the other, and the key above the panel."""
    step = 0.7 / max(len(series), 1)
    for place, one in enumerate(series):
        y = [row + (place + 0.5) * step - 0.35 for row in range(len(rows))]
        points = [_numbers(value) for value in one.values]
        for height, (_, low, high) in zip(y, points, strict=True):
            axes.plot([low, high], [height, height], color="black", lw=0.9)
        axes.plot(
            [point for point, *_ in points],
            y,
            ls="",
            marker=one.marker,
            ms=5,
            color="black",
            mfc="black" if one.filled else "white",
            label=one.name,
        )
    axes.set_yticks(range(len(rows)), [drawable(row) for row in rows], fontsize=8)
    axes.set_ylim(len(rows) - 0.5, -0.5)
    for row in range(1, len(rows)):
        axes.axhline(row - 0.5, color="#cccccc", lw=0.6)
    axes.tick_params(axis="x", labelsize=8)
    axes.grid(axis="x", alpha=0.3)
    axes.legend(
        loc="lower left",
        bbox_to_anchor=(0, 1),
        ncols=2,
        fontsize=7,
        frameon=False,
        borderaxespad=0.2,
    )


def _numbers(value: Numbers | None) -> tuple[float, float, float]:
    names = ("point", "low", "high")
    found = [None if value is None else value[name] for name in names]
    point, low, high = (math.nan if x is None else float(x) for x in found)
    return point, low, high

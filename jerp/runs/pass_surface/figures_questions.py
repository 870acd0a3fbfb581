"""Every question a cell: who solves it at least once, in the order of solve rates.

What a cell means is marked in it, and cells of each kind differ in lightness too:
colour alone says nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import ListedColormap
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from jerp.runs.cells import number
from jerp.runs.pass_surface.figure_style import drawable, shortened

__all__ = ["KINDS", "draw_questions", "question_cells"]

MOST_MARKED = 2000
"""Questions of a map up to which every cell has its mark."""


WIDEST = 0.3
"""Inches of the side of a question's cell, at most."""


class _Kind(NamedTuple):
    """How the cells of one kind look: colours are told apart by lightness too."""

    cell: str
    marker: str
    mark: str
    filled: bool = True

    @property
    def look(self) -> dict[str, Any]:
        """Of the mark."""
        face = self.mark if self.filled else "none"
        return {"marker": self.marker, "color": self.mark, "mfc": face, "ls": ""}


KINDS = {
    "both": _Kind("#cfdbe6", "o", "#1a1a1a"),
    "lost": _Kind("#d98032", "_", "#000000"),
    "gained": _Kind("#0b3c6f", "+", "#ffffff"),
    "neither": _Kind("#ffffff", "o", "#808080", filled=False),
    "left out": _Kind("#a8a8a8", "x", "#1a1a1a"),
}


def question_cells(
    results: Mapping[str, Any], part: Mapping[str, Any], comparison: Mapping[str, Any]
) -> tuple[list[str], np.ndarray]:
    """What became of every question at the largest T, sorted by solve rate.

    Args:
      results: the document.
      part: one of its parts.
      comparison: one of the part's.

    Returns:
      For every question of the part one of "both", "lost", "gained", "neither" and
      "left out", and its solve rates, `[N, 2]`, those of the first agent and of the
      second. Sorted by the first one's rate, then by the second one's, the most solved
      first; left out ones, whose rates are NaN, come last.
    """
    rates = []
    for name in ("first", "second"):
        agent = results["agents"][comparison[name]]
        correct, every = (
            np.array([agent[field][i][-1] for i in part["tasks"]], float)
            for field in ("num_correct", "num_samples")
        )
        rates.append(correct / np.maximum(every, 1))
    first, second = rates
    order = np.lexsort((-second, -first))
    kinds = [
        ("neither", "gained", "lost", "both")[2 * (first[i] > 0) + (second[i] > 0)]
        for i in order
    ]
    gone = part["num_tasks"] - part["num_kept"]
    rows = np.stack(rates, axis=1)[order]
    return (
        kinds + ["left out"] * gone,
        np.concatenate([rows, np.full((gone, 2), np.nan)]),
    )


def draw_questions(results: Mapping[str, Any], part: Mapping[str, Any]) -> Figure:
    """A map a pair: who solves which question at least once, at the largest T."""
    maps = [
        question_cells(results, part, comparison) for comparison in part["comparisons"]
    ]
    columns = _columns(part["num_tasks"])
    rows = -(-part["num_tasks"] // columns)
    height = rows * min(WIDEST, 9.5 / columns)
    figure = Figure(
        figsize=(10.5, len(maps) * (height + 0.9) + 0.4), layout="constrained"
    )
    grid = figure.subplots(len(maps), 1, squeeze=False)[:, 0]
    for axes, found, comparison in zip(grid, maps, part["comparisons"], strict=True):
        _questions(axes, *found, columns)
        first, second = (
            drawable(shortened(comparison[f"{name}_label"], 30))
            for name in ("first", "second")
        )
        title = f"{second} against {first}, whose solve rate is beside each row"
        axes.set_title(title, fontsize=9)
        _key(axes, found[0])
    return figure


def _questions(
    axes: Axes, kinds: Sequence[str], rates: np.ndarray, columns: int
) -> None:
    """Cells from the top left, and a line where the first agent's rate comes to 0."""
    names = list(KINDS)
    rows = -(-len(kinds) // columns)
    cells = np.full(rows * columns, np.nan)
    cells[: len(kinds)] = [names.index(kind) for kind in kinds]
    axes.imshow(
        cells.reshape(rows, columns),
        cmap=ListedColormap([kind.cell for kind in KINDS.values()]),
        vmin=-0.5,
        vmax=len(names) - 0.5,
        interpolation="none",
    )
    size = min(5.0, 200 / columns)
    for name, kind in KINDS.items():
        if len(kinds) <= MOST_MARKED:
            places = np.array([i for i, k in enumerate(kinds) if k == name], int)
            y, x = np.divmod(places, columns)
            axes.plot(x, y, label=name, ms=size, mew=size / 4, **kind.look)
    if len(kinds) <= MOST_MARKED:
        axes.set_xticks(np.arange(columns + 1) - 0.5, minor=True)
        axes.set_yticks(np.arange(rows + 1) - 0.5, minor=True)
        axes.grid(which="minor", color="#888888", lw=0.4)
        axes.tick_params(which="minor", length=0)
    _rows_named(axes, rates[::columns, 0])
    _frontier(axes, int((rates[:, 0] > 0).sum()), columns)


def _rows_named(axes: Axes, rates: np.ndarray) -> None:
    """The solve rate of each row's first question, at up to ten rows."""
    every = -(-len(rates) // 10)
    shown = [i for i in range(0, len(rates), every) if np.isfinite(rates[i])]
    axes.set_yticks(shown, [number(rates[i], 2) for i in shown], fontsize=7)
    axes.set_xticks([])


def _frontier(axes: Axes, solved: int, columns: int) -> None:
    """A heavy line behind the last question that the first agent solves."""
    row, column = divmod(solved, columns)
    x = [-0.5, column - 0.5, column - 0.5, columns - 0.5]
    y = [row + 0.5, row + 0.5, row - 0.5, row - 0.5]
    axes.plot(x, y, color="black", lw=2.2)


def _key(axes: Axes, kinds: Sequence[str]) -> None:
    """What colours and marks mean, and how many there are."""
    handles: list[Any] = []
    names = []
    for kind, look in KINDS.items():
        count = kinds.count(kind)
        if count == 0 and kind == "left out":
            continue
        patch = Patch(facecolor=look.cell, edgecolor="#888888")
        handles.append((patch, Line2D([], [], ms=5, **look.look)))
        names.append(f"{kind} {count}")
    handles.append(Line2D([], [], color="black", lw=2.2))
    names.append("first agent solves none from here")
    axes.legend(
        handles,
        names,
        loc="upper center",
        bbox_to_anchor=(0.5, -0.02),
        ncols=len(names),
        fontsize=8,
        frameon=False,
    )


def _columns(count: int) -> int:
    """Cells a row: a map about two and a half times as wide as high, in tens."""
    return max(1, min(count, max(10, 10 * round(np.sqrt(2.5 * count) / 10))))

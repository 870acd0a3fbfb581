"""Maps of pass surfaces: heat maps over both budgets, and every question a cell.

What a cell means is written in it, or marked: colour alone says nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import ListedColormap
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch, Rectangle

from jerp.runs.cells import number
from jerp.runs.pass_surface.figure_style import axis_ticks, drawable, shortened

__all__ = ["draw_heatmaps", "draw_questions", "question_cells"]

MOST_WRITTEN = 12
"""Rows or columns of a heat map up to which every cell has its number written in it."""

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
            drawable(shortened(comparison[f"{name}_label"], 40))
            for name in ("first", "second")
        )
        axes.set_title(f"{second} against {first}", fontsize=9)
        axes.set_ylabel(f"solve rate, {shortened(first, 16)}", fontsize=7)
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
    return max(10, 10 * round(np.sqrt(2.5 * max(count, 1)) / 10))


def draw_heatmaps(results: Mapping[str, Any], part: Mapping[str, Any]) -> Figure:
    """Each agent's surface, and the pairs' differences.

    Where the band of a difference leaves 0 out, the cell has a heavy frame; where the
    difference is below 0, it is hatched.
    """
    panels: list[tuple[str, Any, float | None]] = [
        (agent["label"], agent["surface"], None) for agent in part["agents"]
    ]
    differences = [found["difference"] for found in part["comparisons"]]
    every = np.abs([_array(band["point"]) for band in differences])
    reach = float(np.nanmax(every, initial=0)) or 1.0
    for found in part["comparisons"]:
        name = f"{found['second_label']} - {found['first_label']}"
        panels.append((name, found["difference"], reach))
    rows = _in_rows(panels, len(part["agents"]))
    columns = max(map(len, rows))
    size = (1 + 3.4 * columns, 3.3 * len(rows))
    figure = Figure(figsize=size, layout="constrained")
    grid = figure.subplots(len(rows), columns, squeeze=False)
    for line, row in zip(grid, rows, strict=True):
        for axes, panel in zip(line, row, strict=False):
            _heatmap(figure, axes, results, *panel)
        for axes in line[len(row) :]:
            axes.remove()
    return figure


def _in_rows(panels: list[Any], agents: int) -> list[list[Any]]:
    """Up to four in one row, else differences in rows below those of the agents."""
    if len(panels) <= 4:
        return [panels]
    kinds = (panels[:agents], panels[agents:])
    return [kind[i : i + 4] for kind in kinds for i in range(0, len(kind), 4)]


def _heatmap(
    figure: Figure,
    axes: Axes,
    results: Mapping[str, Any],
    title: str,
    band: Mapping[str, Any],
    reach: float | None,
) -> None:
    """One panel: a share, or a difference up to `reach` in size if that is given."""
    ks, horizons = results["ks"], results["horizons"]
    cells, low, high = (_array(band[name]) for name in ("point", "low", "high"))
    signed = reach is not None
    limit = 1.0 if reach is None else 1.4 * reach
    image = axes.imshow(
        cells,
        vmin=-limit if signed else 0,
        vmax=limit,
        cmap="PuOr" if signed else "Blues",
        aspect="auto",
        origin="lower",
        interpolation="none",
    )
    for values, set_ticks in ((horizons, axes.set_xticks), (ks, axes.set_yticks)):
        marked, names = axis_ticks(values, MOST_WRITTEN)
        set_ticks([list(values).index(v) for v in marked], names, fontsize=7)
    axes.set_xlabel(f"T, {results['settings']['unit']}", fontsize=8)
    axes.set_ylabel("k, samples", fontsize=8)
    axes.set_title(drawable(shortened(title, 44)), fontsize=8)
    if max(cells.shape) > MOST_WRITTEN:
        figure.colorbar(image, ax=axes)
    else:
        _numbers(axes, cells, signed=signed)
    if signed:
        _marked(axes, cells < 0, hatch="//", lw=0)
        _marked(axes, (low > 0) | (high < 0), edgecolor="black", lw=1.8)


def _numbers(axes: Axes, cells: np.ndarray, *, signed: bool) -> None:
    for (row, column), cell in np.ndenumerate(cells):
        text = axes.text(
            column,
            row,
            number(None if np.isnan(cell) else cell, 2, sign=signed),
            ha="center",
            va="center",
            fontsize=7,
            color="white" if cell > 0.6 and not signed else "black",
        )
        if signed:
            text.set_bbox({"facecolor": "white", "lw": 0, "pad": 0.8, "alpha": 0.85})


def _marked(axes: Axes, cells: np.ndarray, **look: Any) -> None:
    """Draws the outline or the hatch of these cells."""
    for row, column in np.argwhere(cells):
        corner = float(column) - 0.5, float(row) - 0.5
        axes.add_patch(Rectangle(corner, 1, 1, fill=False, **look))


def _array(value: Any) -> np.ndarray:
    """Nested lists as an array, None as NaN."""
    return np.array(value, dtype=float)

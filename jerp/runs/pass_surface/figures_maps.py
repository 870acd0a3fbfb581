"""Heat maps of pass surfaces over both budgets, from `results.json` alone.

Every cell has its number written in it; differences are hatched and outlined.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection
from matplotlib.figure import Figure
from matplotlib.patches import PathPatch
from matplotlib.path import Path
from matplotlib.transforms import Affine2D

from jerp.runs.cells import number
from jerp.runs.pass_surface.figure_style import axis_ticks, drawable, shortened

__all__ = ["draw_heatmaps"]

MOST_WRITTEN = 12
"""Rows or columns of a heat map up to which every cell has its number written in it."""


def draw_heatmaps(results: Mapping[str, Any], part: Mapping[str, Any]) -> Figure:
    """Each agent's surface, and the pairs' differences.

    A heavy line is around cells where the band of a difference leaves 0 out; cells
    where it is below 0 are hatched.
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
        most = MOST_WRITTEN if len(values) <= MOST_WRITTEN else MOST_WRITTEN // 2
        marked, names = axis_ticks(values, most)
        set_ticks([list(values).index(v) for v in marked], names, fontsize=7)
    axes.set_xlabel(f"T, {results['settings']['unit']}", fontsize=8)
    axes.set_ylabel("k, samples", fontsize=8)
    axes.set_title(drawable(shortened(title, 44)), fontsize=8)
    if max(cells.shape) > MOST_WRITTEN:
        figure.colorbar(image, ax=axes)
    else:
        _numbers(axes, cells, signed=signed)
    if signed:
        _hatch(axes, cells < 0)
        _outline(axes, (low > 0) | (high < 0))


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


def _hatch(axes: Axes, cells: np.ndarray) -> None:
    squares = [
        Path.unit_rectangle().transformed(Affine2D().translate(x - 0.5, y - 0.5))
        for y, x in np.argwhere(cells)
    ]
    if squares:
        whole = Path.make_compound_path(*squares)
        axes.add_patch(PathPatch(whole, fill=False, hatch="//", lw=0))


def _outline(axes: Axes, cells: np.ndarray) -> None:
    """A heavy line around these cells: the edges between one of them and another."""
    inside = np.pad(cells, 1)
    edges = []
    for y, x in np.argwhere(inside[1:] != inside[:-1]):
        edges.append([(x - 1.5, y - 0.5), (x - 0.5, y - 0.5)])
    for y, x in np.argwhere(inside[:, 1:] != inside[:, :-1]):
        edges.append([(x - 0.5, y - 1.5), (x - 0.5, y - 0.5)])
    look = {"colors": "black", "linewidths": 2.2, "clip_on": False}
    axes.add_collection(LineCollection(edges, **look))


def _array(value: Any) -> np.ndarray:
    """Nested lists as an array, None as NaN."""
    return np.array(value, dtype=float)

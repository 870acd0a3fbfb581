"""Lines with simultaneous bands in small multiples: over k at each T, over T at some k.

A panel a T and a panel a k, up to six and up to four of them, evenly chosen; all lines
of a figure share their styles over all panels, and are named where they end.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from jerp.runs.pass_surface.figure_style import (
    axis_ticks,
    chosen,
    drawable,
    legend_below,
    name_at_ends,
    style,
)
from jerp.runs.pass_surface.settings import number_text

__all__ = ["Line", "draw_lines"]

MOST_HORIZONS, MOST_KS = 6, 4


class Line(NamedTuple):
    """A band over the grid of budgets under a name.

    Attributes:
      name: of the line.
      place: whose style it has.
      point: `[K, H]`, NaN where undefined; `low` and `high` likewise.
      low: lower limit.
      high: upper limit.
      ringed: `[K]`, the T at which a curve over T is marked, NaN for nowhere.
      crossing: `[H, 3]`, point, low and high of the k at which a curve over k crosses
        0, NaN where none is drawn.
    """

    name: str
    place: int
    point: np.ndarray
    low: np.ndarray
    high: np.ndarray
    ringed: np.ndarray | None = None
    crossing: np.ndarray | None = None


def draw_lines(
    lines: Sequence[Line],
    ks: Sequence[int],
    horizons: Sequence[float],
    *,
    unit: str,
    quantity: str,
    limits: tuple[float, float] | None,
    ring: str = "",
    cross: str = "",
) -> Figure:
    """A panel a T with k across, below it a panel a k with T across.

    Args:
      lines: one or more.
      ks: K budgets k, ascending.
      horizons: H budgets T, ascending.
      unit: of T.
      quantity: what is drawn, for the axes.
      limits: of the vertical axis; None fits it to the bands and 0, and draws a line
        there.
      ring: what a ring means, for the legend.
      cross: what a cross means.

    Returns:
      The figure. A row whose budget has one value only is left out, unless both have;
      where nothing depends on T, one panel stands for all T.
    """
    spoken = [f"T = {number_text(t)} {unit}" for t in horizons]
    if len(horizons) > 1 and not any(_varies(line) for line in lines):
        first, last = number_text(horizons[0]), number_text(horizons[-1])
        spoken = [f"T = {first} to {last} {unit}, all alike"]
        horizons, lines = horizons[:1], [_at_first(line) for line in lines]
    over_k, over_t = len(ks) > 1 or len(horizons) == 1, len(horizons) > 1
    columns = max(over_k * min(len(horizons), 6), over_t * min(len(ks), 4))
    rows = over_k + over_t
    figure = Figure(
        figsize=(max(5.2, 1.9 * columns + 1.6), 2.5 * rows + 0.9), layout="constrained"
    )
    grid = figure.subplots(rows, columns, squeeze=False, sharey=True)
    drawn = []
    if over_k:
        drawn.append(_row_over_k(grid[0], lines, ks, spoken))
    if over_t:
        drawn.append(_row_over_t(grid[-1], lines, ks, horizons, unit))
    reach = _reach(lines) if limits is None else limits
    for row, (used, x, cell) in zip(grid, drawn, strict=True):
        ends = []
        for number, line in enumerate(lines):
            end = _across(x, number, len(lines))[-1], float(line.point[cell])
            ends.append((line.name, style(line.place).color, *end))
        _finish_row(row, used, ends, quantity, reach)
        if limits is None:
            for axes in row[:used]:
                axes.axhline(0, color="black", lw=0.8)
    _legend(figure, lines, ring=ring if over_t else "", cross=cross)
    return figure


def _row_over_k(
    row: Sequence[Axes],
    lines: Sequence[Line],
    ks: Sequence[int],
    titles: Sequence[str],
) -> tuple[int, Sequence[float], Any]:
    """A panel a T; how many there are, what is across, and the last one's last cell."""
    places = chosen(len(titles), MOST_HORIZONS)
    for axes, j in zip(row, places, strict=False):
        _panel(axes, lines, ks, np.s_[:, j], titles[j])
        for line in lines:
            if line.crossing is not None and np.isfinite(line.crossing[j, 0]):
                _crossing_mark(axes, line, j)
        if len(ks) > 1:
            axes.set_xscale("log", base=2)
        axes.set_xlabel("k, samples", fontsize=8)
        axes.set_xticks(*axis_ticks(ks, log=True), fontsize=7)
        axes.minorticks_off()
    return len(places), ks, np.s_[-1, places[-1]]


def _row_over_t(
    row: Sequence[Axes],
    lines: Sequence[Line],
    ks: Sequence[int],
    horizons: Sequence[float],
    unit: str,
) -> tuple[int, Sequence[float], Any]:
    """A panel a k; how many there are, what is across, and the last one's last cell."""
    places = chosen(len(ks), MOST_KS)
    for axes, i in zip(row, places, strict=False):
        _panel(axes, lines, horizons, np.s_[i, :], f"k = {ks[i]}")
        for line in lines:
            if line.ringed is not None and np.isfinite(line.ringed[i]):
                _ring(axes, line, horizons, i)
        if log := horizons[0] > 0 and horizons[-1] > 20 * horizons[0]:
            axes.set_xscale("log")
        axes.set_xlabel(f"T, {unit}", fontsize=8)
        axes.set_xticks(*axis_ticks(horizons, 5, log=log), fontsize=7)
        axes.minorticks_off()
    return len(places), horizons, np.s_[places[-1], -1]


def _panel(
    axes: Axes, lines: Sequence[Line], x: Sequence[float], cells: Any, title: str
) -> None:
    for number, line in enumerate(lines):
        point, low, high = (v[cells] for v in (line.point, line.low, line.high))
        look = style(line.place)
        thin = {"color": look.color, "lw": 0.6, "linestyle": look.linestyle}
        place = _across(x, number, len(lines))
        if len(x) == 1:
            axes.set_xlim(x[0] - 0.5, x[0] + 0.5)
            axes.vlines(place, low, high, color=look.color, lw=1)
        else:
            axes.fill_between(x, low, high, color=look.color, alpha=0.08, lw=0)
            for limit in (low, high):
                axes.plot(x, limit, **thin)
        axes.plot(place, point, ms=4, lw=1.4, **look._asdict())
    axes.set_title(drawable(title), fontsize=8)
    axes.grid(alpha=0.3)


def _across(x: Sequence[float], number: int, count: int) -> Sequence[float]:
    """Where a line's points are: a single one beside those of the other lines."""
    return [x[0] + (number + 1) / (count + 1) - 0.5] if len(x) == 1 else x


def _crossing_mark(axes: Axes, line: Line, column: int) -> None:
    point, low, high = np.asarray(line.crossing)[column]
    color = style(line.place).color
    axes.plot([low, high], [0, 0], color=color, lw=3, alpha=0.4, zorder=3)
    axes.plot([point], [0], "x", color=color, ms=7, mew=1.8, zorder=4)


def _ring(axes: Axes, line: Line, horizons: Sequence[float], row: int) -> None:
    column = int(np.abs(np.array(horizons) - np.asarray(line.ringed)[row]).argmin())
    place = [horizons[column]], [line.point[row, column]]
    axes.plot(*place, "o", mfc="none", mec=style(line.place).color, ms=9)


def _finish_row(
    row: Sequence[Axes],
    used: int,
    ends: Sequence[tuple[str, str, float, float]],
    quantity: str,
    reach: tuple[float, float],
) -> None:
    """Axes without a panel go; the last panel names its lines where they end."""
    for axes in row[used:]:
        axes.remove()
    bottom, top = reach
    pad = 0.03 * (top - bottom)
    row[0].set_ylim(bottom - pad, top + pad)
    row[0].set_ylabel(drawable(quantity), fontsize=8)
    row[0].tick_params(axis="y", labelsize=7)
    # Where there is empty room on the right, names widen no column.
    in_layout = used == len(row)
    name_at_ends(row[used - 1], ends, 0.09 * (top - bottom), in_layout=in_layout)


def _legend(figure: Figure, lines: Sequence[Line], *, ring: str, cross: str) -> None:
    handles = [
        Line2D([], [], ms=5, lw=1.4, **style(line.place)._asdict()) for line in lines
    ]
    names = [line.name for line in lines]
    if ring:
        handles.append(Line2D([], [], ls="", marker="o", mfc="none", mec="k", ms=9))
        names.append(ring)
    crossings = [line.crossing for line in lines if line.crossing is not None]
    if crossings and np.isfinite(np.array(crossings)[..., 0]).any():
        handles.append(Line2D([], [], color="k", marker="x", ms=7, mew=1.8, lw=0.6))
        names.append(cross)
    legend_below(figure, handles, names)


def _varies(line: Line) -> bool:
    """Whether anything of it depends on T."""
    bands = (line.point, line.low, line.high)
    return any(
        not np.array_equal(v, np.broadcast_to(v[:, :1], v.shape), True) for v in bands
    )


def _at_first(line: Line) -> Line:
    """It at the first T."""
    point, low, high = (v[:, :1] for v in (line.point, line.low, line.high))
    crossing = None if line.crossing is None else line.crossing[:1]
    return line._replace(point=point, low=low, high=high, crossing=crossing)


def _reach(lines: Sequence[Line]) -> tuple[float, float]:
    """Lowest and highest of all bands and 0."""
    values = np.concatenate([v.ravel() for line in lines for v in line[2:5]])
    found = np.append(values[np.isfinite(values)], 0.0)
    bottom, top = float(found.min()), float(found.max())
    return (bottom, top) if top > bottom else (-1.0, 1.0)

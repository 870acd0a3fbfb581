"""PNG figures of pass surfaces, from `results.json` alone.

Figures are made without pyplot, so a notebook's own backend stays as it is. Bands are
simultaneous: at the stated level the whole true surface lies inside of them.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from jerp.runs.pass_surface.settings import number_text

__all__ = ["figure_name", "write_figures"]


def write_figures(results: Mapping[str, Any], folder: Path) -> list[Path]:
    """Writes two figures a part into `folder`, three where two agents are compared."""
    paths = []
    for part in results["parts"]:
        figures = {
            "curves": _curves(results, part),
            "heatmap": _heatmaps(results, part),
        }
        if part["comparisons"]:
            figures["difference"] = _difference(results, part)
        for kind, figure in figures.items():
            title = f"Pass@(k, T), {part['num_kept']} tasks"
            if part["name"] is not None:
                title += f", {results['settings']['by']} = {part['name']}"
            if kind != "heatmap":
                title += f", {100 * results['settings']['level']:g}% simultaneous bands"
            figure.suptitle(title, fontsize=10)
            path = folder / figure_name(results, part, kind)
            figure.savefig(path, dpi=130)
            paths.append(path)
    return paths


def figure_name(results: Mapping[str, Any], part: Mapping[str, Any], kind: str) -> str:
    """The file of a part's figure."""
    if part["name"] is None:
        return f"{kind}.png"
    slug = re.sub(r"[^A-Za-z0-9]+", "-", part["name"]).strip("-")[:40]
    number = str(results["parts"].index(part) + 1)
    return "-".join(filter(None, (number, slug, f"{kind}.png")))


def _curves(results: Mapping[str, Any], part: Mapping[str, Any]) -> Figure:
    """Against k a line a T, and against T a line a k; a row an agent."""
    agents = part["agents"]
    figure = Figure(figsize=(10, 3.6 * len(agents)), layout="tight")
    grid = figure.subplots(len(agents), 2, squeeze=False, sharey=True)
    for row, agent in zip(grid, agents, strict=True):
        _against_both(row, results, agent["surface"])
        row[0].set_ylabel(agent["label"])
    return figure


def _difference(results: Mapping[str, Any], part: Mapping[str, Any]) -> Figure:
    """The second of a pair minus the first; a row a pair."""
    comparisons = part["comparisons"]
    figure = Figure(figsize=(10, 3.6 * len(comparisons)), layout="tight")
    grid = figure.subplots(len(comparisons), 2, squeeze=False, sharey=True)
    for row, found in zip(grid, comparisons, strict=True):
        _against_both(row, results, found["difference"])
        for axes in row:
            axes.axhline(0, color="black", lw=0.8)
        row[0].set_ylabel(f"{found['second_label']} - {found['first_label']}")
    return figure


def _against_both(
    row: Sequence[Axes], results: Mapping[str, Any], band: Mapping[str, Any]
) -> None:
    ks, horizons = results["ks"], results["horizons"]
    point, low, high = (_array(band[name]) for name in ("point", "low", "high"))
    unit = results["settings"]["unit"]
    names = [f"T = {number_text(t)}" for t in horizons]
    _lines(row[0], ks, [x.T for x in (point, low, high)], names)
    row[0].set_xscale("log", base=2)
    row[0].set_xlabel("k, samples")
    _lines(row[1], horizons, [point, low, high], [f"k = {k}" for k in ks])
    if horizons[0] > 0 and horizons[-1] > 20 * horizons[0]:
        row[1].set_xscale("log")
    row[1].set_xlabel(f"T, {unit}")
    for axes, values in zip(row, (ks, horizons), strict=True):
        axes.set_xticks(values, [number_text(v) for v in values])
        axes.minorticks_off()
        axes.grid(alpha=0.3)
        axes.legend(fontsize=7, loc="center left", bbox_to_anchor=(1, 0.5))


def _lines(
    axes: Axes,
    x: Sequence[float],
    band: Sequence[np.ndarray],
    names: Sequence[str],
) -> None:
    shades = matplotlib.colormaps["viridis"](np.linspace(0, 0.85, len(names)))
    for point, low, high, name, shade in zip(*band, names, shades, strict=True):
        axes.plot(x, point, "o-", ms=3, lw=1.5, color=shade, label=name)
        axes.fill_between(x, low, high, color=shade, alpha=0.12, lw=0)


def _heatmaps(results: Mapping[str, Any], part: Mapping[str, Any]) -> Figure:
    """Each agent's surface, and what lies between the pairs."""
    panels = [
        (agent["label"], agent["surface"]["point"], "Blues", (0.0, 1.0))
        for agent in part["agents"]
    ]
    for found in part["comparisons"]:
        value = found["difference"]["point"]
        reach = float(np.nanmax(np.abs(_array(value)), initial=0)) or 1.0
        name = f"{found['second_label']} - {found['first_label']}"
        panels.append((name, value, "RdBu", (-reach, reach)))
    figure = Figure(figsize=(1 + 4 * len(panels), 3.6), layout="tight")
    for axes, panel in zip(
        figure.subplots(1, len(panels), squeeze=False)[0], panels, strict=True
    ):
        _heatmap(axes, results, *panel)
    return figure


def _heatmap(
    axes: Axes,
    results: Mapping[str, Any],
    title: str,
    value: Any,
    colours: str,
    limits: tuple[float, float],
) -> None:
    ks, horizons, cells = results["ks"], results["horizons"], _array(value)
    low, high = limits
    axes.imshow(cells, vmin=low, vmax=high, cmap=colours, aspect="auto", origin="lower")
    axes.set_xticks(range(len(horizons)), [number_text(t) for t in horizons])
    axes.set_yticks(range(len(ks)), [str(k) for k in ks])
    axes.set_xlabel(f"T, {results['settings']['unit']}")
    axes.set_ylabel("k, samples")
    axes.set_title(title, fontsize=9)
    for (row, column), cell in np.ndenumerate(cells):
        dark = cell > 0.6 if low == 0 else abs(cell) > 0.6 * high
        axes.text(
            column,
            row,
            f"{cell:.2f}" if low == 0 else f"{cell:+.2f}",
            ha="center",
            va="center",
            fontsize=7,
            color="white" if dark else "black",
        )


def _array(value: Any) -> np.ndarray:
    """Nested lists as an array, None as NaN."""
    return np.array(value, dtype=float)

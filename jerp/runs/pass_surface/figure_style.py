"""How figures look and how they are kept: told apart without colour, drawn the same.

Every line has a marker and dashes of its own beside its colour, and the colours differ
in lightness. Figures are made without pyplot, so a notebook's own backend stays as it
is. A figure is kept as PNG and as SVG; the SVG's text is outlines, its ids are fixed
and it holds no date, so that it needs no font and the same numbers make the same file.
"""

from __future__ import annotations

import io
import math
from collections.abc import Iterable, Sequence
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.font_manager import FontProperties, findfont, get_font

from jerp.runs.pass_surface.settings import number_text

__all__ = [
    "Style",
    "apart",
    "axis_ticks",
    "chosen",
    "drawable",
    "figure_bytes",
    "legend_below",
    "name_at_ends",
    "save_figure",
    "shortened",
    "style",
]

DPI = 130

DASHES: tuple[Any, ...] = (
    "-",
    (0, (5, 2)),
    (0, (1, 1.5)),
    (0, (6, 2, 1, 2)),
    (0, (10, 4)),
)
MARKERS = "os^DvPX*"
COLOURS = ("#000000", "#0072b2", "#d55e00", "#009e73", "#b0609a", "#56b4e9", "#a09000")


class Style(NamedTuple):
    """How one of several lines is drawn."""

    color: str
    marker: str
    markerfacecolor: str
    linestyle: Any


def style(place: int) -> Style:
    """Of the line at this place; marker and dashes alone tell forty of them apart."""
    color = COLOURS[place % len(COLOURS)]
    return Style(
        color,
        MARKERS[place % len(MARKERS)],
        "white" if place % 2 else color,
        DASHES[place % len(DASHES)],
    )


def save_figure(figure: Figure, folder: Path, name: str) -> list[Path]:
    """Writes `name`.png and `name`.svg into `folder`; returns their paths."""
    paths = [folder / f"{name}.{ending}" for ending in ("png", "svg")]
    for path in paths:
        path.write_bytes(figure_bytes(figure, path.suffix))
    return paths


def figure_bytes(figure: Figure, suffix: str) -> bytes:
    """What a file of the figure holds that ends with `suffix`, ".png" or ".svg"."""
    # Laid out once for all files; matplotlib would draw each of them twice to do it.
    if (layout := figure.get_layout_engine()) is not None:
        layout.execute(figure)
        figure.set_layout_engine(None)
    data = io.BytesIO()
    if suffix == ".png":
        figure.savefig(data, format="png", dpi=DPI)
    else:
        with matplotlib.rc_context({"svg.hashsalt": "jerp", "svg.fonttype": "path"}):
            nothing = {"Date": None, "Creator": None}
            figure.savefig(data, format="svg", metadata=nothing)
    return data.getvalue()


def drawable(text: str) -> str:
    """The text with what the font lacks as escapes, and nothing read as mathematics."""
    known = (
        c if ord(c) in _glyphs() else c.encode("unicode_escape").decode() for c in text
    )
    return "".join(known).replace("$", r"\$")


def shortened(text: str, most: int = 22) -> str:
    """The text, or its beginning and end where it is longer than a label may be."""
    if len(text) <= most:
        return text
    end = (most - 3) // 2
    return f"{text[: most - 3 - end]}...{text[-end:]}"


def chosen(count: int, most: int) -> list[int]:
    """Up to `most` of the places 0 to count - 1, the first and the last with them."""
    return sorted({round(x) for x in np.linspace(0, count - 1, min(count, most))})


def axis_ticks(
    values: Sequence[float], most: int = 7, *, log: bool = False
) -> tuple[list[float], list[str]]:
    """Where an axis over these budgets is marked, and how.

    Args:
      values: budgets, ascending; from above 0 on with `log`.
      most: marks.
      log: spread them evenly in the logarithm.
    """
    places = chosen(len(values), most)
    if log and len(values) > most:
        logs = np.log(values)
        targets = np.linspace(logs[0], logs[-1], most)
        places = sorted({int(np.abs(logs - target).argmin()) for target in targets})
    return [values[i] for i in places], [_short(values[i]) for i in places]


def apart(places: Sequence[float], gap: float) -> list[float]:
    """Places at least `gap` from each other, near to these and in their order.

    Runs of places that are too near are spread around their mean.
    """
    order = sorted(range(len(places)), key=lambda i: places[i])
    runs: list[list[int]] = []
    for i in order:
        runs.append([i])
        while len(runs) > 1 and _top(places, runs[-2], gap) + gap > _bottom(
            places, runs[-1], gap
        ):
            last = runs.pop()
            runs[-1] += last
    moved = [0.0] * len(places)
    for run in runs:
        for step, i in enumerate(run):
            moved[i] = _bottom(places, run, gap) + step * gap
    return moved


def name_at_ends(
    axes: Axes,
    ends: Sequence[tuple[str, str, float, float]],
    gap: float,
    *,
    in_layout: bool,
) -> None:
    """Names lines right of the axes, where they end.

    Args:
      axes: the panel.
      ends: of each line its name, its colour, and where it ends; not finite for a line
        that is not there.
      gap: between names, in the axis' own unit.
      in_layout: whether the layout makes room for the names.
    """
    shown = [end for end in ends if math.isfinite(end[3])]
    places = apart([y for *_, y in shown], gap)
    for (name, color, x, y), place in zip(shown, places, strict=True):
        axes.annotate(
            drawable(shortened(name, 16)),
            xy=(x, y),
            xytext=(1.04, place),
            textcoords=axes.get_yaxis_transform(),
            color=color,
            fontsize=7,
            va="center",
            arrowprops={"arrowstyle": "-", "lw": 0.4, "color": color},
            annotation_clip=False,
        ).set_in_layout(in_layout)


def legend_below(figure: Figure, handles: Iterable[Any], names: Iterable[str]) -> None:
    """A legend under all panels, as wide as the figure."""
    names = [drawable(shortened(name, 60)) for name in names]
    room = max(1, int(11 * figure.get_figwidth() / (6 + max(map(len, names)))))
    figure.legend(
        list(handles),
        names,
        loc="outside lower center",
        ncols=min(len(names), room),
        fontsize=8,
        handlelength=3.5,
        frameon=False,
    )


def _top(places: Sequence[float], run: Sequence[int], gap: float) -> float:
    return _bottom(places, run, gap) + (len(run) - 1) * gap


def _bottom(places: Sequence[float], run: Sequence[int], gap: float) -> float:
    mean = math.fsum(places[i] for i in run) / len(run)
    return mean - (len(run) - 1) * gap / 2


def _short(value: float) -> str:
    text = number_text(value)
    return text if len(text) <= 6 else f"{value:.3g}"


@cache
def _glyphs() -> frozenset[int]:
    """Code points of the font that figures are drawn with."""
    return frozenset(get_font(findfont(FontProperties())).get_charmap())

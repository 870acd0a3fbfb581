"""What the verdicts rest on, a row a category and pair, from a document of surfaces."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from experiments.pass_surface.dot_plots import Series, dot_plot
from jerp.runs.pass_surface.settings import number_text

__all__ = ["draw_verdicts", "verdict_figure_words"]

Numbers = Mapping[str, Any]


def draw_verdicts(document: Numbers) -> Figure:
    """Questions gained and lost at the largest k and T, and the intervals of the rule.

    Args:
      document: of `jerp.runs.pass_surface.analysis`, with verdicts.
    """
    found = _rows(document)
    names = [name for name, _ in found]
    verdicts = [one["verdict"] for _, one in found]
    figure = Figure(figsize=(11, 1.3 + 0.55 * len(found)), layout="constrained")
    counts, limits = figure.subplots(1, 2, sharey=True, width_ratios=(2, 3))
    _bars(counts, verdicts)
    k, horizon = document["ks"][-1], number_text(document["horizons"][-1])
    differences = [
        {limit: one["difference"][limit][-1][-1] for limit in ("point", "low", "high")}
        for _, one in found
    ]
    dot_plot(
        limits,
        names,
        [
            Series(f"Pass@({k}, {horizon}), with its band", "o", True, differences),
            Series("gain - loss, between seeds", "D", False, _each(verdicts, "seeds")),
            Series(
                f"Pass@(1, {horizon}) where both solve",
                "^",
                True,
                _each(verdicts, "efficiency"),
            ),
        ],
    )
    limits.axvline(0, color="black", lw=0.8)
    limits.set_xlabel("difference", fontsize=8)
    for row, verdict in enumerate(verdicts):
        limits.text(
            1.02,
            row,
            verdict["verdict"].replace(", ", ",\n"),
            transform=limits.get_yaxis_transform(),
            va="center",
            fontsize=8,
        )
    return figure


def _bars(axes: Axes, verdicts: list[Numbers]) -> None:
    """Losses to the left, gains to the right, each with its number."""
    rows = range(len(verdicts))
    looks: dict[str, tuple[int, Numbers]] = {
        "losses": (-1, {"color": "#9a9a9a"}),
        "gains": (1, {"color": "white", "edgecolor": "black", "hatch": "///"}),
    }
    for name, (sign, look) in looks.items():
        values = [sign * verdict[name] for verdict in verdicts]
        bars = axes.barh(rows, values, height=0.55, label=name, **look)
        written = [str(abs(value)) if value else "" for value in values]
        axes.bar_label(bars, written, padding=3, fontsize=8)
    axes.axvline(0, color="black", lw=0.8)
    axes.margins(x=0.15)
    axes.set_xlabel("questions", fontsize=8)
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    axes.xaxis.set_major_formatter(lambda value, _: f"{abs(value):g}")
    axes.tick_params(labelsize=8)
    axes.legend(
        loc="lower left", bbox_to_anchor=(0, 1), ncols=2, fontsize=7, frameon=False
    )


def verdict_figure_words(document: Numbers) -> str:
    """The figure in words."""
    said = [f"{name}: {one['verdict']['words']}" for name, one in _rows(document)]
    bars = "Bars of gained and lost questions, and points with intervals"
    return f"{bars}. {'. '.join(said)}."


def _rows(document: Numbers) -> list[tuple[str, Numbers]]:
    return [
        (f"{part['name']}, {one['second_label']} against {one['first_label']}", one)
        for part in document["parts"]
        for one in part["comparisons"]
    ]


def _each(verdicts: list[Numbers], name: str) -> list[Numbers | None]:
    return [verdict[name] for verdict in verdicts]

"""Figures of the whole study: budgets, costs and forgetting, from `results.json` alone.

Lines have markers and dashes of their own and are named where they end; an arm looks
the same in every figure.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from experiments.pass_surface.config import CATEGORIES
from experiments.pass_surface.dot_plots import Series, dot_plot
from jerp.runs.pass_surface.figure_style import (
    drawable,
    legend_below,
    name_at_ends,
    style,
)
from jerp.runs.pass_surface.settings import number_text

__all__ = ["draw_budgets", "draw_costs", "draw_forgetting", "searched_parts"]

Numbers = Mapping[str, Any]


def searched_parts(document: Numbers) -> list[Numbers]:
    """The parts of a variant's document whose questions need look-ups."""
    return [part for part in document["parts"] if max(CATEGORIES[part["name"]]) > 0]


def draw_budgets(variants: Mapping[str, Numbers], labels: Mapping[str, str]) -> Figure:
    """Pass@(k, T) over T by variant: a row a category and k, a column an arm.

    Args:
      variants: documents of `jerp passkt` by variant, of the same parts and arms.
      labels: of the variants.
    """
    first = next(iter(variants.values()))
    names = [part["name"] for part in searched_parts(first)]
    arms = [agent["label"] for agent in first["agents"]]
    ks = sorted({first["ks"][0], first["ks"][-1]})
    rows = [(name, k) for name in names for k in ks]
    figure = Figure(figsize=(3 * len(arms) + 1, 2 * len(rows) + 0.8))
    figure.set_layout_engine("constrained")
    grid = figure.subplots(
        len(rows), len(arms), squeeze=False, sharex=True, sharey="row"
    )
    for line, (name, k) in zip(grid, rows, strict=True):
        for column, axes in enumerate(line):
            for place, document in enumerate(variants.values()):
                _over_budgets(axes, document, name, k, column, place)
            axes.set_title(drawable(f"{name}, {arms[column]}, k = {k}"), fontsize=8)
            axes.grid(alpha=0.3)
            axes.tick_params(labelsize=7)
        line[0].set_ylabel("Pass@(k, T)", fontsize=8)
    for axes in grid[-1]:
        axes.set_xticks(first["horizons"], map(number_text, first["horizons"]))
        axes.set_xlabel(f"T, {first['settings']['unit']}", fontsize=8)
    _legend(figure, [labels[name] for name in variants])
    return figure


def _over_budgets(
    axes: Axes, document: Numbers, name: str, k: int, arm: int, place: int
) -> None:
    part = next(part for part in document["parts"] if part["name"] == name)
    row = document["ks"].index(k)
    band = part["agents"][arm]["surface"]
    point, low, high = (
        np.array(band[limit][row], float) for limit in ("point", "low", "high")
    )
    # Beside each other, so that limits of equal values can be told apart.
    x = np.array(document["horizons"], float) + 0.07 * (place - 1)
    axes.plot(x, point, ms=4, lw=1.2, **style(place)._asdict())
    axes.vlines(x, low, high, color=style(place).color, lw=0.8)


def draw_costs(cost: Numbers, labels: Mapping[str, str]) -> Figure:
    """Pass@k against the tokens that k runs take, a panel a category.

    A bar at the height of an arm's Pass@1 goes to the base's runs that solve as much:
    its end is the break-even; an arrow where no k of the grid is enough, and no bar
    where one run of the base solves more.

    Args:
      cost: see `costs.cost_tables`.
      labels: of the arms.
    """
    categories, ks = cost["categories"], np.array(cost["ks"], float)
    figure = Figure(figsize=(4.2 * len(categories) + 0.8, 4), layout="constrained")
    grid = figure.subplots(1, len(categories), squeeze=False, sharey=True)[0]
    arms = list(dict.fromkeys(arm for found in categories.values() for arm in found))
    for axes, (category, found) in zip(grid, categories.items(), strict=True):
        one = next(iter(found.values()))
        curves = {"base": (ks * one["tokens_base"], one["base_pass"])}
        for arm, numbers in found.items():
            curves[arm] = (ks * numbers["tokens_arm"], numbers["arm_pass"])
            _bar(axes, numbers, style(1 + arms.index(arm)).color)
        ends = []
        for arm, (x, y) in curves.items():
            look = style(0 if arm == "base" else 1 + arms.index(arm))
            axes.plot(x, y, ms=4, lw=1.4, **look._asdict())
            ends.append((labels[arm], look.color, float(x[-1]), float(y[-1])))
        name_at_ends(axes, ends, 0.07, in_layout=True)
        axes.set_xscale("log", base=2)
        axes.xaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")
        axes.set_title(drawable(category), fontsize=9)
        axes.set_xlabel("tokens of k runs of a question", fontsize=8)
        axes.grid(alpha=0.3)
        axes.tick_params(labelsize=7)
    grid[0].set_ylabel("Pass@k, largest T", fontsize=8)
    grid[0].set_ylim(-0.03, 1.03)
    _legend(
        figure,
        [labels[arm] for arm in ("base", *arms)],
        {
            "|": "here the base solves as much as one run of the arm",
            ">": "the base solves less with every k of the grid",
        },
    )
    return figure


def _bar(axes: Axes, numbers: Numbers, color: str) -> None:
    """From one run of the arm to the base's runs that solve as much, if there are."""
    if numbers["samples"]["point"] is None:
        return
    start, height = numbers["tokens_arm"], numbers["arm_pass"][0]
    stop = numbers["samples"]["point"] * numbers["tokens_base"]
    end = "|" if numbers["reached"] else ">"
    axes.plot([start, stop], [height, height], color=color, lw=0.8, linestyle=":")
    axes.plot([stop], [height], marker=end, color=color, ms=8, mew=1.5)


def draw_forgetting(
    forgetting: Mapping[str, Mapping[str, Numbers]], labels: Mapping[str, str]
) -> Figure:
    """Success in each other world, and the arms' differences from the base.

    Args:
      forgetting: by world and arm, see `forgetting.forgetting_numbers`.
      labels: of the arms.
    """
    rows = [
        (f"{world}, {labels[arm]}", numbers)
        for world, arms in forgetting.items()
        for arm, numbers in arms.items()
    ]
    names = [name for name, _ in rows]
    figure = Figure(figsize=(10.5, 1.2 + 0.4 * len(rows)), layout="constrained")
    success, difference = figure.subplots(1, 2, sharey=True)
    dot_plot(
        success, names, [Series("success", "o", True, [x["success"] for _, x in rows])]
    )
    success.set_xlabel("success, tasks resampled", fontsize=8)
    dot_plot(
        difference,
        names,
        [
            Series(
                "tasks resampled", "o", True, [x.get("difference") for _, x in rows]
            ),
            Series("between seeds", "D", False, [x.get("seeds") for _, x in rows]),
        ],
    )
    difference.axvline(0, color="black", lw=0.8)
    difference.set_xlabel("difference from the base", fontsize=8)
    return figure


def _legend(
    figure: Figure, names: Sequence[str], marks: Mapping[str, str] | None = None
) -> None:
    """Names of lines in their order, and what marks mean."""
    handles = [
        Line2D([], [], ms=5, lw=1.4, **style(place)._asdict())
        for place in range(len(names))
    ]
    marks = marks or {}
    handles += [
        Line2D([], [], ls=":", lw=0.8, color="black", marker=mark, ms=8)
        for mark in marks
    ]
    legend_below(figure, handles, [*names, *marks.values()])

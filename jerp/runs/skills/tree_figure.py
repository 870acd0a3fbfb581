"""The tree of revisions as a figure: who came of whom, and how each draft fared.

Time runs to the right, a column a phase; a draft stands right of the one that it
revises, and the drafts of a task below each other. The share of runs that succeeded is
a colour, whose lightness alone says as much; what has no such share is told by its
mark. A run of many tasks is not one figure: those that say most are drawn, see
`jerp.runs.skills.tree_places`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection
from matplotlib.colors import to_rgba
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from jerp.errors import InputError
from jerp.runs.pass_surface.figure_style import drawable, shortened
from jerp.runs.skills.tree_places import (
    MOST_SHOWN,
    Place,
    check_some,
    columns_of,
    places_of,
    telling_tasks,
)
from jerp.skills.node import SkillNode
from jerp.skills.tree import SkillTree

__all__ = ["draw_skill_tree", "shown_words"]

MOST_DRAFTS = 500
"""Of a task that is asked for by its name."""

ROW, COLUMN, WIDEST = 0.19, 1.1, 40.0
"""Inches between two drafts, two phases, and of all phases at most."""

MARKS = {"judged": "o", "no verdict": "s", "not parsed": "D"}
SIZE, RING = 6.5, 11.0
"""Points, of a mark, and of the ring around what was kept."""

COLOURS = matplotlib.colormaps["viridis"]
GREY, INK = "0.7", "0.25"
MOST_SHARES = 5
"""In the legend."""

MOST_CHANGED = "those where most revisions changed success"
FEWEST = "that with the fewest drafts; all have too many for one figure"
"""Why tasks were chosen."""


def shown_words(tree: SkillTree, tasks: Sequence[str]) -> str:
    """How much of a tree the drafts of some tasks are.

    Args:
      tree: any.
      tasks: of it.

    Example:
      >>> tree = SkillTree([SkillNode(0, None, "move", 0, "# A")])
      >>> shown_words(tree, ["move"])
      '1 of 1 tasks, 1 of 1 drafts'
    """
    drafts = sum(len(tree.of_task(task)) for task in tasks)
    return (
        f"{len(tasks)} of {len(tree.tasks):,} tasks, {drafts} of {len(tree):,} drafts"
    )


def draw_skill_tree(tree: SkillTree, task: str | None = None) -> Figure:
    """The drafts of a task, or of those that say most.

    Args:
      tree: any.
      task: whose drafts; None for those of `telling_tasks`.

    Returns:
      A figure whose numbers beside the marks are the ids of the nodes.

    Raises:
      InputError: a tree without a draft or such a task, or a task with more drafts
        than a figure can hold.
    """
    check_some(tree)
    tasks = telling_tasks(tree) if task is None else (task,)
    number = sum(len(tree.of_task(name)) for name in tasks)
    if number > MOST_DRAFTS:
        raise InputError(
            f"task: expected at most {MOST_DRAFTS} drafts for a figure, got {number} "
            f"of {', '.join(tasks):.80}; read them as lines"
        )
    figure = _drawn(tree, tasks)
    title = [shown_words(tree, tasks)]
    if len(tasks) < len(tree.tasks) and task is None:
        title.append(MOST_CHANGED if number <= MOST_SHOWN else FEWEST)
    figure.axes[0].set_title("\n".join(title), fontsize=9)
    return figure


def _drawn(tree: SkillTree, tasks: Sequence[str]) -> Figure:
    columns = columns_of(tree, tasks)
    places, heads, height = places_of(tree, tasks, columns)
    pitch = min(COLUMN, WIDEST / len(columns))
    size = (max(6.0, pitch * len(columns) + 1.5), ROW * height + 1.6)
    figure = Figure(figsize=size, layout="constrained")
    axes = figure.subplots()
    for name, row in heads.items():
        axes.text(-0.5, row, drawable(shortened(name, 60)), weight="bold", fontsize=8)
    _draw_edges(axes, places)
    _draw_marks(axes, places)
    _frame(axes, columns, height)
    figure.legend(
        handles=list(_legend([place.node for place in places.values()])),
        loc="outside lower center",
        ncols=4,
        fontsize=7,
        frameon=False,
        title="share of runs that succeeded; other drafts, how many",
        title_fontsize=7,
    )
    return figure


def _draw_edges(axes: Axes, places: dict[int, Place]) -> None:
    """A stem right of each parent, which branches to those that revise it."""
    branches: dict[int, list[Place]] = {}
    for place in places.values():
        if place.node.parent is not None:
            branches.setdefault(place.node.parent, []).append(place)
    lines = []
    for parent, below in branches.items():
        x, y = places[parent].x, places[parent].y
        turn, rows = x + 0.5, [place.y for place in below]
        lines.append([(x, y), (turn, y)])
        lines.append([(turn, min(rows)), (turn, max(rows))])
        lines += [[(turn, place.y), (place.x, place.y)] for place in below]
    axes.add_collection(LineCollection(lines, colors="0.6", linewidths=0.8, zorder=1))


def _draw_marks(axes: Axes, places: dict[int, Place]) -> None:
    for kind, marker in MARKS.items():
        drawn = [place for place in places.values() if _kind(place.node) == kind]
        axes.scatter(
            [place.x for place in drawn],
            [place.y for place in drawn],
            s=SIZE**2,
            c=np.array([_colour(place.node) for place in drawn]).reshape(-1, 4),
            marker=marker,
            edgecolors=INK,
            linewidths=0.7,
            label=kind,
            zorder=3,
        )
    kept = [place for place in places.values() if place.node.retained]
    axes.scatter(
        [place.x for place in kept],
        [place.y for place in kept],
        s=RING**2,
        facecolors="none",
        edgecolors=INK,
        linewidths=1.0,
        label="kept",
        zorder=2,
    )
    for node, x, y, is_parent in places.values():
        # Where nothing follows the id has the line for itself, else it is above it.
        axes.annotate(
            str(node.id),
            (x, y),
            xytext=(-SIZE, 2) if is_parent else (RING / 2 + 2, 0),
            textcoords="offset points",
            ha="right" if is_parent else "left",
            va="bottom" if is_parent else "center_baseline",
            fontsize=6,
        )


def _kind(node: SkillNode) -> str:
    if node.skill is None:
        return "not parsed"
    return "no verdict" if node.success is None else "judged"


def _colour(node: SkillNode) -> tuple[float, ...]:
    colours = {"no verdict": GREY, "not parsed": "white"}
    if node.success is None:
        return to_rgba(colours[_kind(node)])
    return COLOURS(float(node.success))


def _frame(axes: Axes, columns: dict[tuple[int, int], int], height: int) -> None:
    firsts = {phase: x for (phase, within), x in columns.items() if not within}
    axes.set_xticks(list(firsts.values()), [str(phase) for phase in firsts])
    axes.set_xlabel("phase", fontsize=8)
    axes.tick_params(labelsize=8, labeltop=height > 40, top=height > 40)
    axes.set_yticks([])
    axes.set_xlim(-0.55, len(columns) - 0.4)
    axes.set_ylim(height - 0.3, -0.8)
    for side in ("left", "right"):
        axes.spines[side].set_visible(False)


def _legend(nodes: Sequence[SkillNode]) -> Iterator[Line2D]:
    shares = sorted({node.success for node in nodes if node.success is not None})
    if len(shares) > MOST_SHARES:
        shares = np.linspace(0, 1, MOST_SHARES).tolist()
    for share in shares:
        yield _key("judged", COLOURS(float(share)), f"{share:.0%}")
    for kind, colour in {"no verdict": GREY, "not parsed": "white"}.items():
        count = sum(_kind(node) == kind for node in nodes)
        yield _key(kind, colour, f"{kind} ({count})")
    kept = sum(node.retained for node in nodes)
    ring = _key("judged", "none", f"kept: succeeded and failed ({kept})")
    ring.set_markersize(RING)
    yield ring


def _key(kind: str, colour: Any, label: str) -> Line2D:
    return Line2D(
        [],
        [],
        linestyle="none",
        marker=MARKS[kind],
        markersize=SIZE,
        markerfacecolor=colour,
        markeredgecolor=INK,
        markeredgewidth=0.7,
        label=label,
    )

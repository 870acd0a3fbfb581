"""Figures of pass surfaces as PNG and SVG, from `results.json` alone.

Two a part; four where agents are compared. Bands are simultaneous: at the stated level
the whole true surface lies inside of them. Anyone can redraw:
`write_figures(read_json("results.json"), folder)`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from jerp.runs.pass_surface.figure_style import drawable, save_figure
from jerp.runs.pass_surface.figures_curves import draw_curves, draw_difference
from jerp.runs.pass_surface.figures_maps import draw_heatmaps
from jerp.runs.pass_surface.figures_questions import draw_questions
from jerp.runs.pass_surface.settings import number_text
from jerp.runs.pass_surface.tables import counted_tasks

__all__ = ["figure_kinds", "figure_name", "write_figures"]

_DRAW = {
    "curves": draw_curves,
    "heatmap": draw_heatmaps,
    "difference": draw_difference,
    "questions": draw_questions,
}


def write_figures(results: Mapping[str, Any], folder: Path) -> list[Path]:
    """Writes every part's figures into `folder`; returns the paths, PNG before SVG."""
    paths = []
    for part in results["parts"]:
        for kind in figure_kinds(part):
            figure = _DRAW[kind](results, part)
            figure.suptitle(drawable(_title(results, part, kind)), fontsize=10)
            paths += save_figure(figure, folder, figure_name(results, part, kind))
    return paths


def figure_kinds(part: Mapping[str, Any]) -> Sequence[str]:
    """Which figures a part has, in the order of the report."""
    return list(_DRAW) if part["comparisons"] else ["curves", "heatmap"]


def figure_name(results: Mapping[str, Any], part: Mapping[str, Any], kind: str) -> str:
    """The file of a part's figure, without its ending."""
    if part["name"] is None:
        return kind
    slug = re.sub(r"[^A-Za-z0-9]+", "-", part["name"]).strip("-")[:40]
    number = str(results["parts"].index(part) + 1)
    return "-".join(filter(None, (number, slug, kind)))


def _title(results: Mapping[str, Any], part: Mapping[str, Any], kind: str) -> str:
    settings = results["settings"]
    about = counted_tasks(part)
    if part["name"] is not None:
        about += f", {settings['by']} = {part['name']}"
    level = f"{number_text(100 * settings['level'])}%"
    if kind == "questions":
        last = f"{number_text(results['horizons'][-1])} {settings['unit']}"
        return f"Who solves which task at least once, T = {last}; {about}"
    title = f"Pass@(k, T), {about}"
    if kind != "heatmap":
        return f"{title}, {level} simultaneous bands"
    if not part["comparisons"]:
        return title
    return f"{title}; hatched: below 0, outlined: the {level} band leaves 0 out"

"""Curves of pass surfaces and of their differences, from `results.json` alone."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from jerp.runs.pass_surface.figure_style import shortened
from jerp.runs.pass_surface.figures_lines import Line, draw_lines
from jerp.runs.pass_surface.settings import number_text

__all__ = ["draw_curves", "draw_difference"]


def draw_curves(results: Mapping[str, Any], part: Mapping[str, Any]) -> Figure:
    """Pass@(k, T) of every agent; a ring marks T*."""
    lines = [
        Line(
            agent["label"],
            place,
            *_band(agent["surface"]),
            ringed=_array(agent["saturation_horizon"]),
        )
        for place, agent in enumerate(part["agents"])
    ]
    near = number_text(results["settings"]["tolerance"])
    return draw_lines(
        lines,
        results["ks"],
        results["horizons"],
        unit=results["settings"]["unit"],
        quantity="Pass@(k, T)",
        limits=(0.0, 1.0),
        ring=f"T*: from there on within {near} of the last T",
    )


def draw_difference(results: Mapping[str, Any], part: Mapping[str, Any]) -> Figure:
    """Every pair's difference; a cross on the zero line marks where curves cross.

    A pair has the style of its second agent, unless two pairs share it. A crossing is
    drawn if at least `level` of the resamples cross likewise.
    """
    comparisons = part["comparisons"]
    seconds = [found["second"] for found in comparisons]
    shared = len(set(seconds)) < len(seconds)
    firsts = {found["first_label"] for found in comparisons}
    against = shortened(firsts.pop()) if len(firsts) == 1 else None
    level = results["settings"]["level"]
    lines = [
        Line(
            found["second_label"]
            if against is not None
            else f"{found['second_label']} - {found['first_label']}",
            len(part["agents"]) + number if shared else found["second"],
            *_band(found["difference"]),
            crossing=_array([_crossing(row, level) for row in found["boundary"]]),
        )
        for number, found in enumerate(comparisons)
    ]
    return draw_lines(
        lines,
        results["ks"],
        results["horizons"],
        unit=results["settings"]["unit"],
        quantity="difference of Pass@(k, T)"
        if against is None
        else f"Pass@(k, T) - that of {against}",
        limits=None,
        cross=f"k at which the curves cross, in {100 * level:g}% of resamples",
    )


def _crossing(row: Mapping[str, Any], level: float) -> list[float | None]:
    """Where two curves cross, if that is certain enough to be drawn."""
    found = row["crossing_k"]
    if found is None or (found["share"] or 0.0) < level:
        return [None] * 3
    return [found[name] for name in ("point", "low", "high")]


def _band(band: Mapping[str, Any]) -> list[np.ndarray]:
    return [_array(band[name]) for name in ("point", "low", "high")]


def _array(value: Any) -> np.ndarray:
    """Nested lists as an array, None as NaN."""
    return np.array(value, dtype=float)

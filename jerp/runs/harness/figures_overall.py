"""Figures over all domains: Q against HMS, prediction and outcome, support and gain."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from jerp.runs.harness.arms import ARM_LABELS
from jerp.runs.harness.claims import SUPPORT, prediction_pairs

__all__ = ["draw_overall"]

MARKERS = "osD^vPX*"
COLOURS = ("#2b6cb0", "#c05621", "#2f855a", "#805ad5", "#b83280", "#4a5568", "#d69e2e")


def draw_overall(results: Mapping[str, Any]) -> dict[str, Figure]:
    """By file name; domains are markers, arms colours."""
    return {
        "q-against-hms": _draw_q_against_hms(results["domains"]),
        "prediction": _draw_prediction(results),
        "support": _draw_support(results),
    }


def _draw_q_against_hms(domains: Mapping[str, Any]) -> Figure:
    """Change in quality against change in process maturity, both against base."""
    figure = Figure(figsize=(9, 5), layout="tight")
    axis = figure.subplots()
    for marker, domain in zip(MARKERS, domains.values(), strict=False):
        arms = [arm for arm in domain["arms"] if arm not in ("base", "random")]
        for colour, arm in zip(COLOURS, arms, strict=False):
            change = domain["arms"][arm]["difference"]
            x, y = (change[k]["point"] for k in ("hms", "q"))
            axis.plot([x], [y], marker, color=colour, ms=7)
    for colour, arm in zip(COLOURS, arms, strict=False):
        axis.plot([], [], "o", color=colour, label=ARM_LABELS[arm])
    _legend(axis, domains)
    axis.axhline(0, color="grey", lw=0.8)
    axis.axvline(0, color="grey", lw=0.8)
    axis.set_xlabel("HMS - base")
    axis.set_ylabel("Q - base")
    return figure


def _draw_prediction(results: Mapping[str, Any]) -> Figure:
    """Predicted against observed Q, a controller a point, a method a panel."""
    methods = list(results["prediction_check"])
    columns = min(3, len(methods))
    rows = -(-len(methods) // columns)
    figure = Figure(figsize=(3.2 * columns, 3.2 * rows), layout="tight")
    panels = figure.subplots(rows, columns, squeeze=False).ravel()
    marker = dict(zip(results["domains"], MARKERS, strict=False))
    for axis, method in zip(panels, methods, strict=False):
        for name, arm, said, seen in prediction_pairs(results["domains"], method):
            colour = COLOURS[list(ARM_LABELS).index(arm) % len(COLOURS)]
            axis.plot(
                [said["point"]],
                [seen["point"]],
                marker[name],
                color=colour,
                ms=4,
                alpha=0.7,
            )
        axis.plot([0, 1], [0, 1], color="grey", lw=0.8)
        axis.set_title(method, fontsize=9)
        axis.set_xlabel("predicted Q")
        axis.set_ylabel("held-out Q")
    for axis in panels[len(methods) :]:
        axis.axis("off")
    return figure


def _draw_support(results: Mapping[str, Any]) -> Figure:
    """Gain in Q against each measure of the buffer's support."""
    figure = Figure(figsize=(3.2 * len(SUPPORT), 3.4), layout="tight")
    panels = figure.subplots(1, len(SUPPORT), sharey=True)
    marker = dict(zip(results["domains"], MARKERS, strict=False))
    arms = list(results["support"]["correlation"])
    for axis, (measure, words) in zip(panels, SUPPORT.items(), strict=True):
        for point in results["support"]["points"]:
            colour = COLOURS[arms.index(point["arm"])]
            axis.plot(
                [point[measure]],
                [point["gain"]],
                marker[point["domain"]],
                color=colour,
                ms=5,
            )
        axis.axhline(0, color="grey", lw=0.8)
        axis.set_xlabel(words, fontsize=7)
    panels[0].set_ylabel("gain in Q over base")
    for colour, arm in zip(COLOURS, arms, strict=False):
        panels[0].plot([], [], "o", color=colour, label=ARM_LABELS[arm])
    _legend(panels[0], results["domains"])
    return figure


def _legend(axis: Axes, domains: Mapping[str, Any]) -> None:
    for marker, name in zip(MARKERS, domains, strict=False):
        axis.plot([], [], marker, color="black", ls="", label=name)
    axis.legend(fontsize=6)

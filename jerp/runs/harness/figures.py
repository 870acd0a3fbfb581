"""PNG figures of the harness comparison, from `results.json` alone.

Figures are made without pyplot, so a notebook's own backend stays as it is.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from jerp.runs.harness.arms import ARM_LABELS, LEARNED_ARMS
from jerp.runs.harness.figures_overall import draw_overall
from jerp.runs.harness.wording import executor_line

__all__ = ["write_figures"]

COLOUR = "#2b6cb0"
LEARNED = "#c05621"


def write_figures(results: dict[str, Any], folder: Path) -> list[Path]:
    """Writes three figures a domain, and three of all; returns their paths."""
    folder.mkdir(parents=True, exist_ok=True)
    paths = []
    figures = {
        f"{name}-{kind}": (name, draw(domain))
        for name, domain in results["domains"].items()
        for kind, draw in (
            ("arms", _draw_arms),
            ("events", _draw_events),
            ("buffer", _draw_buffer),
        )
    }
    figures |= {name: ("all", figure) for name, figure in draw_overall(results).items()}
    for file, (title, figure) in figures.items():
        figure.suptitle(f"{title} ({executor_line(results)})", fontsize=10)
        path = folder / f"{file}.png"
        figure.savefig(path, dpi=110)
        paths.append(path)
    return paths


def _draw_arms(domain: dict[str, Any]) -> Figure:
    """Q and HMS of every arm with 95% intervals."""
    figure = Figure(figsize=(9, 0.45 * len(domain["arms"]) + 1.4), layout="tight")
    axes = figure.subplots(1, 2, sharey=True)
    for axis, key, label in zip(axes, ("q", "hms"), ("Q", "HMS"), strict=True):
        _forest(axis, domain["arms"], key)
        axis.axvline(domain["arms"]["base"][key]["point"], color="grey", lw=0.8, ls=":")
        axis.set_xlabel(f"{label} (95% interval, tasks resampled)")
    return figure


def _forest(axis: Axes, arms: dict[str, Any], key: str) -> None:
    for row, (name, arm) in enumerate(arms.items()):
        value = arm[key]
        colour = LEARNED if name in LEARNED_ARMS else COLOUR
        axis.plot([value["low"], value["high"]], [row, row], color=colour, lw=2)
        axis.plot([value["point"]], [row], "o", color=colour, ms=5)
    axis.set_yticks(range(len(arms)), [ARM_LABELS[name] for name in arms])
    axis.set_ylim(len(arms) - 0.5, -0.5)
    axis.grid(axis="x", alpha=0.3)


def _draw_events(domain: dict[str, Any]) -> Figure:
    """Rate of each process event by arm; empty where an event never applies."""
    arms = domain["arms"]
    events = list(next(iter(arms.values()))["events"])
    rates = [
        [
            float("nan")
            if arm["events"][e]["rate"] is None
            else arm["events"][e]["rate"]
            for e in events
        ]
        for arm in arms.values()
    ]
    figure = Figure(figsize=(9, 0.45 * len(arms) + 2), layout="tight")
    axis = figure.subplots()
    image = axis.imshow(rates, vmin=0, vmax=1, cmap="Blues", aspect="auto")
    axis.set_xticks(range(len(events)), events, rotation=25, ha="right", fontsize=8)
    axis.set_yticks(range(len(arms)), [ARM_LABELS[name] for name in arms])
    for row, line in enumerate(rates):
        for column, rate in enumerate(line):
            if rate == rate:
                shade = "white" if rate > 0.6 else "black"
                axis.text(
                    column, row, f"{rate:.2f}", ha="center", va="center", color=shade
                )
    figure.colorbar(image, ax=axis, label="rate")
    return figure


def _draw_buffer(domain: dict[str, Any]) -> Figure:
    """Return and weight distributions of the buffer."""
    buffer = domain["buffer"]
    figure = Figure(figsize=(9, 3), layout="tight")
    left, right = figure.subplots(1, 2)
    left.hist(buffer["returns"], bins=20, range=(0, 1), color=COLOUR)
    left.axvline(buffer["mean_return"], color="black", lw=1, label="mean")
    left.axvline(
        buffer["best_return_per_task"], color=LEARNED, lw=1, label="best per task, mean"
    )
    left.set_xlabel("return of a buffered episode")
    left.set_ylabel("episodes")
    left.legend(fontsize=8, loc="upper center")
    right.hist(buffer["weights"], bins=30, color=LEARNED)
    right.set_yscale("log")
    right.set_xlabel("advantage weight of a buffered episode")
    return figure

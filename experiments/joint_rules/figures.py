"""Figures of the experiment: success while training, and absorption."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from matplotlib.figure import Figure

from experiments.joint_rules.config import ARMS
from experiments.joint_rules.tables import label

__all__ = ["probable", "write_figures"]


def write_figures(results: Mapping[str, Any], folder: Path) -> None:
    """Two figures a world, as PNG in a folder that is made."""
    folder.mkdir(exist_ok=True)
    for world, found in results["worlds"].items():
        for name, draw in {"curves": _curves, "absorption": _absorption}.items():
            figure = draw(found)
            if figure is not None:
                figure.savefig(folder / f"{world}-{name}.png", dpi=120)


def _curves(found: Mapping[str, Any]) -> Figure:
    """Success on held-out tasks, with rules in the prompt and without."""
    figure = Figure(figsize=(10, 4.5), layout="tight")
    left, right = figure.subplots(1, 2, sharey=True)
    for place, (arm, numbers) in enumerate(found["arms"].items()):
        along, color = numbers["along"], f"C{place % 10}"
        style = "-" if ARMS[arm].policy else ":"
        marks = {"color": color, "linestyle": style, "marker": "o", "ms": 3}
        left.plot(along["iterations"], along["with"], label=label(arm), **marks)
        right.plot(along["iterations"], along["without"], **marks)
    left.set_title("with its rules in the prompt", fontsize=10)
    right.set_title("without rules", fontsize=10)
    left.set_ylabel("success on seen tasks (mean of seeds)")
    left.legend(fontsize=7)
    for axis in (left, right):
        axis.set_xlabel("iteration")
        axis.set_ylim(0, 1)
    return figure


def probable(found: Mapping[str, Any]) -> dict[str, Mapping[str, Any]]:
    """By arm whose policy learns, how probable what its rules say has become."""
    following = {
        arm: numbers.get("rules", {}).get("following", {})
        for arm, numbers in found["arms"].items()
        if ARMS[arm].policy
    }
    return {arm: curves for arm, curves in following.items() if curves.get("rules")}


def _absorption(found: Mapping[str, Any]) -> Figure | None:
    """How probable what rules say has become, untold; None without any to show."""
    curves = probable(found)
    if not curves:
        return None
    figure = Figure(figsize=(6.5, 4.5), layout="tight")
    axis = figure.subplots()
    for place, arm in enumerate(found["arms"]):
        if following := curves.get(arm):
            axis.plot(
                following["iterations"],
                following["curve"],
                "o-",
                ms=3,
                color=f"C{place % 10}",
                label=f"{label(arm)} ({following['rules']} rules)",
            )
            if following["untaught"] is not None:
                axis.plot(
                    following["iterations"],
                    following["untaught"],
                    "--",
                    lw=1,
                    color=f"C{place % 10}",
                )
    axis.set_xlabel("iteration")
    axis.set_ylabel("probability of what a rule says, untold")
    axis.set_ylim(0, 1)
    if any(following["untaught"] is not None for following in curves.values()):
        axis.set_title("dashed: GRPO, which never saw a rule", fontsize=9)
    axis.legend(fontsize=8)
    return figure

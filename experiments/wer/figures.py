"""Figures of the experiment: how training went, success by depth, a tree of skills."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from experiments.wer.methods import WER
from jerp.runs.skills.tree_figure import draw_skill_tree
from jerp.skills.tree import SkillTree

__all__ = ["write_figures"]


def write_figures(results: Mapping[str, Any], folder: Path, tree: SkillTree) -> None:
    """Three figures, as PNG in a folder that is made.

    Args:
      results: of the run.
      folder: of the figures.
      tree: of WER's drafts, of which those of the tasks that say most are drawn.
    """
    folder.mkdir(exist_ok=True)
    figures = {
        "learning": _learning(results),
        "depth": _depth(results),
        "tree": draw_skill_tree(tree),
    }
    for name, figure in figures.items():
        figure.savefig(folder / f"{name}.png", dpi=120)


def _learning(results: Mapping[str, Any]) -> Figure:
    """Mean over seeds of every batch, smoothed over a tenth of a phase."""
    sizes, figure = results["sizes"], Figure(figsize=(7, 4), layout="tight")
    axis, width = figure.subplots(), max(1, sizes["batches"] // 10)
    styles = {"success": "-", "parsed": ":", "mixed": "--"}
    for name, curve in results["training"]["curves"].items():
        values = np.array([np.nan if x is None else x for x in curve])
        smooth = np.convolve(values, np.full(width, 1 / width), "valid")
        first = (width + 1) / 2
        axis.plot(first + np.arange(len(smooth)), smooth, styles[name], label=name)
    for phase in range(1, sizes["phases"]):
        axis.axvline(phase * sizes["batches"] + 0.5, color="0.7", lw=1)
    axis.set_xlabel("batch; lines between phases")
    axis.set_ylabel("share of drafts (mean of seeds)")
    axis.set_ylim(0, 1)
    axis.legend(fontsize=8)
    return figure


def _depth(results: Mapping[str, Any]) -> Figure:
    """Merged skills on the test, and each task's own skill, by rounds of revision."""
    figure = Figure(figsize=(8, 4), layout="tight")
    axes = figure.subplots(1, 2, sharey=True)
    titles = {
        "merged": "one skill a domain, test",
        "own": "a skill a task, training tasks",
    }
    for axis, (kind, title) in zip(axes, titles.items(), strict=True):
        for name, label, style in (
            ("untrained", "untrained", "s--"),
            (WER, "trained", "o-"),
        ):
            found = [one[kind]["all"] for one in results["depths"][name]]
            point, low, high = (
                np.array([np.nan if f[k] is None else f[k] for f in found])
                for k in ("point", "low", "high")
            )
            ends = np.stack([point - low, high - point])
            depths = np.arange(len(found))
            axis.errorbar(depths, point, ends, fmt=style, capsize=3, label=label)
        axis.set_title(title, fontsize=10)
        axis.set_xlabel("rounds of revision")
        axis.set_xticks(depths)
    axes[0].set_ylabel("success")
    axes[0].set_ylim(0, 1)
    axes[0].legend(fontsize=8)
    return figure

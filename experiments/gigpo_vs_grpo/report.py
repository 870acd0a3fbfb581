"""Tables and figures of the comparison, from its numbers alone."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator
from rich.table import Table

from experiments.gigpo_vs_grpo.config import MORE_ARMS
from jerp.runs.cells import interval, markdown_table, number

__all__ = [
    "SMOKE",
    "document",
    "gap_sentence",
    "iteration_axis",
    "share_sentence",
    "terminal_table",
    "write_figures",
]

LABELS = {"base": "cloned base", **MORE_ARMS}
PLACES = {"house": "house, small", "shop": "shop"}
HEADER = ("arm", "seen", "seeds", "- GRPO", "+ / -", "unseen", "- GRPO")
SMOKE = "Smoke run: it checks the plumbing; its numbers mean nothing."

WINDOW = 10
"""Iterations that a curve is averaged over, if there are twice as many."""

FEW = 20
"""Points of a curve below which each is marked: a line through one shows nothing."""


def terminal_table(results: Mapping[str, Any], world: str) -> Table:
    """Success on held-out tasks by arm, in 80 columns; the report has the rest."""
    title = _title(results, world)
    table = Table(
        title=f"{SMOKE}\n{title}" if results["smoke"] else title,
        title_justify="left",
        box=None,
        padding=(0, 1, 0, 0),
    )
    shown = [place for place, column in enumerate(HEADER) if column != "seeds"][:-1]
    for place in shown:
        side = "right" if place else "left"
        table.add_column(HEADER[place], justify=side, no_wrap=True)
    for row in _rows(results["worlds"][world]):
        table.add_row(*(row[place] for place in shown))
    return table


def document(results: Mapping[str, Any]) -> str:
    """The report in Markdown."""
    return "\n\n".join(_parts(results)) + "\n"


def write_figures(
    results: Mapping[str, Any],
    world: str,
    curves: Mapping[str, np.ndarray],
    folder: Path,
) -> None:
    """Learning curves, and PASS@(k, T) of base and arms, in one world."""
    folder.mkdir(exist_ok=True)
    for name, figure in {
        "curves": _draw_curves(curves),
        "surface": _draw_surface(results["worlds"][world]),
    }.items():
        figure.savefig(folder / f"{world}-{name}.png", dpi=120)


def _title(results: Mapping[str, Any], world: str) -> str:
    sizes = results["sizes"]
    return (
        f"{PLACES[world]}: success on {sizes['held_out']} held-out tasks x "
        f"{sizes['samples']} episodes a seed, {results['seeds']} seeds x "
        f"{sizes['iterations']} iterations of {sizes['num_groups']} x "
        f"{sizes['group_size']} episodes"
    )


def _rows(found: Mapping[str, Any]) -> Iterator[tuple[str, ...]]:
    for name, arm in found["arms"].items():
        seen, unseen = (arm["splits"][s] for s in ("seen", "unseen"))
        compared = "difference" in seen
        yield (
            LABELS[name],
            interval(seen["success"], digits=2),
            " ".join(number(x, 2) for x in seen["by_seed"]),
            interval(seen["difference"], digits=2, sign=True) if compared else "",
            f"{seen['seeds_above']} / {seen['seeds_below']}" if compared else "",
            interval(unseen["success"], digits=2),
            interval(unseen["difference"], digits=2, sign=True) if compared else "",
        )


def share_sentence(found: Mapping[str, Any]) -> str:
    """What the control has of GiGPO's gain in a world, whichever way it falls."""
    share = found["control_share"]["seen"]
    if share["point"] is None:
        return (
            "GiGPO gains nothing over GRPO on the seen split: there is no gain that "
            "the control could have a share of."
        )
    has = interval(share, digits=2)
    without, note = share["without_gain"], ""
    if share["low"] is None:
        has = number(share["point"], 2)
        note = (
            f" There is no interval: in {without:.1%} of resamples GiGPO gains nothing."
        )
    elif without > 0:
        note = (
            f" {without:.1%} of resamples, in which GiGPO gains nothing, are left out."
        )
    return (
        "Of GiGPO's gain over GRPO on the seen split the control without anchors has "
        f"{has}; comparing at equal states adds the rest, "
        f"{number(1 - share['point'], 2, sign=True)}.{note}"
    )


def gap_sentence(found: Mapping[str, Any]) -> str:
    """Whether what was sampled is what was trained."""
    gap = max(arm.get("sampler_gap", 0.0) for arm in found["arms"].values())
    return f"Sampled and trained log-probabilities differ by {gap:.0e} at most."


def _parts(results: Mapping[str, Any]) -> Iterator[str]:
    yield "# GiGPO against GRPO, with the control that has no anchors"
    yield f"Made by `{results['command']}` with jerp {results['version']}."
    if results["smoke"]:
        yield f"**{SMOKE}**"
    for world in results["worlds"]:
        yield from _world_parts(results, world)


def _world_parts(results: Mapping[str, Any], world: str) -> Iterator[str]:
    found = results["worlds"][world]
    yield f"## {world.capitalize()}"
    yield (
        f"{_title(results, world)}. Intervals: 95%, tasks of all seeds resampled, as "
        "if those of one seed, which one policy played, were independent: what the "
        "policies of different seeds differ by is not in them. seeds: each one's "
        "success; + / -: seeds above and below GRPO."
    )
    yield markdown_table(HEADER, _rows(found))
    yield f"{share_sentence(found)} {gap_sentence(found)}"
    yield f"![success while training](figures/{world}-curves.png)"
    yield "### PASS@(k, T) on seen tasks"
    yield from _surface_tables(found)
    yield f"![PASS@(k, T)](figures/{world}-surface.png)"
    yield "### Training"
    yield markdown_table(*_training_table(found))
    notes = [
        f"- {LABELS[name]}, {note}"
        for name, arm in found["arms"].items()
        for note in arm.get("warnings", ())
    ]
    if notes:
        yield "\n".join(notes)


def _surface_tables(found: Mapping[str, Any]) -> Iterator[str]:
    first = found["arms"]["base"]["surface"]
    header = ["arm"] + [f"k={k}, T={t}" for t in first["horizons"] for k in first["ks"]]
    rows = []
    for name, arm in found["arms"].items():
        estimate = np.asarray(arm["surface"]["estimate"])
        rows.append([LABELS[name], *(number(x, 2) for x in estimate.T.ravel())])
    yield markdown_table(header, rows)


def _training_table(found: Mapping[str, Any]) -> tuple[list[str], list[list[str]]]:
    names = ("success", "entropy", "dead_share", "anchor_size_mean")
    header = [
        "arm",
        *(n.replace("_", " ") for n in names),
        "sampler gap",
        "peak memory",
    ]
    header += ["compilations", "compile seconds"]
    rows = []
    for name, arm in found["arms"].items():
        end = arm.get("at_the_end", {})
        gap = arm.get("sampler_gap")
        rows.append(
            [
                LABELS[name],
                *(number(end.get(n), 2) for n in names),
                "-" if gap is None else f"{gap:.0e}",
                f"{arm['peak_memory_bytes'] / 2**20:.0f} MiB",
                str(arm["compilations"]),
                f"{arm['compile_seconds']:.0f}",
            ]
        )
    return header, rows


def _draw_curves(curves: Mapping[str, np.ndarray]) -> Figure:
    """Mean over seeds, and their range."""
    figure = Figure(figsize=(8, 4.5), layout="tight")
    axis = figure.subplots()
    for name, curve in curves.items():
        smooth = _smooth(curve)
        # A mean is shown at the last iteration that is in it.
        at = np.arange(curve.shape[1] - smooth.shape[1], curve.shape[1])
        marks = "o-" if len(at) < FEW else "-"
        (line,) = axis.plot(at, smooth.mean(axis=0), marks, ms=4, label=LABELS[name])
        low, high = smooth.min(axis=0), smooth.max(axis=0)
        axis.fill_between(at, low, high, alpha=0.15, color=line.get_color())
    iteration_axis(axis, max(curve.shape[1] for curve in curves.values()))
    axis.set_ylabel("success in training (mean and range of seeds)")
    axis.legend()
    return figure


def iteration_axis(axis: Axes, iterations: int) -> None:
    """Whole iterations from the first to the last, with room for their marks."""
    room = 0.5 + iterations / 100
    axis.set_xlim(-room, iterations - 1 + room)
    axis.xaxis.set_major_locator(
        MaxNLocator(steps=[1, 2, 5, 10], integer=True, min_n_ticks=1)
    )
    axis.set_xlabel("iteration")


def _smooth(curve: np.ndarray) -> np.ndarray:
    if curve.shape[1] < 2 * WINDOW:
        return curve
    kernel = np.ones(WINDOW) / WINDOW
    return np.stack([np.convolve(row, kernel, mode="valid") for row in curve])


def _draw_surface(found: Mapping[str, Any]) -> Figure:
    first = found["arms"]["base"]["surface"]
    figure = Figure(figsize=(3.2 * len(first["horizons"]), 3.4), layout="tight")
    panels = figure.subplots(1, len(first["horizons"]), sharey=True)
    for place, (axis, horizon) in enumerate(
        zip(panels, first["horizons"], strict=True)
    ):
        for name, arm in found["arms"].items():
            estimate = np.asarray(arm["surface"]["estimate"])[:, place]
            axis.plot(first["ks"], estimate, "o-", ms=3, label=LABELS[name])
        axis.set_xscale("log", base=2)
        axis.set_title(f"T = {horizon}", fontsize=9)
        axis.set_xlabel("k")
    panels[0].set_ylabel("PASS@(k, T)")
    panels[-1].legend(fontsize=7)
    return figure

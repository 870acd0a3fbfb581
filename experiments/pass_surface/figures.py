"""Which figures the study shows, and what they show in words, from its results alone.

Of the variant that verdicts rest on, every figure of `jerp passkt` and one of the
verdicts; of all variants together one; and one each of mechanism, cost and forgetting,
where the results have it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from matplotlib.figure import Figure

from experiments.pass_surface.config import ARMS
from experiments.pass_surface.mechanism_figure import draw_mechanism, mechanism_words
from experiments.pass_surface.study_panels import (
    draw_budgets,
    draw_costs,
    draw_forgetting,
    searched_parts,
)
from experiments.pass_surface.surfaces import EVIDENCE
from experiments.pass_surface.verdict_figure import (
    draw_verdicts,
    verdict_figure_words,
)
from jerp.runs.cells import number
from jerp.runs.pass_surface import figures as surfaces
from jerp.runs.pass_surface.figure_style import drawable, save_figure
from jerp.runs.pass_surface.figure_words import escaped, figure_lines

__all__ = ["CUT", "LEAD", "VARIANTS", "study_lines", "variant_lines", "write_figures"]

LEAD = "rerun-hidden"
"""The variant that verdicts rest on."""

CUT = "nested"
"""The one that cuts the longest runs of `LEAD`: at the largest T it is that one."""

VARIANTS = {
    "rerun-hidden": "runs made for each T, budget hidden",
    "rerun-announced": "runs made for each T, budget announced",
    "nested": "the longest runs, hidden budget, cut at T",
    "rerun-hidden-evidence": "runs made for each T, budget hidden, with evidence",
    "rerun-announced-evidence": "runs made for each T, budget announced, with evidence",
}

FOLDER = "figures"
"""In the run folder."""

Results = Mapping[str, Any]


def write_figures(results: Results, folder: Path) -> list[Path]:
    """Writes all figures, as PNG and SVG, into `figures` of the run folder.

    Args:
      results: of the study.
      folder: of the run.
    """
    place = folder / FOLDER
    place.mkdir(parents=True, exist_ok=True)
    paths = surfaces.write_figures(results["variants"][LEAD], place)
    for name, (title, draw, _) in _studies(results).items():
        figure = draw()
        figure.suptitle(drawable(title), fontsize=10)
        paths += save_figure(figure, place, name)
    return paths


def variant_lines(results: Results, part: Mapping[str, Any]) -> list[str]:
    """A category's figures as Markdown, each with its words."""
    return figure_lines(results["variants"][LEAD], part, f"{FOLDER}/")


def study_lines(results: Results) -> dict[str, str]:
    """The figures of the whole study as Markdown, by name."""
    return {
        name: f"![{escaped(words())}]({FOLDER}/{name}.png)"
        for name, (_, _, words) in _studies(results).items()
    }


_Study = tuple[str, Callable[[], Figure], Callable[[], str]]


def _studies(results: Results) -> dict[str, _Study]:
    """By name the title, the drawing and the words of what the results have."""
    variants = results["variants"]
    lead = variants[LEAD]
    found: dict[str, _Study] = {
        "verdicts": (
            f"What the verdicts rest on: {VARIANTS[LEAD]}",
            lambda: draw_verdicts(lead),
            lambda: verdict_figure_words(lead),
        )
    }
    if searched_parts(lead):
        found |= _over_budgets(variants)
    if mechanism := results.get("mechanism"):
        found["mechanism"] = (
            "How the arms solve what they solve, 95% intervals over questions",
            lambda: draw_mechanism(mechanism, ARMS),
            lambda: mechanism_words(mechanism, ARMS),
        )
    if cost := results.get("cost"):
        found["cost"] = (
            "What one run of an arm is worth in runs of the base",
            lambda: draw_costs(cost, ARMS),
            lambda: _cost_words(cost),
        )
    if forgetting := results.get("forgetting"):
        found["forgetting"] = (
            "Success in worlds that no arm was trained in, 95% intervals",
            lambda: draw_forgetting(forgetting, ARMS),
            lambda: _forgetting_words(forgetting),
        )
    return found


def _over_budgets(variants: Mapping[str, Any]) -> dict[str, _Study]:
    """By how T was varied, and by what counts as solved."""
    bands = f"{100 * variants[LEAD]['settings']['level']:g}% simultaneous bands"
    plain = {v: x for v, x in variants.items() if v not in EVIDENCE.values()}
    read = {v: variants[v] for v in (LEAD, EVIDENCE[LEAD])}
    return {
        "budgets": (
            f"Pass@(k, T) by how T was varied, {bands}",
            lambda: draw_budgets(plain, VARIANTS),
            lambda: f"Lines over T by how T was varied. {_end_words(plain)}",
        ),
        "evidence": (
            f"Pass@(k, T) of all right answers and of those with evidence, {bands}",
            lambda: draw_budgets(read, VARIANTS),
            lambda: f"Lines over T, plain and with evidence. {_end_words(read)}",
        ),
    }


def _end_words(variants: Mapping[str, Any]) -> str:
    """What the largest k and T have by variant."""
    said = []
    for variant, document in variants.items():
        values = [
            f"{part['name']}, {agent['label']} "
            f"{number(agent['surface']['point'][-1][-1], 2)}"
            for part in searched_parts(document)
            for agent in part["agents"]
        ]
        said.append(f"{VARIANTS[variant]}: {', '.join(values)}")
    k = variants[LEAD]["ks"][-1]
    return f"At k = {k} and the largest T, {'; '.join(said)}."


def _cost_words(cost: Mapping[str, Any]) -> str:
    said = []
    for category, arms in cost["categories"].items():
        for arm, numbers in arms.items():
            needed = (
                f"as many as {number(numbers['samples']['point'], 1)} runs of the base"
                if numbers["reached"]
                else f"more than {cost['ks'][-1]} runs of the base"
            )
            said.append(
                f"{category}, {ARMS[arm]}: one run of "
                f"{number(numbers['tokens_arm'], 1)} tokens solves "
                f"{number(numbers['arm_pass'][0], 2)}, {needed} of "
                f"{number(numbers['tokens_base'], 1)} tokens"
            )
    return f"Lines of Pass@k against tokens. {'; '.join(said)}."


def _forgetting_words(forgetting: Mapping[str, Any]) -> str:
    said = [
        f"{world}, {ARMS[arm]} {number(numbers['success']['point'], 2)}"
        for world, arms in forgetting.items()
        for arm, numbers in arms.items()
    ]
    return f"Points with intervals: success in other worlds. {', '.join(said)}."

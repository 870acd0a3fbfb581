"""The comparison as `report.md` and `report.html`, from `results.json` alone."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from jerp.runs.cells import markdown_table, number
from jerp.runs.harness import tables
from jerp.runs.harness.claims import SUPPORT
from jerp.runs.harness.wording import (
    SMOKE,
    caption,
    executor_line,
    overview_title,
    recorded_line,
    support_line,
)
from jerp.runs.page import write_page

__all__ = ["write_report"]


def write_report(results: Mapping[str, Any], folder: Path) -> Path:
    """Writes `report.md` beside the figures it shows, and `report.html` with them.

    Returns:
      The page.
    """
    return write_page("\n\n".join(_parts(results)) + "\n", folder)


def _parts(results: Mapping[str, Any]) -> list[str]:
    parts = [
        "# Harness control",
        f"Executor: {executor_line(results)} (`{results['executor']['fingerprint']}`). "
        f"Made by `{results['command']}` with jerp {results['version']}.",
        _store_paragraph(results),
    ]
    if results["smoke"]:
        parts.append(f"**{SMOKE}**")
    parts += _overall_section(results)
    for name, domain in results["domains"].items():
        parts += _domain_section(name, domain, results)
    return [*parts, READING_GUIDE]


def _overall_section(results: Mapping[str, Any]) -> list[str]:
    return [
        f"## All {len(results['domains'])} domains",
        f"{overview_title(results)}:",
        markdown_table(*tables.overview(results)),
        "Every domain weighs alike; intervals resample tasks within domains. The sign "
        "test counts the domains whose difference in Q is above and below 0 (+ / -), "
        "with its p-value and the least that so few domains could have given.",
        markdown_table(*tables.macro(results)),
        "Which arm won where, and what the best buffered episode of every training "
        "task scored, the executor's luck included:",
        markdown_table(*tables.winners(results)),
        "Differences against base with p-values adjusted by Holm over the domains:",
        markdown_table(*tables.holm(results)),
        "![Q against HMS change](figures/q-against-hms.png)",
        "### Was it foretold?",
        "Off-policy evaluation judged every learned controller from the buffer alone, "
        "before it was evaluated on other tasks. The controllers were trained on the "
        "same buffer, which flatters them. A method refuses where too few effective "
        "episodes are left; what it refused enters none of its numbers. error: mean "
        "absolute difference; rank: rank correlation of prediction and outcome over "
        "all controllers, within: its mean over domains; coverage: outcomes inside the "
        "predicted 95% interval; meet: outcomes whose own interval has a point in "
        "common with it.",
        markdown_table(*tables.predictions(results)),
        "![predicted and seen](figures/prediction.png)",
        "### Does support foretell gain?",
        "The finite-buffer claim of arXiv 2607.05458, tested: support is measured on "
        "the training tasks, gain in Q over base on the held-out ones "
        f"({tables.difficulty_note(results)}). Points of one domain are no "
        "independent draws, so that the p-values are too small. "
        + "; ".join(f"{name}: {words}" for name, words in SUPPORT.items())
        + ".",
        markdown_table(*tables.support(results)),
        "![support and gain](figures/support.png)",
    ]


def _domain_section(
    name: str, domain: Mapping[str, Any], results: Mapping[str, Any]
) -> list[str]:
    mix = domain["mix"]
    return [
        f"## {name}",
        f"{caption(results, domain)}. Base sequence: {domain['base_sequence']}. Under "
        f"it the executor scores {mix['base_mean']:.3f} on average over all "
        f"{mix['tasks']} tasks, {100 * mix['spread_share']:.0f}% of which show spread "
        f"over samples. {recorded_line(domain, results)}",
        markdown_table(*tables.comparison(domain)),
        support_line(domain),
        f"![Q and HMS by arm](figures/{name}-arms.png)",
        "Rates of the process events, over the episodes to which they apply:",
        markdown_table(*tables.events(domain)),
        f"![events](figures/{name}-events.png)",
        f"![buffer](figures/{name}-buffer.png)",
        "HMS against base while one threshold moves, * at its default:",
        markdown_table(*tables.sensitivity(domain)),
        _simulator_paragraph(domain),
        markdown_table(*tables.simulation(domain)),
    ]


def _simulator_paragraph(domain: Mapping[str, Any]) -> str:
    found = domain["simulator"]
    errors = (
        f"{number(found['mean_q_error'], 3)} in Q, "
        f"{number(found['mean_gain_error'], 3)} in Q against base and "
        f"{number(found['mean_steps_error'], 2)} in steps"
    )
    rank = number(found["q_rank_correlation"], 2, sign=True)
    return (
        f"A simulator fitted to the buffer ({found['states']} states) against the real "
        f"held-out episodes, {found['episodes']} simulated ones of each controller: "
        f"mean error {errors}; rank correlation of simulated and real Q over arms "
        f"{rank}. Steps whose pair of state and action the buffer never showed are "
        "unsupported; the distance of step counts is total variation."
    )


def _store_paragraph(results: Mapping[str, Any]) -> str:
    executor = results["executor"]
    lines = [
        f"{kind}s: {count['hits']} hits, {count['misses']} misses, "
        f"{count['distinct']} distinct"
        for kind, count in executor["store"].items()
    ]
    diversity = executor["diversity"]
    return (
        f"Response store: {'; '.join(lines)}. Of {diversity['prompts']} prompts asked "
        f"with several sample indices {diversity['identical']} gave one text only "
        f"({100 * diversity['distinct_share']:.0f}% of samples are distinct texts). "
        f"Rollout number r of a task asks with sample index r mod "
        f"{results['sizes']['samples']} in every arm (common random numbers)."
        + "".join(f"\n\n**{problem}**" for problem in executor["problems"])
    )


READING_GUIDE = """## How to read this

Q is the verifier's score of what was submitted, in [0, 1]; an episode that submits
nothing scores 0. HMS is the harness maturity score (arXiv 2607.05458) in the
normalisation that a perfect run can reach; it is measured apart and never a reward.
Intervals are 95% bootstrap intervals with tasks as clusters; differences are paired by
task. Invalid episodes (the infrastructure failed) enter no mean and are counted. Best
return per task is what an oracle that picks the best buffered episode of every task
would score, the executor's luck included: no method that stays inside the buffer's
support can be expected to pass it."""

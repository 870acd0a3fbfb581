"""A verdict in one sentence, with what it rests on or what it lacks."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from jerp.estimators.power import MOST_QUESTIONS
from jerp.estimators.verdict import ALPHA, BoundaryVerdict
from jerp.runs.cells import interval

__all__ = ["NAMES", "verdict_words"]

NAMES = {
    BoundaryVerdict.EXPANDED: "expanded",
    BoundaryVerdict.REGRESSED: "regressed",
    BoundaryVerdict.MORE_EFFICIENT: "more efficient, boundary not shown to move",
    BoundaryVerdict.NOT_ENOUGH_SAMPLES: "not enough samples",
}


def verdict_words(name: BoundaryVerdict, found: Mapping[str, Any]) -> str:
    """The verdict and its reason.

    Args:
      name: the verdict.
      found: its entry of `results.json`, with `needed`.
    """
    counts = (
        f"{found['gains']} gained, {found['losses']} lost of {found['num_tasks']} tasks"
    )
    if name is BoundaryVerdict.MORE_EFFICIENT:
        both = found["efficiency"]
        return (
            f"{NAMES[name]}: Pass@(1, T) {interval(both, digits=2, sign=True)} on "
            f"{both['num_tasks']} tasks that both solve; {counts}"
        )
    if name is BoundaryVerdict.NOT_ENOUGH_SAMPLES:
        return f"{NAMES[name]}: {_lacking(found)}"
    seeds = found["seeds"]
    between = (
        "no interval between training seeds"
        if seeds is None
        else f"{interval(seeds, digits=2, sign=True)} between {len(seeds['values'])} "
        "seeds"
    )
    return f"{NAMES[name]}: {counts}; {between}"


def _lacking(found: Mapping[str, Any]) -> str:
    """What would have been enough, if anything."""
    lacks = found["needed"]
    if not found["num_tasks"]:
        return "no task counts"
    if lacks["move"] is None:
        return "no number of questions is enough where as many are gained as lost"
    holm = found["p_up_holm" if lacks["move"] == "expansion" else "p_down_holm"]
    if holm < ALPHA:
        return (
            f"the training seeds disagree about the {lacks['move']} "
            f"({interval(found['seeds'], digits=2, sign=True)} between "
            f"{len(found['seeds']['values'])}); more seeds needed"
        )
    each = ""
    if lacks["num_seeds"] > 1:
        each = (
            f" for each of {lacks['num_seeds']} seeds that differ by their questions "
            "alone"
        )
    if lacks["questions"] is None:
        number = f"more than {MOST_QUESTIONS:,} questions needed"
    else:
        number = f"about {lacks['questions']:,} questions needed"
    if lacks["move"] == "expansion":
        return f"{number}{each} to show the expansion"
    return (
        f"{number}{each} to show the regression; no number shows an expansion, with "
        "fewer tasks gained than lost"
    )

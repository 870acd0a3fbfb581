"""How many questions would show the move of a boundary that was not shown."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from jerp.estimators.power import questions_for_power
from jerp.estimators.verdict import ALPHA, BoundaryVerdict
from jerp.typing import Key

__all__ = ["POWER", "needed"]

POWER = 0.8
STUDIES = 5000
"""Drawn with several seeds: "about" so many questions allows for a few in a hundred."""


def needed(
    key: Key, name: BoundaryVerdict, found: Mapping[str, Any], *, new_questions: bool
) -> dict[str, Any] | None:
    """Questions of a part with which a move at the observed rates becomes likely.

    Args:
      key: consumed.
      name: the verdict; None is needed where a move was shown.
      found: counts, tests and seeds of the part.
      new_questions: every training seed has questions of its own. Were they the same,
        tasks would have one vote each, and the plan is that of one seed.

    Returns:
      `move`, "expansion" or "regression", whichever the counts lean to, or None;
      `questions`, None where no number up to that of the plan is enough or where the
      test has its questions and the seeds disagree; `num_seeds` that each need so many.
    """
    if name in (BoundaryVerdict.EXPANDED, BoundaryVerdict.REGRESSED):
        return None
    gains, losses = found["gains"], found["losses"]
    seeds = found["seeds"]
    made = {
        "move": None,
        "questions": None,
        "power": POWER,
        "num_seeds": len(seeds["values"]) if seeds and new_questions else 1,
    }
    if gains == losses:
        return made
    up = gains > losses
    made["move"] = "expansion" if up else "regression"
    more, fewer = max(gains, losses), min(gains, losses)
    if found["p_up_holm" if up else "p_down_holm"] >= ALPHA:
        made["questions"] = questions_for_power(
            key,
            more / found["num_tasks"],
            fewer / found["num_tasks"],
            power=POWER,
            num_categories=found["num_tests"],
            num_seeds=made["num_seeds"],
            num_studies=STUDIES,
        )
    return made

"""How often a question is solved by runs that cannot know its answer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from experiments.pass_surface.config import FAILURE
from experiments.pass_surface.places import LOOKUP
from experiments.pass_surface.surfaces import Evaluation
from jerp.estimators.passk import pass_at_k
from jerp.runs.cells import number
from jerp.runs.pass_surface.tables import Table
from jerp.typing import Outcome

__all__ = ["guess_rate", "luck_numbers", "luck_sentence", "luck_table"]

WITHOUT = (("B", 0), ("C", 0), ("C", 1), ("B", 1))
"""Categories and budgets T too small for what the question needs; the last is half of
it."""


def guess_rate(category: str, horizon: int) -> float:
    """How probably a guesser is right in a run that cannot know.

        1 / V                      any of V values
        (1 - f) / 2 + f / V        B at T = 1: a search for either entity fails with
                                   probability f, and half of those that do not bring
                                   the value that is asked for

    Args:
      category: "B" or "C".
      horizon: T, 0 or 1.
    """
    blind = 1 / LOOKUP.size.num_values
    if category == "B" and horizon == 1:
        return (1 - FAILURE) / 2 + FAILURE * blind
    return blind


def luck_numbers(
    ks: Sequence[int], evaluations: Mapping[str, Sequence[Evaluation]]
) -> dict[str, Any]:
    """Pass@1 and at the largest k where nobody can know, budget hidden.

    Args:
      ks: budgets k, ascending; the first and the last are taken.
      evaluations: by policy, of every seed.

    Returns:
      `ks`, the number of `values`, and `rows` of a category and T, with `pass` by
      policy and that of a `guesser` who draws anew in every run.
    """
    ends = (ks[0], ks[-1])
    return {
        "ks": list(ends),
        "values": LOOKUP.size.num_values,
        "rows": [
            {
                "category": category,
                "horizon": horizon,
                "guesser": [1 - (1 - guess_rate(category, horizon)) ** k for k in ends],
                "pass": {
                    arm: _passed(ends, found, category, horizon)
                    for arm, found in evaluations.items()
                },
            }
            for category, horizon in WITHOUT
        ],
    }


def _passed(
    ks: tuple[int, int], found: Sequence[Evaluation], category: str, horizon: int
) -> list[float]:
    """Means over the questions of all seeds."""
    outcome = np.concatenate(
        [one[category]["hidden"][str(horizon)]["outcome"] for one in found]
    )
    right = (outcome == Outcome.SUCCESS).sum(axis=1)
    return np.asarray(pass_at_k(outcome.shape[1], right, k=ks)).mean(axis=0).tolist()


def luck_table(luck: Mapping[str, Any], labels: Mapping[str, str]) -> Table:
    """A row a category and T, from the results document."""
    arms = [*luck["rows"][0]["pass"]]
    rows = [
        (
            row["category"],
            str(row["horizon"]),
            *(_both(row["pass"][arm]) for arm in arms),
            _both(row["guesser"]),
        )
        for row in luck["rows"]
    ]
    first, last = luck["ks"]
    return Table(
        f"Pass@{first} and Pass@{last} of runs that cannot know, budget hidden",
        ("", "T", *(labels[arm] for arm in arms), "guesser"),
        rows,
    )


def _both(values: Sequence[float]) -> str:
    return " ".join(number(value, 3) for value in values)


def luck_sentence(luck: Mapping[str, Any]) -> str:
    """What that means for boundaries."""
    blind = luck["rows"][1]["guesser"][-1]
    return (
        f"With {luck['values']} values a uniform guesser, who draws anew in every run, "
        f"solves {number(blind, 2)} of the questions C in {luck['ks'][-1]} runs (of B "
        "at T = 1 it searches for either entity and answers the one value that it may "
        "know then): the plain boundary counts such questions as solved, so that it "
        "moves with how much a policy still guesses and how varied its guesses are, "
        "and the boundary with evidence does not."
    )

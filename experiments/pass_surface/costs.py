"""What training costs, and from how many uses on it pays, in tokens of the policy.

A token is one that the policy writes while it acts, and one that is learned from: read
forwards and backwards, about three times the work, but counted once and said apart.
What the world says is not counted. The base's k runs stand for one use only if someone
picks the right one of them, such as a verifier, whose price is not counted either.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from jerp.estimators.break_even import BreakEven, break_even
from jerp.estimators.passk import pass_at_k
from jerp.runs.cells import interval, number, plain_interval
from jerp.runs.pass_surface.tables import Table
from jerp.typing import Key, Outcome

__all__ = ["COST_NOTES", "Runs", "TrainingTokens", "arm_costs", "cost_tables"]

COST_NOTES = (
    "the base's k runs answer a question only where someone, at no price here, picks "
    "the right one of them",
    "tokens are those that the policy writes; what training cost is what was generated "
    "and what was learned from together, a token of either counted once, though one "
    "that is learned from is about three times the work",
    "the expert that SFT learns from is free; where SFT tries several numbers of "
    "visits, all of them and what was played to choose among them count, as every "
    "episode of reinforcement learning does",
    "limits of the uses are over questions alone: they hold no variance between seeds, "
    "nor of what training cost, which is a mean over seeds",
    "k is read off the base's mean curve, linear in log k between budgets; one that "
    "ends at the largest budget is a bound, and so is what rests on it",
    "an arm that solves less with one run than the base with one has no k: "
    "it saves nothing, and training it never pays",
    "at equal tokens: the arm's Pass@k', k' the runs of it that k runs of the base pay "
    "for; - where that is less than one run, or beyond the largest budget",
)
"""How the columns of `cost_tables` are counted, in words."""


class Runs(NamedTuple):
    """Runs of one arm on one seed's questions of a category, at the largest T.

    Attributes:
      outcome: `[Q, n]`, see `jerp.typing.Outcome`.
      tokens: `[Q, n]`, those that the policy wrote.
    """

    outcome: np.ndarray
    tokens: np.ndarray


class TrainingTokens(NamedTuple):
    """Tokens of one training, means over seeds.

    Attributes:
      generated: those that the policy wrote to learn from them or to choose a setting;
        an expert's are free.
      learned: those that losses were taken of, as often as they were, in the settings
        that were not kept as well.
    """

    generated: float
    learned: float


def arm_costs(
    key: Key,
    base: Sequence[Runs],
    arm: Sequence[Runs],
    ks: Sequence[int],
    training: TrainingTokens,
) -> dict[str, Any]:
    """Break-even of one arm against the base, in one category.

    An arm that solves less with one run than the base with one has no equivalent:
    `samples`, `saving` and `uses` are NaN, because even one run of the base is more.

    Args:
      key: consumed.
      base: of each seed.
      arm: of each seed, on the same questions.
      ks: budgets k.
      training: what it took.
    """
    one, two = (_joined(runs) for runs in (base, arm))
    curves = _curves(one, ks), _curves(two, ks)
    costs = [runs.tokens.mean(axis=1).astype(np.float32) for runs in (one, two)]
    found = break_even(
        key,
        *curves,
        ks,
        base_cost=costs[0],
        trained_cost=costs[1],
        training_cost=training.generated + training.learned,
    )
    return {
        "num_questions": len(one.outcome),
        "tokens_base": float(costs[0].mean()),
        "tokens_arm": float(costs[1].mean()),
        "base_pass": curves[0].mean(axis=0).tolist(),
        "arm_pass": curves[1].mean(axis=0).tolist(),
        "reached": bool(found.reached),
        **_named(found, no_less=_solved(two) >= _solved(one)),
    }


def _joined(runs: Sequence[Runs]) -> Runs:
    return Runs(*(np.concatenate(parts) for parts in zip(*runs, strict=True)))


def _curves(runs: Runs, ks: Sequence[int]) -> np.ndarray:
    """`[Q, K]` pass@k."""
    right = (runs.outcome == Outcome.SUCCESS).sum(axis=1)
    return np.asarray(pass_at_k(runs.outcome.shape[1], right, k=tuple(ks)))


def _solved(runs: Runs) -> float:
    """The share of runs; of equal counts the same number to the last bit."""
    return float((runs.outcome == Outcome.SUCCESS).mean())


def _named(found: BreakEven, *, no_less: bool) -> dict[str, Any]:
    at_equal_solved = ("samples", "saving", "uses")
    at_equal_cost = ("affordable", "base_value", "difference")
    equal: Any = found.equal_cost
    undefined = dict.fromkeys(("point", "low", "high"), math.nan)
    return {
        **{
            name: plain_interval(getattr(found, name)) if no_less else undefined
            for name in at_equal_solved
        },
        **{name: plain_interval(getattr(found, name)) for name in at_equal_cost},
        "equal_cost": {
            name: np.asarray(getattr(equal, name)).tolist()
            for name in ("point", "low", "high")
        },
    }


def cost_tables(cost: Mapping[str, Any], labels: Mapping[str, str]) -> list[Table]:
    """What training took, when it pays, and both agents at equal cost.

    Args:
      cost: `training` by arm, `ks`, and `categories`: by category and arm, see
        `arm_costs`.
      labels: of the arms.
    """
    rows = [
        (category, arm, numbers)
        for category, arms in cost["categories"].items()
        for arm, numbers in arms.items()
    ]
    ks = cost["ks"]
    return [
        Table(
            "What training took, in tokens",
            ("arm", "generated", "learned from"),
            [
                (labels[arm], _tokens(one["generated"]), _tokens(one["learned"]))
                for arm, one in cost["training"].items()
            ],
        ),
        Table(
            "Break-even: runs of the base for one of the arm",
            (
                *("category", "arm", "tokens a run, base", "arm", "arm's Pass@1"),
                *("base's Pass for as many tokens", "base needs k"),
                *("tokens saved a use", "uses until training pays"),
            ),
            [_pays_row(c, labels[a], n, ks) for c, a, n in rows],
        ),
        Table(
            "At equal tokens: the arm's Pass minus the base's at k",
            ("category", "arm", *(f"k = {k}" for k in ks)),
            [_equal_row(c, labels[a], n) for c, a, n in rows],
        ),
    ]


def _pays_row(
    category: str, label: str, numbers: Mapping[str, Any], ks: Sequence[int]
) -> tuple[str, ...]:
    return (
        *(category, label),
        *(number(numbers[name], 1) for name in ("tokens_base", "tokens_arm")),
        number(numbers["arm_pass"][0], 2),
        _affordable(numbers),
        *_equivalent(numbers, ks),
    )


def _equivalent(numbers: Mapping[str, Any], ks: Sequence[int]) -> tuple[str, ...]:
    """Runs of the base that solve as much as one of the arm, saving, and uses."""
    saving, uses = numbers["saving"], numbers["uses"]
    if numbers["samples"]["point"] is None:
        return "-", "-", "never"
    if not numbers["reached"]:
        needed = f"never within {ks[-1]}"
        return needed, f">= {_limits(saving, _count)}", f"<= {_limits(uses, _tokens)}"
    needed = _count(numbers["samples"]["point"])
    needed += f" [{_count(numbers['samples']['low'])}, {_most(numbers, ks)}]"
    return needed, _limits(saving, _count), _limits(uses, _tokens)


def _affordable(numbers: Mapping[str, Any]) -> str:
    """What the base solves with the tokens of one run of the arm."""
    value = numbers["base_value"]
    at = f"k = {_count(numbers['affordable']['point'])}"
    return (
        f"- ({at})" if value["point"] is None else f"{interval(value, digits=2)} ({at})"
    )


def _most(numbers: Mapping[str, Any], ks: Sequence[int]) -> str:
    """The upper limit; at the end of the grid it is one from below."""
    high = numbers["samples"]["high"]
    return f"> {ks[-1]}" if high >= ks[-1] else _count(high)


def _limits(value: Mapping[str, float | None], text: Any) -> str:
    """Point and limits; None of `uses` is "never": a use saves nothing."""
    point, low, high = (
        "never" if value[name] is None else text(value[name])
        for name in ("point", "low", "high")
    )
    return f"{point} [{low}, {high}]"


def _equal_row(
    category: str, label: str, numbers: Mapping[str, Any]
) -> tuple[str, ...]:
    equal = numbers["equal_cost"]
    cells = []
    for point, low, high in zip(*equal.values(), strict=True):
        band = {"point": point, "low": low, "high": high}
        cells.append("-" if point is None else interval(band, digits=2, sign=True))
    return category, label, *cells


def _count(value: float) -> str:
    return f"{value:,.1f}"


def _tokens(value: float) -> str:
    return f"{value:,.0f}"

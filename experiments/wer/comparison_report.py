"""The parts of the report on other evidence, and on revisions that have to win."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from experiments.wer.ablations import MISLED
from experiments.wer.config import DOMAINS
from experiments.wer.methods import LABELS
from experiments.wer.places import Place
from jerp.runs.cells import interval, markdown_table, number

__all__ = ["ablation_parts", "acceptance_parts", "interval_cell", "plan_sentence"]

Numbers = Mapping[str, Any]
Table = tuple[list[str], list[list[str]]]

EVIDENCE = {
    "paired": "a success and a failure",
    "none_at_all": "(no skill)",
    "failure": "a failure alone",
    "success": "a success alone",
    "none": "no run",
    "wrong": f"pairs, {MISLED:.0%} with the two exchanged",
}


def ablation_parts(results: Numbers) -> Iterator[str]:
    """What revisions are written from, if anything was ablated."""
    if not (found := results["ablations"]):
        return
    seeds = len(found["paired"]["by_seed"])
    yield "## Evidence"
    yield (
        f"What revisions are written from, in training and after: {seeds} seeds, each "
        "with the same clones, training tasks and runs, and the same locked test. "
        "Exchanged: the run that failed is shown as the one that succeeded, and the "
        "other way round."
    )
    yield markdown_table(*_ablation_rows(found))


def acceptance_parts(results: Numbers) -> Iterator[str]:
    """Both rules by which a revision replaces its parent."""
    found, rounds = results["acceptance"], results["sizes"]["rounds"]
    yield "## Acceptance"
    yield (
        f"The trained optimizer, {rounds} rounds. As in the paper the last revision "
        "replaces its parent; or it has to win against it in a paired sequential test "
        f"on fresh runs, before the skills are merged. {plan_sentence(found['plan'])} "
        "Own: see below."
    )
    yield markdown_table(*_acceptance_rows(found))
    gain = found["tested_above"]
    each = ", ".join(number(x, 3, sign=True) for x in gain["by_seed"])
    yield (
        "With tests - without: "
        f"{interval_cell(gain, 3, sign=True)} on the locked test, by seed {each}."
    )


def interval_cell(value: Numbers, digits: int = 2, *, sign: bool = False) -> str:
    """`point [low, high]`, or what there is of it."""
    if value["point"] is None or value["low"] is None:
        return number(value["point"], digits, sign=sign)
    return interval(value, digits=digits, sign=sign)


def plan_sentence(plan: Numbers) -> str:
    """What tests may take, said before any is begun."""
    last = "not begun" if plan["last"] is None else f"{plan['last']} pairs"
    return (
        f"Of a seed's tree: at most {plan['tests']} tests, wrong with a chance of "
        f"{plan['alpha']:g} in all; for a gain of {plan['p_gain']:g} against "
        f"{plan['p_loss']:g} with power {plan['power']:g} the first may take "
        f"{plan['first']} pairs of runs, the last {last}; together at most "
        f"{plan['runs']:,} runs, and {plan['runs'] * Place().horizon:,} calls."
    )


def _ablation_rows(found: Numbers) -> Table:
    header = ["evidence", *DOMAINS, "all", "- pairs", "by seed"]
    rows = []
    for name, one in found.items():
        above = one.get("above_paired")
        rows.append(
            [
                EVIDENCE[name],
                *(interval_cell(one[d]) for d in (*DOMAINS, "all")),
                "" if above is None else interval_cell(above, sign=True),
                " ".join(number(x, 2) for x in one["by_seed"]),
            ]
        )
    return header, rows


def _acceptance_rows(found: Numbers) -> Table:
    header = ["rule", *DOMAINS, "all", "own", "by seed"]
    header += ["tests", "accepted", "executor calls", "s"]
    rows = []
    for name, one in found["rules"].items():
        cost = one["cost"]
        rows.append(
            [
                LABELS[name],
                *(interval_cell(one[d]) for d in (*DOMAINS, "all")),
                interval_cell(one["own"]["all"]),
                " ".join(number(x, 2) for x in one["by_seed"]),
                *(f"{cost[x]:,.0f}" for x in ("tests", "accepted", "calls", "seconds")),
            ]
        )
    return header, rows

"""The verdicts of a report, from `results.json` alone: a table, and a sentence each."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from jerp.estimators.verdict import ALPHA, SEED_LEVEL
from jerp.runs.cells import interval
from jerp.runs.pass_surface.settings import number_text
from jerp.runs.pass_surface.tables import UNDEFINED, Table, p_value

__all__ = ["VERDICT_NOTE", "verdict_sentences", "verdict_table"]

HEADER = ("+ : -", "tasks", "p up", "p down", "seeds", "Pass@1", "verdict")

VERDICT_NOTE = (
    "+ : -, tasks that the second of the pair gained and lost: solved in k answered "
    "runs of one agent and not of the other, k the largest, dealt out at random where "
    "an agent has more. p, one-sided and exact, Holm "
    f"over the parts of a pair, not over pairs, to be under {number_text(ALPHA)}. "
    "Seeds, gain - loss on average between training seeds. Pass@1, difference of "
    "Pass@(1, T) on tasks that both solve, of these trainings alone. Intervals at "
    f"{number_text(100 * SEED_LEVEL)}%. Not enough samples does not mean unmoved; how "
    "many questions would do takes the observed rates for true and seeds to differ by "
    "their questions alone: where trainings differ as well, it takes more, or more "
    "seeds."
)
"""What the columns of the table are."""


def verdict_table(results: Mapping[str, Any]) -> Table | None:
    """A row a part and pair; None where nothing is compared."""
    rows = [(*names, *_cells(verdict)) for *names, verdict in _verdicts(results)]
    if not rows:
        return None
    k, horizon = results["ks"][-1], number_text(results["horizons"][-1])
    by = [] if results["settings"]["by"] is None else [results["settings"]["by"]]
    return Table(
        f"Did the boundary move? k = {k}, T = {horizon} {results['settings']['unit']}",
        (*by, "pair", *HEADER),
        rows,
    )


def verdict_sentences(results: Mapping[str, Any]) -> list[str]:
    """Every verdict with its reason."""
    return [
        f"{', '.join(names)}: {verdict['words']}"
        for *names, verdict in _verdicts(results)
    ]


def _verdicts(results: Mapping[str, Any]) -> Iterator[tuple[Any, ...]]:
    """The part, if there are parts, the pair, and the verdict."""
    for part in results["parts"]:
        name = [] if results["settings"]["by"] is None else [part["name"]]
        for found in part["comparisons"]:
            pair = f"{found['second_label']} against {found['first_label']}"
            yield *name, pair, found["verdict"]


def _cells(verdict: Mapping[str, Any]) -> tuple[str, ...]:
    return (
        f"{verdict['gains']} : {verdict['losses']}",
        str(verdict["num_tasks"]),
        p_value(verdict["p_up_holm"]),
        p_value(verdict["p_down_holm"]),
        _limits(verdict["seeds"]),
        _limits(verdict["efficiency"]),
        verdict["verdict"],
    )


def _limits(value: Mapping[str, Any] | None) -> str:
    if value is None or value["point"] is None:
        return UNDEFINED
    return interval(value, digits=2, sign=True)

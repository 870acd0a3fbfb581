"""The mechanism of each trained arm in numbers with intervals, and in tables.

Questions are the clusters of every interval, those of all seeds together, and what is
compared is paired by question. The seeds' own means stand beside.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from experiments.pass_surface.mechanism import KINDS, query_sequences
from jerp.estimators.contribution import swap_contributions
from jerp.estimators.intervals import bootstrap_interval
from jerp.estimators.novelty import distinct_sequences, perplexity, sequence_overlap
from jerp.runs.cells import interval, plain_interval
from jerp.runs.pass_surface.tables import Table
from jerp.typing import Array, Key

__all__ = ["arm_numbers", "mechanism_notes", "mechanism_tables"]

SWAP = ("neither", "answer", "search", "both")
"""What is the trained arm's, in the order of `swap` read row by row."""

PARTS = ("search", "answer", "total", "interaction")

TOKENS, QUESTIONS = range(2)
"""Streams of random keys."""


def arm_numbers(
    key: Key,
    arm: str,
    measured: Sequence[Mapping[str, Mapping[str, np.ndarray]]],
    actions: Sequence[Mapping[str, np.ndarray]],
    *,
    num_searches: int,
) -> dict[str, Any]:
    """All numbers of one arm beside the base, in one category.

    Args:
      key: consumed.
      arm: its name.
      measured: of each seed, by arm; see `mechanism.measure`.
      actions: of each seed, by arm: `[Q, n, T]`.
      num_searches: actions from there on are answers.
    """
    values = [
        _values(arm, *each, num_searches)
        for each in zip(measured, actions, strict=True)
    ]
    columns = {
        name: np.concatenate([each[name] for each in values]) for name in values[0]
    }
    found = bootstrap_interval(
        jax.random.fold_in(key, QUESTIONS), np.stack([*columns.values()], axis=1)
    )
    numbers = {
        name: {
            **plain_interval(jax.tree.map(lambda x, i=i: x[i], _limits(found))),
            "by_seed": [float(each[name].mean()) for each in values],
        }
        for i, name in enumerate(columns)
    }
    return {
        "num_questions": len(next(iter(columns.values()))),
        "samples": int(actions[0][arm].shape[1]),
        "perplexity": _perplexities(
            jax.random.fold_in(key, TOKENS), [each[arm] for each in measured]
        ),
        **numbers,
    }


def _values(
    arm: str,
    measured: Mapping[str, Mapping[str, np.ndarray]],
    actions: Mapping[str, np.ndarray],
    num_searches: int,
) -> dict[str, np.ndarray]:
    """`[Q]` numbers of each question, by name."""
    base, own = query_sequences(
        [actions["base"], actions[arm]], num_searches=num_searches
    )
    half = base.shape[1] // 2
    first, second = base[:, :half], base[:, half : 2 * half]
    # Both halves of the arm are held against a half of the base: all the runs count.
    beside = [
        _overlap(own[:, :half], second),
        _overlap(own[:, half : 2 * half], first),
    ]
    ceiling = [_overlap(first, second), _overlap(second, first)]
    swap = measured[arm]["swap"]
    columns = {
        "distinct": _distinct(own),
        "distinct_base": _distinct(base),
        "known": np.mean([each.known for each in beside], axis=0),
        "known_ceiling": np.mean([each.known for each in ceiling], axis=0),
        "common": np.mean([each.common for each in beside], axis=0),
        "common_ceiling": np.mean([each.common for each in ceiling], axis=0),
        "known_in_all": _overlap(own, base).known,
    }
    columns["distinct_difference"] = columns["distinct"] - columns["distinct_base"]
    for name, cell in zip(SWAP, np.moveaxis(swap.reshape(-1, 4), 1, 0), strict=True):
        columns[f"swap_{name}"] = cell
    for name, part in zip(PARTS, swap_contributions(swap), strict=True):
        columns[f"part_{name}"] = part
    return {name: np.asarray(column, np.float32) for name, column in columns.items()}


def _perplexities(
    key: Key, measured: Sequence[Mapping[str, np.ndarray]]
) -> dict[str, Any]:
    """Of the base on the arm's successful runs, by kind of token, and their ratio."""
    sums = {
        name: np.concatenate([each[name] for each in measured]).astype(np.float32)
        for name in ("log_prob", "count")
    }
    found = bootstrap_interval(key, sums, _with_ratio)
    cells = {
        name: plain_interval(jax.tree.map(lambda x, i=i: x[i], _limits(found)))
        for i, name in enumerate((*KINDS, "ratio"))
    }
    return {
        **cells,
        "tokens": {
            name: int(number)
            for name, number in zip(KINDS, sums["count"].sum(axis=0), strict=True)
        },
        "by_seed": {
            name: [_one_perplexity(each, i) for each in measured]
            for i, name in enumerate(KINDS)
        },
    }


def _with_ratio(values: Mapping[str, Array], weight: Array) -> Array:
    """Perplexity of query tokens, of answer tokens, and the latter over the former."""
    query, answer = perplexity(values, weight)
    return jnp.stack([query, answer, answer / query])


def _one_perplexity(measured: Mapping[str, np.ndarray], kind: int) -> float:
    count = measured["count"][:, kind].sum()
    total = measured["log_prob"][:, kind].sum()
    return float(np.exp(-total / count)) if count else float("nan")


def _limits(found: Any) -> Any:
    """The interval without its counts, which have no axis of columns."""
    return found.replace(
        num_values=None, num_excluded=None, num_clusters=None, level=None
    )


def mechanism_notes(mechanism: Mapping[str, Mapping[str, Any]]) -> tuple[str, ...]:
    """How the columns of `mechanism_tables` are counted, in words."""
    runs = next(iter(next(iter(mechanism.values())).values()))["samples"]
    return (
        "perplexity: of the base, on the arm's successful runs; tokens that grammar or "
        "cap force are left out",
        "distinct searches: different sequences of all searches of a run, failed ones "
        f"included, among {runs} runs of a question",
        "known to the base: share of the arm's runs whose sequence is among "
        f"{runs // 2} runs of the base; common mass: 1 - total variation of "
        f"{runs // 2} runs beside as many of the base; ceiling: other runs of the base "
        "itself in place of the arm's",
        "chance of the right answer: searches are masked where the searcher answered, "
        "and the exact probability is taken of whoever answers there",
        "part: Shapley value, the mean over both orders in which search and answer can "
        "be exchanged; half of the interaction is in each",
    )


def mechanism_tables(
    mechanism: Mapping[str, Mapping[str, Mapping[str, Any]]],
    labels: Mapping[str, str],
) -> list[Table]:
    """Two tables: what is new in the arms' runs, and whose part the gain is.

    Args:
      mechanism: by category and arm, see `arm_numbers`.
      labels: of the arms.
    """
    rows = [
        (category, arm, numbers)
        for category, arms in mechanism.items()
        for arm, numbers in arms.items()
    ]
    return [
        Table(
            "What is new in the arm's runs",
            (
                *("category", "arm", "base's perplexity, query", "answer", "ratio"),
                *("distinct searches", "the base's", "known to the base", "ceiling"),
                *("common mass", "ceiling"),
            ),
            [_novelty_row(c, labels[a], n) for c, a, n in rows],
        ),
        Table(
            "Whose part the gain is: chance of the right answer",
            (
                *("category", "arm", "base alone", "arm searches, base answers"),
                *("base searches, arm answers", "arm alone", "part of search"),
                *("part of answer", "interaction"),
            ),
            [_swap_row(c, labels[a], n) for c, a, n in rows if a != "base"],
        ),
    ]


def _novelty_row(
    category: str, label: str, numbers: Mapping[str, Any]
) -> tuple[str, ...]:
    surprise = numbers["perplexity"]
    names = ("known", "known_ceiling", "common", "common_ceiling")
    return (
        category,
        label,
        *(interval(surprise[name], digits=2) for name in (*KINDS, "ratio")),
        *(interval(numbers[n], digits=1) for n in ("distinct", "distinct_base")),
        *(interval(numbers[name], digits=2) for name in names),
    )


def _swap_row(category: str, label: str, numbers: Mapping[str, Any]) -> tuple[str, ...]:
    cells = ("swap_neither", "swap_search", "swap_answer", "swap_both")
    parts = ("part_search", "part_answer", "part_interaction")
    return (
        category,
        label,
        *(interval(numbers[name], digits=2) for name in cells),
        *(interval(numbers[name], digits=2, sign=True) for name in parts),
    )


_distinct = jax.jit(distinct_sequences)
_overlap = jax.jit(sequence_overlap)

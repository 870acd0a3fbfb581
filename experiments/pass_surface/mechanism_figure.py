"""How the arms solve what they solve, in four panels, from `results.json` alone."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from matplotlib.figure import Figure

from experiments.pass_surface.dot_plots import Series, dot_plot
from jerp.runs.cells import number

__all__ = ["draw_mechanism", "mechanism_words"]

SWAP = (
    ("swap_neither", "base alone", "o", False),
    ("swap_search", "arm searches, base answers", "<", False),
    ("swap_answer", "base searches, arm answers", ">", True),
    ("swap_both", "arm alone", "o", True),
)

OVERLAP = (
    ("known", "runs whose searches the base makes too", "o", True),
    ("known_ceiling", "the same of the base's other runs", "o", False),
    ("common", "mass in common with the base", "s", True),
    ("common_ceiling", "the same of the base's other runs", "s", False),
)


def draw_mechanism(
    mechanism: Mapping[str, Mapping[str, Any]], labels: Mapping[str, str]
) -> Figure:
    """Perplexity, query sequences, their overlap with the base's, and the swap.

    Args:
      mechanism: by category and arm, see `mechanism_analysis.arm_numbers`.
      labels: of the arms.
    """
    found = _rows(mechanism, labels)
    rows = [row for row, *_ in found]
    numbers = [one for *_, one in found]
    # The base beside itself says nothing: it has its perplexity and its sequences.
    trained = [None if arm == "base" else one for _, arm, one in found]
    figure = Figure(figsize=(10.5, 1.7 + 0.95 * len(rows)), layout="constrained")
    (tokens, sequences), (overlap, swap) = figure.subplots(2, 2, sharey=True)
    surprise = [one["perplexity"] for one in numbers]
    dot_plot(
        tokens,
        rows,
        [
            Series("query tokens", "o", True, [x["query"] for x in surprise]),
            Series("answer tokens", "s", False, [x["answer"] for x in surprise]),
        ],
    )
    tokens.set_xlabel("perplexity under the base, of successful runs", fontsize=8)
    dot_plot(
        sequences,
        rows,
        [
            _series(numbers, "distinct", "of the arm", "o", True),
            _series(trained, "distinct_base", "of the base", "o", False),
        ],
    )
    sequences.set_xlabel("unique query sequences a question", fontsize=8)
    dot_plot(overlap, rows, [_series(trained, *one) for one in OVERLAP])
    overlap.set_xlabel("share of runs, or of mass", fontsize=8)
    dot_plot(swap, rows, [_series(trained, *one) for one in SWAP])
    swap.set_xlabel("chance of the right answer", fontsize=8)
    return figure


def mechanism_words(
    mechanism: Mapping[str, Mapping[str, Any]], labels: Mapping[str, str]
) -> str:
    """The figure in words, with its points."""
    said = []
    for row, arm, one in _rows(mechanism, labels):
        surprise = [one["perplexity"][kind]["point"] for kind in ("query", "answer")]
        words = (
            f"{row}: perplexity of query tokens {number(surprise[0], 2)}, of answer "
            f"tokens {number(surprise[1], 2)}; {number(one['distinct']['point'], 1)} "
            "unique query sequences"
        )
        if arm != "base":
            swap = (f"{name} {number(one[key]['point'], 2)}" for key, name, *_ in SWAP)
            words += (
                f", the base's {number(one['distinct_base']['point'], 1)}; the base "
                f"makes the searches of {number(one['known']['point'], 2)} of its runs "
                f"(of its own other ones {number(one['known_ceiling']['point'], 2)}); "
                f"right answer: {', '.join(swap)}"
            )
        said.append(words)
    return f"Four panels of points with intervals. {'. '.join(said)}."


def _rows(
    mechanism: Mapping[str, Mapping[str, Any]], labels: Mapping[str, str]
) -> list[tuple[str, str, Mapping[str, Any]]]:
    """Name of the row, arm and numbers."""
    return [
        (f"{category}, {labels[arm]}", arm, numbers)
        for category, arms in mechanism.items()
        for arm, numbers in arms.items()
    ]


def _series(
    numbers: list[Any], key: str, name: str, marker: str, filled: bool
) -> Series:
    """Of one number by key; None for an arm that has none."""
    values = [None if one is None else one[key] for one in numbers]
    return Series(name, marker, filled, values)

"""Verdicts in the terminal and on the page: plain, and beside them with evidence."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from experiments.pass_surface.figures import CUT, LEAD, VARIANTS
from experiments.pass_surface.surfaces import EVIDENCE
from jerp.runs.cells import number
from jerp.runs.pass_surface.tables import Table, surface_table
from jerp.runs.pass_surface.verdict_table import verdict_sentences, verdict_table

__all__ = [
    "BESIDE",
    "end_table",
    "evidence_tables",
    "how_many",
    "rule_tables",
    "sentences",
]

BESIDE = (
    "Every boundary is judged twice, by the same rule on the same runs. Plain, a run "
    "has solved its question where its answer is right, as the paper counts. With "
    "evidence, only where it had also found what the question needs before it "
    "answered: an expansion by evidence is one of what can be found out, and no luck "
    "of guesses."
)

Results = Mapping[str, Any]


def end_table(results: Results, variant: str) -> Table:
    """Pass at one sample and at the largest k, before and after, and what it says.

    Args:
      results: of the study.
      variant: a plain one; what has a reading with evidence has a row of it below each.
    """
    same = "" if variant != CUT else f"; the same runs and verdicts as {LEAD}"
    k = results["variants"][variant]["ks"][-1]
    plain, beside = _rows(results, variant), []
    if variant in EVIDENCE:
        beside = [
            (category, "with evidence", *cells)
            for category, _, *cells in _rows(results, EVIDENCE[variant])
        ]
    rows = plain
    if beside:
        rows = [row for pair in zip(plain, beside, strict=True) for row in pair]
    return Table(
        f"Verdicts at the largest k and T ({VARIANTS[variant]}{same})",
        ("", "", "Pass@1", f"Pass@{k}", "+ : -", "verdict"),
        rows,
    )


def _rows(results: Results, variant: str) -> list[tuple[str, ...]]:
    points = {
        (part["name"], agent["label"]): agent["surface"]["point"]
        for part in results["variants"][variant]["parts"]
        for agent in part["agents"]
    }
    rows = []
    for row in results["verdicts"]:
        if row["variant"] == variant:
            pair = [points[row["category"], row[end]] for end in ("first", "second")]
            rows.append(
                (
                    row["category"],
                    f"{row['second']} / {row['first']}",
                    *(" ".join(number(p[i][-1], 2) for p in pair) for i in (0, -1)),
                    f"{row['verdict']['gains']}:{row['verdict']['losses']}",
                    row["verdict"]["verdict"],
                )
            )
    return rows


def sentences(results: Results) -> list[str]:
    """Every verdict of the leading variant with its reason, then those by evidence."""
    variants = results["variants"]
    plain = verdict_sentences(variants[LEAD])
    found = verdict_sentences(variants[EVIDENCE[LEAD]])
    return [*plain, *(f"with evidence, {line}" for line in found)]


def rule_tables(results: Results) -> Iterator[Table]:
    """What the rule rests on, of the leading variant and of it with evidence."""
    for variant, more in ((LEAD, ""), (EVIDENCE[LEAD], ", with evidence")):
        table = verdict_table(results["variants"][variant])
        if table is not None:
            yield table._replace(title=f"{table.title}{more}")


def evidence_tables(results: Results, category: str) -> Iterator[Table]:
    """The surfaces of a category with evidence, and their differences."""
    found = results["variants"][EVIDENCE[LEAD]]
    part = next(part for part in found["parts"] if part["name"] == category)
    for agent in part["agents"]:
        title = f"Pass@(k, T) with evidence, {agent['label']}"
        yield surface_table(title, found, agent["surface"])
    for pair in part["comparisons"]:
        both = f"{pair['second_label']} - {pair['first_label']}"
        title = f"Difference with evidence, {both}, paired by task"
        yield surface_table(title, found, pair["difference"], sign=True)


def how_many(results: Results) -> str:
    """Of how many verdicts one may be luck's."""
    verdicts = results["verdicts"]
    parts = len({row["category"] for row in verdicts})
    own = sum(row["same_runs_as"] is None for row in verdicts)
    return (
        f"There are {len(verdicts)} verdicts here, {own} without those of runs that "
        "stand here twice or are read a second time with evidence, and Holm's "
        f"adjustment is over the {parts} categories of one pair and variant: over all "
        "of them together luck makes one more often."
    )

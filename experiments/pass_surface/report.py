"""Tables of the study in the terminal and as a page, from its results alone."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from rich.console import Group, RenderableType
from rich.table import Table as RichTable
from rich.text import Text

from experiments.pass_surface.config import ARMS
from experiments.pass_surface.control import CONTROL, control_lines
from experiments.pass_surface.costs import COST_NOTES, cost_tables
from experiments.pass_surface.figures import (
    LEAD,
    VARIANTS,
    study_lines,
    variant_lines,
)
from experiments.pass_surface.forgetting import forgetting_table
from experiments.pass_surface.luck import luck_sentence, luck_table
from experiments.pass_surface.mechanism_analysis import (
    mechanism_notes,
    mechanism_tables,
)
from experiments.pass_surface.surfaces import EVIDENCE
from experiments.pass_surface.verdict_report import (
    BESIDE,
    end_table,
    evidence_tables,
    how_many,
    rule_tables,
    sentences,
)
from jerp.runs.cells import markdown_table, number
from jerp.runs.pass_surface.figure_words import FIGURE_GUIDE
from jerp.runs.pass_surface.report import READING_GUIDE
from jerp.runs.pass_surface.tables import Table, caption, tables
from jerp.runs.pass_surface.verdict_table import VERDICT_NOTE

__all__ = ["SMOKE", "STAND_IN", "document", "standing_table", "terminal"]

SMOKE = "Smoke run: it checks the plumbing; its numbers mean nothing."

STAND_IN = (
    "Stand-ins: jerp's simulated world of look-ups for HotPotQA (B, C) and MATH-500 "
    "(A), a decoder of 0.2 M parameters for Qwen2.5-7B-Instruct"
)

DEPARTURES = (
    "Departures from the paper: what can be looked up is redrawn at every visit of a "
    "training question, in every arm, so that SFT's expert trajectories are played "
    "anew as well; a search fails with probability .25; at the cap one answer is "
    "forced without look-ups; policies write no reasoning, so that the mechanism "
    "splits queries from answers, whose first word, the choice to search no more, "
    "counts as answer: the paper's perplexities, 2.07 of queries and 3.08 of "
    "reasoning, are not comparable; the interval between seeds is ours."
)

CONDITIONAL = (
    "Bands, efficiency, mechanism and costs are conditional on these trainings; only "
    "the intervals between seeds, which the verdicts ask for, are between trainings."
)

FORMS = (
    "test questions are of forms that no training has; there are only 38 such forms of "
    "C, so that with more questions forms repeat, each time with other names and other "
    "paragraphs"
)

Results = Mapping[str, Any]


def terminal(results: Results) -> RenderableType:
    """Where the base stands, and the verdicts that the leading variant gives."""
    parts: list[RenderableType] = [Text(SMOKE)] if results["smoke"] else []
    parts += [Text(_title(results)), Text()]
    for table in (standing_table(results), end_table(results, LEAD)):
        parts += [Text(table.title, "bold"), _rich(table), Text()]
    against_base = f"against {ARMS['base']}"
    parts += [Text(line) for line in sentences(results) if against_base in line]
    parts += [Text(line) for line in control_lines(results["variants"][LEAD])]
    parts += [Text(f"note: {note}") for note in _notes(results)]
    return Group(*parts, Text(f"{STAND_IN}."))


def document(results: Results) -> str:
    """The report in Markdown."""
    return "\n\n".join(_parts(results)) + "\n"


def standing_table(results: Results) -> Table:
    """Where the base stands in every category before anything is trained."""
    standing = results["base_standing"]
    shown = {name: one for name, one in standing.items() if name != "warnings"}
    k = next(iter(shown.values()))["k"]
    return Table(
        "Where the base stands, largest T, budget hidden",
        ("category", "Pass@1", "by seed", f"Pass@{k}", "never solved"),
        [
            (
                category,
                number(one["pass_1"], 3),
                " ".join(number(x, 2) for x in one["pass_1_by_seed"]),
                number(one["pass_64"], 3),
                f"{100 * one['never']:.0f}% in {one['samples']}",
            )
            for category, one in shown.items()
        ],
    )


def _title(results: Results) -> str:
    sizes = results["sizes"]
    return (
        f"PASS@(k, T): {sizes['questions']} questions a category x {sizes['samples']} "
        f"samples a T, {results['seeds']} seeds; trained on "
        f"{2 * sizes['train_questions']} questions"
    )


def _rich(table: Table) -> RichTable:
    made = RichTable(box=None, pad_edge=False, padding=(0, 1, 0, 0))
    for place, name in enumerate(table.header):
        last = place == len(table.header) - 1
        made.add_column(name, overflow="fold" if last else "ellipsis", no_wrap=not last)
    for row in table.rows:
        made.add_row(*row)
    return made


def _notes(results: Results) -> list[str]:
    notes = list(results["base_standing"]["warnings"])
    for arm, numbers in results["training"].items():
        notes += [f"{ARMS[arm]}, {note}" for note in numbers.get("warnings", ())]
    return notes


def _parts(results: Results) -> Iterator[str]:
    yield "# PASS@(k, T): did training move the boundary, or only its efficiency?"
    yield f"Made by `{results['command']}` with jerp {results['version']}."
    if results["smoke"]:
        yield f"**{SMOKE}**"
    yield f"{_title(results)}. {STAND_IN}. {DEPARTURES}"
    yield _bullets(_notes(results))
    yield "## Where the base stands"
    yield _markdown(standing_table(results))
    lines = study_lines(results)
    yield "## Verdicts"
    yield from _verdicts(results, lines)
    yield from _surfaces(results)
    yield "## Mechanism"
    yield _bullets(mechanism_notes(results["mechanism"]))
    yield lines["mechanism"]
    for table in mechanism_tables(results["mechanism"], ARMS):
        yield _markdown(table, title=True)
    yield "## What it costs"
    yield _bullets(COST_NOTES)
    yield lines["cost"]
    for table in cost_tables(results["cost"], ARMS):
        yield _markdown(table, title=True)
    yield "## Forgetting"
    yield lines["forgetting"]
    yield _markdown(forgetting_table(results["forgetting"], ARMS))
    yield "## Training"
    yield _markdown(_training_table(results))
    yield READING_GUIDE
    yield FIGURE_GUIDE


def _verdicts(results: Results, lines: Mapping[str, str]) -> Iterator[str]:
    """Plain and with evidence, what they rest on, and how far luck goes."""
    yield BESIDE
    yield CONTROL
    yield _bullets(control_lines(results["variants"][LEAD]))
    yield CONDITIONAL
    yield lines["verdicts"]
    yield _bullets(sentences(results))
    for variant in VARIANTS:
        if variant not in EVIDENCE.values():
            yield _markdown(end_table(results, variant), title=True)
    for table in rule_tables(results):
        yield _markdown(table, title=True)
    yield f"{VERDICT_NOTE} {how_many(results)}"
    yield _markdown(luck_table(results["luck"], ARMS), title=True)
    yield luck_sentence(results["luck"])
    yield lines.get("budgets", "")
    yield lines.get("evidence", "")


def _surfaces(results: Results) -> Iterator[str]:
    """Every table of the variant that verdicts rest on."""
    found = results["variants"][LEAD]
    yield _bullets([*found["notes"], FORMS])
    for part in found["parts"]:
        yield f"## Category {part['name']}"
        yield caption(found, part)
        yield from variant_lines(results, part)
        for table in tables(found, part):
            yield _markdown(table, title=True)
        for table in evidence_tables(results, part["name"]):
            yield _markdown(table, title=True)


def _bullets(notes: Sequence[str]) -> str:
    return "\n".join(f"- {note}" for note in notes)


def _markdown(table: Table, *, title: bool = False) -> str:
    text = markdown_table(table.header, table.rows)
    return f"### {table.title}\n\n{text}" if title else text


def _training_table(results: Results) -> Table:
    header = ("policy", "what", "success at the end", "peak memory", "compile seconds")
    return Table("Training", header, [*_training_rows(results)])


def _training_rows(results: Results) -> Iterator[Sequence[str]]:
    for arm, numbers in results["training"].items():
        if arm == "base":
            shown = " ".join(
                f"{name.removeprefix('demonstrated ')} "
                + number(sum(values) / len(values), 2)
                for name, values in numbers.items()
                if name.startswith("demonstrated")
            )
            what, success = f"cloned; demonstrations succeed: {shown}", "-"
        elif arm == "sft":
            visits = " ".join(map(str, numbers["visits"]))
            what, success = f"visits a question, by seed: {visits}", "-"
        else:
            what = f"{numbers['iterations']} iterations"
            success = " ".join(number(x, 2) for x in numbers["success"])
        memory = f"{numbers['peak_memory_bytes'] / 2**20:.0f} MiB"
        yield ARMS[arm], what, success, memory, f"{numbers['compile_seconds']:.0f}"

"""The report of the experiment, from its numbers alone."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from rich.table import Table

from experiments.wer.comparison_report import (
    ablation_parts,
    acceptance_parts,
    interval_cell,
)
from experiments.wer.config import DOMAINS
from experiments.wer.methods import LABELS, WER
from jerp.runs.cells import interval, markdown_table, number

__all__ = [
    "SMOKE",
    "STAND_INS",
    "directions",
    "document",
    "standing_lines",
    "terminal_table",
]

Numbers = Mapping[str, Any]

SMOKE = "Smoke run: it checks the plumbing; its numbers mean nothing."

STAND_INS = (
    "Stand-ins: simulated tools for BFCL, decoders of 0.2 M parameters for Qwen3-4B, "
    "which writes skills, and for GPT-4o, which follows them, and a merge by vote for "
    "that of GPT-5.5; seed skills are the optimizer's own, not GPT-5.1's. A skill is "
    "at most eight steps in the words of the world."
)

EQUAL = (
    "Equal runs: every task that skills are written for has as many runs of the "
    "executor, whoever writes: more runs of a seed skill, more drafts, or more rounds. "
    "Best of drafts, all runs, has those of the training besides, on all training "
    "tasks. Runs differ in how many calls they take. Skills of tasks are merged by "
    "vote, validation tasks say how many steps the merged one keeps, and it is tried "
    "on the locked test once. The ceiling is written from the tables of the world."
)

INTERVALS = (
    "Intervals: 95%, tasks resampled as clusters; what seeds differ by is not in them. "
    "All: the mean of the domains."
)

WRITTEN = ("executor calls", "optimizer tokens", "s")

OPTIMIZERS = {"untrained": "untrained", WER: "trained"}

TOLD = {
    "none": "no skill",
    "right": "right lines",
    "wrong": "plausible wrong lines",
}

PAPER_METHODS = {
    "none": (62.16, 57.89, 68.83),
    "seed": (62.16, 64.86, 67.28),
    "untrained": (62.16, 64.86, 67.28),
    WER: (70.27, 78.38, 76.63),
}
PAPER_PHASES = {"1": 69.35, "2": 71.29, "3": 76.63}
PAPER_DEPTHS = (67.28, 70.67, 76.63, 75.33)
"""Success in BFCL, percent, without intervals (arXiv:2608.17587, Tables 1 to 3)."""


def standing_lines(base: Numbers) -> Iterator[str]:
    """Where the clones stand, in lines for the terminal."""
    for told, found in base["success"].items():
        cells = (f"{name} {interval(found[name])}" for name in DOMAINS)
        yield f"executor, {TOLD[told]}: {', '.join(cells)}"
    parsed, mixed = (
        ", ".join(f"{x:.0%}" for x in base[name]) for name in ("parsed", "mixed")
    )
    yield f"seed drafts of the clone, by seed: {parsed} parse, {mixed} mixed"
    for text in base["warnings"]:
        yield f"warning: {text}"


def terminal_table(results: Numbers) -> Table:
    """Methods by domain, in 80 columns; the report has the rest."""
    table = Table(
        title=f"{SMOKE}\n" * results["smoke"] + _title(results),
        title_justify="left",
        box=None,
        padding=(0, 1, 0, 0),
    )
    for column in ("method", *DOMAINS, "all", "WER above it"):
        table.add_column(column, no_wrap=column != "method")
    for name, found in results["methods"].items():
        points = (number(found[d]["point"], 2) for d in DOMAINS)
        above = "" if name == WER else interval_cell(found["wer_above"], sign=True)
        table.add_row(LABELS[name], *points, interval_cell(found["all"]), above)
    return table


def directions(results: Numbers) -> Iterator[str]:
    """WER against each other method as it was measured, whichever way it falls."""
    for name, found in results["methods"].items():
        if name == WER:
            continue
        above = found["wer_above"]
        seeds = ", ".join(number(x, 3, sign=True) for x in above["by_seed"])
        by_seed = f", by seed {seeds}" if len(above["by_seed"]) > 1 else ""
        paper = ""
        if name in PAPER_METHODS:
            theirs = (PAPER_METHODS[WER][-1] - PAPER_METHODS[name][-1]) / 100
            paper = f" (the paper: {number(theirs, 3, sign=True)})"
        gain = interval_cell(above, 3, sign=True)
        yield f"WER - {LABELS[name]}: {gain}{by_seed}{paper}."


def document(results: Numbers) -> str:
    """The report in Markdown."""
    return "\n\n".join(_parts(results)) + "\n"


def _title(results: Numbers) -> str:
    sizes = results["sizes"]
    return (
        f"Success on {sizes['test']} tasks of the locked test x {sizes['test_runs']} "
        f"runs, seeds: {results['seeds']}, each {sizes['phases']} phases of "
        f"{sizes['batches']} batches"
    )


def _parts(results: Numbers) -> Iterator[str]:
    yield "# WER: an optimizer of skills learns from what its drafts lead to"
    yield f"Made by `{results['command']}` with jerp {results['version']}."
    yield STAND_INS
    if results["smoke"]:
        yield f"**{SMOKE}**"
    yield "## Methods"
    yield f"{_title(results)}. {INTERVALS}"
    yield EQUAL
    yield markdown_table(*_method_rows(results))
    yield "\n".join(f"- {line}" for line in directions(results))
    yield "### What each took, mean over seeds"
    yield (
        "Seconds: of drafting and executing, in the session that finished it, with "
        "what was compiled in it; those of validation are not in them."
    )
    yield markdown_table(*_cost_rows(results))
    yield "## Checkpoints by phase"
    yield f"After {results['sizes']['rounds']} rounds; phase 0 is before training."
    yield markdown_table(*_phase_rows(results))
    yield from ablation_parts(results)
    yield from acceptance_parts(results)
    yield "## Depth"
    yield (
        "Own: each training task with the skill that was written for it, on the runs "
        "that it was written with, without one where no draft had any. Merged: as "
        "above. Rounds beyond "
        f"{results['sizes']['rounds']} have more runs than the methods above."
    )
    yield markdown_table(*_depth_rows(results))
    yield "![success by depth](figures/depth.png)"
    yield "![drafts of some tasks and their revisions](figures/tree.png)"
    yield "## Training"
    yield "![success, parsed and mixed by batch](figures/learning.png)"
    if notes := results["training"]["warnings"]:
        yield "\n".join(f"- {text}" for text in notes)
    yield "## Where the clones stand"
    yield "\n".join(f"- {line}" for line in standing_lines(results["base"]))
    yield from _skill_parts(results)
    yield "## What the paper has"
    yield (
        "Success in BFCL, percent, with other models (arXiv:2608.17587, Tables 1 to "
        "3): directions may be compared, numbers may not. Average: of four domains."
    )
    yield _paper_table()
    yield (
        f"By phase {_percents(PAPER_PHASES.values())}; by depth from 0 "
        f"{_percents(PAPER_DEPTHS)}."
    )


def _percents(values: Any) -> str:
    return ", ".join(f"{x:.2f}" for x in values)


def _method_rows(results: Numbers) -> tuple[list[str], list[list[str]]]:
    header = ["method", *DOMAINS, "all", "- no skill", "by seed", "steps by seed"]
    rows = []
    for name, found in results["methods"].items():
        steps = found["steps"] or []
        rows.append(
            [
                LABELS[name],
                *(interval_cell(found[d]) for d in (*DOMAINS, "all")),
                "" if name == "none" else interval_cell(found["above_none"], sign=True),
                " ".join(number(x, 2) for x in found["by_seed"]),
                " ".join("+".join(map(str, one)) for one in steps),
            ]
        )
    return header, rows


def _cost_rows(results: Numbers) -> tuple[list[str], list[list[str]]]:
    header = ["method", "executor calls", "of validation", "optimizer tokens", "s"]
    rows = []
    for name, found in results["methods"].items():
        if (cost := found["cost"]) is not None:
            rows.append([LABELS[name], *_costs(cost, cost["validation_calls"])])
    training = results["training"]["cost"]
    return header, [*rows, ["training of WER", *_costs(training, None)]]


def _costs(cost: Numbers, validation: float | None) -> list[str]:
    return [
        f"{cost['calls']:,.0f}",
        "-" if validation is None else f"{validation:,.0f}",
        f"{cost['draft_tokens']:,.0f}",
        f"{cost['seconds']:.0f}",
    ]


def _written(cost: Numbers) -> list[str]:
    """What writing the skills of a row took; see `WRITTEN`."""
    return [f"{cost[name]:,.0f}" for name in ("calls", "draft_tokens", "seconds")]


def _phase_rows(results: Numbers) -> tuple[list[str], list[list[str]]]:
    rows = [
        [
            phase,
            *(interval_cell(found[d]) for d in (*DOMAINS, "all")),
            *_written(found["cost"]),
        ]
        for phase, found in results["phases"].items()
    ]
    return ["phase", *DOMAINS, "all", *WRITTEN], rows


def _depth_rows(results: Numbers) -> tuple[list[str], list[list[str]]]:
    merged, own = ([f"{kind}, {d}" for d in DOMAINS] for kind in ("merged", "own"))
    header = ["optimizer", "depth", *merged, "merged", *own, "own", *WRITTEN]
    rows = []
    for name, depths in results["depths"].items():
        for depth, found in enumerate(depths):
            cells = [
                interval_cell(found[kind][d])
                for kind in ("merged", "own")
                for d in (*DOMAINS, "all")
            ]
            cost = _written(found["cost"])
            rows.append([OPTIMIZERS[name], str(depth), *cells, *cost])
    return header, rows


def _skill_parts(results: Numbers) -> Iterator[str]:
    yield "## The chosen skills"
    if not results["chosen"]:
        yield "No draft had a skill."
    for domain, found in results["chosen"].items():
        yield (
            f"{domain}, {LABELS[found['method']]}, seed {found['seed']}: of all "
            "methods and seeds the best in validation, "
            f"{number(found['validation'], 3)}. On the test, {found['tasks']} tasks, "
            f"{interval_cell(found['effect'], 3, sign=True)} against no skill. In "
            f"`skills/{domain}.md`:"
        )
        yield _quoted(found["skill"].splitlines())


def _quoted(lines: Sequence[str]) -> str:
    return "\n".join(["```", *lines, "```"])


def _paper_table() -> str:
    header = ["method", "Travel", "Vehicle", "average"]
    rows = [
        [LABELS[name], *(f"{x:.2f}" for x in row)]
        for name, row in PAPER_METHODS.items()
    ]
    return markdown_table(header, rows)

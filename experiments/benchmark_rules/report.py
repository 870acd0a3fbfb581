"""What is said of rules that a frozen model learned in a benchmark."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator
from rich.table import Table

from jerp.runs.cells import interval, markdown_table, number

__all__ = ["curve", "document", "sentences", "table"]

Numbers = Mapping[str, Any]

LABELS = {
    "plain": "asked for commands",
    "react": "asked for a thought and a command",
    "rules": "the same, with learned rules",
}
HEADER = ("how it is asked", "success", "score", "steps", "no command", "lost")

SMOKE = "Smoke run: it checks the plumbing; its numbers mean nothing."

SCOPE = (
    "Rules only: the model's weights are not trained, as the paper's are. Rules are "
    "written by the model itself, from groups of its episodes and earlier successes."
)


def table(results: Numbers) -> Table:
    """The comparison, for the terminal."""
    title = f"{SMOKE}\n" * results["smoke"] + _title(results)
    found = Table(title=title, title_justify="left", box=None, padding=(0, 1, 0, 0))
    for column in HEADER:
        found.add_column(column)
    for row in _rows(results):
        found.add_row(*row)
    return found


def sentences(results: Numbers) -> Iterator[str]:
    """What the numbers say, and what they rest on."""
    more = results["rows"]["rules"]["above_react"]
    yield (
        f"With learned rules, success is {interval(more, digits=2, sign=True)} above "
        "that without, paired by task."
    )
    learned = results["learning"]
    pools = ", ".join(f"{kind} {len(own)}" for kind, own in learned["pool"].items())
    yield f"Rules in the end: {pools or 'none'}."
    yield SCOPE
    for note in learned["warnings"]:
        yield f"Note: {note}."


def document(results: Numbers) -> Iterator[str]:
    """The parts of the report in Markdown."""
    yield f"# Rules for a frozen model in {results['env']}"
    yield f"Made by `{results['command']}` with jerp {results['version']}."
    if results["smoke"]:
        yield f"**{SMOKE}**"
    yield (
        f"{_title(results)}. Intervals: 95%, tasks resampled; with fewer than about 20 "
        "of them they are too narrow."
    )
    yield markdown_table(HEADER, _rows(results))
    yield (
        "An answer that is no command costs the step. An episode that the executor "
        "failed in is lost: it enters no mean."
    )
    yield "\n".join(f"- {line}" for line in sentences(results))
    yield "![learning](figures/curve.png)"
    for kind, rules in results["learning"]["pool"].items():
        listed = "\n".join(f"- {rule['text']} ({rule['score']:g})" for rule in rules)
        yield f"## Rules for {kind}\n\n{listed}"


def curve(results: Numbers) -> Figure:
    """Success of the training episodes and rules in the pools, by iteration."""
    learned = results["learning"]
    figure = Figure(figsize=(7, 4), layout="tight")
    axis = figure.subplots()
    steps = range(1, len(learned["rules"]) + 1)
    success = [float("nan") if x is None else x for x in learned["success"]]
    axis.plot(steps, success, "o-", color="#2b6cb0", label="success")
    axis.set_xlabel("iteration")
    axis.xaxis.set_major_locator(MaxNLocator(integer=True, min_n_ticks=1))
    axis.set_ylabel("success of training episodes")
    axis.set_ylim(-0.04, 1.04)
    other = axis.twinx()
    other.plot(steps, learned["rules"], "s--", color="#c05621", label="rules")
    other.set_ylabel("rules in all pools")
    return figure


def _title(results: Numbers) -> str:
    tasks, sizes, executor = results["tasks"], results["sizes"], results["executor"]
    name = executor["fingerprint"].removeprefix("remote:").partition("+")[0]
    return (
        f"{name} in {results['env']} {results['benchmark']}: {tasks['held_out']} "
        f"held-out tasks x {sizes['samples']} episodes of at most {sizes['num_steps']} "
        f"steps; rules of {tasks['train']} training tasks, {sizes['iterations']} "
        f"iterations of {sizes['num_groups']} x {sizes['group_size']} episodes"
    )


def _rows(results: Numbers) -> Iterator[tuple[str, ...]]:
    for name, row in results["rows"].items():
        yield (
            LABELS[name],
            interval(row["success"], digits=2),
            interval(row["score"], digits=2),
            number(row["steps"], 1),
            str(row["unparsed"]),
            str(row["lost"]),
        )

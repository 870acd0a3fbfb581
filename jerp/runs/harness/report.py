"""The comparison as a terminal table and as `report.md`.

Both are made from `results.json` alone, so a report can be made again without a run.
Every table says which executor it rests on, its sizes and the command that made it.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from jerp.runs.cells import interval, markdown_table, number

__all__ = ["ARM_LABELS", "comparison_rows", "render_tables", "write_report"]

ARM_LABELS = {
    "random": "random legal",
    "base": "base sequence",
    "forced-check": "forced check",
    "conditional": "conditional rule",
    "bc": "behaviour cloning",
    "awr": "AWR (trajectory)",
    "awr-step": "AWR (per-step)",
}

COLUMNS = (
    "arm",
    "Q",
    "Q - base",
    "HMS",
    "HMS - base",
    "steps",
    "calls",
    "tokens",
    "invalid",
)
TERMINAL_COLUMNS = ("arm", "Q", "Q - base", "HMS", "steps", "calls", "tokens", "bad")

LEGEND = (
    "Q: the verifier's score of what was submitted, in [0, 1], with 95% intervals "
    "(tasks resampled). HMS: process maturity, measured apart, never a reward. steps, "
    "calls, tokens: means an episode, of the harness and of the executor. bad: "
    "episodes that the infrastructure lost; they enter no mean."
)
SMOKE = "Smoke run: it checks the plumbing; its numbers mean nothing."


def comparison_rows(domain: dict[str, Any]) -> list[tuple[str, ...]]:
    """One row an arm, in the order of `COLUMNS`; intervals are 95%, tasks resampled."""
    rows = []
    for name, arm in domain["arms"].items():
        difference = arm.get("difference")
        rows.append(
            (
                ARM_LABELS[name],
                interval(arm["q"]),
                interval(difference["q"], sign=True) if difference else "",
                interval(arm["hms"]),
                interval(difference["hms"], sign=True) if difference else "",
                f"{arm['steps']['point']:.2f}",
                f"{arm['calls']['point']:.2f}",
                f"{arm['tokens']['point']:.0f}",
                str(arm["invalid"]),
            )
        )
    return rows


def _event_rows(
    domain: dict[str, Any],
) -> tuple[tuple[str, ...], list[tuple[str, ...]]]:
    """Share of the episodes in which an event applied where it fired."""
    names = tuple(next(iter(domain["arms"].values()))["events"])
    rows = []
    for arm_name, arm in domain["arms"].items():
        cells = [
            "-" if event["rate"] is None else f"{event['rate']:.2f}"
            for event in arm["events"].values()
        ]
        rows.append((ARM_LABELS[arm_name], *cells))
    return ("arm", *names), rows


def render_tables(results: dict[str, Any]) -> list[RenderableType]:
    """The comparison at the width of a terminal, one group a domain."""
    parts = []
    for name, domain in results["domains"].items():
        table = Table(box=None, pad_edge=False, padding=(0, 1, 0, 0))
        for column in TERMINAL_COLUMNS:
            table.add_column(
                column, justify="left" if column == "arm" else "right", no_wrap=True
            )
        for arm_name, arm in domain["arms"].items():
            table.add_row(*_terminal_row(arm_name, arm))
        title = Text(f"{name}: {_caption(results, domain)}", style="bold")
        parts.append(Group(title, table, Text(support_line(domain)), Text()))
    notes = [LEGEND, SMOKE] if results["smoke"] else [LEGEND]
    return [*parts, *map(Text, notes)]


def _terminal_row(name: str, arm: dict[str, Any]) -> tuple[str, ...]:
    difference = arm.get("difference")
    return (
        ARM_LABELS[name],
        interval(arm["q"], digits=2),
        interval(difference["q"], digits=2, sign=True) if difference else "",
        number(arm["hms"]["point"], 2),
        f"{arm['steps']['point']:.1f}",
        f"{arm['calls']['point']:.2f}",
        f"{arm['tokens']['point']:.0f}",
        str(arm["invalid"]),
    )


def _caption(results: dict[str, Any], domain: dict[str, Any]) -> str:
    tasks = domain["tasks"]
    return (
        f"{tasks['held_out']} held-out tasks x {tasks['samples']} samples, "
        f"{results['seeds']} training seeds, {executor_line(results)}"
    )


def executor_line(results: dict[str, Any]) -> str:
    """Which executor the numbers rest on, in words."""
    kind = results["executor"]["kind"]
    if kind == "recorded":
        return "SmolLM2-135M's recorded responses"
    if kind == "smollm2":
        return "SmolLM2-135M run live"
    return f"stand-in executor {results['executor']['fingerprint']}"


def support_line(domain: dict[str, Any]) -> str:
    """What the buffer supports and what the design can see, in one sentence."""
    b = domain["buffer"]
    against = ", ".join(
        f"{name} {interval(value, digits=2, sign=True)}"
        for name, value in domain["contrasts"].items()
    )
    lone = (
        " One episode a task: every weight is 1, and AWR is behaviour cloning."
        if b["episodes"] == b["tasks"]
        else ""
    )
    return (
        f"Buffer: {b['episodes']} episodes on {b['tasks']} tasks, mean return "
        f"{b['mean_return']:.3f} (base on the same tasks {b['base_return']:.3f}), best "
        f"return per task {b['best_return_per_task']:.3f}, "
        f"{100 * b['tasks_with_spread']:.0f}% of tasks with any spread (mean "
        f"within-task sd {b['within_task_sd']:.3f}), weights' effective sample size "
        f"{100 * b['effective_sample_share']:.0f}%. Smallest difference in Q that this "
        f"design detects with 80% power: {domain['detectable_q']:.3f}. In Q, paired: "
        f"{against}.{lone}"
    )


def write_report(results: dict[str, Any], folder: Path) -> Path:
    """Writes `report.md` beside the figures it shows."""
    parts = [
        "# Harness control\n",
        f"Executor: {executor_line(results)} (`{results['executor']['fingerprint']}`).",
        f"Made by `{results['command']}` with jerp {results['version']}.\n",
        _store_paragraph(results),
    ]
    if results["smoke"]:
        parts.append(f"**{SMOKE}**")
    for name, domain in results["domains"].items():
        parts += _domain_section(name, domain, results)
    parts.append(_reading_guide())
    path = folder / "report.md"
    path.write_text("\n".join(parts) + "\n", encoding="utf-8")
    return path


def _store_paragraph(results: dict[str, Any]) -> str:
    executor = results["executor"]
    lines = [
        f"{kind}s: {count['hits']} hits, {count['misses']} misses, "
        f"{count['distinct']} distinct"
        for kind, count in executor["store"].items()
    ]
    diversity = executor["diversity"]
    return (
        f"Response store: {'; '.join(lines)}. Of {diversity['prompts']} prompts asked "
        f"with several sample indices {diversity['identical']} gave one text only "
        f"({100 * diversity['distinct_share']:.0f}% of samples are distinct texts). "
        f"Rollout number r of a task asks with sample index r mod "
        f"{results['sizes']['samples']} in every arm (common random numbers).\n"
        + "".join(f"\n**{problem}**\n" for problem in executor["problems"])
    )


def _domain_section(
    name: str, domain: dict[str, Any], results: dict[str, Any]
) -> list[str]:
    header, events = _event_rows(domain)
    mix = domain["mix"]
    return [
        f"## {name}\n",
        f"{_caption(results, domain)}. Base sequence: {domain['base_sequence']}. Under "
        f"it the executor scores {mix['base_mean']:.3f} on average over all "
        f"{mix['tasks']} tasks, {100 * mix['spread_share']:.0f}% of which show spread "
        f"over samples. {_reach(domain)}\n",
        markdown_table(COLUMNS, comparison_rows(domain)),
        f"\n{support_line(domain)}\n",
        f"![Q and HMS by arm](figures/{name}-arms.png)\n",
        "Rates of the process events, over the episodes to which they apply:\n",
        markdown_table(header, events),
        f"\n![events](figures/{name}-events.png)\n",
        f"![buffer](figures/{name}-buffer.png)\n",
    ]


def _reach(domain: dict[str, Any]) -> str:
    reach = domain["reach"]
    if reach is None:
        return "Reachable requests a task: not counted in a live run."
    return f"Reachable requests a task, all recorded: {reach['requests_per_task']:.1f}."


def _reading_guide() -> str:
    return """## How to read this

Q is the verifier's score of what was submitted, in [0, 1]; an episode that submits
nothing scores 0. HMS is the harness maturity score (arXiv 2607.05458) in the
normalisation that a perfect run can reach; it is measured apart and never a reward.
Intervals are 95% bootstrap intervals with tasks as clusters; differences are paired by
task. Invalid episodes (the infrastructure failed) enter no mean and are counted. Best
return per task is what an oracle that picks the best buffered episode of every task
would score, the executor's luck included: no method that stays inside the buffer's
support can be expected to pass it.
"""

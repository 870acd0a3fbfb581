"""What is said of a language model that writes skills for itself."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator
from rich.table import Table

from experiments.wer.language_model_evaluation import NONE, WER
from experiments.wer.report import SMOKE
from jerp.runs.cells import interval, markdown_table, number

__all__ = ["LABELS", "curves", "document", "sentences", "stand_ins", "table"]

Numbers = Mapping[str, Any]

LABELS = {
    NONE: "no skill",
    "seed": "first skills, untrained",
    "untrained": "untrained, revised",
    WER: "WER",
}

SMALL = (
    "a few batches for three phases; first skills of the optimizer, which was "
    "cloned from drafts that know nothing. It shows that every part works on text. "
    "Whether training helps, so few tasks and updates do not tell."
)

HEADER = ("method", "success", "WER above it", "validation")
MORE = ("merged by", "parsed", "calls", "tokens read and written", "draft tokens", "s")


def table(results: Numbers) -> Table:
    """The first columns of the report's table."""
    found = Table(
        title=f"{SMOKE}\n" * results["smoke"] + _title(results),
        title_justify="left",
        box=None,
        padding=(0, 1, 0, 0),
    )
    for column in HEADER:
        found.add_column(column, no_wrap=column != "method")
    for row in _rows(results):
        found.add_row(*row[: len(HEADER)])
    return found


def sentences(results: Numbers) -> Iterator[str]:
    """What the numbers rest on."""
    base, trained = results["base"], results["training"]
    mixed = (
        ""
        if base["mixed"] is None
        else (
            f"; of {base['executed']} that were executed twice {base['mixed']:.0%} "
            f"both succeeded and failed, {base['success']:.0%} of the runs succeeded"
        )
    )
    yield (
        f"Cloned: {base['parsed']:.0%} of {base['drafts']} first drafts parse"
        f"{mixed}. Faults: {_counted(base['faults'])}."
    )
    shares = ", ".join(number(x, 2) for x in trained["curves"]["success"])
    yield (
        f"Training: {trained['calls']:.0f} calls of the executor; success by batch "
        f"{shares}; {trained['kept']} skills kept; {trained['lost_drafts']:.0f} drafts "
        "lost to the infrastructure; sampled and trained log-probabilities differ by "
        f"{trained['sampler_gap']:.0e} at most."
    )
    for name, row in results["rows"].items():
        if row.get("merge_note"):
            yield f"{LABELS[name]}: no merge by the model: {row['merge_note']}."
    best = results["best"]
    if results["rows"][best]["skill"]:
        effect = interval(results["rows"][best]["effect"], digits=2, sign=True)
        yield (
            f"Best in validation: {LABELS[best]}; on the locked test {effect} above no "
            "skill. It is in skills/."
        )
    for note in trained["warnings"]:
        yield f"Note: {note}."


def document(results: Numbers) -> Iterator[str]:
    """The parts of the report in Markdown."""
    yield "# A language model that writes skills"
    yield f"Made by `{results['command']}` with jerp {results['version']}."
    if results["smoke"]:
        yield f"**{SMOKE}**"
    yield (
        f"{_title(results)}. Intervals: 95%, tasks resampled; with fewer than about 20 "
        "of them they are too narrow."
    )
    yield stand_ins(results)
    yield markdown_table((*HEADER, *MORE), _rows(results))
    yield (
        "Every way to write skills has as many runs of the executor a task: more of a "
        "first skill, or more rounds. Training's runs come on top for WER. "
        f"{_run_of(results)} *Parsed*: of the last round's drafts. Calls, tokens and "
        "seconds are of writing and merging, without validation and test."
    )
    yield "\n".join(f"- {line}" for line in sentences(results))
    yield "![training](figures/curve.png)"
    yield "## Skills that were tried"
    for name, row in results["rows"].items():
        if row.get("skill"):
            yield f"{LABELS[name]}, merged by {row['made']}:\n\n{_quoted(row['skill'])}"
    yield "## What it took"
    yield markdown_table(
        ("part", "minutes", "peak memory", "compilations", "compile s"),
        (
            (
                part,
                number(found["seconds"] / 60, 1),
                f"{found['peak_memory_bytes'] / 2**20:.0f} MiB",
                str(found["compilations"]),
                number(found["compile_seconds"], 0),
            )
            for part, found in results["process"].items()
        ),
    )


def stand_ins(results: Numbers) -> str:
    """What stands in for what the paper has."""
    setting = results["setting"]
    if follower := _follower(setting):
        who = (
            "a language model of this machine, which writes skills with adapters; "
            f"{follower}, which follows and merges them"
        )
    else:
        who = (
            "one small language model for the three of the paper, which writes skills "
            "with adapters, and follows and merges them without"
        )
    what = "" if setting.get("env") else "small programs for BFCL; "
    return f"Stand-ins: {who}; {what}{SMALL}"


def _follower(setting: Numbers) -> str:
    """Who follows skills, if it is another than who writes them."""
    return setting.get("model") or setting.get("executor", "")


def _run_of(results: Numbers) -> str:
    if env := results["setting"].get("env"):
        return f"A run is a whole conversation, judged by the evaluator of {env}."
    return (
        "A run is one draft of a program, sampled; its public tests are evidence, its "
        "hidden ones the verdict."
    )


def _title(results: Numbers) -> str:
    follower = _follower(results["setting"])
    sizes = results["sizes"]
    return (
        f"{results['policy']} with adapters of rank {sizes['rank']} writes skills for "
        f"{follower or 'itself without them'}: {sizes['phases']} phases of "
        f"{sizes['batches']} batches, each {sizes['states']} x {sizes['num_drafts']} "
        f"drafts x {sizes['num_runs']} runs; {sizes['rounds']} rounds on "
        f"{sizes['train_tasks']} tasks; {sizes['test']} locked tasks x "
        f"{sizes['test_runs']} runs"
    )


def _rows(results: Numbers) -> Iterator[tuple[str, ...]]:
    for name, row in results["rows"].items():
        above = "" if name == WER else interval(row["wer_above"], digits=2, sign=True)
        first = (LABELS[name], interval(row["success"], digits=2), above)
        if name == NONE:
            yield (*first, *("",) * (1 + len(MORE)))
            continue
        yield (
            *first,
            number(row["validation"][row["made"]], 2),
            row["made"],
            f"{row['parsed_by_depth'][-1]:.0%}",
            f"{row['calls']:.0f}",
            f"{row['tokens']:.0f}",
            f"{row['draft_tokens']:.0f}",
            number(row["seconds"], 0),
        )


def _counted(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{name} {count}" for name, count in counts.items()) or "none"


def _quoted(text: str) -> str:
    return "\n".join(f"> {line}".rstrip() for line in text.splitlines())


def curves(results: Numbers) -> Figure:
    """Training: what drafts came to, batch by batch."""
    figure = Figure(figsize=(7, 4), layout="tight")
    axis = figure.subplots()
    for name, style in (("success", "o-"), ("parsed", "s--"), ("mixed", "^:")):
        values = [
            float("nan") if x is None else x
            for x in results["training"]["curves"][name]
        ]
        axis.plot(range(1, len(values) + 1), values, style, label=name)
    axis.set_xlabel("batch")
    axis.xaxis.set_major_locator(MaxNLocator(integer=True, min_n_ticks=1))
    axis.set_ylabel("share of drafts")
    axis.set_ylim(-0.04, 1.04)
    axis.legend()
    return figure

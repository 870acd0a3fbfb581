"""What is said of a language model that reads rules, from its numbers alone."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator
from rich.table import Table

from experiments.joint_rules.report import SMOKE
from jerp.runs.cells import interval, markdown_table, number

__all__ = ["Numbers", "curves", "document", "sentences", "table"]

Numbers = Mapping[str, Any]

POLICIES = {
    "base": "cloned",
    "jerp": "JERP",
    "asked": "JERP, rules by itself",
    "similar": "JERP, retrieved",
    "prompted": "not trained",
}
TOLD = {
    "without": "none",
    "right": "right",
    "wrong": "wrong",
    "with": "its own",
    "plain": "none: plain",
    "plain-rules": "right: plain",
    "react": "none: ReAct",
    "reflexion": "none: Reflexion",
}
HEADER = ("policy", "rules in the prompt", "success", "does as right ones say")
MORE = ("does as wrong ones say", "steps", "no action", "instances", "episodes")


def table(results: Numbers) -> Table:
    """The first columns of the report's table."""
    found = Table(
        title=f"{SMOKE}\n" * results["smoke"] + _title(results),
        title_justify="left",
        box=None,
        padding=(0, 1, 0, 0),
    )
    for place, name in enumerate(HEADER):
        found.add_column(name, no_wrap=place < 2)
    for row in _rows(results):
        found.add_row(*row[: len(HEADER)])
    return found


def sentences(results: Numbers) -> Iterator[str]:
    """What the numbers rest on, and what became of the rules."""
    for label, found in results["differences"].items():
        yield f"Success, {label}: {interval(found, digits=2, sign=True)}."
    for part, run in results["runs"].items():
        yield _of_run(part, run)
    notes = results["notes"]
    yield (
        f"Reflexion wrote {notes['notes']} notes that could be used; not used: "
        f"{_counted(notes['rejected'])}."
    )


def document(results: Numbers) -> Iterator[str]:
    """The parts of the report in Markdown."""
    sizes = results["sizes"]
    yield "# A language model that reads rules"
    yield f"Made by `{results['command']}` with jerp {results['version']}."
    if results["smoke"]:
        yield f"**{SMOKE}**"
    yield (
        f"{_title(results)}. It shows that each part works, on few instances: "
        f"{sizes['held_out']} held-out ones of each of {len(sizes['types'])} types "
        f"({', '.join(sizes['types'])}), and one seed. Intervals: 95%, instances "
        "resampled; with fewer than about 20 of them they are too narrow."
    )
    yield markdown_table((*HEADER, *MORE), _rows(results))
    yield (
        "A step counts in *does as right ones say* if it is in a situation that the "
        "right rules of its instance speak of, whatever was in the prompt; likewise "
        "for wrong ones, which say of the same situations what is right in another "
        "type. *No action* is the share of a prompted model's answers that were none "
        "of the actions listed; each costs the step. Reflexion counts an instance as "
        f"solved if one of {sizes['trials']} trials was."
    )
    yield "\n".join(f"- {line}" for line in sentences(results))
    yield _cloning(results["cloning"], sizes)
    yield "![success while training](figures/curve.png)"
    yield "## Rules after training"
    yield from map(_pool, results["runs"], results["runs"].values())
    yield "## What it took"
    yield markdown_table(
        ("part", "peak memory", "compilations", "compile s"),
        (
            (
                part,
                f"{found['peak_memory_bytes'] / 2**20:.0f} MiB",
                str(found["compilations"]),
                number(found["compile_seconds"], 0),
            )
            for part, found in results["process"].items()
        ),
    )


def _cloning(cloned: Numbers, sizes: Numbers) -> str:
    if not sizes["demonstrations"]:
        return "The model begins as it is, without demonstrations."
    losses = ", ".join(number(x, 3) for x in cloned["loss"])
    return (
        f"Cloning: {sizes['demonstrations']} demonstrations of at most "
        f"{sizes['demonstration_steps']} steps of someone who does as the rules in the "
        f"prompt say, right or wrong, of which {number(cloned['success'], 2)} succeed; "
        f"loss by epoch: {losses}."
    )


def _title(results: Numbers) -> str:
    sizes = results["sizes"]
    return (
        f"house, {'large' if sizes['large'] else 'small'}, in words: "
        f"{results['policy']} with adapters of rank {sizes['rank']}, "
        f"{sizes['num_rules']} rules at most in a prompt, "
        f"{sizes['iterations']} iterations of {sizes['num_groups']} x "
        f"{sizes['group_size']} episodes of at most {sizes['num_steps']} steps"
    )


def _rows(results: Numbers) -> Iterator[tuple[str, ...]]:
    for row in results["rows"]:
        yield (
            POLICIES[row["part"]],
            TOLD[row["told"]],
            interval(row["success"], digits=2),
            *(_share(row.get(which)) for which in ("right", "wrong")),
            number(row["steps"], 1),
            number(row["unparsed"], 2) if "unparsed" in row else "",
            str(row["instances"]),
            str(row["episodes"]),
        )


def _share(found: Numbers | None) -> str:
    if found is None:
        return ""
    return f"{interval(found, digits=2)} of {found['num_steps']}"


def _of_run(part: str, run: Numbers) -> str:
    done = {op: counts[0] for op, counts in run["operations"].items()}
    dropped = sum(counts[1] for counts in run["operations"].values())
    held = sum(map(len, run["pool"].values()))
    rejected = _counted(run["rejected"])
    return (
        f"{POLICIES[part]}, {run['iterations']} iterations: operations applied "
        f"{_counted(done)}; without effect {dropped}; not used {rejected}"
        f"; {held} rules in the end, {run['references']} references; sampled and "
        f"trained log-probabilities differ by {run['sampler_gap']:.0e} at most."
    )


def _counted(counts: Mapping[str, int]) -> str:
    there = [f"{name} {count}" for name, count in counts.items() if count]
    return ", ".join(there) or "none"


def _pool(part: str, run: Numbers) -> str:
    rows = [
        (key, text, number(score, 0), str(uses), str(wins))
        for key, rules in run["pool"].items()
        for text, score, uses, wins in rules
    ]
    if not rows:
        return f"{POLICIES[part]}: none."
    header = ("type", "rule", "score", "uses", "wins")
    return f"{POLICIES[part]}:\n\n{markdown_table(header, rows)}"


def curves(results: Numbers) -> Figure:
    """Success in training of the parts that train."""
    figure = Figure(figsize=(7, 4), layout="tight")
    axis = figure.subplots()
    for part, run in results["runs"].items():
        axis.plot(run["curve"], "o-", label=POLICIES[part])
    axis.set_xlabel("iteration")
    axis.xaxis.set_major_locator(MaxNLocator(integer=True, min_n_ticks=1))
    axis.set_ylabel("success in training")
    axis.set_ylim(-0.04, 1.04)
    axis.legend()
    return figure

"""The report of the experiment, from its numbers alone."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from rich.table import Table

from experiments.joint_rules.config import ARMS
from experiments.joint_rules.figures import probable
from experiments.joint_rules.tables import (
    PAPER,
    along_rows,
    cell,
    following_rows,
    label,
    main_header,
    main_rows,
    removal_rows,
    rule_rows,
    types_header,
    untold_rows,
)
from jerp.runs.cells import markdown_table, number

__all__ = ["directions", "document", "stand_ins", "terminal_table"]

SMOKE = "Smoke run: it checks the plumbing; its numbers mean nothing."
PLACES = {"house": "house, small", "shop": "shop"}

Numbers = Mapping[str, Any]


def terminal_table(results: Numbers, world: str) -> Table:
    """Success on seen tasks, in 80 columns; the report has the rest."""
    found = results["worlds"][world]
    table = Table(
        title=f"{SMOKE}\n" * results["smoke"]
        + f"{_title(results, world)}; untold: seen tasks, its rules not in the prompt",
        title_justify="left",
        box=None,
        padding=(0, 1, 0, 0),
    )
    table.add_column("method")
    for column in ("seen", "- GRPO", "untold", "unseen"):
        table.add_column(column, no_wrap=True)
    base = found["base"]
    whole = [cell(base[s]["without"]["all"]) for s in ("seen", "unseen")]
    table.add_row("base", whole[0], "", "", whole[1])
    for arm, numbers in found["arms"].items():
        seen, unseen = (numbers["splits"][s] for s in ("seen", "unseen"))
        above = seen.get("above_grpo")
        table.add_row(
            label(arm),
            cell(seen["with"]["all"]),
            "" if above is None else cell(above, sign=True),
            number(seen["without"]["all"]["point"], 2) if ARMS[arm].rules else "",
            cell(unseen["with"]["all"]),
        )
    return table


def stand_ins() -> str:
    """What is no real thing in this experiment."""
    return (
        "Stand-ins: the worlds are simulated, the policy is a decoder of 0.1 M "
        "parameters that reads fields, and rules are written by the contrast "
        "reflector, without a language model."
    )


RULES = (
    "Rules: in the pools of all seeds after training. One instruction: so many are one "
    "imperative sentence that names no single thing. Agree: they say what the oracle "
    "mostly does, of those in whose situations it was often enough. As good: of those "
    "from whose situations it still gains something, they say a move from which the "
    "oracle goes on to as high a score in no more steps than by its own; where several "
    "ways are equally short it takes always the same one. Leaked: learned from a task "
    "that is evaluated. First ones left: of the rules that a pool began with."
)

REMOVAL = (
    "With rules, untold: success on seen tasks with an arm's rules in the prompt, and "
    "with none. A rule is absorbed when the upper 95% bound of what success on seen "
    "tasks loses without it is under 2 points: alone, one rule out of the pool at a "
    "time; in turn, the least needed first, for as long as all that are out lose less "
    "than that together. Without these: what success on unseen tasks changes by once "
    "all that are so absorbed are out. Rules only shows how many were never needed: "
    "its policy learned nothing."
)

UNTOLD = (
    "Probability of doing what a rule says, with no rules in the prompt, in the "
    "situations that an oracle that errs comes to; mean over so many rules. When new: "
    "at the last look before the rule was written. GRPO: the same situations and "
    "moves, by the policy that never saw a rule."
)

PAPER_SAYS = {
    "jerp": "+.037 in ALFWorld, +.079 in WebShop, without intervals",
    "jerp-frozen": "Fig. 3: the early gain stays, later training is flatter",
}
"""Of what is compared here, what the paper says; of the rest it says nothing."""


def directions(found: Numbers) -> Iterator[str]:
    """Each comparison as it was measured here, whichever way it falls."""
    for arm, numbers in found["arms"].items():
        varied = numbers["splits"]["seen"].get("above_varied")
        if varied is not None:
            says = PAPER_SAYS.get(arm, "nothing")
            seeds = ", ".join(number(x, 3, sign=True) for x in varied["by_seed"])
            by_seed = f", by seed {seeds}" if len(varied["by_seed"]) > 1 else ""
            yield (
                f"{label(arm)} - {label(ARMS[arm].varies)}: "
                f"{cell(varied, digits=3, sign=True)}{by_seed} (the paper: {says})."
            )


def document(results: Numbers) -> str:
    """The report in Markdown."""
    return "\n\n".join(_parts(results)) + "\n"


def _title(results: Numbers, world: str) -> str:
    sizes = results["sizes"]
    return (
        f"{PLACES[world]}: success on {sizes['held_out']} held-out tasks x "
        f"{sizes['samples']} episodes a seed, seeds: {results['seeds']}, each "
        f"{sizes['iterations']} iterations of {sizes['num_groups']} x "
        f"{sizes['group_size']} episodes"
    )


def _parts(results: Numbers) -> Iterator[str]:
    yield "# JERP: rules and a policy learned together"
    yield f"Made by `{results['command']}` with jerp {results['version']}."
    yield stand_ins()
    if results["smoke"]:
        yield f"**{SMOKE}**"
    for world in results["worlds"]:
        yield from _world_parts(results, world)


def _world_parts(results: Numbers, world: str) -> Iterator[str]:
    found = results["worlds"][world]
    yield f"## {world.capitalize()}"
    yield (
        f"{_title(results, world)}. Intervals: 95%, tasks of all seeds resampled; what "
        "policies of different seeds differ by is not in them. Starred types: what "
        "only their rules say was never in a prompt of the cloned demonstrations. "
        "Score: what an episode comes to by the world's own count, from 0 to 1, part "
        "of which may be had without success. - GRPO: success less that of GRPO on the "
        "same tasks."
    )
    splits = next(iter(found["arms"].values()))["splits"]
    for split in splits:
        name = f"{split} tasks" if split != "train" else "training tasks"
        yield f"### Success on {name}, with its rules in the prompt"
        yield markdown_table(main_header(found), main_rows(found, split))
    if told := [f"- {line}" for line in directions(found)]:
        yield "### Each comparison, seen tasks"
        yield "\n".join(told)
    if world == "house":
        yield "### What the paper has"
        yield (
            "Success in ALFWorld, percent, of a language model "
            "(arXiv:2606.27136, Table II): another household, where directions may be "
            "compared and numbers may not."
        )
        yield _paper_table()
    yield "### Does the base follow a rule?"
    header = ["prompt", *types_header(found), "all"]
    yield markdown_table(header, following_rows(found, "seen"))
    yield "### Success while training, seen tasks"
    yield markdown_table(*along_rows(found))
    yield f"![success while training](figures/{world}-curves.png)"
    yield from _rule_parts(results, world)


def _paper_table() -> str:
    header = ["method", "Pick", "Look", "Clean", "Heat", "Cool", "Pick2", "all"]
    rows = [[label(arm), *(f"{x:.1f}" for x in row)] for arm, row in PAPER.items()]
    return markdown_table(header, rows)


def _rule_parts(results: Numbers, world: str) -> Iterator[str]:
    found = results["worlds"][world]
    yield "### The rules"
    yield RULES
    yield markdown_table(*rule_rows(found))
    header, rows = removal_rows(found)
    # Of an instance's rules nothing of the kind is measured.
    if rows:
        yield "### Absorption: what goes without the rules"
        yield REMOVAL
        yield markdown_table(header, rows)
        yield from _untold_parts(found, world)
        yield from _pools(results, world)


def _untold_parts(found: Numbers, world: str) -> Iterator[str]:
    header, rows = untold_rows(found)
    if rows:
        yield "### Absorption: what is done untold"
        yield UNTOLD
        yield markdown_table(header, rows)
    if probable(found):
        figure = f"figures/{world}-absorption.png"
        yield f"![probability of what rules say, untold]({figure})"


def _pools(results: Numbers, world: str) -> Iterator[str]:
    """As text, before and after."""
    yield "### Pools before training"
    if results["start_pool"]:
        yield "\n".join(_listed(results["start_pool"]))
    else:
        yield "All were empty."
    for arm, numbers in results["worlds"][world]["arms"].items():
        if "rules" not in numbers:
            continue
        yield f"### Pool of {label(arm)}, first seed, after training"
        told = {
            kind: [_history(rule) for rule in rules]
            for kind, rules in numbers["rules"]["pools"].items()
        }
        yield "\n".join(_listed(told))
        if wrong := numbers["rules"]["disagree"]:
            yield "Not what the oracle mostly does, of all seeds:"
            yield "\n".join(f"- {text}" for text in wrong)


def _listed(pools: Mapping[str, list[str]]) -> Iterator[str]:
    for kind, texts in pools.items():
        yield f"- {kind}"
        yield from (f"  - {text}" for text in texts)


def _history(rule: Numbers) -> str:
    return (
        f"{rule['score']:g}: {rule['text']} (born {rule['born']}, {rule['wins']} of "
        f"{rule['uses']} episodes succeeded)"
    )

"""Tables of the experiment, from its numbers alone."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from experiments.joint_rules.config import ARMS
from jerp.runs.cells import interval, number

__all__ = [
    "PAPER",
    "along_rows",
    "following_rows",
    "label",
    "main_header",
    "main_rows",
    "removal_rows",
    "rule_rows",
]

PAPER = {
    "rloo": (71.5, 68.3, 61.2, 34.4, 41.0, 19.9, 48.7),
    "grpo": (78.5, 73.3, 50.7, 62.7, 51.7, 33.9, 57.8),
    "jerp": (72.2, 69.8, 65.4, 67.4, 60.1, 42.5, 61.5),
}
"""Success in ALFWorld by type and in all, percent (arXiv:2606.27136, Table II)."""

Numbers = Mapping[str, Any]


def label(arm: str) -> str:
    """An arm's name in tables."""
    return ARMS[arm].label


def main_header(found: Numbers) -> list[str]:
    """The columns of the paper's Table II, and what is above GRPO."""
    starred = [f"{kind}*" if kind in found["held"] else kind for kind in found["types"]]
    return ["method", *starred, "all", "- GRPO", "score", "by seed"]


def main_rows(found: Numbers, split: str) -> Iterator[list[str]]:
    """Success of the base and of every arm, with its rules in the prompt."""
    base = found["base"][split]["without"]
    yield ["base", *_points(base), interval(base["all"], digits=2), "", "", ""]
    for arm, numbers in found["arms"].items():
        part = numbers["splits"][split]
        told = part["with"]
        above = part.get("above_grpo")
        yield [
            label(arm),
            *_points(told),
            interval(told["all"], digits=2),
            "" if above is None else interval(above, digits=2, sign=True),
            number(part["score"]["point"], 2),
            " ".join(number(x, 2) for x in told["by_seed"]),
        ]


def _points(told: Numbers) -> list[str]:
    return [interval(one, digits=2) for one in told["types"]]


def following_rows(found: Numbers, split: str) -> Iterator[list[str]]:
    """What right and wrong rules in the prompt do to the base."""
    names = {"without": "no rules", "right": "right rules", "wrong": "wrong rules"}
    for told, name in names.items():
        part = found["base"][split][told]
        yield [name, *_points(part), interval(part["all"], digits=2)]


def along_rows(found: Numbers) -> tuple[list[str], list[list[str]]]:
    """Success on seen tasks while training, with rules and without."""
    first = next(iter(found["arms"].values()))["along"]["iterations"]
    header = ["arm", "rules in the prompt", *(f"{n:.0f}" for n in first)]
    rows = []
    for arm, numbers in found["arms"].items():
        # Without rules of its own an arm is the same in both.
        kinds = ("with", "without") if ARMS[arm].rules else ("without",)
        for told in kinds:
            curve = numbers["along"][told]
            said = "yes" if told == "with" else "no"
            rows.append([label(arm), said, *(number(x, 2) for x in curve)])
    return header, rows


def rule_rows(found: Numbers) -> tuple[list[str], list[list[str]]]:
    """What the rules of every arm are, all seeds together."""
    header = ["arm", "active rules", "one imperative sentence", "agree with the oracle"]
    header += ["learned from evaluated tasks", "of rules there at first, left"]
    rows = []
    for arm, numbers in found["arms"].items():
        rules = numbers.get("rules")
        if rules is None:
            continue
        leaked = sum(part["leaked_rules"] for part in numbers["splits"].values())
        injected = rules.get("injected", {"start": 0, "left": 0})
        rows.append(
            [
                label(arm),
                str(rules["active"]),
                _share(rules["imperative"], rules["active"]),
                _share(rules["agree"], rules["judged"]),
                str(leaked),
                _share(injected["left"], injected["start"]),
            ]
        )
    return header, rows


def removal_rows(found: Numbers) -> tuple[list[str], list[list[str]]]:
    """How far policies have made their rules their own."""
    header = ["arm", "with rules", "without", "difference", "rules tried"]
    header += ["absorbed", "without all of these", "retired in turn"]
    header += ["without all of those", "done untold: when new", "in the end"]
    header += ["by GRPO, in the end"]
    rows = []
    for arm, numbers in found["arms"].items():
        rules, seen = numbers.get("rules"), numbers["splits"]["seen"]
        if rules is None or "following" not in rules:
            continue
        removal, following = rules.get("removal", {}), rules["following"]
        untaught = following.get("untaught")
        rows.append(
            [
                label(arm),
                number(seen["with"]["all"]["point"], 2),
                number(seen["without"]["all"]["point"], 2),
                interval(seen["rules_add"], digits=2, sign=True),
                str(removal.get("rules", 0)),
                str(removal.get("absorbed", 0)),
                _change(removal.get("retiring_changes")),
                str(removal.get("in_turn", 0)),
                _change(removal.get("retiring_in_turn_changes")),
                number(following.get("at_birth"), 2),
                number(following.get("now"), 2),
                "-" if untaught is None else number(untaught[-1], 2),
            ]
        )
    return header, rows


def _change(changes: Numbers | None) -> str:
    return "-" if changes is None else interval(changes, digits=3, sign=True)


def _share(part: int, of: int) -> str:
    return f"{part} of {of}" + (f" ({part / of:.0%})" if of else "")

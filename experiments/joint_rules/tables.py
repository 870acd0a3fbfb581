"""Tables of the experiment, from its numbers alone."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from experiments.joint_rules.config import ARMS
from jerp.runs.cells import interval, number

__all__ = [
    "PAPER",
    "along_rows",
    "cell",
    "following_rows",
    "label",
    "main_header",
    "main_rows",
    "num_seeds",
    "removal_rows",
    "rule_rows",
    "types_header",
    "untold_rows",
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


def cell(
    value: Mapping[str, float | None], *, digits: int = 2, sign: bool = False
) -> str:
    """`point [low, high]`, without what nobody has: of one task there are no limits."""
    if value["point"] is None or value["low"] is None:
        return number(value["point"], digits, sign=sign)
    return interval(value, digits=digits, sign=sign)


def types_header(found: Numbers) -> list[str]:
    """The types, those whose own rules were in no demonstration with a star."""
    return [f"{kind}*" if kind in found["held"] else kind for kind in found["types"]]


def num_seeds(found: Numbers) -> int:
    """Seeds of a world's numbers."""
    return len(found["base"]["seen"]["without"]["by_seed"])


def main_header(found: Numbers) -> list[str]:
    """The columns of the paper's Table II, and what is above GRPO."""
    header = ["method", *types_header(found), "all", "- GRPO", "score"]
    return header + ["by seed"] * (num_seeds(found) > 1)


def main_rows(found: Numbers, split: str) -> Iterator[list[str]]:
    """Success of the base and of every arm, with its rules in the prompt."""
    seeds = num_seeds(found) > 1
    if split in found["base"]:
        base = found["base"][split]["without"]
        blank = ["", ""] + [""] * seeds
        yield ["base", *_points(base), cell(base["all"]), *blank]
    for arm, numbers in found["arms"].items():
        part = numbers["splits"][split]
        told, above = part["with"], part.get("above_grpo")
        by_seed = " ".join(number(x, 2) for x in told["by_seed"])
        yield [
            label(arm),
            *_points(told),
            cell(told["all"]),
            "" if above is None else cell(above, sign=True),
            number(part["score"]["point"], 2),
            *[by_seed] * seeds,
        ]


def _points(told: Numbers) -> list[str]:
    return [cell(one) for one in told["types"]]


def following_rows(found: Numbers, split: str) -> Iterator[list[str]]:
    """What right and wrong rules in the prompt do to the base."""
    names = {"without": "no rules", "right": "right rules", "wrong": "wrong rules"}
    for told, name in names.items():
        part = found["base"][split][told]
        yield [name, *_points(part), cell(part["all"])]


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
    header = ["arm", "rules", "one instruction", "agree", "as good", "leaked"]
    header += ["first ones left"]
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
                _share(rules["as_good"], rules["tried"]),
                str(leaked),
                _share(injected["left"], injected["start"]),
            ]
        )
    return header, rows


def removal_rows(found: Numbers) -> tuple[list[str], list[list[str]]]:
    """How far policies do without their rules, all of them or some."""
    header = ["arm", "with rules", "untold", "difference", "rules tried"]
    header += ["absorbed alone", "without these", "absorbed in turn", "without these"]
    rows = []
    for arm, rules in _measured(found):
        seen, removal = found["arms"][arm]["splits"]["seen"], rules.get("removal", {})
        rows.append(
            [
                label(arm),
                number(seen["with"]["all"]["point"], 2),
                number(seen["without"]["all"]["point"], 2),
                cell(seen["rules_add"], sign=True),
                str(removal.get("rules", 0)),
                str(removal.get("absorbed", 0)),
                _change(removal.get("retiring_changes")),
                str(removal.get("in_turn", 0)),
                _change(removal.get("retiring_in_turn_changes")),
            ]
        )
    return header, rows


def untold_rows(found: Numbers) -> tuple[list[str], list[list[str]]]:
    """How probable what rules say is without them, of arms that have such rules."""
    header = ["arm", "rules", "when new", "in the end", "GRPO, in the end"]
    rows = []
    for arm, rules in _measured(found):
        following = rules["following"]
        if not following["rules"]:
            continue
        untaught = following["untaught"]
        rows.append(
            [
                label(arm),
                str(following["rules"]),
                number(following["at_birth"], 2),
                number(following["now"], 2),
                "-" if untaught is None else number(untaught[-1], 2),
            ]
        )
    return header, rows


def _measured(found: Numbers) -> Iterator[tuple[str, Numbers]]:
    """Arms of whose rules it is known how far they are needed."""
    for arm, numbers in found["arms"].items():
        if "following" in numbers.get("rules", {}):
            yield arm, numbers["rules"]


def _change(changes: Numbers | None) -> str:
    return "-" if changes is None else cell(changes, digits=3, sign=True)


def _share(part: int, of: int) -> str:
    return f"{part} of {of}" + (f" ({part / of:.0%})" if of else "")

"""What the static control could show at most, from a variant's results alone."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from jerp.estimators.significance import holm
from jerp.estimators.verdict import ALPHA
from jerp.runs.pass_surface.settings import number_text
from jerp.runs.pass_surface.tables import p_value

__all__ = ["CONTROL", "control_lines"]

CATEGORY = "A"

CONTROL = (
    "A is the static control: trained by no arm, and without anything to look up. An "
    "expansion there would say that more than the use of look-ups was learned. It can "
    "regress by sharpening alone: where runs become alike, a question that was solved "
    "now and then in k runs is solved no more, and nothing need be forgotten."
)


def control_lines(document: Mapping[str, Any]) -> list[str]:
    """How many questions the arms could gain there, and whether that would be enough.

    Args:
      document: a variant's, of `jerp.runs.pass_surface.analysis`, the base first.

    Returns:
      A sentence for each comparison with the base.
    """
    names = [part["name"] for part in document["parts"]]
    place = names.index(CATEGORY)
    lines = []
    for pair, found in enumerate(document["parts"][place]["comparisons"]):
        if found["first"] == 0:
            tests = [
                part["comparisons"][pair]["verdict"]["p_up"]
                for part in document["parts"]
            ]
            lines.append(_line(found, tests, place, document["ks"][-1]))
    return lines


def _line(found: Mapping[str, Any], tests: list[Any], place: int, k: int) -> str:
    counts = found["boundary"][-1]
    room = counts["gains"] + counts["neither"]
    number = room + counts["losses"] + counts["both"]
    # Exact and one-sided, of all of them gained and none lost; None is no test.
    p_up = np.array([np.nan if p is None else p for p in tests], np.float32)
    p_up[place] = 0.5**room
    least = float(holm(p_up)[place])
    shown = p_value(least)
    says = (
        "even the largest possible count cannot reach significance"
        if least >= ALPHA
        else "the largest possible count would be significant"
    )
    return (
        f"{CATEGORY}, {found['second_label']} against {found['first_label']}: room for "
        f"gains is {room} of {number} questions, those that the base does not solve in "
        f"{k} runs; {says} (all gained and none lost: p {shown} after Holm, to be "
        f"under {number_text(ALPHA)})"
    )

"""What the static control can show at most, and what the study's report says of it."""

import pytest

from experiments.pass_surface.analysis import verdict_rows
from experiments.pass_surface.control import control_lines
from experiments.pass_surface.costs import COST_NOTES
from experiments.pass_surface.verdict_report import how_many


def variant(gains, losses, neither, both, others=(1.0, 1.0)):
    """Of three categories and one pair of agents; `others` are p-values of B and C."""

    def part(name, p_up, counts):
        pair = {
            "first": 0,
            "first_label": "base",
            "second_label": "GRPO",
            "boundary": [{"gains": 99}, {**counts, "crossing_k": 0.0}],
            "verdict": {"p_up": p_up},
        }
        return {"name": name, "comparisons": [pair]}

    counts = {"gains": gains, "losses": losses, "neither": neither, "both": both}
    parts = [part("A", 0.5, counts)]
    parts += [part(n, p, counts) for n, p in zip("BC", others, strict=True)]
    return {"ks": [1, 64], "parts": parts}


@pytest.mark.parametrize(
    ("room", "others", "p", "enough"),
    [
        # By hand: 1/2 to the power of the room, three times where A comes first.
        (5, (1.0, 1.0), ".094", False),
        (6, (1.0, 1.0), ".047", True),
        # Where B and C are smaller, A's is adjusted by nothing.
        (5, (0.001, 0.001), ".031", True),
        (4, (0.001, None), ".062", False),
        (0, (None, None), "1.000", False),
    ],
)
def test_a_control_with_too_little_room_says_so(room, others, p, enough):
    gains = min(room, 2)
    [line] = control_lines(variant(gains, 1, room - gains, 100 - room - 1, others))
    assert line.startswith("A, GRPO against base: ")
    assert f"room for gains is {room} of 100 questions" in line
    assert f"p {p} after Holm" in line
    assert ("cannot reach significance" in line) is not enough


def test_only_comparisons_with_the_base_have_that_room():
    document = variant(1, 0, 9, 90)
    for part in document["parts"]:
        part["comparisons"].append({**part["comparisons"][0], "first": 1})
    assert len(control_lines(document)) == 1


def test_verdicts_of_cut_runs_say_whose_they_are():
    variants = {name: variant(1, 0, 9, 90) for name in ("nested", "rerun-hidden")}
    rows = verdict_rows(variants)
    assert [row["variant"] for row in rows] == ["rerun-hidden"] * 3 + ["nested"] * 3
    assert [row["same_runs_as"] for row in rows] == [None] * 3 + ["rerun-hidden"] * 3
    said = how_many({"verdicts": rows})
    assert "There are 6 verdicts here, 3 without" in said and "over the 3 cat" in said


def test_costs_say_what_is_free_and_what_their_limits_lack():
    notes = " ".join(COST_NOTES)
    assert "expert that SFT learns from is free" in notes
    assert "no variance between seeds" in notes

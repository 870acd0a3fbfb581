"""The rubric of the knowledge-work domain, line by line."""

from dataclasses import replace

import pytest

from jerp.domains.controlled.knowledge_work_rubric import (
    PUBLIC,
    WEIGHTS,
    contradicted,
    criteria,
    missing_items,
    parse_draft,
    write_draft,
)
from tests.domains.controlled.knowledge_work_task import TASK

BUDGET, MANAGER = "- budget: 340 crowns [2]", "- manager: Oda Holm [2]"
COLOUR = "- colour: red [3]"
ALL = (1, 2, 3)


def judged(*lines, hand=ALL):
    found = criteria(TASK, "\n".join(lines), hand)
    return {c.name: round(3 * c.score, 6) for c in found}


def missing(*lines, hand=ALL):
    return missing_items(TASK, "\n".join(lines), hand)


def test_weights_sum_to_one_and_figures_are_at_least_half():
    assert sum(WEIGHTS.values()) == pytest.approx(1.0)
    assert WEIGHTS["figures"] >= 0.5 and set(PUBLIC) < set(WEIGHTS)
    assert all(c.public == (c.name in PUBLIC) for c in criteria(TASK, "", ALL))


@pytest.mark.parametrize(
    ("draft", "lines"),
    [
        (BUDGET, [("budget", "340 crowns", 2)]),
        (" -  Budget : [2] 340  crowns.", [("budget", "340 crowns", 2)]),
        ("- budget: 340", [("budget", "340", None)]),
        ("- budget: 340 [1] [2]", [("budget", "340", None)]),
        ("- budget: 340 [1234]", [("budget", "340", None)]),
        ("- budget: 1\n- budget: 2", [("budget", "1", None)]),
        ("-: x", [("", "x", None)]),
        ("budget: 340\nno line", []),
        ("- no colon", []),
        ("", []),
        (
            "- a: 1\n- b: 2\n- c: 3\n- d: 4",
            [("a", "1", None), ("b", "2", None), ("c", "3", None)],
        ),
    ],
)
def test_parse_draft(draft, lines):
    assert list(parse_draft(draft)) == lines


def test_a_written_briefing_is_read_back():
    draft = f"{BUDGET}\n- manager: Oda\n- colour: [2\n"
    assert parse_draft(write_draft(parse_draft(draft))) == parse_draft(draft)


def test_a_right_briefing_has_all():
    assert judged(BUDGET, MANAGER, COLOUR) == dict.fromkeys(WEIGHTS, 3)
    assert missing(BUDGET, MANAGER, COLOUR) == ()


@pytest.mark.parametrize(
    ("line", "scores"),
    [
        # A right figure with a wrong source, with no source, from a note not in hand.
        ("- budget: 340 crowns [1]", {"figures": 3, "sources": 2, "supported": 0}),
        ("- budget: 340 crowns", {"figures": 3, "present": 3, "supported": 0}),
        ("- budget: 340 [9]", {"figures": 3, "sources": 2, "supported": 0}),
        # More words than the notes have, too many of them, another kind.
        ("- budget: 340 million [2]", {"figures": 3, "sources": 3, "supported": 0}),
        ("- budget: it is about 340 crowns [2]", {"figures": 2, "present": 2}),
        ("- budget: crowns [2]", {"figures": 2, "present": 2, "supported": 2}),
        # The outdated value, alone and beside the right one; a figure within another.
        ("- budget: 90 [1]", {"figures": 2, "sources": 2, "current": 2}),
        ("- budget: 340 or 90 [2]", {"figures": 2, "sources": 2}),
        # A second value beside the right one: of the kind, of another, known to nobody.
        ("- budget: 340 77 [2]", dict.fromkeys(WEIGHTS, 2) | {"supported": 0}),
        ("- budget: 340 x77 [2]", {"figures": 2}),
        ("- budget: 340 red [2]", {"figures": 2}),
        ("- budget: 340 May [2]", {"figures": 2}),
        ("- budget: 340 holm [2]", {"figures": 2}),
        ("- budget: 340, 340 crowns [2]", {"figures": 3, "supported": 3}),
        ("- budget: 3401 [2]", {"figures": 2}),
        # What was not asked for.
        ("- visitors: 55 [3]", {"figures": 2, "supported": 2}),
        ("- visitors: 56 [3]", {"figures": 2, "supported": 0}),
        ("", {"figures": 2, "sources": 2, "present": 2, "supported": 2, "current": 2}),
    ],
)
def test_rubric_line_by_line(line, scores):
    got = judged(line, MANAGER, COLOUR)
    assert {name: got[name] for name in scores} == scores


@pytest.mark.parametrize(
    ("line", "right"),
    [
        ("- manager: led by Oda Holm [2]", 1),
        ("- manager: Oda Holm Works [2]", 1),
        ("- manager: Oda Holm Jo Doe [2]", 0),
        ("- manager: Oda Holm anna tell [2]", 0),
        ("- manager: Anna Oda Holm [2]", 0),
        ("- manager: Oda Holm 55 [3]", 0),
        ("- colour: dark red [3]", 1),
        ("- colour: red green [3]", 0),
        ("- colour: red oak [3]", 0),
        ("- colour: red 340 [3]", 0),
    ],
)
def test_a_line_with_a_second_value_is_not_right(line, right):
    assert judged(line)["figures"] == right


@pytest.mark.parametrize(
    ("text", "right"),
    [
        ("4 May", 1),
        ("4 May 2023", 1),
        ("4 May, 9 June", 0),
        ("4 May June", 0),
        ("4 May 340", 0),
        ("3 4 May", 0),
        ("4 May 20234", 0),
    ],
)
def test_the_year_that_is_added_to_a_date_is_no_second_date(text, right):
    values = ("4 May", "9 June", 2)
    hidden = dict(zip(("figures", "rivals", "sources"), values, strict=True))
    hidden = {name: {"opening": value} for name, value in hidden.items()}
    payload = {**TASK.payload, "sections": {"opening": "date"}, "hidden": hidden}
    task = replace(TASK, payload=payload)
    (figures, *_) = criteria(task, f"- opening: {text} [2]", ALL)
    assert round(3 * figures.score) == right


def test_nothing_pays_without_a_right_figure():
    wrong = ("- budget: 90 crowns [1]", "- manager: Anna Tell [1]", "- colour: blue")
    assert set(judged(*wrong).values()) == {0}
    assert set(judged("").values()) == {0}


def test_what_is_cited_must_be_in_hand():
    assert judged(BUDGET, MANAGER, hand=(1,))["supported"] == 0
    assert "supported: budget" in missing(BUDGET, MANAGER, hand=(1,))


@pytest.mark.parametrize(
    ("line", "items"),
    [
        ("", ["present", "supported", "current"]),
        ("- budget: soon [2]", ["present", "supported", "current"]),
        ("- budget: 350 crowns [2]", ["supported", "current"]),
        ("- budget: 90 crowns [1]", ["current"]),
        ("- budget: 55 [3]", []),
    ],
)
def test_items_build_on_one_another(line, items):
    found = missing(line, MANAGER, COLOUR)
    assert found == tuple(f"{item}: budget" for item in items)


@pytest.mark.parametrize(
    ("kind", "good", "bad"),
    [
        ("number", "7 men", "seven"),
        ("date", "2 May", "2 maybe"),
        ("date", "May 2", "May"),
        ("name", "Anna Tell", "Anna"),
        ("word", "dark red", "red 2"),
    ],
)
def test_a_line_is_of_its_sections_kind(kind, good, bad):
    payload = {**TASK.payload, "sections": {"budget": kind}}
    task = type(TASK)(TASK.key, TASK.domain, 0, TASK.prompt, payload)
    assert "present: budget" not in missing_items(task, f"- budget: {good}", ALL)
    assert "present: budget" in missing_items(task, f"- budget: {bad}", ALL)


@pytest.mark.parametrize(
    ("lines", "hand", "sections"),
    [
        ((BUDGET, MANAGER, COLOUR), ALL, ()),
        # In the notes, but the sentence that names the section says something else.
        (("- budget: 55", MANAGER, COLOUR), ALL, ("budget",)),
        (("- budget: 90 crowns", MANAGER, COLOUR), ALL, ("budget",)),
        # No sentence names the manager: any that holds the words will do.
        ((BUDGET, "- manager: Anna Tell", COLOUR), ALL, ()),
        ((BUDGET, "- manager: Anna Holm", COLOUR), ALL, ("manager",)),
        ((BUDGET, MANAGER, COLOUR), (1, 2), ("colour",)),
        ((BUDGET,), ALL, ("manager", "colour")),
    ],
)
def test_the_cross_check_compares_words(lines, hand, sections):
    assert contradicted(TASK, "\n".join(lines), hand) == sections

"""What a rule may be, when it is one instruction, and how it is quoted."""

import unicodedata
from typing import get_args

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from jerp.errors import InputError
from jerp.rules.instructions import (
    InstructionFault,
    imperative_fault,
    instruction_fault,
)
from jerp.rules.text import (
    check_rule_text,
    plain_line,
    quoted,
    rule_text_fault,
    unquoted,
)

SEEDED = settings(deadline=None, derandomize=True)
MARKUP = set("&<>[]{}|#`\\*")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Heat it.", "Heat it."),
        (" \t Heat \u00a0 it.\r\n", "Heat it."),
        ("Go to the cafe\u0301.", "Go to the caf\u00e9."),
        ("Keep «this» & <that> | as it is.", "Keep «this» & <that> | as it is."),
        ("熱くする.", "熱くする."),
    ],
)
def test_a_text_is_brought_into_one_form(text, expected):
    assert check_rule_text(text) == expected
    assert check_rule_text(expected) == expected


@pytest.mark.parametrize(
    ("text", "fault", "reason"),
    [
        ("", "empty", "some words"),
        (" \n ", "empty", "some words"),
        ("Heat it.\nCool it.", "lines", "one line"),
        ("Heat it.\u2028Cool it.", "lines", "one line"),
        ("Heat it.\x85Cool it.", "lines", "one line"),
        ("Heat\x00 it.", "characters", "are seen"),
        ("Heat\x1b[2J it.", "characters", "are seen"),
        ("Heat\x1fit.", "characters", "are seen"),
        ("Heat \u202ethgir morf.", "characters", "stand where they are written"),
        ("Heat \u2066it.", "characters", "are seen"),
        ("He\u200bat it.", "characters", "are seen"),
        ("He\u00adat it.", "characters", "are seen"),
        ("Heat it\ufe0f.", "characters", "are seen"),
        ("Heat it\U000e0041.", "characters", "are seen"),
        ("Heat it\U000e0141.", "characters", "are seen"),
        ("Heat \ud800it.", "characters", "are seen"),
        ("Heat \ue000it.", "characters", "are seen"),
        ("Heat it", "unfinished", "a full stop"),
        ("Heat it...", "unfinished", "a full stop"),
        (".", "unfinished", "a full stop"),
        ("a" * 200 + ".", "long", "at most 200 characters and 40 words"),
        ("a " * 40 + "b.", "long", "at most 200 characters and 40 words"),
        ("a" * 10**6 + ".", "long", "and 999941 characters more"),
    ],
)
def test_what_no_rule_may_be_is_refused_with_its_reason(text, fault, reason):
    assert rule_text_fault(text) == fault
    with pytest.raises(InputError, match=reason):
        check_rule_text(text)


def test_the_limits_are_of_the_text_in_its_one_form():
    assert check_rule_text("a" * 199 + ".") and check_rule_text("a " * 39 + "b.")
    assert check_rule_text("a" + " " * 300 + "b.") == "a b."
    with pytest.raises(InputError, match="at most 4 characters"):
        check_rule_text("Heat.", max_chars=4)
    with pytest.raises(InputError, match="and 1 words"):
        check_rule_text("Heat it.", max_words=1)
    assert check_rule_text("Heat it.", max_words=2)
    with pytest.raises(InputError, match="max_words: expected a whole number"):
        check_rule_text("Heat it.", max_words=0)
    with pytest.raises(InputError, match="expected a text, got bytes"):
        check_rule_text(b"Heat it.")


@SEEDED
@given(st.text(max_size=60))
@example("\u2000a\u0308.")
def test_the_form_is_reached_in_one_step(text):
    fault = rule_text_fault(text)
    if fault is None:
        found = check_rule_text(text)
        assert check_rule_text(found) == found
        assert unicodedata.is_normalized("NFC", found)
        assert len(found.splitlines()) == 1 and "  " not in found
    else:
        with pytest.raises(InputError):
            check_rule_text(text)


@pytest.mark.parametrize(
    "text",
    [
        "Heat it.",
        "When it is cold, go to the microwave.",
        "If the cabinet is closed, first open it.",
        "Never put it down.",
        "Do not put it down.",
        "Don't put it down.",
        "Before you leave, always close it.",
        "To heat it, locate a microwave.",
    ],
)
def test_an_instruction_has_no_fault(text):
    assert imperative_fault(text) is None and instruction_fault(text) is None


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("The mug is cold.", "begins with 'The'"),
        ("When it is cold, the mug is heavy.", "begins with 'the'"),
        ("When it is cold go there.", "a comma after a condition"),
        ("When, go there.", "a comma after a condition"),
        ("When it is cold,.", "begins with ''"),
        ("Heat it. Cool it.", "one sentence, got 2"),
        ("Is it cold? Heat it.", "one sentence, got 2"),
        ("Heat it; cool it.", "one sentence, got 2"),
        ("Heat it", "one sentence, got 0"),
        ("", "one sentence, got 0"),
        ("Heat it!", "one sentence, got 1"),
        ("Take mug 12.", "no single instance, got '12'"),
        ("Go " + "on " * 25 + "now.", "at most 25 words, got 27"),
    ],
)
def test_what_is_no_instruction_is_told_why(text, reason):
    assert reason in imperative_fault(text)
    assert instruction_fault(text) in get_args(InstructionFault)


def test_a_world_says_what_names_an_instance_and_which_verbs_it_has():
    text = "Go to the blue cabinet."
    assert imperative_fault(text) is None
    found = imperative_fault(text, instance_patterns=("blue cab.*t",))
    assert found == "expected no single instance, got 'blue cabinet'"
    assert "begins with 'Go'" in imperative_fault(text, verbs=("take",))
    assert imperative_fault("Brew tea.", verbs=("brew",)) is None
    assert "got 5" in imperative_fault(text, max_words=4)


@SEEDED
@given(st.text(max_size=40))
@example("&lt;&amp;lt;&xFF1C;&x3C;&zz;\uff1c\u226e\ufe47")
def test_a_quotation_has_no_markup_and_is_read_back(text):
    found = quoted(text)
    assert unquoted(found) == text
    assert not (MARKUP - {"&"}) & set(unicodedata.normalize("NFKD", found))


@pytest.mark.parametrize(
    "text", ["&", "&zz;", "&x3C;", "&x110000;", "&xFFFFFFF;", "&;"]
)
def test_what_was_never_quoted_is_left_alone(text):
    assert unquoted(text) == text


def test_a_line_beside_a_rule_is_plain_too():
    assert plain_line("note", " seen\u00a0 by hand ", max_chars=12) == "seen by hand"
    assert plain_line("note", "", max_chars=1) == ""
    for text, reason in (
        ("a\nb", "one line"),
        ("a\u202eb", "are seen"),
        ("a" * 13, "at most 12 characters, got 13"),
        ("a" + " " * 300 + "b", "at most 12 characters, got 302"),
        (5, "expected a text, got int"),
    ):
        with pytest.raises(InputError, match=f"note: .*{reason}"):
            plain_line("note", text, max_chars=12)

"""Retrieval of notes: relevant, ordered, deterministic."""

import pytest

from jerp.domains.controlled.coding_notes import NOTES, best_notes


@pytest.mark.parametrize(
    ("query", "part"),
    [
        ("mirror Return s reversed, followed by '!'.", "s[::-1]"),
        ("peak Return the largest item of xs, plus 3.", "max(xs)"),
        ("digit_sum Return the sum of the digits of m, plus 2.", "str(n)"),
        ("count_letter Return how many times the letter 'a' occurs in s.", "s.count"),
    ],
)
def test_the_fitting_idiom_comes_first(query, part):
    assert part in best_notes(query, 1)[0]


def test_a_longer_ladder_begins_with_the_shorter_one():
    query = "sum of the items"
    assert best_notes(query, 3)[:1] == best_notes(query, 1)


def test_nothing_in_common_gives_the_first_notes():
    shown = best_notes("zzz qqq", 2)
    assert [note.split("\n")[0][2:] for note in shown] == [n[0] for n in NOTES[:2]]


def test_a_note_is_shown_as_code():
    assert best_notes("n plus 20", 1) == (
        "# Return n plus 20.\ndef example(n):\n    return n + 20",
    )

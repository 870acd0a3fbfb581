"""The public rubric by hand-made code."""

import pytest

from jerp.domains.controlled.coding_rubric import MAX_CHARACTERS, public_criteria

GOOD = "def f(a, b):\n    return a + b"


def failing(code: str) -> list[str]:
    return [c.name for c in public_criteria(code, "f", 2) if c.score < 1]


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        (GOOD, []),
        ("import math\n" + GOOD, []),
        ("", ["defines"]),
        ("def f(a, b):\n    return a +", ["parses", "defines", "plain"]),
        ("def f(a):\n    return a", ["defines"]),
        ("def g(a, b):\n    return a", ["defines"]),
        (GOOD + "\n" + GOOD, ["defines"]),
        ("import os\n" + GOOD, ["plain"]),
        ("from os import path\n" + GOOD, ["plain"]),
        ("def f(a, b):\n    return open(a)", ["plain"]),
        ("def f(a, b):\n    return eval(a)", ["plain"]),
        ("def f(a, b):\n    return __import__('os')", ["plain"]),
        ("def f(a, b):\n    return a.__class__", ["plain"]),
        (GOOD + " " * MAX_CHARACTERS, ["short"]),
        ("def f(a, b):\n    return '\\d'", []),
        ("def f(a, b):\n    return \0", ["parses", "defines", "plain"]),
    ],
)
def test_criteria(code, expected):
    assert failing(code) == expected


def test_what_fails_says_why_and_what_holds_says_nothing():
    good = public_criteria(GOOD, "f", 2)
    assert all(c.detail == "" and c.public and c.weight > 0 for c in good)
    bad = public_criteria("def f(:", "f", 2)
    assert bad[0].detail == "SyntaxError"
    assert bad[1].detail == "should define f with 2 arguments"

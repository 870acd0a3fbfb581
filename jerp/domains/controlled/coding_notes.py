"""Worked examples that the coding domain's retrieve looks up, ranked by BM25.

A small local corpus, this project's own text: statement, arguments and expression of
small functions. None answers a task; an example may share its idiom.
"""

from __future__ import annotations

import re
from functools import cache

import bm25s
import numpy as np

__all__ = ["NOTES", "best_notes"]

NOTES = (
    ("Return n plus 20.", "n", "n + 20"),
    ("Return n times 20.", "n", "n * 20"),
    ("Return 20 minus n.", "n", "20 - n"),
    ("Return n minus 20.", "n", "n - 20"),
    ("Return n divided by 20.", "n", "n / 20"),
    ("Return the remainder of n divided by 20.", "n", "n % 20"),
    ("Return True if n is divisible by 20.", "n", "n % 20 == 0"),
    ("Return True if n is less than 20.", "n", "n < 20"),
    ("Return True if n is between 20 and 30, both included.", "n", "20 <= n <= 30"),
    ("Return n, but at least 20 and at most 30.", "n", "max(20, min(n, 30))"),
    ("Return the square of n.", "n", "n ** 2"),
    ("Return the sum of the digits of n.", "n", "sum(int(d) for d in str(n))"),
    (
        "Return the sum of all multiples of 20 that are less than n.",
        "n",
        "sum(range(0, n, 20))",
    ),
    ("Return a plus b, times 20.", "a, b", "(a + b) * 20"),
    ("Return a times 20, minus b.", "a, b", "a * 20 - b"),
    ("Return the first 20 characters of s.", "s", "s[:20]"),
    ("Return the last 20 characters of s.", "s", "s[-20:]"),
    ("Return s repeated 20 times.", "s", "s * 20"),
    ("Return s with '~' added at the end.", "s", "s + '~'"),
    ("Return s reversed.", "s", "s[::-1]"),
    ("Return s in upper case.", "s", "s.upper()"),
    ("Return the first letter of s in lower case.", "s", "s[0].lower()"),
    ("Return True if s starts with 'q'.", "s", "s.startswith('q')"),
    ("Return the number of characters in s.", "s", "len(s)"),
    ("Return how many times the letter 'q' occurs in s.", "s", "s.count('q')"),
    ("Return s with every 'q' replaced by 'w'.", "s", "s.replace('q', 'w')"),
    ("Return the item of xs at index 20.", "xs", "xs[20]"),
    ("Return the sum of xs.", "xs", "sum(xs)"),
    ("Return the largest item of xs.", "xs", "max(xs)"),
    ("Return the smallest item of xs.", "xs", "min(xs)"),
    ("Return the largest item of xs minus the smallest.", "xs", "max(xs) - min(xs)"),
    ("Return the 20 smallest items of xs, smallest first.", "xs", "sorted(xs)[:20]"),
    ("Return a list with each item of xs plus 20.", "xs", "[x + 20 for x in xs]"),
    ("Return a list of every second item of xs.", "xs", "xs[::2]"),
    ("Return a list of the squares of the items of xs.", "xs", "[x ** 2 for x in xs]"),
    (
        "Return a list of the items of xs less than 20.",
        "xs",
        "[x for x in xs if x < 20]",
    ),
    (
        "Return how many items of xs are less than 20.",
        "xs",
        "len([x for x in xs if x < 20])",
    ),
    (
        "Return the sum of the items of xs that are less than 20.",
        "xs",
        "sum(x for x in xs if x < 20)",
    ),
    (
        "Return True if all items of xs are less than 20.",
        "xs",
        "all(x < 20 for x in xs)",
    ),
    ("Return True if any item of xs is less than 20.", "xs", "any(x < 20 for x in xs)"),
    ("Return the mean of xs.", "xs", "sum(xs) / len(xs)"),
    ("Return xs without repeated items.", "xs", "list(dict.fromkeys(xs))"),
    ("Return the words of ws joined with '~'.", "ws", "'~'.join(ws)"),
    ("Return the number of words in text.", "text", "len(text.split())"),
    (
        "Return a list of the words of ws shorter than 20 letters.",
        "ws",
        "[w for w in ws if len(w) < 20]",
    ),
    (
        "Return how many words of ws end with 'q'.",
        "ws",
        "len([w for w in ws if w.endswith('q')])",
    ),
    ("Return the longest word of ws.", "ws", "max(ws, key=len)"),
)


def best_notes(query: str, count: int) -> tuple[str, ...]:
    """The `count` notes nearest to `query`; ties go to the earlier note."""
    scores = _index().get_scores(_terms(query))
    order = np.argsort(-scores, kind="stable")
    return tuple(_shown(*NOTES[i]) for i in order[:count])


def _shown(statement: str, arguments: str, expression: str) -> str:
    """An example as code, in the form of a task's own prompt."""
    return f"# {statement}\ndef example({arguments}):\n    return {expression}"


@cache
def _index() -> bm25s.BM25:
    index = bm25s.BM25()
    index.index([_terms(note) for note, _, _ in NOTES], show_progress=False)
    return index


def _terms(text: str) -> list[str]:
    return re.findall(r"\w+", text.lower())

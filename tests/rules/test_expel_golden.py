"""Edits against released code, and where jerp differs on purpose.

`golden/expel.json` says where the numbers come from. That code knows rules by texts and
by their place in a list: `Played` keeps texts by number and the list in jerp's order.
Its parsing is taken as given there, and compared at the end: jerp has other words for
votes, which name a rule by its number alone.
"""

import json
import re
from pathlib import Path

import numpy as np
import pytest

from jerp.bridge.reflection import ShownRule
from jerp.bridge.reflection_parser import parse_answer
from jerp.rules.edits import EditOp, apply_edits
from jerp.rules.pruning import prune
from jerp.rules.selection import select_top
from tests.rules.pools import edits_of, pool_of, rows_of

CASES = {
    case["name"]: case
    for case in json.loads(
        (Path(__file__).parents[1] / "golden" / "expel.json").read_text("utf-8")
    )["cases"]
}
CAPACITY, EDITS = 10, 4
OPS = {"ADD": EditOp.ADD, "AGREE": EditOp.UPVOTE, "REMOVE": EditOp.DOWNVOTE}
OPS |= {"EDIT": EditOp.EDIT}

A, B, C = "Read the goal first.", "Open drawers before shelves.", "Check the inventory."
TWICE = "Never submit without a test."

# What jerp has instead, after the last step.
DIFFERS = {
    # Of equal scores the older rule comes first, not the one that had it first.
    "agree_reorders": [[A, 3], [B, 3], [C, 3]],
    # A text is one rule, whether an earlier batch added it or the same: the second ADD
    # is dropped, and the votes that follow are about the one there is.
    "add_duplicate_same_batch": [[A, 3], [B, 2], [TWICE, 2], [C, 1]],
    # A rule is named as a whole: a text that holds two of them names neither.
    "agree_text_contains_two": [[A, 3], [B, 2], [C, 1]],
}


class Played:
    """A pool, its texts, and operations on it as that code writes them."""

    def __init__(self, start, capacity=CAPACITY):
        self.texts = []
        row = {
            slot: (float(score), self.number(text), 0, 0, 0, 1)
            for slot, (text, score) in enumerate(start)
        }
        self.pool = pool_of(row, capacity=capacity)
        self.step = 0

    def number(self, text):
        if text not in self.texts:
            self.texts.append(text)
        return self.texts.index(text)

    def listed(self):
        """Numbers of the rules, best first."""
        capacity = self.pool.active.shape[1]
        sets = select_top(self.pool, np.zeros(1, int), num_rules=capacity)
        return [i for i in sets[0].tolist() if i >= 0]

    def edit(self, word, text):
        op, _, place = word.partition(" ")
        rules, number = self.listed(), self.number(text)
        target = number
        if op == "EDIT":
            inside = place.isdigit() and 1 <= int(place) <= len(rules)
            target = rules[int(place) - 1] if inside else -1
        return (OPS[op], target, number, 1, ())

    def apply(self, operations, list_full=False):
        """The rules with their scores, best first, and how many edits were dropped."""
        return self.edited([self.edit(*o) for o in operations], list_full)

    def edited(self, edits, list_full=False):
        self.step += 1
        self.pool, counts = apply_edits(
            self.pool,
            0,
            edits_of(*edits, length=EDITS),
            step=self.step,
            full=list_full,
        )
        self.pool = prune(self.pool, capacity=CAPACITY)
        scores = {rule[1]: rule[0] for rule in rows_of(self.pool)[0].values()}
        rules = [[self.texts[i], scores[i]] for i in self.listed()]
        return rules, int(counts.dropped.sum())


def steps_of(case):
    """What is applied at each step, and that code's rules after it."""
    for step, output in zip(case["inputs"]["steps"], case["outputs"], strict=True):
        operations = output["parsed"] if "text" in step else step["operations"]
        yield (operations, step["list_full"]), output["rules"]


@pytest.mark.parametrize("name", [name for name in CASES if name not in DIFFERS])
def test_edits(name):
    played = Played(CASES[name]["inputs"]["start"])
    for step, expected in steps_of(CASES[name]):
        assert played.apply(*step)[0] == expected


@pytest.mark.parametrize("name", DIFFERS)
def test_edits_that_differ_on_purpose(name):
    played = Played(CASES[name]["inputs"]["start"])
    steps = list(steps_of(CASES[name]))
    for step, _ in steps[:-1]:
        played.apply(*step)
    (step, expected) = steps[-1]
    assert played.apply(*step)[0] == DIFFERS[name] != expected


def test_only_the_order_of_equal_scores_differs_there():
    played = Played(CASES["agree_reorders"]["inputs"]["start"])
    for step, expected in steps_of(CASES["agree_reorders"]):
        assert sorted(played.apply(*step)[0]) == sorted(expected)


def test_every_case_is_compared():
    assert len(CASES) == 18 and set(DIFFERS) < set(CASES)


# The words that jerp has instead, and what it reads in an answer.
WORDS = ((r"AGREE (\d+):.*", r"UPVOTE \1"), (r"REMOVE (\d+):.*", r"DOWNVOTE \1"))
READS = {
    "parse_plain": ([[A, 4], ["Open every drawer.", 3], ["Look twice.", 2]], {}),
    # Both drop a text without a full stop. There REMOVE carries such a text and is
    # dropped too; here a vote has no text that could be cut short.
    "parse_no_period": (
        [[A, 2], [B, 2], ["Look thrice.", 2], [C, 1]],
        {"text_unfinished": 1},
    ),
    # A text stays whole; there all up to a colon is cut off. One that speaks of rules
    # to who reads them is none.
    "parse_prefix_lost": (
        [
            [A, 3],
            [B, 2],
            ["When buying: compare prices.", 2],
            ["Note (a): keep this.", 2],
            [C, 1],
        ],
        {"text_addresses_reader": 1},
    ),
    # Two operations in one line: both drop them.
    "parse_same_line": ([[A, 4], [B, 2], [C, 1]], {"malformed": 1}),
}


@pytest.mark.parametrize("name", READS)
def test_answers(name):
    played = Played(CASES[name]["inputs"]["start"])
    [step] = CASES[name]["inputs"]["steps"]
    text = step["text"]
    for theirs, ours in WORDS:
        text = re.sub(theirs, ours, text)
    shown = [ShownRule(i, played.texts[i], 1.0) for i in played.listed()]
    operations, rejected = parse_answer(text, shown)
    rules, _ = played.edited(
        [
            (
                o.op,
                *(o.targets or (-1,)),
                played.number(o.text) if o.text else -1,
                1,
                (),
            )
            for o in operations
        ]
    )
    assert (rules, dict(rejected)) == READS[name]
    same = name in ("parse_plain", "parse_same_line")
    assert (rules == CASES[name]["outputs"][0]["rules"]) == same


def test_every_answer_is_compared():
    texts = [n for n, c in CASES.items() if "text" in c["inputs"]["steps"][0]]
    assert texts == list(READS)


# Of these that code has no case; the golden README tells what it does.


def test_a_rule_is_not_found_inside_a_longer_text():
    """Deviation 24: there the ADD is lost as known, and the EDIT a vote for rule 1."""
    longer = "Read the goal first, then the inventory. Read the goal first."
    rules, dropped = Played([[A, 3], [B, 2]]).apply([["ADD", longer]])
    assert (rules, dropped) == ([[A, 3], [B, 2], [longer, 2]], 0)
    rules, _ = Played([[A, 3], [B, 2]]).apply([["EDIT 1", longer]])
    assert rules == [[longer, 4], [B, 2]]


def test_a_rule_of_a_full_stop_swallows_nothing():
    """Deviation 24: "." is in every text, so that there it gets every later vote."""
    rules, _ = Played([[".", 3], [A, 2]]).apply([["AGREE 2", A], ["ADD", B]])
    assert rules == [[".", 3], [A, 3], [B, 2]]


@pytest.mark.parametrize("start", [[[A, 3], [B, 2]], []])
def test_there_is_no_rule_0(start):
    """Deviation 25: there it is the last one, and an IndexError without any."""
    rules, dropped = Played(start).apply([["EDIT 0", C]])
    assert (rules, dropped) == (start, 1)


def test_a_pool_has_an_end():
    """Deviation 26: there the list grows without bound."""
    played = Played([[A, 3], [B, 2]], capacity=2)
    assert played.apply([["ADD", C]], list_full=True) == ([[A, 3], [B, 2]], 1)

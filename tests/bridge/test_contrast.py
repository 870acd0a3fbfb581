"""How successes and failures leave situations: by hand, by loops, and at the limits."""

import math
import time

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jerp.bridge.contrast import contrast
from jerp.bridge.reflection import Occasion, Trial
from jerp.errors import InputError
from tests.bridge.trials import (
    BURNS,
    COLD,
    FAILED,
    HOT,
    LIGHT,
    LOOK,
    LOST,
    SERVE,
    WAIT,
    WON,
    occasion,
    trial,
)
from tests.reference import contrast as reference

SIZE = {"num_situations": 4, "num_moves": 5}


def test_by_hand():
    """Two of two successes lit the stove in the end, one of three failures did."""
    found = contrast(
        occasion(
            trial(WON, (COLD, WAIT), (COLD, LIGHT), (HOT, SERVE)),
            trial(WON, (COLD, LIGHT), (HOT, LOOK), (HOT, SERVE)),
            trial(LOST, (COLD, WAIT), (COLD, WAIT), (COLD, WAIT)),
            trial(LOST, (COLD, LOOK)),
            trial(LOST, (COLD, LIGHT), (BURNS, WAIT)),
        ),
        **SIZE,
    )
    assert found.support[COLD].tolist() == [0, 0, 2, 0, 0]
    assert found.failed[COLD].tolist() == [0, 1, 1, 0, 1]
    assert found.share[HOT].tolist() == [0, 0, 0, 1, 0]
    np.testing.assert_allclose(found.gain[COLD, LIGHT], 1 - 1 / 3)
    # Weight 2 * 3 / 5, three of five made it: (6/5)(3/5)(2/5)(5/4) = 0.36.
    np.testing.assert_allclose(found.z[COLD, LIGHT], 1.2 * (2 / 3) / math.sqrt(0.36))
    np.testing.assert_allclose(found.gain[COLD, WAIT], -1 / 3)
    # Nobody failed with a hot pot, and nobody succeeded with a burnt one.
    assert not found.z[[HOT, BURNS]].any() and not found.gain[[HOT, BURNS]].any()


def test_earlier_successes_stand_beside_those_of_the_group():
    group = [trial(LOST, (COLD, WAIT)), trial(LOST, (COLD, WAIT))]
    earlier = [trial(WON, (COLD, LIGHT), task=name) for name in "bc"]
    found = contrast(occasion(*group, references=tuple(earlier)), **SIZE)
    assert found.gain[COLD, LIGHT] == 1 and found.tasks[COLD, LIGHT] == 2
    np.testing.assert_allclose(found.z[COLD, LIGHT], 1 / math.sqrt(1 / 3))
    # One more of the group, which met no failure, and one that did.
    apart, there = (trial(WON, (COLD, LIGHT), anchors=[a]) for a in (7, COLD))
    one, both = (
        contrast(occasion(*group, won, references=tuple(earlier)), **SIZE).z
        for won in (apart, there)
    )
    np.testing.assert_allclose(one[COLD, LIGHT], 1 / math.sqrt(1 / 3))
    np.testing.assert_allclose(both[COLD, LIGHT], 1 / math.sqrt(6 / 25 * 25 / 24))
    with_failures = (*earlier, trial(LOST, (COLD, WAIT), task="d"))
    again = contrast(occasion(*group, references=with_failures), **SIZE)
    for one, other in zip(found, again, strict=True):
        np.testing.assert_array_equal(one, other)


def passed(group, lost, earlier):
    """Chances `[p]` that z of a move passes 1.64 if all make it with chance p."""
    counts = group - lost, earlier, lost
    rows = [
        [trial(outcome, (COLD, move), task=task) for move in (LIGHT, WAIT)]
        for outcome, task in ((WON, "a"), (WON, "b"), (LOST, "a"))
    ]
    share, found = np.array([0.1, 0.2, 0.5, 0.8, 0.9]), 0.0
    for made in np.ndindex(*(n + 1 for n in counts)):
        won, others, fails = (
            [lit] * k + [waited] * (n - k)
            for (lit, waited), k, n in zip(rows, made, counts, strict=True)
        )
        seen = contrast(occasion(*won, *fails, references=tuple(others)), **SIZE)
        if seen.z[COLD, LIGHT] >= 1.64:
            ways = math.prod(map(math.comb, counts, made))
            k, n = sum(made), sum(counts)
            found += ways * share**k * (1 - share) ** (n - k)
    return found


@pytest.mark.parametrize("lost", [1, 2, 4, 7])
def test_chance_passes_as_seldom_as_is_said(lost):
    for earlier in (0, 5):
        found = passed(8, lost, earlier)
        assert 0 < found[2] < 0.08 and found.max() < 0.15


def test_they_are_compared_where_they_met():
    """In one situation, but never in one state."""
    won = trial(WON, (COLD, LIGHT), anchors=[1])
    apart = trial(LOST, (COLD, WAIT), anchors=[2])
    there = trial(LOST, (COLD, WAIT), (COLD, WAIT), anchors=[1, 2])
    assert contrast(occasion(won, apart), **SIZE).gain[COLD, LIGHT] == 0
    assert contrast(occasion(won, there), **SIZE).gain[COLD, LIGHT] == 1
    other = trial(LOST, (COLD, WAIT), anchors=[1], task="b")
    assert contrast(occasion(won, other), **SIZE).gain[COLD, LIGHT] == 0


def test_a_task_counts_once_however_often_it_succeeded():
    many = [trial(WON, (COLD, LIGHT), task="a")] * 6
    one = [trial(WON, (COLD, WAIT), task="b")]
    found = contrast(occasion(*many, references=tuple(one)), **SIZE)
    assert found.share[COLD].tolist() == [0, 0.5, 0.5, 0, 0]
    assert found.tasks[COLD].tolist() == [0, 1, 1, 0, 0]
    assert found.support[COLD, LIGHT] == 6


@pytest.mark.parametrize("trials", [(), (trial(LOST, (COLD, WAIT)),), (trial(WON),)])
def test_nothing_to_compare(trials):
    found = contrast(occasion(*trials), **SIZE)
    assert not found.gain.any() and not found.z.any() and not found.support.any()


@pytest.mark.parametrize("step", [(4, 1), (-1, 1), (1, 5)])
def test_numbers_that_the_language_does_not_have(step):
    with pytest.raises(InputError, match=r"expected numbers from 0 to .* episode 'e'"):
        contrast(occasion(trial(WON, step, episode="e")), **SIZE)


def test_steps_of_unequal_length():
    with pytest.raises(InputError, match=r"one number a step in each.*\(2,\)"):
        Trial(True, 1.0, 1, anchor=np.zeros(2, np.int32))


STEPS = st.lists(st.tuples(st.integers(0, 2), st.integers(0, 3), st.integers(0, 4)))
ROWS = st.lists(
    st.tuples(st.sampled_from([WON, LOST, FAILED]), st.sampled_from("ab"), STEPS),
    max_size=6,
)


@settings(max_examples=60, deadline=None)
@given(ROWS, ROWS)
def test_against_loops(trials, references):
    def made(rows):
        return [
            trial(
                outcome,
                *((s, m) for _, s, m in steps),
                task=task,
                anchors=[a for a, _, _ in steps],
            )
            for outcome, task, steps in rows
        ]

    def plain(rows):
        return [(o == WON, int(o), task, steps) for o, task, steps in rows]

    found = contrast(
        Occasion("k", "", (), tuple(made(trials)), tuple(made(references))), **SIZE
    )
    expected = reference.contrast(plain(trials), plain(references), 4, 5)
    for cell, values in expected.items():
        got = [float(field[cell]) for field in found]
        np.testing.assert_allclose(got, values, atol=1e-9)
    backwards = contrast(occasion(*made(trials)[::-1]), **SIZE)
    forwards = contrast(occasion(*made(trials)), **SIZE)
    np.testing.assert_allclose(backwards.z, forwards.z, atol=1e-12)


def test_a_batch_of_groups_takes_milliseconds():
    steps = [(1 + i % 3, 1 + i % 4) for i in range(30)]
    group = [trial(o, *steps, anchors=range(30)) for o in (WON, LOST) * 4]
    group = occasion(*group, references=tuple(group[:1] * 8))
    taken = []
    for _ in range(3):
        begun = time.perf_counter()
        for _ in range(16):
            contrast(group, num_situations=16, num_moves=24)
        taken.append(time.perf_counter() - begun)
    assert min(taken) < 0.02

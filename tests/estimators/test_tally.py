"""Counts of runs at horizons: by hand, with what is refused and what is only counted.

The surfaces made of them are compared run by run in `test_surface.py`.
"""

from functools import partial

import chex
import jax
import numpy as np
import pytest

from jerp.errors import InputError, UnknownNameError
from jerp.estimators.tally import increasing_horizons, solved_in_first, tally_runs
from jerp.typing import Outcome

FAIL, GOOD, CUT, BAD, INFRA = map(int, Outcome)
SPENT = np.float32([[1, 3, 2, 5, np.nan]])
OUTCOME = np.int32([[GOOD, GOOD, FAIL, INFRA, INFRA]])
nested = partial(tally_runs, horizons=(2, 4, 6))


def test_by_hand(transform):
    t = transform(nested)(SPENT, OUTCOME)
    assert t.num_existing.tolist() == [[5, 5, 5]]
    assert t.num_correct.tolist() == [[1, 2, 2]]
    assert t.num_infrastructure.tolist() == [[1, 1, 2]]
    assert not t.broken.any() and int(t.num_invalid) == 0


def test_the_protocol_decides_what_the_leading_axis_is():
    spent = np.minimum(np.stack([SPENT] * 3), np.float32([2, 4, 6])[:, None, None])
    outcome = np.stack([OUTCOME] * 3)
    t = nested(spent, outcome, protocol="rerun")
    assert t.num_correct.tolist() == [[2, 2, 2]]
    assert t.num_infrastructure.tolist() == [[2, 2, 2]]
    with pytest.raises(UnknownNameError, match="did you mean 'rerun'"):
        nested(spent, outcome, protocol="reruns")


def test_a_mask_leaves_samples_out():
    mask = np.array([[True, False, True, True, False]])
    t = nested(SPENT, OUTCOME, mask)
    assert t.num_existing.tolist() == [[3, 3, 3]]
    assert t.num_correct.tolist() == [[1, 1, 1]]
    poisoned = nested(np.where(mask, SPENT, -1), np.where(mask, OUTCOME, 77), mask)
    chex.assert_trees_all_equal(poisoned, t)


def test_invalid_runs_are_in_no_count():
    outcome = OUTCOME.copy()
    outcome[0, 0] = 5
    t = jax.jit(nested)(SPENT, outcome)
    assert t.num_existing.tolist() == [[4, 4, 4]]
    assert t.num_correct.tolist() == [[0, 1, 1]]
    assert t.broken.tolist() == [[True] * 3] and int(t.num_invalid) == 1


def test_an_outcome_beyond_int32_is_refused_and_does_not_wrap():
    outcome = OUTCOME.astype(np.int64)
    outcome[0, 2] = 2**32 + GOOD
    with pytest.raises(InputError, match="outcome: expected an Outcome, 0 to 4"):
        nested(SPENT, outcome)


def test_horizons_are_compared_as_they_are_stored():
    """0.1 and 0.3 are not exact in float32, on neither side."""
    spent = np.array([[0.1, 0.3]])
    t = tally_runs(spent, np.array([[GOOD, GOOD]]), horizons=(0.1, 0.3))
    assert t.num_correct.tolist() == [[1, 2]]
    assert increasing_horizons([0, 0.5]) == (0.0, 0.5)


@pytest.mark.parametrize(
    "horizons",
    [
        (),
        3,
        (2, 1),
        (1, 1),
        (-1, 1),
        (1, np.nan),
        (1, np.inf),
        (16_777_216, 16_777_217),
    ],
)
def test_bad_horizons_are_refused(horizons):
    with pytest.raises(
        InputError, match=r"horizons: .* strictly increasing in float32"
    ):
        increasing_horizons(horizons)
    with pytest.raises(InputError, match="horizons"):
        tally_runs(SPENT, OUTCOME, horizons=horizons)


@pytest.mark.parametrize(
    ("shape", "message"),
    [
        ((0, 5), "at least one task and one sample"),
        ((5, 0), "at least one task and one sample"),
        ((5,), r"expected \[N, M\] for protocol 'nested', got \[5\]"),
        ((4, 2, 5), r"expected \[N, M\] for protocol 'nested', got \[4, 2, 5\]"),
    ],
)
def test_bad_shapes_are_named(shape, message):
    with pytest.raises(InputError, match=message):
        nested(np.zeros(shape, np.float32), np.zeros(shape, np.int32))


def test_all_masked_and_wrong_types():
    with pytest.raises(InputError, match="mask: expected at least one real entry"):
        nested(SPENT, OUTCOME, np.zeros((1, 5), bool))
    with pytest.raises(AssertionError):
        nested(SPENT, OUTCOME.astype(np.float32))
    with pytest.raises(AssertionError):
        nested(SPENT, OUTCOME, np.ones((1, 5), np.int32))
    with pytest.raises(AssertionError):
        nested(SPENT, OUTCOME[:, :3])


SOLVED = partial(solved_in_first, horizons=(2, 4, 6))


@pytest.mark.parametrize(
    ("k", "expected"), [(1, [True] * 3), (2, [True] * 3), (5, [True] * 3)]
)
def test_solved_by_hand(transform, k, expected):
    assert transform(partial(SOLVED, k=k))(SPENT, OUTCOME).tolist() == [expected]


def test_an_answer_that_is_missing_makes_room_for_the_next():
    spent = np.float32([[1, 1, 3, 2]])
    outcome = np.int32([[INFRA, FAIL, GOOD, GOOD]])
    solved = {k: SOLVED(spent, outcome, k=k).tolist()[0] for k in (1, 2, 3)}
    # By T = 2 the third run is a failure that counts.
    assert solved == {1: [False] * 3, 2: [False, True, True], 3: [True] * 3}
    late = np.float32([[5, 1, 3, 2]])
    assert SOLVED(late, outcome, k=2).tolist()[0] == [False, False, True]


@pytest.mark.parametrize("protocol", ["nested", "rerun"])
def test_solved_run_by_run(protocol):
    rng = np.random.default_rng(0)
    shape = (3, 20, 7) if protocol == "rerun" else (20, 7)
    spent = rng.integers(0, 7, shape).astype(np.float32)
    if protocol == "rerun":
        spent = np.minimum(spent, np.float32([2, 4, 6])[:, None, None])
    outcome = rng.choice([FAIL, FAIL, GOOD, INFRA], shape).astype(np.int32)
    mask = rng.random(shape) < 0.8
    horizons, nested_too = (2.0, 4.0, 6.0), protocol == "nested"
    for k in (1, 3, 7):
        found = SOLVED(spent, outcome, mask, k=k, protocol=protocol)
        for task in range(20):
            for h, horizon in enumerate(horizons):
                runs = answered(spent, outcome, mask, task, h, horizon, nested_too)
                assert bool(found[task, h]) == any(runs[:k])
    whole = tally_runs(spent, outcome, mask, horizons=horizons, protocol=protocol)
    np.testing.assert_array_equal(found, whole.num_correct > 0)


def answered(spent, outcome, mask, task, h, horizon, nested):
    """Whether each answered run of a task had succeeded, in order."""
    at = task if nested else (h, task)
    runs = zip(spent[at], outcome[at], mask[at], strict=True)
    return [
        bool(o == GOOD and s <= horizon)
        for s, o, real in runs
        if real and not (o == INFRA and s <= horizon)
    ]


def test_a_k_below_one_is_refused():
    with pytest.raises(InputError, match="k: expected"):
        SOLVED(SPENT, OUTCOME, k=0)

"""Counts of runs at horizons: by hand, with what is refused and what is only counted.

The surfaces made of them are compared run by run in `test_surface.py`.
"""

from functools import partial

import chex
import jax
import numpy as np
import pytest

from jerp.errors import InputError, UnknownNameError
from jerp.estimators.tally import increasing_horizons, tally_runs
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

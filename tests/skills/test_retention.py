"""Retention by outcome alone: by hand, run by run, and for any number of runs."""

from itertools import product

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jerp.errors import InputError, ShapeError
from jerp.skills.retention import evidence_pair, retained
from jerp.typing import Outcome
from tests.reference import skills as reference

ALL_OF_THREE = np.array(list(product(range(5), repeat=3)), np.int32)


@pytest.fixture(autouse=True)
def _strict_dtypes():
    with jax.numpy_dtype_promotion("strict"):
        yield


def test_one_of_two_is_kept():
    outcome = np.array([[1, 0], [0, 1], [1, 1], [0, 0], [1, 2], [3, 1], [1, 4], [4, 0]])
    kept = retained(outcome)
    assert kept.tolist() == [True, True, False, False, True, True, False, False]


def test_every_outcome_of_three_runs(transform):
    kept = transform(retained)(ALL_OF_THREE)
    assert kept.tolist() == list(map(reference.retained, ALL_OF_THREE.tolist()))


def test_two_of_each_kind():
    four = np.concatenate([ALL_OF_THREE, ALL_OF_THREE[::-1, :1]], axis=1)
    kept = retained(four, least=2)
    assert kept.tolist() == [reference.retained(runs, 2) for runs in four.tolist()]
    assert kept.any()


def test_pairs_of_every_outcome(transform):
    pair = transform(evidence_pair)(ALL_OF_THREE)
    found = list(zip(pair.success.tolist(), pair.failure.tolist(), strict=True))
    assert found == [reference.evidence_pair(runs) for runs in ALL_OF_THREE.tolist()]
    assert pair.success.dtype == pair.failure.dtype == jnp.int32


def test_a_skill_is_kept_just_where_it_has_a_pair():
    pair = evidence_pair(ALL_OF_THREE)
    has_both = (pair.success >= 0) & (pair.failure >= 0)
    np.testing.assert_array_equal(retained(ALL_OF_THREE), has_both)
    kept = np.asarray(retained(ALL_OF_THREE))
    np.testing.assert_array_equal(kept, retained(ALL_OF_THREE[:, ::-1]))


def test_a_lost_run_changes_nothing():
    lost = np.full((len(ALL_OF_THREE), 1), Outcome.INFRASTRUCTURE, np.int32)
    more = np.concatenate([ALL_OF_THREE, lost], axis=1)
    np.testing.assert_array_equal(retained(more), retained(ALL_OF_THREE))
    chex.assert_trees_all_equal(evidence_pair(more), evidence_pair(ALL_OF_THREE))


def test_no_runs_keep_nothing():
    empty = np.zeros((2, 0), np.int32)
    assert retained(empty).tolist() == [False, False]
    assert evidence_pair(empty).failure.tolist() == [-1, -1]


def test_least_needs_no_new_trace():
    traced = jax.jit(chex.assert_max_traces(retained, n=1))
    found = [int(traced(ALL_OF_THREE, least=least).sum()) for least in (1, 2)]
    assert found[0] > found[1] == 0


def test_what_is_no_outcome():
    for wrong in (5, -1):
        outcome = np.array([[0, 1, wrong]], np.int32)
        with pytest.raises(InputError, match=rf"outcome: expected .*, got {wrong} at"):
            retained(outcome)
        assert jax.jit(retained)(outcome[:, 1:]).tolist() == [False]
        assert jax.jit(evidence_pair)(outcome[:, 2:]).failure.tolist() == [-1]
    with pytest.raises(InputError, match="least: expected >= 1, got 0"):
        retained(ALL_OF_THREE, least=0)
    assert not jax.jit(retained)(ALL_OF_THREE, least=0).any()
    with pytest.raises(ShapeError, match=r"outcome: expected axes \[N, M\]"):
        retained(ALL_OF_THREE[0])
    with pytest.raises(ShapeError, match="outcome: expected type int"):
        evidence_pair(ALL_OF_THREE.astype(np.float32))

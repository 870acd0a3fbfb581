"""Capability sets and their changes: by hand, by sets, and what they leave out."""

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis.extra.numpy import arrays

from jerp.errors import InputError
from jerp.estimators.boundary import (
    boundary_change,
    capability_set,
    unsolved_upper_bound,
)
from jerp.estimators.significance import holm
from tests.reference import boundary as reference

# Ten tasks, two ks, two Ts.
A = np.asarray(jax.random.bernoulli(jax.random.key(1), 0.5, (10, 2, 2)))
B = np.asarray(jax.random.bernoulli(jax.random.key(2), 0.6, (10, 2, 2)))
CELLS = [(i, j) for i in range(2) for j in range(2)]


@pytest.fixture(autouse=True)
def _strict_dtypes():
    with jax.numpy_dtype_promotion("strict"):
        yield


def test_capability_set_by_hand(transform):
    estimate = np.float32([[0.0, 0.1], [np.nan, 0.5], [1e-6, 1.0]])
    found = transform(capability_set)(estimate)
    assert found.member.tolist() == [[False, True], [False, True], [True, True]]
    assert found.defined.tolist() == [[True, True], [False, True], [True, True]]
    stricter = capability_set(estimate, threshold=0.5)
    assert stricter.member.tolist() == [[False, False], [False, False], [False, True]]


def test_published_table():
    """arXiv:2604.14877, category C: 77 of 100 and 81, 5 gained, 1 lost."""
    task = jnp.arange(100)
    base, rl = task < 77, (task >= 1) & (task < 82)
    found = boundary_change(base, rl)
    counts = found.gains, found.losses, found.both, found.neither
    assert [int(n) for n in counts] == [5, 1, 76, 18]
    assert float(found.p_value) == float(found.p_holm) == 0.21875


def test_change_against_sets(transform):
    found = transform(boundary_change)(A, B)
    for i, j in CELLS:
        a, b = np.flatnonzero(A[:, i, j]), np.flatnonzero(B[:, i, j])
        gains, losses, both = reference.change(a, b)
        assert int(found.gains[i, j]) == gains and int(found.losses[i, j]) == losses
        assert int(found.both[i, j]) == both
        assert int(found.neither[i, j]) == 10 - gains - losses - both
        exact = float(reference.mcnemar(gains, losses))
        assert float(found.p_value[i, j]) == pytest.approx(exact, rel=1e-6)
    np.testing.assert_allclose(found.p_holm, holm(found.p_value))
    assert not np.asarray(found.num_excluded).any()


def test_tasks_left_out_of_all_cells_or_of_one():
    mask = np.arange(10) % 3 > 0
    found = boundary_change(A, B, mask=mask)
    rest = boundary_change(A[mask], B[mask])
    assert (np.asarray(found.num_excluded) == 4).all()
    chex.assert_trees_all_equal(found.replace(num_excluded=rest.num_excluded), rest)
    one = np.ones((10, 2, 2), bool)
    one[:, 0, 1] = mask
    cell = boundary_change(A, B, mask=one)
    assert int(cell.gains[0, 1]) == int(rest.gains[0, 1])
    assert int(cell.gains[1, 1]) == int(boundary_change(A, B).gains[1, 1])
    assert cell.num_excluded.tolist() == [[0, 4], [0, 0]]


def test_undefined_estimates_count_on_neither_side():
    a = capability_set(jnp.array([0.5, 0.0, jnp.nan]))
    b = capability_set(jnp.array([0.0, jnp.nan, 0.5]))
    found = boundary_change(a.member, b.member, mask=a.defined & b.defined)
    counts = found.gains, found.losses, found.both, found.neither, found.num_excluded
    assert [int(n) for n in counts] == [0, 1, 0, 0, 2]


@given(arrays(bool, (2, 7, 2)))
@settings(max_examples=200, deadline=None, derandomize=True)
def test_change_adds_up_and_turns(pair):
    there, back = _change(pair[0], pair[1]), _change(pair[1], pair[0])
    parts = there.gains, there.losses, there.both, there.neither
    assert (sum(np.asarray(x) for x in parts) == 7).all()
    np.testing.assert_array_equal(there.gains, back.losses)
    np.testing.assert_array_equal(there.p_value, back.p_value)
    assert (np.asarray(there.p_holm) >= there.p_value).all()


_change = jax.jit(boundary_change)


def test_unsolved_by_hand(transform):
    """1 - .05^(1/n); for 1, 2 and 64 samples."""
    n = np.int32([1, 2, 64, 0])
    found = transform(unsolved_upper_bound)(n)
    np.testing.assert_allclose(found, [0.95, 0.776393, 0.0457297, 1.0], rtol=1e-5)
    half = unsolved_upper_bound(n, level=0.5)
    sure = unsolved_upper_bound(64, level=1 - 1e-9)
    assert float(sure) == pytest.approx(1 - 1e-9 ** (1 / 64), rel=1e-6)
    np.testing.assert_allclose(half, [0.5, 0.292893, 0.010772, 1.0], rtol=1e-4)


def test_unsolved_is_what_n_failures_are_five_percent_likely_under():
    n = np.int32([1, 5, 64, 1000, 100_000])
    bound = np.asarray(unsolved_upper_bound(n), np.float64)
    np.testing.assert_allclose((1 - bound) ** n, 0.05, rtol=1e-4)
    assert (bound < 3 / n).all(), "the rule of three is a little above"
    np.testing.assert_allclose(bound[3:], 3 / n[3:], rtol=5e-3)


def test_bad_input_is_named():
    with pytest.raises(InputError, match=r"threshold: expected in \[0, 1\), got 1.0"):
        capability_set(A.astype(np.float32), threshold=1.0)
    with pytest.raises(InputError, match=r"estimate: expected in \[0, 1\], .* got 1.5"):
        capability_set(jnp.array([0.5, 1.5]))
    assert not jax.jit(capability_set)(jnp.array([0.5, 1.5])).defined[1]
    with pytest.raises(InputError, match="num_samples: expected >= 0, got -1"):
        unsolved_upper_bound(-1)
    assert np.isnan(jax.jit(unsolved_upper_bound)(-1))
    with pytest.raises(InputError, match="level: expected"):
        unsolved_upper_bound(1, level=0.0)
    for bad in ((A, B[:9]), (A.astype(np.int32), B.astype(np.int32))):
        with pytest.raises(AssertionError):
            boundary_change(*bad)
    with pytest.raises(AssertionError):
        boundary_change(A, B, mask=np.ones(9, bool))


def test_one_trace_a_shape():
    run = jax.jit(chex.assert_max_traces(boundary_change, n=1))
    run(A, B)
    run(B, A)
    with pytest.raises(AssertionError):
        run(A[:5], B[:5])


def test_capability_sets_are_taken_as_they_are():
    """What is not defined on either side, or masked, is left out."""
    a = capability_set(jnp.array([0.0, 0.5, jnp.nan, 0.5, 0.0]))
    b = capability_set(jnp.array([0.5, 0.5, 0.5, jnp.nan, 0.0]))
    change = boundary_change(a, b, mask=np.array([True, True, True, True, False]))
    same = boundary_change(
        a.member, b.member, mask=np.array([True, True, False, False, False])
    )
    chex.assert_trees_all_equal(change, same)
    assert (int(change.gains), int(change.both), int(change.num_excluded)) == (1, 1, 3)
    one = boundary_change(a, np.ones(5, bool))
    assert (int(one.gains), int(one.losses), int(one.num_excluded)) == (2, 0, 1)

"""Wilson's interval: published numbers, its definition, and its symmetry."""

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jerp.errors import InputError
from jerp.estimators.proportion import wilson_interval
from tests.reference import proportion as reference

COUNTS = np.array([[0, 1, 9, 10], [0, 7, 81, 300]], np.int32)
TRIALS = np.array([[10, 10, 10, 10], [1, 20, 100, 1000]], np.int32)


@pytest.fixture(autouse=True)
def _strict_dtypes():
    with jax.numpy_dtype_promotion("strict"):
        yield


def test_by_hand():
    """(1 + z^2 / 2 -+ z 1.307809) / (4 + z^2) with z = 1.959964."""
    found = wilson_interval(1, 4)
    np.testing.assert_allclose(
        [found.low, found.point, found.high], [0.0456, 0.25, 0.6994], atol=5e-5
    )
    assert (found.level, int(found.num_values)) == (0.95, 4)


@pytest.mark.parametrize("level", [0.5, 0.95, 0.999])
def test_against_the_definition(level):
    found = wilson_interval(COUNTS, TRIALS, level=level)
    expected = [
        reference.wilson(int(c), int(n), level)
        for c, n in zip(COUNTS.ravel(), TRIALS.ravel(), strict=True)
    ]
    low, high = np.moveaxis(np.reshape(expected, (2, 4, 2)), 2, 0)
    np.testing.assert_allclose(found.low, low, atol=1e-6)
    np.testing.assert_allclose(found.high, high, atol=1e-6)
    np.testing.assert_allclose(found.point, COUNTS / TRIALS, rtol=1e-6)


def test_parity(transform):
    found = transform(wilson_interval)(COUNTS, TRIALS)
    chex.assert_trees_all_close(found, wilson_interval(COUNTS, TRIALS), atol=1e-7)


def test_nothing_and_everything_solved():
    none, all_ = wilson_interval(0, 64), wilson_interval(64, 64)
    assert float(none.low) == 0.0 and float(all_.high) == 1.0
    # z^2 / (n + z^2).
    assert float(none.high) == pytest.approx(3.841459 / 67.841459, rel=1e-5)
    assert float(all_.low) == pytest.approx(64 / 67.841459, rel=1e-5)


def test_no_trials_and_impossible_counts_are_undefined():
    nothing = wilson_interval(jnp.array([0, 1]), jnp.array([0, 2]))
    assert np.isnan([nothing.low, nothing.point, nothing.high])[:, 0].all()
    assert np.isfinite([nothing.low, nothing.point, nothing.high])[:, 1].all()
    inside = jax.jit(wilson_interval)(jnp.array([3, -1, 0]), jnp.array([2, 2, -1]))
    assert np.isnan([inside.low, inside.point, inside.high]).all()


def test_bad_input_is_named():
    with pytest.raises(InputError, match=r"num_successes: .*, got 11 at \[1\]"):
        wilson_interval(jnp.array([1, 11]), jnp.array([10, 10]))
    with pytest.raises(InputError, match="num_successes: expected >= 0, got -1"):
        wilson_interval(-1, 10)
    with pytest.raises(InputError, match="num_trials: expected >= 0, got -1"):
        wilson_interval(0, -1)
    with pytest.raises(InputError, match="level: expected"):
        wilson_interval(0, 1, level=1.0)
    with pytest.raises(AssertionError):
        wilson_interval(jnp.array(0.5), jnp.array(1.0))


_both = jax.jit(wilson_interval)


@given(st.integers(1, 5000), st.floats(0, 1))
@settings(max_examples=200, deadline=None, derandomize=True)
def test_bounds_symmetry_and_order(trials, share):
    count = round(share * trials)
    c, n = np.int32([count, trials - count]), np.int32([trials, trials])
    found = _both(c, n)
    low, high = np.asarray(found.low), np.asarray(found.high)
    assert (low >= 0).all() and (high <= 1).all()
    assert (low <= found.point).all() and (found.point <= high).all()
    np.testing.assert_allclose(low[0], 1 - high[1], atol=1e-7)

"""Robust summaries: by hand, by loops, and inside the intervals they are made for."""

from functools import partial

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from jerp.estimators.summary import (
    interquartile_mean,
    performance_profile,
    probability_of_improvement,
)
from tests.estimators.test_bands import band_500
from tests.estimators.test_intervals import bootstrap_500
from tests.reference import summary as reference

VALUES = np.float32([0.3, 9.0, -4.0, 0.5, 0.5, 0.1, 0.8])
WEIGHT = np.float32([1, 2, 0, 3, 1, 1, 2])
RUNS_A = np.float32([[0.5, 1.0, np.nan], [0.0, 0.0, 2.0], [np.nan] * 3])
RUNS_B = np.float32([[0.5, 0.2], [0.0, 1.0], [0.0, 1.0]])

# Without jit each primitive of each shape is compiled by itself: that is tested once.
_middle = jax.jit(interquartile_mean)
_better = jax.jit(probability_of_improvement)
_profile = jax.jit(performance_profile)


@pytest.fixture(autouse=True)
def _strict_dtypes():
    with jax.numpy_dtype_promotion("strict"):
        yield


def test_middle_half_by_hand():
    """Six values: half of the second, the third, the fourth, half of the fifth."""
    values = jnp.array([100.0, 1.0, 2.0, 3.0, 4.0, -50.0])
    found = _middle(values, jnp.ones(6))
    assert float(found) == pytest.approx((0.5 * 1 + 2 + 3 + 0.5 * 4) / 3)


def test_middle_half_against_a_walk(transform):
    found = transform(interquartile_mean)(VALUES, WEIGHT)
    expected = reference.interquartile_mean(VALUES, WEIGHT)
    assert float(found) == pytest.approx(expected, rel=1e-6)
    columns = np.stack([VALUES, -2 * VALUES], axis=1).reshape(7, 2, 1)
    both = _middle(columns, WEIGHT)
    np.testing.assert_allclose(both[:, 0], [expected, -2 * expected], rtol=1e-6)


def test_middle_half_is_the_trimmed_mean_of_four_n():
    """Where a quarter is a whole number of values, as scipy's `trim_mean` has it."""
    values = np.asarray(jax.random.normal(jax.random.key(0), (12,)))
    found = _middle(values, np.ones(12, np.float32))
    assert float(found) == pytest.approx(np.sort(values)[3:9].mean(), rel=1e-5)


def test_a_weight_is_that_many_copies():
    copies = np.repeat(VALUES, WEIGHT.astype(int))
    expected = _middle(copies, np.ones(10, np.float32))
    found = _middle(VALUES, WEIGHT)
    assert float(found) == pytest.approx(float(expected), rel=1e-6)
    poisoned = np.where(WEIGHT > 0, VALUES, np.float32(1e30))
    assert float(_middle(poisoned, WEIGHT)) == float(found)


def test_middle_half_is_robust_to_infinities_and_shows_a_nan(transform):
    run = transform(interquartile_mean)
    values, ones = np.float32([2, np.inf, 3, -np.inf]), np.ones(4, np.float32)
    assert float(run(values, ones)) == 2.5
    values[1] = np.nan
    assert np.isnan(run(values, ones))
    assert float(run(values, np.float32([1, 0, 1, 0]))) == 2.5


def test_middle_half_of_nothing():
    assert np.isnan(_middle(VALUES, np.zeros(7, np.float32)))
    assert np.isnan(_middle(jnp.zeros((0, 2)), jnp.zeros(0))).tolist() == [
        True,
        True,
    ]


@given(
    arrays(np.float32, 7, elements=st.floats(-9, 9, width=32)),
    arrays(np.float32, 7, elements=st.sampled_from([0.0, 1.0, 2.0, 5.0])),
    st.permutations(range(7)),
)
@settings(max_examples=200, deadline=None, derandomize=True)
def test_middle_half_lies_between_the_quartiles(values, weight, order):
    weight[0] += 1
    found = float(_middle(values, weight))
    copies = np.sort(np.repeat(values, weight.astype(int)))
    low, high = np.quantile(copies, [0.25, 0.75], method="inverted_cdf")
    assert low - 1e-5 <= found <= high + 1e-5
    order = np.array(order)
    assert float(_middle(values[order], weight[order])) == pytest.approx(
        found, abs=1e-5
    )
    shifted = float(_middle(2 * values + 1, weight))
    assert shifted == pytest.approx(2 * found + 1, abs=1e-4)


def test_middle_half_in_an_interval_over_tasks():
    """One wild task moves the mean's interval and hardly that of the middle half."""
    wild = np.float32([0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0, 1e6])
    task = np.arange(11, dtype=np.int32)
    # At 95% it may: in 8% of the resamples a task of eleven is drawn three times.
    run = partial(bootstrap_500, jax.random.key(0), wild, cluster=task, level=0.8)
    found, mean = run(statistic=interquartile_mean), run()
    assert 0.2 < found.low < 0.5 < found.point < 0.7 < found.high < 1.0
    assert float(mean.high) > 1e5
    assert int(found.num_clusters) == 11


def test_improvement_by_hand(transform):
    """.5 ties .5 and beats .2, 1 beats both; then two ties and two wins of six."""
    found = transform(probability_of_improvement)(RUNS_A, RUNS_B)
    np.testing.assert_allclose(found[:2], [3.5 / 4, 3 / 6], rtol=1e-6)
    assert np.isnan(found[2])
    expected = reference.probability_of_improvement(RUNS_A, RUNS_B)
    np.testing.assert_allclose(found, expected, rtol=1e-6)


@pytest.mark.parametrize("poison", [np.nan, 1e30, -np.inf])
def test_masked_runs_are_no_runs(poison):
    mask = np.array([[True, False, True], [True, True, False], [False] * 3])
    filled = np.where(mask, np.nan_to_num(RUNS_A), np.float32(poison))
    clean = np.where(mask, np.nan_to_num(RUNS_A), np.float32(np.nan))
    found = _better(filled, RUNS_B, mask_a=mask)
    expected = reference.probability_of_improvement(clean, RUNS_B)
    np.testing.assert_allclose(found, expected, rtol=1e-6)
    turned = _better(RUNS_B, filled, mask_b=mask)
    np.testing.assert_allclose(turned, 1 - np.asarray(found), rtol=1e-6)
    profile = _profile(filled, jnp.array([0.1]), mask=mask)
    expected = reference.performance_profile(clean, [0.1])
    np.testing.assert_allclose(profile, expected, rtol=1e-6)


@given(arrays(np.float32, (2, 2, 3), elements=st.integers(-2, 2).map(float)))
@settings(max_examples=200, deadline=None, derandomize=True)
def test_improvement_turns_and_sees_order_alone(scores):
    a, b = scores
    found = np.asarray(_better(a, b))
    np.testing.assert_allclose(found + np.asarray(_better(b, a)), 1.0, rtol=1e-6)
    np.testing.assert_array_equal(_better(a**3, b**3), found)
    np.testing.assert_array_equal(_better(a[:, ::-1], b), found)


def test_improvement_in_an_interval_over_tasks():
    random = np.random.default_rng(0)
    a, b = np.float32(random.normal(size=(2, 11, 12)))
    better = _better(a + 1, b)
    task = np.arange(11, dtype=np.int32)
    found = bootstrap_500(jax.random.key(2), np.asarray(better), cluster=task)
    # P(N(1, 1) > N(0, 1)) = Phi(1 / sqrt(2)).
    assert float(found.low) < 0.76025 < float(found.high)
    assert float(found.high - found.low) < 0.2


def test_profile_by_hand(transform):
    thresholds = np.float32([-1.0, 0.0, 0.5, 5.0])
    found = transform(performance_profile)(RUNS_A, thresholds)
    np.testing.assert_allclose(found[0], [1, 1, 0.5, 0], rtol=1e-6)
    np.testing.assert_allclose(found[1], [1, 1 / 3, 1 / 3, 0], rtol=1e-6)
    assert np.isnan(found[2]).all()
    flat = _profile(RUNS_A.ravel(), thresholds)
    assert flat.shape == (9, 4)
    np.testing.assert_allclose(np.asarray(flat)[:2].mean(0), found[0], rtol=1e-6)
    part = _profile(RUNS_A[:, 1], thresholds, mask=np.arange(3) == 1)
    assert np.isnan(part).all(axis=1).tolist() == [True, False, True]


def test_profile_in_a_band():
    scores = np.float32(np.random.default_rng(0).uniform(size=(5, 30)))
    thresholds = np.float32([0.2, 0.4, 0.6, 0.8])
    profile = _profile(scores, thresholds)
    band = band_500(jax.random.key(1), np.asarray(profile))
    truth = 1 - thresholds
    assert ((band.low < truth) & (truth < band.high)).all()
    assert (np.diff(band.point) < 0).all()


def test_bad_shapes_are_refused():
    with pytest.raises(AssertionError):
        probability_of_improvement(RUNS_A, RUNS_B[:2])
    with pytest.raises(AssertionError):
        probability_of_improvement(RUNS_A[0], RUNS_B[0])
    with pytest.raises(AssertionError):
        performance_profile(RUNS_A, jnp.zeros((2, 2)))
    with pytest.raises(AssertionError):
        performance_profile(RUNS_A, jnp.zeros(2), mask=np.ones((3, 2), bool))
    with pytest.raises(AssertionError):
        interquartile_mean(VALUES, WEIGHT[:3])


def test_one_trace_a_shape():
    run = jax.jit(chex.assert_max_traces(interquartile_mean, n=1))
    for scale in (1, 2, 3):
        run(np.float32(scale) * VALUES, WEIGHT)
    with pytest.raises(AssertionError):
        run(VALUES[:5], WEIGHT[:5])

"""Limits from t-statistics, and the standard errors that they are made of."""

import jax.numpy as jnp
import numpy as np
import pytest

from jerp.estimators.ope_terms import OpeTerms, less, value_and_error
from jerp.estimators.standard_error import clustered_standard_error
from jerp.estimators.studentized import studentized_limits
from tests.reference import studentized as reference

NUM_RESAMPLES = 41


def draws(seed=0):
    rng = np.random.default_rng(seed)
    replicate = rng.normal(1.0, 0.5, NUM_RESAMPLES).astype(np.float32)
    error = rng.uniform(0.2, 0.9, NUM_RESAMPLES).astype(np.float32)
    return replicate, error


def limits(replicate, replicate_error, point=1.0, error=0.5, **settings):
    settings = {"level": 0.9, **settings}
    found = studentized_limits(
        jnp.float32(point),
        jnp.float32(error),
        jnp.asarray(replicate),
        jnp.asarray(replicate_error),
        **settings,
    )
    return [float(x) for x in found]


def test_by_hand():
    """t is -2, 0 and 4: its quartiles are -1 and 2."""
    found = limits([0.0, 1.0, 3.0], [0.5, 1.0, 0.5], error=3.0, level=0.5)
    assert found == pytest.approx([1 - 3 * 2, 1 + 3 * 1, 1 - 3 * 0])
    # |t| is 0, 2 and 4: its quantile .75 is 3, that of 2 * .75 - 1 is 2
    found = limits([0.0, 1.0, 3.0], [0.5, 1.0, 0.5], level=0.75, symmetric=True)
    assert found == pytest.approx([1 - 1.5, 1 + 1.5, 1 - 1.0])


@pytest.mark.parametrize("symmetric", [False, True])
def test_equals_the_loops_and_leaves_out_what_is_undefined(symmetric):
    replicate, error = draws()
    replicate[5] = np.nan
    found = limits(replicate, error, symmetric=symmetric)
    assert found == pytest.approx(
        reference.limits(1.0, 0.5, replicate, error, 0.9, symmetric), rel=1e-5
    )


def test_with_one_spread_for_all_it_is_the_basic_bootstrap():
    replicate, _ = draws()
    low, high, _ = limits(replicate, np.full(NUM_RESAMPLES, 0.5, np.float32))
    assert low == pytest.approx(2 - np.quantile(replicate, 0.95), rel=1e-5)
    assert high == pytest.approx(2 - np.quantile(replicate, 0.05), rel=1e-5)


@pytest.mark.parametrize("symmetric", [False, True])
def test_no_spread_is_no_width_and_resamples_without_any_are_unbounded(symmetric):
    same = np.full(NUM_RESAMPLES, 1.0, np.float32)
    none = np.zeros(NUM_RESAMPLES, np.float32)
    assert limits(same, none, error=0.0, symmetric=symmetric) == [1.0, 1.0, 1.0]
    apart = same + np.resize(np.float32([-1, 0, 1]), NUM_RESAMPLES)
    low, high, _ = limits(apart, none, symmetric=symmetric)
    assert (low, high) == (-np.inf, np.inf)


def test_transforms_and_scales(transform):
    replicate, error = draws()

    def low(scale):
        return studentized_limits(
            scale, scale / 2, replicate * scale, error * scale, level=0.9
        )[0]

    assert float(transform(low)(jnp.float32(1))) == pytest.approx(
        limits(replicate, error)[0], rel=1e-5
    )
    assert float(transform(low)(jnp.float32(1e-3))) == pytest.approx(
        1e-3 * limits(replicate, error)[0], rel=1e-5
    )


def test_the_error_of_a_mean_is_the_usual_one():
    x = jnp.array([[0.0], [2.0], [7.0], [4.0]])
    value, error = value_and_error(OpeTerms(x, jnp.ones_like(x)), jnp.ones(4))
    assert float(value) == 3.25
    assert float(error) == pytest.approx(float(clustered_standard_error(x[:, 0])))


def test_the_error_of_tasks_of_any_size_is_that_of_their_clusters():
    """Rows that are sums over a task's episodes: the cluster-robust error."""
    x, task = jnp.array([1.0, 2.0, 5.0, 0.0, 3.0]), jnp.array([0, 0, 1, 2, 2])
    total = jnp.zeros(3).at[task].add(x)[:, None]
    count = jnp.zeros(3).at[task].add(1.0)[:, None]
    _, error = value_and_error(OpeTerms(total, count), jnp.ones(3))
    usual = clustered_standard_error(x, cluster=task)
    assert float(error) == pytest.approx(float(usual), rel=1e-6)


def test_equals_the_loops_over_rows_counted_more_than_once(transform):
    rng = np.random.default_rng(1)
    n, d = rng.normal(size=(6, 3)), rng.uniform(0.5, 2, size=(6, 3))
    times = np.array([2, 0, 1, 1, 3, 1])
    n[1] = d[1] = 0.0
    arrays = [jnp.asarray(x, jnp.float32) for x in (n, d, times)]

    def both(n, d, times):
        return value_and_error(OpeTerms(n, d), times)

    assert transform(both)(*arrays).tolist() == pytest.approx(
        reference.value_and_error(n, d, times), rel=1e-5
    )


def test_of_a_difference_what_is_common_cancels():
    x, one = jnp.array([[1.0], [4.0], [9.0]]), jnp.ones((3, 1))
    terms = OpeTerms(x, one)
    assert value_and_error(less(terms, terms), jnp.ones(3)).tolist() == [0, 0]
    shifted = less(OpeTerms(x + 2, one), terms)
    assert value_and_error(shifted, jnp.ones(3)).tolist() == [2, 0]


def test_one_row_has_a_value_and_no_error():
    value, error = value_and_error(
        OpeTerms(jnp.ones((2, 1)), jnp.ones((2, 1))), jnp.array([1.0, 0.0])
    )
    assert value == 1 and np.isnan(error)

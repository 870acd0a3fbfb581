"""Crossings: by hand, against a walk, with every resample, and where there is none."""

import itertools
from functools import partial

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jerp.errors import InputError
from jerp.estimators.crossing import _crossings, crossing_k
from tests.reference import boundary as reference

KS = (1, 2, 4, 8)
LOG2 = jnp.arange(4.0)
A = np.float32([[0.5, 0.6, 0.7, 0.8], [0.4, 0.4, 0.5, 0.5], [0.2, 0.3, 0.4, 0.6]])
B = np.float32([[0.1, 0.5, 0.9, 1.0], [0.3, 0.5, 0.6, 0.9], [0.1, 0.1, 0.5, 0.7]])


def crossing_500(key, a, b, ks, **keywords):
    """Gives every array, so that all compile once."""
    keywords = {
        "cluster": np.arange(3, dtype=np.int32),
        "mask": np.ones(3, bool),
        "strata": np.zeros(3, np.int32),
        "num_resamples": 500,
    } | keywords
    return crossing_k(key, a, b, ks, **keywords)


@pytest.fixture(autouse=True)
def _strict_dtypes():
    with jax.numpy_dtype_promotion("strict"):
        yield


def scalars(found):
    return [float(x) for x in (found.k.low, found.k.point, found.k.high, found.share)]


def test_against_every_resample():
    found = crossing_500(jax.random.key(0), A, B, KS, level=0.8, num_resamples=20000)
    difference = B.astype(np.float64) - A
    (point, direction), *rest = reference.crossings(difference.mean(0), KS)
    assert not rest and direction == int(found.direction) == int(found.count) == 1
    assert float(found.k.point) == pytest.approx(point, rel=1e-5)
    every = [
        reference.crossings(difference[list(drawn)].mean(0), KS)
        for drawn in itertools.product(range(3), repeat=3)
    ]
    at = [c[0][0] for c in every if c]
    limits = 2 ** np.quantile(np.log2(at), [0.1, 0.9])
    np.testing.assert_allclose([found.k.low, found.k.high], limits, rtol=0.02)
    assert float(found.share) == len(at) / 27
    counts = found.k.num_values, found.k.num_excluded, found.k.num_clusters
    assert [int(n) for n in counts] == [3, 0, 3] and found.k.level == 0.8


@pytest.mark.parametrize(
    ("difference", "upward", "downward", "count"),
    [
        ([-1, 1, 2, 3], 0.5, np.nan, 1),
        ([3, 2, 1, -1], np.nan, 2.5, 1),
        ([-1, 0, 0, 1], 2.0, np.nan, 1),
        ([-1, 0, 0, -1], np.nan, np.nan, 0),
        ([0, 1, 0, 1], np.nan, np.nan, 0),
        ([-1, 1, -3, 1], 0.5, 1.25, 3),
        ([0, 0, 0, 0], np.nan, np.nan, 0),
        ([-1e-7, 1e-7, -1, 1], 2.5, np.nan, 1),
        ([np.nan] * 4, np.nan, np.nan, 0),
    ],
)
def test_crossings_by_hand(difference, upward, downward, count):
    found = _jitted_crossings(jnp.float32(difference), LOG2)
    np.testing.assert_allclose(found, [upward, downward, count], rtol=1e-6)


_jitted_crossings = jax.jit(_crossings)


@given(st.lists(st.integers(-3, 3), min_size=4, max_size=4))
@settings(max_examples=200, deadline=None, derandomize=True)
def test_crossings_against_a_walk(difference):
    upward, downward, count = _jitted_crossings(jnp.float32(difference), LOG2)
    expected = reference.crossings(difference, KS)
    assert int(count) == len(expected)
    for found, direction in ((upward, 1), (downward, -1)):
        first = [k for k, d in expected if d == direction][:1] or [np.nan]
        np.testing.assert_allclose(2 ** float(found), first[0], rtol=1e-5)


def test_turned_round():
    there = crossing_500(jax.random.key(0), A, B, KS)
    back = crossing_500(jax.random.key(0), B, A, KS)
    assert (int(there.direction), int(back.direction)) == (1, -1)
    np.testing.assert_allclose(scalars(there), scalars(back), rtol=1e-5)


def test_no_crossing():
    found = crossing_500(jax.random.key(0), A, A + np.float32(0.1), KS)
    assert np.isnan(scalars(found)[:3]).all()
    assert (float(found.share), int(found.direction), int(found.count)) == (0, 0, 0)
    # B is ahead on the whole; without task 0 it is behind at first.
    b = np.float32([[0.9, 0.9, 0.9, 0.9], [0.3, 0.5, 0.6, 0.9], [0.1, 0.4, 0.5, 0.7]])
    found = crossing_500(jax.random.key(0), A, b, KS)
    assert np.isnan(scalars(found)[:3]).all() and 0.2 < float(found.share) < 0.4


def test_parity(transform):
    def run(key_data, a, b, cluster):
        key = jax.random.wrap_key_data(key_data)
        return crossing_k(key, a, b, KS, cluster=cluster, num_resamples=30)

    inputs = jnp.array([0, 3], jnp.uint32), A, B, np.int32([7, 2, 7])
    chex.assert_trees_all_close(transform(run)(*inputs), run(*inputs), rtol=1e-5)


@pytest.mark.parametrize("poison", [np.nan, np.inf, 1e30])
def test_left_out_tasks_do_not_matter(poison):
    mask = np.array([True, False, True])

    def run(filler):
        a, b = (np.where(mask[:, None], x, np.float32(filler)) for x in (A, B))
        return crossing_500(jax.random.key(0), a, b, KS, mask=mask)

    found = run(poison)
    chex.assert_trees_all_equal(found, run(0.0))
    assert int(found.k.num_excluded) == 1
    lone = crossing_500(jax.random.key(0), A, B, KS, mask=np.arange(3) < 1)
    assert np.isfinite(lone.k.point) and np.isnan(scalars(lone)[::2]).all()
    hole = A.copy()
    hole[1, 2] = np.nan
    chex.assert_trees_all_equal(crossing_500(jax.random.key(0), hole, B, KS), found)


def test_every_keyword_and_the_key_change_the_result():
    plain = scalars(crossing_500(jax.random.key(0), A, B, KS))
    again = scalars(crossing_500(jax.random.key(0), A, B, KS))
    assert plain == again
    for changed in (
        {"cluster": np.int32([0, 0, 1])},
        {"mask": np.array([True, True, False])},
        {"strata": np.int32([0, 0, 1])},
        {"level": 0.5},
        {"num_resamples": 20000},
    ):
        found = scalars(crossing_500(jax.random.key(0), A, B, KS, **changed))
        assert found != plain, changed
    assert scalars(crossing_500(jax.random.key(0), A, B, (1, 2, 8, 16))) != plain


def test_bad_input_is_named():
    run = partial(crossing_k, jax.random.key(0), A, B)
    with pytest.raises(InputError, match=r"ks: expected 4 values.* \(1, 2\)"):
        run((1, 2))
    with pytest.raises(InputError, match="ks: expected increasing values"):
        run((1, 4, 2, 8))
    with pytest.raises(InputError, match="ks: expected whole numbers >= 1, got"):
        run((0, 1, 2, 4))
    with pytest.raises(InputError, match="level: expected"):
        run(KS, level=2.0)
    with pytest.raises(InputError, match=r"strata: .* cluster 0 in 2"):
        run(KS, cluster=np.int32([0, 0, 1]), strata=np.int32([0, 1, 1]))
    with pytest.raises(AssertionError):
        crossing_k(jax.random.key(0), A, B[:2], KS)

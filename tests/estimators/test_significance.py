"""McNemar against rational numbers, Holm against a walk, and what both keep."""

from math import comb

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jerp.errors import InputError
from jerp.estimators.significance import (
    holm,
    mcnemar_exact,
    mcnemar_one_sided,
    sign_test,
)
from tests.reference import boundary as reference

P_VALUES = np.float32([[0.04, 0.5, 0.001], [0.03, 0.9, 0.04]])


@pytest.fixture(autouse=True)
def _strict_dtypes():
    with jax.numpy_dtype_promotion("strict"):
        yield


def test_published_counts():
    """arXiv:2604.14877: 5:1, 3:7 and 9:1, as p = 14/64, 352/1024 and 22/1024."""
    found = mcnemar_exact(jnp.array([5, 3, 9]), jnp.array([1, 7, 1]))
    assert found.tolist() == [0.21875, 0.34375, 0.021484375]


def test_against_rational_numbers(transform):
    gains, losses = np.indices((41, 41), np.int32)
    found = np.asarray(transform(mcnemar_exact)(gains, losses))
    exact = [[float(reference.mcnemar(b, c)) for c in range(41)] for b in range(41)]
    np.testing.assert_allclose(found, exact, rtol=2e-6)


def test_one_sided_by_hand():
    """7/64 of 5:1, 11/1024 of 9:1; 3:7 upwards 968/1024, downwards 176/1024."""
    found = mcnemar_one_sided(jnp.array([5, 9, 3, 7, 0]), jnp.array([1, 1, 7, 3, 4]))
    assert found.tolist() == [7 / 64, 11 / 1024, 968 / 1024, 176 / 1024, 1.0]


def test_one_sided_against_rational_numbers(transform):
    gains, losses = np.indices((41, 41), np.int32)
    found = np.asarray(transform(mcnemar_one_sided)(gains, losses))
    exact = [
        [float(reference.mcnemar_one_sided(b, c)) for c in range(41)] for b in range(41)
    ]
    np.testing.assert_allclose(found, exact, rtol=2e-6)


def test_one_side_and_its_mirror_overlap_in_what_was_seen():
    gains, losses = np.indices((21, 21), np.int32)
    up, down = mcnemar_one_sided(gains, losses), mcnemar_one_sided(losses, gains)
    seen = [[comb(b + c, b) / 2 ** (b + c) for c in range(21)] for b in range(21)]
    np.testing.assert_allclose(np.asarray(up + down), 1 + np.array(seen), rtol=1e-6)
    smaller = np.minimum(up, down)
    both = np.where(gains == losses, 1, 2 * smaller)
    np.testing.assert_allclose(both, mcnemar_exact(gains, losses), rtol=1e-6)
    inside = jax.jit(mcnemar_one_sided)(jnp.array([-1, 2]), jnp.array([3, -2]))
    assert np.isnan(inside).all()


@pytest.mark.parametrize(
    ("gains", "losses"), [(300, 100), (1000, 900), (1001, 1000), (126, 0)]
)
def test_many_discordant_tasks(gains, losses):
    exact = float(reference.mcnemar(gains, losses))
    found = mcnemar_exact(gains, losses)
    assert float(found) == pytest.approx(exact, rel=5e-6)
    for b, c in ((gains, losses), (losses, gains)):
        exact = float(reference.mcnemar_one_sided(b, c))
        assert float(mcnemar_one_sided(b, c)) == pytest.approx(exact, rel=5e-6)


@pytest.mark.parametrize("kind", [np.int8, np.uint8, np.int16])
def test_no_integer_type_wraps_around(kind):
    found = mcnemar_exact(np.array(100, kind), np.array(60, kind))
    assert float(found) == float(mcnemar_exact(100, 60))


def test_limits_of_mcnemar():
    assert float(mcnemar_exact(0, 0)) == 1.0
    assert float(mcnemar_exact(77, 77)) == 1.0
    assert float(mcnemar_exact(20, 0)) == 2.0**-19
    assert float(mcnemar_exact(10_000, 0)) == 0.0, "below float32"
    inside = jax.jit(mcnemar_exact)(jnp.array([-1, 2]), jnp.array([3, -2]))
    assert np.isnan(inside).all()


_mcnemar = jax.jit(mcnemar_exact)


@given(
    st.lists(
        st.tuples(st.integers(0, 300), st.integers(0, 300)), min_size=4, max_size=4
    )
)
@settings(max_examples=200, deadline=None, derandomize=True)
def test_mcnemar_is_symmetric_a_probability_and_falls(pairs):
    gains, losses = np.int32(pairs).T
    p = np.asarray(_mcnemar(gains, losses))
    np.testing.assert_array_equal(p, _mcnemar(losses, gains))
    assert ((p >= 0) & (p <= 1)).all()
    larger, smaller = np.maximum(gains, losses), np.minimum(gains, losses)
    further = np.asarray(_mcnemar(larger + 1, smaller))
    assert (further <= p * (1 + 4e-6)).all()


def test_holm_by_hand():
    """4 * .01, 3 * .02, then 2 * .02 is no less than that, and 1 * .9."""
    p = jnp.array([0.02, 0.9, 0.01, 0.02])
    np.testing.assert_allclose(holm(p), [0.06, 0.9, 0.04, 0.06], rtol=1e-6)


def test_holm_against_a_walk(transform):
    found = transform(holm)(P_VALUES)
    expected = reference.holm(P_VALUES.ravel().tolist())
    np.testing.assert_allclose(found, np.reshape(expected, (2, 3)), rtol=1e-6)


@pytest.mark.parametrize("axis", [0, 1, -1])
def test_families_along_an_axis(axis):
    found = holm(P_VALUES, axis=axis)
    expected = np.apply_along_axis(
        lambda row: reference.holm(row.tolist()), axis, P_VALUES
    )
    np.testing.assert_allclose(found, expected, rtol=1e-6)
    assert (np.asarray(found) < holm(P_VALUES)).any(), "a smaller family costs less"


def test_a_nan_is_no_test():
    found = np.asarray(_holm(np.float32([0.3, np.nan, 0.02, np.nan, np.nan, np.nan])))
    np.testing.assert_allclose(found[[0, 2]], [0.3, 0.04])
    assert np.isnan(found[[1, 3, 4, 5]]).all()
    assert np.isnan(_holm(np.full(6, np.nan, np.float32))).all()
    assert _holm(jnp.zeros(0)).shape == (0,)
    assert float(_holm(jnp.float32(0.25))) == 0.25


_holm = jax.jit(holm)


@given(
    st.lists(st.floats(0, 1, width=32, allow_subnormal=False), min_size=6, max_size=6),
    st.permutations(range(6)),
)
@settings(max_examples=200, deadline=None, derandomize=True)
def test_holm_is_monotone_above_raw_and_below_bonferroni(p_values, order):
    p = np.float32(p_values)
    found = np.asarray(_holm(p))
    assert (found >= p).all()
    assert (found <= np.minimum(6 * p, 1) * (1 + 1e-6)).all()
    assert (np.diff(found[np.argsort(p, kind="stable")]) >= 0).all()
    np.testing.assert_array_equal(_holm(p[np.array(order)]), found[np.array(order)])


def test_bad_input_is_named():
    with pytest.raises(InputError, match=r"gains: expected >= 0, got -1 at \[1\]"):
        mcnemar_exact(jnp.array([2, -1]), jnp.array([1, 1]))
    with pytest.raises(InputError, match="losses: expected >= 0, got -3"):
        mcnemar_exact(1, -3)
    with pytest.raises(AssertionError):
        mcnemar_exact(jnp.array([1, 2]), jnp.array([1]))
    with pytest.raises(AssertionError):
        mcnemar_exact(1.5, 2.0)
    with pytest.raises(
        InputError, match=r"p_values: expected in \[0, 1\], .*, got 1.5"
    ):
        holm(jnp.array([0.5, 1.5]))
    assert np.isnan(jax.jit(holm)(jnp.array([0.5, 1.5]))[1])


def test_one_trace_a_shape():
    traced = chex.assert_max_traces(lambda b, c: holm(mcnemar_exact(b, c)), n=1)
    run = jax.jit(traced)
    for shift in range(3):
        run(jnp.array([5, 3 + shift]), jnp.array([1, 7 + shift]))
    with pytest.raises(AssertionError):
        run(jnp.array([5]), jnp.array([1]))


def test_sign_test_by_hand():
    # Five of six: 2 (1 + 6) / 64. The tie and the NaN are in neither count.
    difference = jnp.array([0.1, 0.2, 0.3, -0.1, 0.2, 0.1, 0.0, jnp.nan])
    found = sign_test(difference)
    assert (int(found.positive), int(found.negative)) == (5, 1)
    assert float(found.p_value) == pytest.approx(14 / 64)
    assert float(found.smallest) == pytest.approx(2 / 64)


def test_sign_test_of_rows_and_of_nothing(transform):
    rows = jnp.array([[1.0, 2.0, 3.0], [0.0, 0.0, 0.0], [-1.0, 2.0, jnp.nan]])
    found = [transform(sign_test)(row) for row in rows]
    assert [float(f.p_value) for f in found] == [0.25, 1.0, 1.0]
    assert [float(f.smallest) for f in found] == [0.25, 1.0, 0.5]
    assert [float(sign_test(-row).p_value) for row in rows] == [0.25, 1.0, 1.0]

"""Clustered standard errors: by hand, by reference, and at their limits."""

import chex
import jax
import numpy as np
import pytest

from jerp.errors import InputError
from jerp.estimators.standard_error import (
    clustered_standard_error,
    smallest_detectable_difference,
)
from tests.estimators.test_intervals import CLUSTER, VALUES
from tests.reference import intervals as reference


@pytest.fixture(autouse=True)
def _strict_dtypes():
    with jax.numpy_dtype_promotion("strict"):
        yield


def test_standard_error_against_the_reference(transform):
    found = transform(
        lambda values, cluster: clustered_standard_error(values, cluster=cluster)
    )(VALUES, CLUSTER)
    expected = reference.clustered_standard_error(VALUES, CLUSTER)
    assert float(found) == pytest.approx(expected, rel=1e-5)


def test_standard_error_limits():
    own = clustered_standard_error(VALUES)
    plain = VALUES.std(ddof=1) / np.sqrt(len(VALUES))
    assert float(own) == pytest.approx(plain, rel=1e-5)
    copied = clustered_standard_error(
        np.repeat(VALUES, 3), cluster=np.repeat(CLUSTER, 3)
    )
    single = clustered_standard_error(VALUES, cluster=CLUSTER)
    assert float(copied) == pytest.approx(float(single), rel=1e-5)
    assert np.isnan(clustered_standard_error(VALUES, cluster=np.zeros(11, np.int32)))
    assert np.isnan(clustered_standard_error(np.full(3, np.nan, np.float32)))


def test_standard_error_is_the_spread_of_the_bootstrap():
    means = reference.every_resample_mean(VALUES, [*range(5), 0, 1, 2, 3, 4, 4][:11])
    error = clustered_standard_error(
        VALUES, cluster=np.array([*range(5), 0, 1, 2, 3, 4, 4])
    )
    # The bootstrap has no C / (C - 1), and is a ratio where clusters differ in size.
    assert np.std(means) == pytest.approx(float(error) * np.sqrt(4 / 5), rel=0.1)


def test_smallest_detectable_difference_by_hand():
    error = float(clustered_standard_error(VALUES, cluster=CLUSTER))
    found = smallest_detectable_difference(VALUES, cluster=CLUSTER)
    assert float(found) == pytest.approx((1.959964 + 0.841621) * error, rel=1e-5)
    strict = smallest_detectable_difference(VALUES, cluster=CLUSTER, level=0.99)
    assert float(strict) == pytest.approx((2.575829 + 0.841621) * error, rel=1e-5)
    even = smallest_detectable_difference(VALUES, cluster=CLUSTER, power=0.5)
    assert float(even) == pytest.approx(1.959964 * error, rel=1e-5)


@pytest.mark.parametrize("poison", [np.nan, np.inf, 1e30])
def test_left_out_values_do_not_matter(poison):
    mask = np.array([True] * 9 + [False] * 2)

    def run(filler):
        values = np.where(mask, VALUES, np.float32(filler))
        return (
            clustered_standard_error(values, cluster=CLUSTER, mask=mask),
            smallest_detectable_difference(values, cluster=CLUSTER, mask=mask),
        )

    chex.assert_trees_all_equal(run(poison), run(0.0))


def test_nan_is_left_out():
    values = VALUES.copy()
    values[[0, 6, 7]] = np.nan
    error = clustered_standard_error(values, cluster=CLUSTER)
    expected = reference.clustered_standard_error(values, CLUSTER)
    assert float(error) == pytest.approx(expected, rel=1e-5)


@pytest.mark.parametrize("scale", [0.125, 3.0, 8.0])
def test_scale_shift_and_names(scale):
    plain = clustered_standard_error(VALUES, cluster=CLUSTER)
    moved = clustered_standard_error(
        np.float32(scale) * VALUES + np.float32(5), cluster=100 - 3 * CLUSTER
    )
    np.testing.assert_allclose(moved, scale * plain, rtol=2e-4)


@pytest.mark.parametrize("name", ["level", "power"])
def test_bad_settings_are_named(name):
    with pytest.raises(InputError, match=rf"{name}: expected in \(0, 1\), got 1.0"):
        smallest_detectable_difference(VALUES, **{name: 1.0})

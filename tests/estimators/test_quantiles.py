"""Quantiles of a bootstrap distribution, plain and BCa."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jerp.estimators.clusters import resampling_clusters
from jerp.estimators.quantiles import (
    bca_levels,
    cluster_influence,
    quantile,
    resolution,
)


@pytest.fixture(autouse=True)
def _strict_dtypes():
    with jax.numpy_dtype_promotion("strict"):
        yield


def test_quantile_against_numpy(transform):
    rows = np.array(jax.random.normal(jax.random.key(0), (31, 3)))
    rows[5:9, 1] = np.nan
    levels = np.float32([0.025, 0.5, 0.999])
    found = transform(quantile)(rows, levels)
    expected = [np.nanquantile(rows[:, i], levels[i]) for i in range(3)]
    np.testing.assert_allclose(found, expected, rtol=1e-5)
    assert np.isnan(quantile(np.full(4, np.nan, np.float32), jnp.float32(0.5)))


def test_bca_without_bias_and_skew_is_the_nominal_level():
    symmetric = jnp.arange(-200.0, 201.0)
    for level in (0.025, 0.3, 0.975):
        found = jax.jit(bca_levels)(
            jnp.float32(level), jnp.float32(0.0), symmetric, jnp.float32([-1, 0, 1])
        )
        assert float(found) == pytest.approx(level, abs=1e-5)


def test_bca_acceleration_by_hand():
    """Influences 1, 1, -2: a = -6 / (6 * 6^1.5) = -0.068041, without bias."""
    found = jax.jit(bca_levels)(
        jnp.float32(0.975),
        jnp.float32(0.0),
        jnp.arange(-200.0, 201.0),
        jnp.float32([1, 1, -2]),
    )
    assert float(found) == pytest.approx(0.95813, abs=1e-5)


def test_bca_levels_do_not_depend_on_the_scale():
    x = jnp.float32([0.0, 0.1, 0.2, 0.9])
    level = jax.jit(partial(bca_levels, jnp.float32(0.975)))
    plain = level(jnp.float32(0.15), x, x)
    assert float(plain) != pytest.approx(0.975, abs=1e-3)
    for scale in (1e-18, 1e18):
        found = level(jnp.float32(0.15 * scale), x * scale, x * scale)
        np.testing.assert_allclose(found, plain, rtol=1e-5)


def test_bca_levels_of_equal_resamples_are_finite():
    same = jnp.ones(5)
    found = jax.jit(bca_levels)(jnp.float32(0.975), jnp.float32(1.0), same, 0 * same)
    assert float(found) == pytest.approx(0.975, abs=1e-5)
    one_side = jax.jit(bca_levels)(jnp.float32(0.975), jnp.float32(2.0), same, same)
    assert 0 < float(one_side) <= 1


def test_influence_by_hand():
    """Strata of 3, 2 and 1 clusters; the value without cluster 1 is undefined."""
    clusters = resampling_clusters(
        np.arange(6), np.ones(6, bool), strata=np.array([0, 0, 0, 1, 1, 2])
    )
    left_out = np.float32([1.0, np.nan, 4.0, 2.0, 8.0, 5.0])
    found = jax.jit(cluster_influence)(left_out, clusters)
    expected = [2 / 3 * 1.5, 0, 2 / 3 * -1.5, 0.5 * 3, 0.5 * -3, 0]
    np.testing.assert_allclose(found, expected, rtol=1e-6)
    columns = jax.jit(cluster_influence)(
        np.stack([left_out, 2 * left_out], 1), clusters
    )
    np.testing.assert_allclose(columns[:, 1], 2 * np.float32(expected), rtol=1e-6)


def test_resolution_ignores_rounding_and_sees_more():
    values = jnp.float32([[1.0, 2.0], [jnp.nan, -3.0]])
    found = resolution(values)
    np.testing.assert_allclose(found, [16 * 2.0**-23, 48 * 2.0**-23])
    assert resolution(jnp.full((3, 1), jnp.nan)).tolist() == [0.0]


def test_a_tie_to_rounding_is_a_tie():
    """The same resamples added up in another order: z0 must not move by a third."""
    replicate = jnp.float32([0.2, 0.5, 0.5, 0.5, 0.8])
    noisy = replicate * (1 + 2.0**-22 * jnp.float32([0, 1, 1, 1, 0]))
    level = jax.jit(partial(bca_levels, jnp.float32(0.9), jnp.float32(0.5)))
    exact = level(replicate, jnp.zeros(5))
    assert float(level(noisy, jnp.zeros(5))) == float(exact) == pytest.approx(0.9)

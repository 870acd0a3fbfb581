import doctest
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jerp.estimators import resampling
from jerp.estimators.resampling import (
    bca_levels,
    jackknife,
    quantile,
    replicates,
    resampled_weight,
    weighted_mean,
)
from jerp.ops.segments import GroupIds, dense_group_ids

CLUSTER = np.array([40, -3, 40, 7, 9, 7, -3, 9], np.int32)
MASK = np.array([True, True, True, True, False, True, True, False])


@pytest.fixture(autouse=True)
def _strict_dtypes():
    with jax.numpy_dtype_promotion("strict"):
        yield


def test_weighted_mean(transform):
    weight = np.float32([1, 0, 2])
    values = np.float32([[1, 2], [50, 60], [4, 8]])
    np.testing.assert_allclose(transform(weighted_mean)(values, weight), [3, 6])
    assert np.isnan(weighted_mean(values, np.zeros(3, np.float32))).all()
    assert float(weighted_mean(jnp.array([True, False, True]), weight)) == 1.0


def test_weights_by_hand():
    """Draws 0, 2, 2 of the clusters -3, 7, 40; the other shares are not used."""
    share = np.float32([0.1, 0.7, 0.999] + [0.5] * 5)
    found = resampled_weight(share, dense_group_ids(CLUSTER, mask=MASK))
    assert found.tolist() == [2, 1, 2, 0, 0, 0, 1, 0]


def test_weights_draw_whole_clusters_as_often_as_there_are(transform):
    clusters = dense_group_ids(CLUSTER, mask=MASK)
    share = jax.random.uniform(jax.random.key(0), (500, 8))
    run = transform(jax.vmap(resampled_weight, (0, None)))
    weight = np.asarray(run(share, clusters))
    assert (weight[:, ~MASK] == 0).all()
    pairs = weight[:, [[0, 2], [1, 6], [3, 5]]]
    np.testing.assert_array_equal(pairs[..., 0], pairs[..., 1])
    times = pairs[..., 0]
    assert (times.sum(1) == 3).all()
    # Binomial(3, 1/3) each: mean 1, variance 2/3.
    np.testing.assert_allclose(times.mean(0), 1.0, atol=4 * np.sqrt(2 / 3 / 500))
    np.testing.assert_allclose((times == 0).mean(0), (2 / 3) ** 3, atol=0.09)


def test_the_largest_share_draws_the_last_cluster():
    draws = jax.jit(resampled_weight)
    for number in (1, 5, 999, 1000):
        index = jnp.minimum(jnp.arange(1000), number)
        index = jnp.where(index < number, index, 1000)
        clusters = GroupIds(index, jnp.int32(number))
        assert draws(jnp.full(1000, 1 - 2.0**-24), clusters)[number - 1] == number


@pytest.mark.parametrize("elements", [8, 56])
def test_every_block_is_another_draw_and_none_is_lost(elements, monkeypatch):
    monkeypatch.setattr(resampling, "_BLOCK_ELEMENTS", elements)
    values = jax.random.normal(jax.random.key(1), (8,))
    clusters = dense_group_ids(jnp.arange(8), mask=jnp.ones(8, bool))
    found = replicates(
        jax.random.key(3), values, clusters, weighted_mean, num_resamples=50
    )
    assert found.shape == (50,)
    assert len(np.unique(found)) > 45
    spread = float(values.std()) / np.sqrt(8)
    assert abs(float(found.mean() - values.mean())) < 4 * spread / np.sqrt(50)


def test_replicates_of_a_tree_and_an_array_statistic():
    def ratios(values, weight):
        top, bottom = values["top"], values["bottom"]
        one = weighted_mean(top, weight) / weighted_mean(bottom, weight)
        return jnp.stack([one, weighted_mean(bottom, weight)])

    values = {"top": jnp.full(8, 3.0), "bottom": jnp.full(8, 2.0)}
    clusters = dense_group_ids(CLUSTER, mask=MASK)
    found = replicates(jax.random.key(0), values, clusters, ratios, num_resamples=7)
    np.testing.assert_allclose(found, np.tile([1.5, 2.0], (7, 1)))


def test_jackknife_against_loops():
    values = np.float32([1, 2, 3, 4, np.inf, 5, 6, np.inf])
    clusters = dense_group_ids(CLUSTER, mask=MASK)
    found = jackknife(jnp.where(MASK, values, 0.0), clusters, weighted_mean)
    rows = [
        np.mean(
            [v for v, c, m in zip(values, CLUSTER, MASK, strict=True) if m and c != out]
        )
        for out in (-3, 7, 40)
    ]
    np.testing.assert_allclose(found[:3], rows)
    assert np.isnan(found[3:]).all()


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
    """Offsets 1, 1, -2: a = -6 / (6 * 6^1.5) = -0.068041, without bias."""
    found = jax.jit(bca_levels)(
        jnp.float32(0.975),
        jnp.float32(0.0),
        jnp.arange(-200.0, 201.0),
        jnp.float32([0, 0, 3]),
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
    found = jax.jit(bca_levels)(jnp.float32(0.975), jnp.float32(1.0), same, same)
    assert float(found) == pytest.approx(0.975, abs=1e-5)
    one_side = jax.jit(bca_levels)(jnp.float32(0.975), jnp.float32(2.0), same, same)
    assert 0 < float(one_side) <= 1


def test_examples():
    assert doctest.testmod(resampling).failed == 0

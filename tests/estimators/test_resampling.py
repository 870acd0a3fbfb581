from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jerp.estimators import resampling
from jerp.estimators.clusters import resampling_clusters
from jerp.estimators.intervals import bootstrap_interval
from jerp.estimators.resampling import (
    jackknife,
    replicates,
    resampled_weight,
    weight_within,
    weighted_mean,
)

CLUSTER = np.array([40, -3, 40, 7, 9, 7, -3, 9], np.int32)
MASK = np.array([True, True, True, True, False, True, True, False])

# Without jit each primitive of each shape is compiled by itself.
clusters_of = jax.jit(resampling_clusters)
mean = jax.jit(weighted_mean)
drawn = jax.jit(resampled_weight)


@pytest.fixture(autouse=True)
def _strict_dtypes():
    with jax.numpy_dtype_promotion("strict"):
        yield


def test_weighted_mean(transform):
    weight = np.float32([1, 0, 2])
    values = np.float32([[1, 2], [50, 60], [4, 8]])
    np.testing.assert_allclose(transform(weighted_mean)(values, weight), [3, 6])
    assert np.isnan(mean(values, np.zeros(3, np.float32))).all()
    assert float(mean(np.array([True, False, True]), weight)) == 1.0


def test_weights_by_hand():
    """Draws 0, 2, 2 of the clusters -3, 7, 40; the other shares are not used."""
    share = np.float32([0.1, 0.7, 0.999] + [0.5] * 5)
    found = drawn(share, clusters_of(CLUSTER, MASK))
    assert found.tolist() == [2, 1, 2, 0, 0, 0, 1, 0]


def test_weights_draw_whole_clusters_as_often_as_there_are(transform):
    clusters = clusters_of(CLUSTER, MASK)
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
    for number in (1, 5, 999, 1000):
        index = np.arange(1000, dtype=np.int32)
        index[number:] = 1000
        clusters = clusters_of(index, index < 1000)
        share = np.full(1000, 1 - 2.0**-24, np.float32)
        assert drawn(share, clusters)[number - 1] == number


@pytest.mark.parametrize("elements", [8, 56])
def test_every_block_is_another_draw_and_none_is_lost(elements, monkeypatch):
    monkeypatch.setattr(resampling, "_BLOCK_ELEMENTS", elements)
    values = jax.random.normal(jax.random.key(1), (8,))
    clusters = clusters_of(np.arange(8, dtype=np.int32), np.ones(8, bool))
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
    clusters = clusters_of(CLUSTER, MASK)
    found = replicates(jax.random.key(0), values, clusters, ratios, num_resamples=7)
    np.testing.assert_allclose(found, np.tile([1.5, 2.0], (7, 1)))


def test_jackknife_against_loops():
    values = np.float32([1, 2, 3, 4, np.inf, 5, 6, np.inf])
    clusters = clusters_of(CLUSTER, MASK)
    kept = np.where(MASK, values, np.float32(0))
    found = jax.jit(partial(jackknife, statistic=weighted_mean))(kept, clusters)
    rows = [
        np.mean(
            [v for v, c, m in zip(values, CLUSTER, MASK, strict=True) if m and c != out]
        )
        for out in (-3, 7, 40)
    ]
    np.testing.assert_allclose(found[:3], rows)
    assert np.isnan(found[3:]).all()


@pytest.mark.parametrize("number", [127, 129, 50_000])
def test_a_mean_of_many_values_keeps_its_digits(number):
    """A sum of 50,000 equal terms in sequence is off by 4e-4."""
    values = jnp.full((number, 2, 3), 0.3, jnp.float32)
    weight = jnp.arange(number).astype(jnp.float32) % 3
    found = mean(values, weight)
    np.testing.assert_allclose(found, np.full((2, 3), 0.3), rtol=2e-6)
    ones = mean(weight, jnp.ones(number))
    np.testing.assert_allclose(ones, np.mean(np.arange(number) % 3), rtol=2e-7)


def test_a_mean_of_nothing_is_undefined():
    assert mean(jnp.zeros((0, 2)), jnp.zeros(0)).shape == (2,)
    assert np.isnan(mean(jnp.zeros((0, 2)), jnp.zeros(0))).all()
    assert mean(jnp.zeros((3, 0)), jnp.ones(3)).shape == (0,)


def test_draws_stay_in_their_stratum():
    """Clusters -3 and 40 of one stratum, 7 alone in the other."""
    strata = np.where(np.isin(CLUSTER, [7, 9]), 5, 2).astype(np.int32)
    clusters = clusters_of(CLUSTER, MASK, strata=strata)
    assert clusters.index.tolist() == [1, 0, 1, 2, 8, 2, 0, 8]
    share = jax.random.uniform(jax.random.key(0), (500, 8))
    weight = np.asarray(jax.jit(jax.vmap(resampled_weight, (0, None)))(share, clusters))
    assert (weight[:, [3, 5]] == 1).all()
    assert (weight[:, 0] + weight[:, 1] == 2).all()
    # Binomial(2, 1/2).
    np.testing.assert_allclose((weight[:, 0] == 2).mean(), 0.25, atol=0.08)


@pytest.mark.parametrize("times", [(0.0, 3.0, 0.0), (1.0, 1.0, 1.0)])
def test_draws_within_clusters_by_law(times):
    """t draws of m values m times: t m draws, each value Binomial(t m, 1 / m)."""
    cluster = np.array([4, 4, 8, 8, 8, 8, 6, 6], np.int32)
    clusters = clusters_of(cluster, cluster != 6)
    weight = np.float32(times)[[0, 0, 1, 1, 1, 1, 2, 2]]
    weight = np.where(cluster != 6, weight, np.float32(0))
    draw = jax.jit(weight_within)
    found = np.asarray(draw(jax.random.key(0), np.tile(weight, (4000, 1)), clusters))
    assert (found[:, 6:] == 0).all()
    for part, number in ((slice(0, 2), 2), (slice(2, 6), 4)):
        total = float(weight[part].sum())
        assert (found[:, part].sum(1) == total).all()
        variance = total / number * (1 - 1 / number)
        np.testing.assert_allclose(
            found[:, part].mean(0), total / number, atol=4 * np.sqrt(variance / 4000)
        )
        np.testing.assert_allclose(found[:, part].var(0), variance, rtol=0.15)
    other = draw(jax.random.key(1), np.tile(weight, (4000, 1)), clusters)
    assert (found != np.asarray(other)).any()


def test_what_weighs_nothing_may_be_infinite():
    values = np.float32([[1, 1, 1, 1], [3, np.inf, -np.inf, np.nan]])
    without, with_all = (mean(values, np.float32(w)).tolist() for w in ([1, 0], [1, 1]))
    assert without == [1.0] * 4
    np.testing.assert_array_equal(with_all, [2, np.inf, -np.inf, np.nan])
    both = np.float32([np.inf, -np.inf])
    assert np.isnan(mean(both, np.ones(2, np.float32)))


def test_an_infinite_value_is_seen_in_the_limits_under_jit():
    values = jnp.array([0.0, 1.0, jnp.inf])
    found = jax.jit(lambda x: bootstrap_interval(jax.random.key(0), x))(values)
    assert float(found.point) == np.inf and not np.isfinite(found.high)

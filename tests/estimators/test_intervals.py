"""Cluster-bootstrap intervals: by hand, against every resample, and at their limits."""

import json
from functools import partial
from pathlib import Path

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jerp.errors import ConfigError, InputError
from jerp.estimators.intervals import (
    bootstrap_interval,
    paired_difference,
    weighted_mean,
)
from tests.reference import intervals as reference

GOLDEN = Path(__file__).parents[1] / "golden" / "reward.json"
# Six clusters of one to three values.
VALUES = np.float32([0.1, 0.9, 0.4, 0.35, 0.8, 1.0, 0.0, 0.15, 0.7, 0.2, 0.62])
CLUSTER = np.array([5, 5, 2, 8, 8, 8, 1, 1, 30, 4, 4], np.int32)
# Domains: clusters 5, 2, 8 and 30 in the first, 1 and 4 in the second.
STRATA = np.where(np.isin(CLUSTER, [1, 4]), 3, -1).astype(np.int32)
# Three clusters of two values, so that what is drawn within them has equal sizes.
PAIRS = np.float32([0.0, 1.0, 0.23, 0.41, 0.86, 0.99])
PAIRED = np.array([3, 3, 1, 1, 2, 2], np.int32)


@pytest.fixture(autouse=True)
def _strict_dtypes():
    with jax.numpy_dtype_promotion("strict"):
        yield


# The engine compiles once a shape, a number of resamples and a set of arrays: most
# tests give the same, ones that leave nothing out and tell nothing apart.
def _drawing(interval, key, *values, **keywords):
    rows = len(values[0])
    keywords = {
        "mask": np.ones(rows, bool),
        "strata": np.zeros(rows, np.int32),
        "num_resamples": 500,
    } | keywords
    return interval(key, *values, **keywords)


bootstrap_500 = partial(_drawing, bootstrap_interval)
paired_500 = partial(_drawing, paired_difference)


def limits(interval):
    return np.asarray([interval.low, interval.high])


def test_two_clusters_by_hand():
    """Means 0, 1/2, 1 with probabilities 1/4, 1/2, 1/4."""
    run = partial(bootstrap_interval, values=jnp.array([0.0, 0.0, 1.0, 1.0]))
    pairs = jnp.array([0, 0, 1, 1])
    for level, expected in ((0.95, [0, 1]), (0.4, [0.5, 0.5])):
        found = run(jax.random.key(0), cluster=pairs, level=level)
        assert limits(found).tolist() == expected
        assert (float(found.point), found.level) == (0.5, level)
        assert (int(found.num_values), int(found.num_clusters)) == (4, 2)


@pytest.mark.parametrize("method", ["percentile", "bca"])
@pytest.mark.parametrize("level", [0.5, 0.9])
def test_against_every_resample(method, level):
    found = bootstrap_500(
        jax.random.key(0),
        VALUES,
        cluster=CLUSTER,
        level=level,
        method=method,
        num_resamples=20000,
    )
    exact = getattr(reference, f"{method}_interval")(VALUES, CLUSTER, level)
    # Monte-Carlo error of a quantile of 20,000 resamples, by far.
    np.testing.assert_allclose(limits(found), exact, atol=0.01)
    assert float(found.point) == pytest.approx(VALUES.mean())


def test_bca_is_another_interval_than_percentile():
    plain, corrected = (
        limits(
            bootstrap_500(jax.random.key(0), VALUES**4, cluster=CLUSTER, method=method)
        )
        for method in ("percentile", "bca")
    )
    assert np.abs(plain - corrected).max() > 0.01


def test_the_cluster_widens_the_interval():
    values = np.repeat(VALUES, 4)
    task = np.repeat(np.arange(len(VALUES)), 4)
    wide = bootstrap_interval(jax.random.key(0), values, cluster=task)
    narrow = bootstrap_interval(jax.random.key(0), values, cluster=np.arange(44))
    width = [float(i.high - i.low) for i in (wide, narrow)]
    assert width[0] == pytest.approx(2 * width[1], rel=0.15), "sqrt(4) times"


@pytest.mark.parametrize("method", ["percentile", "bca"])
def test_the_same_key_gives_the_same_interval(method):
    found = [
        bootstrap_500(jax.random.key(7), VALUES, cluster=CLUSTER, method=method)
        for _ in range(2)
    ]
    chex.assert_trees_all_equal(*found)
    other = bootstrap_500(jax.random.key(8), VALUES, cluster=CLUSTER, method=method)
    assert (limits(found[0]) != limits(other)).any()


def test_parity(transform):
    def run(key_data, values, cluster, strata):
        key = jax.random.wrap_key_data(key_data)
        return paired_difference(
            key,
            values,
            values**2,
            cluster=cluster,
            strata=strata,
            num_resamples=20,
            method="bca",
        )

    inputs = jnp.array([0, 3], jnp.uint32), VALUES, CLUSTER, STRATA
    chex.assert_trees_all_close(transform(run)(*inputs), run(*inputs), atol=1e-6)


@pytest.mark.parametrize("poison", [np.nan, np.inf, 1e30])
@pytest.mark.parametrize("method", ["percentile", "bca"])
def test_left_out_values_do_not_matter(poison, method):
    mask = np.array([True] * 9 + [False] * 2)

    def run(filler):
        values = np.where(mask, VALUES, np.float32(filler))
        return bootstrap_500(
            jax.random.key(0), values, cluster=CLUSTER, mask=mask, method=method
        )

    found = run(poison)
    chex.assert_trees_all_equal(found, run(0.0))
    assert [int(n) for n in (found.num_values, found.num_excluded)] == [9, 2]
    assert int(found.num_clusters) == 5


def test_nan_is_left_out_and_counted():
    values = VALUES.copy()
    values[[0, 6, 7]] = np.nan
    found = bootstrap_500(jax.random.key(0), values, cluster=CLUSTER)
    assert float(found.point) == pytest.approx(np.nanmean(values))
    assert [int(n) for n in (found.num_values, found.num_excluded)] == [8, 3]
    assert int(found.num_clusters) == 5, "cluster 1 has no value left"


@pytest.mark.parametrize("method", ["percentile", "bca"])
def test_degenerate_data(method):
    def run(values, **kwargs):
        return bootstrap_500(jax.random.key(0), values, method=method, **kwargs)

    same = run(np.full(11, 0.3, np.float32), cluster=CLUSTER)
    np.testing.assert_allclose([same.low, same.point, same.high], 0.3, rtol=1e-6)
    lone = run(VALUES, cluster=np.zeros(11, np.int32))
    assert float(lone.point) == pytest.approx(VALUES.mean())
    assert np.isnan(limits(lone)).all()
    nothing = run(np.full(11, np.nan, np.float32), cluster=CLUSTER)
    empty = run(np.zeros(0, np.float32))
    for found in (nothing, empty):
        assert np.isnan([found.point, found.low, found.high]).all()
        assert int(found.num_values) == int(found.num_clusters) == 0


def _hard_share(values, weight):
    """Undefined in resamples without a hard task."""
    return weighted_mean(values["solved"], weight * values["hard"])


def test_a_tree_and_a_statistic_that_is_sometimes_undefined():
    values = {
        "solved": jnp.array([1.0, 0.0, 1.0, 0.0]),
        "hard": jnp.array([1.0, 1.0, 0.0, 0.0]),
    }
    found = bootstrap_interval(jax.random.key(0), values, _hard_share)
    assert [float(x) for x in (found.low, found.point, found.high)] == [0.0, 0.5, 1.0]


def test_an_array_statistic_gives_one_interval_a_component():
    columns = np.stack([VALUES, 2 * VALUES - 1], axis=1)
    both = bootstrap_500(jax.random.key(0), columns, cluster=CLUSTER, method="bca")
    first = bootstrap_500(jax.random.key(0), VALUES, cluster=CLUSTER, method="bca")
    np.testing.assert_allclose(limits(both)[:, 0], limits(first), rtol=1e-5)
    np.testing.assert_allclose(limits(both)[:, 1], 2 * limits(first) - 1, atol=1e-5)


def test_paired_by_hand():
    """Per-task means of 1, 2 and 3: the resampled mean is 1 or 3 in 1 of 27 each."""
    a = jnp.array([2.0, 1.0, 2.0, 3.0, 3.0])
    b = jnp.array([1.0, 0.0, 0.0, 0.0, 0.0])
    keep, task = jnp.array([True, True, True, True, False]), jnp.array([0, 0, 1, 2, 2])
    found = paired_difference(jax.random.key(0), a, b, cluster=task, mask=keep)
    assert float(found.point) == pytest.approx((1 + 1 + 2 + 3) / 4)
    assert limits(found).tolist() == [1.0, 3.0]
    assert float(found.p_value) == pytest.approx(2 / 2001)


def test_p_value_against_every_resample():
    for shift in (0.25, 0.45):
        found = paired_500(
            jax.random.key(2),
            VALUES,
            np.full(11, shift, np.float32),
            cluster=CLUSTER,
            num_resamples=20000,
        )
        exact = reference.two_sided_p(VALUES.astype(np.float64) - shift, CLUSTER)
        assert 0.0 < exact < 1.0
        assert float(found.p_value) == pytest.approx(exact, abs=0.015)


@pytest.mark.parametrize("method", ["percentile", "bca"])
def test_strata_against_every_resample(method):
    found = bootstrap_500(
        jax.random.key(0),
        VALUES,
        cluster=CLUSTER,
        strata=STRATA,
        level=0.8,
        method=method,
        num_resamples=20000,
    )
    exact = getattr(reference, f"{method}_interval")(VALUES, CLUSTER, 0.8, STRATA)
    np.testing.assert_allclose(limits(found), exact, atol=0.01)
    other = getattr(reference, f"{method}_interval")(VALUES, CLUSTER, 0.8)
    assert np.abs(exact - other).max() > 0.02, "strata matter here"


def test_drawing_within_against_every_resample():
    found = bootstrap_500(
        jax.random.key(0),
        PAIRS,
        cluster=PAIRED,
        num_resamples=20000,
        level=0.8,
        resample_within=True,
    )
    twice, once = (
        np.quantile(every(PAIRS, PAIRED), [0.1, 0.9])
        for every in (reference.every_two_stage_mean, reference.every_resample_mean)
    )
    np.testing.assert_allclose(limits(found), twice, atol=0.01)
    assert np.diff(twice) > 1.1 * np.diff(once), "the spread within counts twice"


def test_drawing_within_single_values_changes_nothing():
    lone = np.arange(11, dtype=np.int32)
    one, two = (
        bootstrap_500(jax.random.key(0), VALUES, cluster=lone, resample_within=within)
        for within in (False, True)
    )
    chex.assert_trees_all_close(one, two)


def test_one_stratum_and_one_a_cluster():
    plain = bootstrap_500(jax.random.key(0), VALUES, cluster=CLUSTER)
    one = bootstrap_500(
        jax.random.key(0), VALUES, cluster=CLUSTER, strata=np.zeros(11, np.int32)
    )
    chex.assert_trees_all_equal(plain, one)
    each = paired_500(
        jax.random.key(0), VALUES, VALUES**2, cluster=CLUSTER, strata=CLUSTER
    )
    assert np.isnan([each.low, each.high, each.p_value]).all()
    assert float(each.point) == pytest.approx((VALUES - VALUES**2).mean())


def test_strata_of_a_paired_difference():
    """Task means 1 and 3 in one domain, 6 alone in the other: 8, 10 or 12 thirds."""
    a, zero = jnp.array([1.0, 3.0, 6.0]), jnp.zeros(3)
    found = paired_500(
        jax.random.key(0), a, zero, strata=jnp.array([4, 4, 9]), cluster=jnp.arange(3)
    )
    np.testing.assert_allclose(limits(found), [8 / 3, 4], rtol=1e-6)


def test_pairs_are_drawn_anew_within_a_cluster():
    within, plain = (
        limits(
            paired_500(
                jax.random.key(0),
                VALUES,
                VALUES**2,
                cluster=CLUSTER,
                resample_within=both,
            )
        )
        for both in (True, False)
    )
    assert (within != plain).any()


def test_a_cluster_in_two_strata():
    crossed = np.arange(11, dtype=np.int32) % 2
    with pytest.raises(InputError, match="strata: expected every cluster in one"):
        bootstrap_500(jax.random.key(0), VALUES, cluster=CLUSTER, strata=crossed)

    @jax.jit
    def inside(values, strata):
        key = jax.random.key(0)
        return (
            bootstrap_500(key, values, cluster=CLUSTER, strata=strata),
            paired_500(key, values, values**2, cluster=CLUSTER, strata=strata),
        )

    for found in inside(VALUES, crossed):
        assert np.isnan(limits(found)).all() and np.isfinite(found.point)
    assert np.isnan(found.p_value)


def test_turning_the_difference_turns_the_interval():
    def run(a, b):
        return paired_500(jax.random.key(0), a, b, cluster=CLUSTER)

    there, back = run(VALUES, VALUES**2), run(VALUES**2, VALUES)
    np.testing.assert_allclose(limits(there), -limits(back)[::-1], atol=1e-6)
    assert float(there.p_value) == pytest.approx(float(back.p_value))


def test_p_sees_an_exact_zero_that_rounding_hides():
    """0.3 - 0.2 and 0.1 - 0.2 do not add up to 0 in float32; 3 - 2 and 1 - 2 do."""
    a, b = np.float32([3, 1, 4, 7]), np.float32([2, 2, 2, 5])
    a = np.append(a, np.float32([6, 1, 1, 0, 0, 0, 0]))
    b = np.append(b, np.float32([7, 3, 0, 0, 0, 0, 0]))
    whole = paired_500(jax.random.key(0), a, b)
    tenths = paired_500(jax.random.key(0), a / 10, b / 10)
    assert float(whole.p_value) == float(tenths.p_value)


def test_p_is_never_zero_and_small_only_when_the_interval_says_so():
    a = np.float32([1.0, 2.0, 3.0, 4.0])
    for number in (1, 500):
        found = paired_difference(
            jax.random.key(0), a, np.zeros(4, np.float32), num_resamples=number
        )
        assert float(found.p_value) == pytest.approx(2 / (number + 1))
    same = paired_difference(jax.random.key(0), a, a, num_resamples=500)
    assert float(same.p_value) == 1.0
    assert float(same.high - same.low) == 0.0


def _golden(why):
    cases = json.loads(GOLDEN.read_text())["cases"]
    (case,) = [
        c for c in cases if c["kind"] == "paired_bootstrap" and c["why"].startswith(why)
    ]
    base, other = (np.float32(case["inputs"][name]) for name in ("base", "other"))
    found = paired_difference(
        jax.random.key(0), other, base, num_resamples=case["inputs"]["n_resamples"]
    )
    return found, case["outputs"], other - base


def test_golden_clear_gain():
    """The peer reports p = 0.0 and calls one rollout a task: `cluster=None`."""
    found, peer, difference = _golden("clear gain")
    assert float(found.point) == pytest.approx(peer["mean_delta"], abs=1e-6)
    assert int(found.num_values) == peer["n"]
    width = peer["ci95_hi"] - peer["ci95_lo"]
    expected = [peer["ci95_lo"], peer["ci95_hi"]]
    np.testing.assert_allclose(limits(found), expected, atol=0.06 * width)
    assert peer["p_two_sided"] == 0.0
    assert float(found.p_value) == pytest.approx(2 / 2001)
    # What the peer cannot say: three rollouts a task make the interval wider.
    task = np.argsort(np.argsort(difference)) // 3
    by_task = paired_difference(
        jax.random.key(0), difference, np.zeros(24, np.float32), cluster=task
    )
    assert float(by_task.high - by_task.low) > 1.4 * width


def test_golden_no_difference():
    found, peer, _ = _golden("no difference")
    assert float(found.point) == peer["mean_delta"] == 0.0
    assert limits(found).tolist() == [peer["ci95_lo"], peer["ci95_hi"]] == [0.0, 0.0]
    assert float(found.p_value) == peer["p_two_sided"] == 1.0


def test_golden_one_pair():
    """The peer reports nothing; ours the difference, and that it has no spread."""
    found, peer, _ = _golden("one pair")
    assert peer["mean_delta"] is None
    assert float(found.point) == pytest.approx(0.2)
    assert np.isnan([found.low, found.high, found.p_value]).all()


@given(
    scale=st.sampled_from([0.125, 0.5, 3.0, 8.0]),
    shift=st.integers(-5, 5),
)
@settings(max_examples=200, deadline=None, derandomize=True)
def test_scale_and_shift(scale, shift):
    before, after = (
        limits(bootstrap_500(jax.random.key(0), values, cluster=CLUSTER))
        for values in (VALUES, np.float32(scale) * VALUES + np.float32(shift))
    )
    np.testing.assert_allclose(after, scale * before + shift, atol=1e-4)


def test_one_trace_a_shape():
    traced = []

    def statistic(values, weight):
        traced.append(weight.shape)
        return weighted_mean(values, weight)

    for seed, values in enumerate((VALUES, VALUES * 2, 1 - VALUES)):
        key, level = jax.random.key(seed), 0.9 + 0.01 * seed
        bootstrap_500(key, values, statistic, cluster=CLUSTER + seed, level=level)
    assert len(traced) == 2, "once for the point, once for all resamples"


def _coverage(num_sets, num_tasks, per_task, num_resamples, method, clustered=True):
    """Share of intervals that hold the true mean of clustered binomial data."""
    task = jnp.repeat(jnp.arange(num_tasks), per_task)

    def one(key):
        easy, solved, resample = jax.random.split(key, 3)
        chance = jax.random.beta(easy, 1.5, 1.0, (num_tasks,))
        values = jax.random.bernoulli(solved, chance[task]).astype(jnp.float32)
        found = bootstrap_interval(
            resample,
            values,
            cluster=task if clustered else None,
            num_resamples=num_resamples,
            method=method,
        )
        return (found.low <= 0.6) & (found.high >= 0.6)

    keys = jax.random.split(jax.random.key(11), num_sets)
    return float(jnp.mean(jax.jit(partial(jax.lax.map, one))(keys)))


def test_coverage_fast():
    assert 0.88 <= _coverage(200, 30, 3, 200, "percentile") <= 0.99


@pytest.mark.slow
@pytest.mark.parametrize("method", ["percentile", "bca"])
def test_coverage(method):
    """95% nominal; 2,000 data sets, so that the share has a standard error of .005."""
    assert 0.925 <= _coverage(2000, 60, 9, 1000, method) <= 0.965


@pytest.mark.slow
def test_coverage_is_lost_when_rollouts_pass_for_independent():
    assert _coverage(1000, 60, 9, 500, "percentile", clustered=False) < 0.8


def test_bad_settings_are_named():
    run = partial(bootstrap_interval, jax.random.key(0), VALUES)
    with pytest.raises(
        InputError, match=r"num_resamples: expected a whole .* 1, got 0"
    ):
        run(num_resamples=0)
    with pytest.raises(InputError, match=r"level: expected in \(0, 1\), got 95"):
        run(level=95)
    with pytest.raises(ConfigError, match=r"resample_within: .* got cluster=None"):
        run(resample_within=True)
    with pytest.raises(AssertionError):
        run(cluster=CLUSTER[:5])
    with pytest.raises(AssertionError):
        run(cluster=CLUSTER, strata=STRATA[:5])

"""Group reductions by hand, against loops, and whatever padding and ids hold."""

from functools import partial

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jerp.ops.segments import (
    dense_group_ids,
    group_deviations,
    group_max,
    group_stats,
    group_sum,
    of_group,
)
from tests.reference import segments as reference


@pytest.fixture(autouse=True)
def _strict_dtypes():
    with jax.numpy_dtype_promotion("strict"):
        yield


CLUSTER = np.array([40, -3, 40, 7, 9, 7, -3, 9], np.int32)
COUNTS = np.array([True, True, True, True, False, True, True, False])


def ids_of(*columns):
    *keys, mask = columns
    return dense_group_ids(*keys, mask=mask)


def test_ids_by_hand(transform):
    found = transform(ids_of)(CLUSTER, COUNTS)
    # In the order of the ids: -3, 7, 40; cluster 9 has no value that counts.
    assert found.index.tolist() == [2, 0, 2, 1, 8, 1, 0, 8]
    assert int(found.count) == 3
    assert found.index.dtype == found.count.dtype == jnp.int32


def test_ids_against_numpy():
    key, other = jax.random.split(jax.random.key(0))
    keys = np.asarray(jax.random.randint(key, (20, 2, 12), -2, 2))
    masks = np.array(jax.random.bernoulli(other, 0.6, (20, 12)))
    masks[:, 0] = True
    number = jax.jit(ids_of)
    for (first, second), mask in zip(keys, masks, strict=True):
        for columns in ((first,), (first, second)):
            found = number(*columns, mask)
            rows = np.stack(columns)[:, mask]
            names, index = np.unique(rows, axis=1, return_inverse=True)
            assert int(found.count) == names.shape[1]
            np.testing.assert_array_equal(np.asarray(found.index)[mask], index.ravel())
            assert (np.asarray(found.index)[~mask] == 12).all()


def test_ids_do_not_depend_on_names_and_order():
    plain = ids_of(CLUSTER, COUNTS)
    renamed = ids_of(CLUSTER * 5 + 1, COUNTS)
    chex.assert_trees_all_equal(plain, renamed)
    turned = ids_of(CLUSTER[::-1], COUNTS[::-1])
    chex.assert_trees_all_equal(plain.index[::-1], turned.index)


def test_ids_of_nothing():
    assert int(ids_of(CLUSTER, np.zeros(8, bool)).count) == 0
    empty = ids_of(jnp.zeros(0, jnp.int32), jnp.zeros(0, bool))
    assert (empty.index.shape, int(empty.count)) == ((0,), 0)


X = np.array([1.5, -2.0, 3.25, 0.5, 8.5737, 8.5737, 8.5737, 4.0, 7.0], np.float32)
GROUP = np.array([3, 0, 3, 0, 2, 2, 2, 5, 0], np.int32)
MASK = np.array([1, 1, 1, 1, 1, 1, 1, 1, 0], bool)
ROWS = (X, GROUP, MASK)
WEIGHT = np.array([1.0, 2.0, 0.5, 1.0, 3.0, 1.0, 1.0, 0.25, 9.0], np.float32)
SIZE = 6
PADDING = [(np.nan, 0), (1e30, -1), (-np.inf, 99), (0.0, 2**31 - 1)]


CASES = [(ddof, weight) for ddof in (0, 1) for weight in (None, WEIGHT)]


def test_stats_equal_the_reference(transform):
    def stats(x, group_id, mask):
        run = partial(group_stats, x, group_id, mask, num_groups=SIZE)
        return [run(ddof=ddof, weight=weight) for ddof, weight in CASES]

    for found, (ddof, weight) in zip(transform(stats)(*ROWS), CASES, strict=True):
        expected = reference.stats(*ROWS, ddof, weight)
        for name in range(SIZE):
            mean, std, count, dead = expected.get(name, (0.0, 0.0, 0, False))
            np.testing.assert_allclose(found.mean[name], mean, rtol=1e-6)
            np.testing.assert_allclose(found.std[name], std, rtol=1e-6)
            assert (int(found.count[name]), bool(found.dead[name])) == (count, dead)


def test_stats_by_hand():
    """Group 0: -2 and .5; group 2: three equal; group 3: 1.5 and 3.25; group 5: one."""
    stats = group_stats(X, GROUP, MASK, num_groups=SIZE)
    np.testing.assert_allclose(stats.mean, [-0.75, 0, 8.5737, 2.375, 0, 4.0], rtol=1e-6)
    np.testing.assert_allclose(stats.std, [1.25, 0, 0, 0.875, 0, 0], rtol=1e-6)
    assert stats.count.tolist() == [2, 0, 3, 2, 0, 1]
    assert stats.dead.tolist() == [False, False, True, False, False, True]
    sample = group_stats(X, GROUP, MASK, num_groups=SIZE, ddof=1)
    np.testing.assert_allclose(sample.std[0], 1.25 * np.sqrt(2), rtol=1e-6)


def test_sums_maxima_and_hand_outs_by_hand(transform):
    def run(x, group_id, mask, value):
        return (
            group_sum(x, group_id, mask, num_groups=SIZE),
            group_max(x, group_id, mask, num_groups=SIZE, empty=-9.0),
            group_max(x, group_id, mask, num_groups=SIZE, empty=5.0),
            of_group(value, group_id, mask),
        )

    expected = (
        [-1.5, 0, 25.7211, 4.75, 0, 4.0],
        [0.5, -9, 8.5737, 3.25, -9, 4],
        [5, 5, 8.5737, 5, 5, 5],
        [13, 10, 13, 10, 12, 12, 12, 15, 0],
    )
    value = np.arange(10.0, 16.0, dtype=np.float32)
    for found, wanted in zip(transform(run)(*ROWS, value), expected, strict=True):
        np.testing.assert_allclose(found, wanted, rtol=1e-6)


def test_deviations_equal_the_reference(transform):
    def both(x, group_id, mask, weight):
        run = partial(group_deviations, num_groups=SIZE)
        return run(x, group_id, mask), run(x, group_id, mask, weight=weight)

    found = transform(both)(X, GROUP, MASK, WEIGHT)
    for deviation, weight in zip(found, (None, WEIGHT), strict=True):
        stats = reference.stats(X, GROUP, MASK, weight=weight)
        expected = [
            x - stats[name][0] if real else 0.0
            for x, name, real in zip(X.astype(float), GROUP, MASK, strict=True)
        ]
        np.testing.assert_allclose(deviation, expected, rtol=1e-6, atol=1e-7)
    assert not np.allclose(*found)


@pytest.mark.parametrize("value", [9.9, 8.5737, 0.3, -1e30, 1e-30, 0.1 + 0.2])
@pytest.mark.parametrize("number", [8, 15, 20])
def test_equal_values_deviate_by_exactly_nothing(value, number):
    x = np.full(16 * 20, value, np.float32)
    group_id = np.repeat(np.arange(16, dtype=np.int32), 20)
    mask = np.tile(np.arange(20) < number, 16)
    stats, deviation = everything(x, group_id, mask)
    assert not np.asarray(deviation).any()
    assert not np.asarray(stats.std).any()
    assert np.asarray(stats.dead).all()
    assert (np.asarray(stats.mean) == np.float32(value)).all()


@jax.jit
def everything(x, group_id, mask):
    run = {"num_groups": 16}
    return (
        group_stats(x, group_id, mask, **run),
        group_deviations(x, group_id, mask, **run),
    )


def test_equal_values_deviate_by_exactly_nothing_whatever_they_weigh():
    x = np.repeat(np.float32([10 * 0.95**t for t in range(16)]), 999)
    group_id = np.repeat(np.arange(16, dtype=np.int32), 999)
    weight = np.float32(0.3 + np.arange(x.size) % 7 / 11)
    mask = np.ones(x.size, bool)
    run = partial(group_stats, num_groups=16)
    stats = jax.jit(run)(x, group_id, mask, weight=weight)
    assert np.asarray(stats.dead).all()
    assert not np.asarray(stats.std).any()


def test_sums_of_large_groups_lose_nothing():
    """One pass over a hundred thousand rows would miss the mean by 1e-5 and more."""
    x = np.float32(np.arange(100_000) % 977 / 977) ** 2
    run = jax.jit(lambda *rows: group_stats(*rows, num_groups=1))
    stats = run(x, np.zeros(x.size, np.int32), np.ones(x.size, bool))
    np.testing.assert_allclose(stats.mean[0], x.astype(float).mean(), rtol=1e-6)


def test_groups_of_a_million_rows():
    """In sequence the outlier's group misses its mean by 7e-3, the other its spread."""
    x = np.float32(np.arange(2_000_000) % 4 // 2)
    x[0], x[1] = 100, -10
    group_id = (np.arange(x.size) % 2).astype(np.int32)
    run = jax.jit(lambda *rows: group_stats(*rows, num_groups=2))
    stats = run(x, group_id, np.ones(x.size, bool))
    for group in range(2):
        rows = x[group_id == group].astype(float)
        np.testing.assert_allclose(stats.mean[group], rows.mean(), rtol=1e-6)
        np.testing.assert_allclose(stats.std[group], rows.std(), rtol=1e-6)


@pytest.mark.parametrize("kind", [np.int8, np.uint8, np.int16, np.uint32])
def test_no_integer_type_of_ids_wraps_around(kind):
    """In int8, 128 groups have ids up to 127 and the left-out rows one that is -128."""
    group_id, mask = np.array([0, 1, 127], kind), np.array([True, False, True])
    for num_groups in (128, 256, 300):
        total = group_sum(np.float32([1, 2, 4]), group_id, mask, num_groups=num_groups)
        assert np.flatnonzero(total).tolist() == [0, 127]
        back = of_group(total, group_id, mask)
        np.testing.assert_array_equal(back, np.float32([1, 0, 4]))


@pytest.mark.parametrize("size", [1e-30, 1.0, 1e30])
def test_sizes_neither_overflow_nor_vanish(size):
    x = np.float32([1, 2, 4, 9]) * np.float32(size)
    stats, deviation = everything(x, np.zeros(4, np.int32), np.ones(4, bool))
    np.testing.assert_allclose(stats.std[0], x.astype(float).std(), rtol=1e-6)
    expected = x - x.astype(float).mean()
    np.testing.assert_allclose(deviation / size, expected / size, rtol=1e-6, atol=1e-7)
    assert not bool(stats.dead[0])


def test_a_small_spread_on_a_large_offset_is_exact():
    x = np.float32([1, 2, 4, 9]) + np.float32(2**20)
    stats, _ = everything(x, np.zeros(4, np.int32), np.ones(4, bool))
    np.testing.assert_allclose(stats.std[0], np.std([1, 2, 4, 9]), rtol=1e-6)


def test_the_last_bit_is_a_difference():
    x = np.float32([1, 1, np.nextafter(np.float32(1), np.float32(2))])
    stats, _ = everything(x, np.zeros(3, np.int32), np.ones(3, bool))
    assert not bool(stats.dead[0])
    np.testing.assert_allclose(stats.std[0], 2.0**-23 * np.sqrt(2) / 3, rtol=1e-6)


@jax.jit
def outputs_and_gradients(x, group_id, weight):
    def outputs(x):
        run = {"group_id": group_id, "mask": MASK, "num_groups": SIZE}
        stats = group_stats(x, **run, weight=weight)
        return jnp.concatenate(
            [
                stats.mean,
                stats.std,
                group_deviations(x, **run) ** 2,
                group_sum(x, **run),
                group_max(x, **run, empty=0.0),
            ]
        )

    return outputs(x), jax.jacrev(outputs)(x)


@pytest.mark.parametrize(("poison", "name"), PADDING)
def test_padding_reaches_neither_values_nor_gradients(poison, name):
    clean = outputs_and_gradients(X, GROUP, WEIGHT)
    dirty = outputs_and_gradients(
        np.where(MASK, X, np.float32(poison)),
        np.where(MASK, GROUP, np.int32(name)),
        np.where(MASK, WEIGHT, np.float32(poison)),
    )
    assert all(np.isfinite(x).all() for x in dirty)
    chex.assert_trees_all_equal(dirty, clean)


def test_an_id_out_of_range_is_in_no_group(transform):
    stray = np.where(GROUP == 3, np.int32(6), np.where(GROUP == 5, -1, GROUP))
    kept = MASK & (GROUP != 3) & (GROUP != 5)

    def run(group_id, mask):
        stats = group_stats(X, group_id, mask, num_groups=SIZE)
        deviation = group_deviations(X, group_id, mask, num_groups=SIZE)
        return stats, deviation, of_group(stats.mean, group_id, mask)

    chex.assert_trees_all_equal(transform(run)(stray, MASK), jax.jit(run)(GROUP, kept))


def test_a_nan_breaks_its_own_group_alone():
    stats = group_stats(
        np.where(np.arange(9) == 1, np.nan, X), GROUP, MASK, num_groups=SIZE
    )
    clean = group_stats(X, GROUP, MASK, num_groups=SIZE)
    assert np.isnan(stats.mean[0])
    assert not bool(stats.dead[0])
    np.testing.assert_array_equal(stats.mean[1:], clean.mean[1:])
    np.testing.assert_array_equal(stats.std[1:], clean.std[1:])


def test_rows_that_weigh_nothing_have_no_mean():
    stats = group_stats(X, GROUP, MASK, num_groups=SIZE, weight=np.float32(GROUP == 2))
    assert np.isnan(stats.mean).tolist() == [True, False, False, True, False, True]
    np.testing.assert_allclose(stats.mean[2], 8.5737, rtol=1e-6)


def test_gradient_of_a_spread_is_that_of_its_formula():
    """d std / d x_i = (x_i - mean) / (n std), and 0 where there is no spread."""
    _, jacobian = outputs_and_gradients(X, GROUP, np.ones(9, np.float32))
    gradient = jnp.sum(jacobian[SIZE : 2 * SIZE], axis=0)
    stats = reference.stats(X, GROUP, MASK)
    expected = [
        (x - stats[g][0]) / (stats[g][2] * stats[g][1]) if m and stats[g][1] else 0.0
        for x, g, m in zip(X.astype(float), GROUP, MASK, strict=True)
    ]
    np.testing.assert_allclose(gradient, expected, rtol=1e-5, atol=1e-7)


def test_half_precision_accumulates_in_float32():
    """In bfloat16 a sum of ones stops at 256."""
    x = jnp.ones(1000, jnp.bfloat16).at[::2].set(2.0)
    group_id, mask = np.zeros(1000, np.int32), np.ones(1000, bool)
    run = jax.jit(
        lambda x: (
            group_sum(x, group_id, mask, num_groups=1),
            group_stats(x, group_id, mask, num_groups=1, weight=jnp.ones_like(x)),
        )
    )
    total, stats = run(x)
    for found, expected in ((total, 1500), (stats.mean, 1.5), (stats.std, 0.5)):
        assert found.dtype == jnp.float32
        np.testing.assert_allclose(found, [expected], rtol=1e-6)
    whole = group_sum(np.full(3, 2**24 + 1), group_id[:3], mask[:3], num_groups=1)
    assert int(whole[0]) == 3 * (2**24 + 1)


@pytest.mark.parametrize(
    ("group_id", "mask"), [(GROUP.astype(np.float32), MASK), (GROUP, MASK * 1)]
)
def test_ids_are_integers_and_masks_are_bool(group_id, mask):
    with pytest.raises(AssertionError, match=r"int|bool"):
        group_sum(X, group_id, mask, num_groups=SIZE)
    with pytest.raises(AssertionError, match=r"int|bool"):
        dense_group_ids(group_id, mask=mask)


def test_one_trace_a_shape_and_another_for_more_groups():
    @chex.assert_max_traces(n=2)
    def plain(x, group_id, mask, num_groups):
        return group_stats(x, group_id, mask, num_groups=num_groups)

    run = jax.jit(plain, static_argnums=3)
    for shift in range(3):
        run(X + shift, np.roll(GROUP, shift), np.roll(MASK, shift), SIZE)
    assert run(X, GROUP, MASK, SIZE + 1).mean.shape == (SIZE + 1,)
    with pytest.raises(AssertionError, match="traced"):
        run(X, GROUP, MASK, SIZE + 2)

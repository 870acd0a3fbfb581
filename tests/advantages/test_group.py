"""Group-relative advantages: by hand, by loops, dead groups, bad rows, identities."""

from functools import partial

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jerp.advantages.group import group_relative_advantages
from jerp.errors import ConfigError, InputError, UnknownNameError
from tests.optimised import optimised_jit
from tests.reference import group as reference


@pytest.fixture(autouse=True)
def _strict_dtypes():
    with jax.numpy_dtype_promotion("strict"):
        yield


RETURNS = np.float32([1, 0, 0.25, 9.9, 9.9, 9.9, 0.7, 2, 2, -1, 0.5, 3, -2, 0.1])
GROUP = np.array([4, 4, 4, 0, 0, 0, 3, 1, 1, 1, 5, 5, 5, 4], np.int32)
MASK = np.arange(14) != 13
"""Group 4 differs, 0 is equal, 3 has one, 1 ties at the top, 5 differs, 2 is empty."""
ROWS = (RETURNS, GROUP, MASK)
WEIGHT = np.float32([1, 3, 2, 1, 1, 2, 5, 1, 1, 4, 2, 2, 1, 9])

VARIANTS = [
    {"baseline": baseline, "scale": scale, "ddof": ddof, "epsilon": 0.01}
    for baseline in ("mean", "leave_one_out", "second_best")
    for scale, ddof in (
        *[("std", 0), ("std", 1), ("batch_std", 0), ("batch_std", 1)],
        *[("max", 0), ("none", 0)],
    )
] + [
    {"weight": WEIGHT, "ddof": 1},
    {"weight": WEIGHT, "scale": "max"},
    {"min_group_size": 4},
]
advantages = partial(group_relative_advantages, num_groups=6)


def check(found, keywords):
    expected, dead = reference.advantages(*ROWS, **keywords)
    np.testing.assert_allclose(found.value, expected, rtol=1e-5, atol=1e-6)
    assert {g for g in range(6) if found.dead[g]} == dead
    np.testing.assert_allclose(found.dead_share, len(dead) / 5)
    assert int(found.num_invalid) == 0


def test_every_variant_equals_the_reference():
    run = jax.jit(lambda *rows: [advantages(*rows, **v) for v in VARIANTS])
    for found, keywords in zip(run(*ROWS), VARIANTS, strict=True):
        check(found, keywords)


def test_parity_of_transforms(transform):
    chosen = VARIANTS[3:20:15]
    run = transform(lambda *rows: [advantages(*rows, **v) for v in chosen])
    for found, keywords in zip(run(*ROWS), chosen, strict=True):
        check(found, keywords)


def test_by_hand():
    """Returns 3, 1, -1: mean 1, variance 8/3, batch of one group."""
    three = np.arange(14) < 3
    returns = np.where(three, 3 - 2 * np.arange(14), np.nan).astype(np.float32)
    run = partial(advantages, returns, np.zeros(14, np.int32), three)
    third = np.sqrt(1.5)
    for keywords, expected in (
        ({}, [third, 0, -third]),
        ({"ddof": 1}, [1, 0, -1]),
        ({"scale": "none"}, [2, 0, -2]),
        ({"scale": "max"}, [1, 0, -1]),
        ({"scale": "batch_std", "ddof": 1}, [1, 0, -1]),
        ({"baseline": "leave_one_out", "scale": "none"}, [3, 0, -3]),
        ({"baseline": "second_best", "scale": "none"}, [2, 0, 0]),
        ({"baseline": "second_best", "ddof": 1}, [1, 0, 0]),
        ({"scale": "none", "weight": np.float32(2 - (returns < 3))}, [1.5, -0.5, -2.5]),
        ({"min_group_size": 4}, [0, 0, 0]),
        ({"epsilon": 2.0, "ddof": 1}, [0.5, 0, -0.5]),
    ):
        found = run(**{"epsilon": 0.0, **keywords}).value
        np.testing.assert_allclose(found[:3], expected, rtol=1e-6, atol=1e-7)
        assert not np.asarray(found[3:]).any()


@pytest.mark.parametrize(
    "changed",
    [
        {"baseline": "leave_one_out"},
        {"scale": "none"},
        {"ddof": 1},
        {"epsilon": 0.5},
        {"min_group_size": 4},
        {"weight": WEIGHT},
    ],
    ids=lambda keywords: next(iter(keywords)),
)
def test_each_keyword_changes_the_result(changed):
    found = advantages(*ROWS, **changed)
    assert not np.allclose(found.value, advantages(*ROWS).value, atol=1e-3)


def test_groups_are_as_many_as_said():
    assert advantages(*ROWS).dead.shape == (6,)
    wider = group_relative_advantages(*ROWS, num_groups=9)
    assert wider.dead.tolist() == [True, False, False, True, *[False] * 5]
    assert float(wider.dead_share) == np.float32(0.4)


DEAD = [
    *[(9.9, 20), (8.5737, 15), (0.3, 8)],
    *[(10 * 0.95**t, n) for t in range(50) for n in range(2, 17)],
]


def test_equal_returns_give_exactly_zero():
    """The released code gives 298 of these 753 groups something else, up to -0.64."""
    returns = np.repeat(np.float32([value for value, _ in DEAD]), 20)
    group_id = np.repeat(np.arange(len(DEAD), dtype=np.int32), 20)
    mask = np.concatenate([np.arange(20) < n for _, n in DEAD])
    order = np.argsort(np.sin(np.arange(returns.size)))  # groups interleaved
    variants = [
        {},
        {"scale": "batch_std", "baseline": "leave_one_out"},
        {"scale": "max"},
        {"baseline": "second_best"},
        {"weight": np.float32(1.0 + mask[order])},
    ]

    @optimised_jit
    def run(returns, group_id, mask, epsilon):
        rows = (returns, group_id, mask)
        keywords = {"num_groups": len(DEAD), "epsilon": epsilon}
        return [group_relative_advantages(*rows, **keywords, **v) for v in variants]

    for epsilon in (0.0, 1e-6):
        for found in run(returns[order], group_id[order], mask[order], epsilon):
            assert not np.asarray(found.value).any()
            assert np.asarray(found.dead).all()
            assert float(found.dead_share) == 1.0


@pytest.mark.parametrize("scale", ["std", "none"])
@pytest.mark.parametrize("baseline", ["mean", "leave_one_out", "second_best"])
def test_a_group_of_one_gives_zero_and_is_dead(baseline, scale):
    alone = GROUP == 3
    assert RETURNS[alone].tolist() == [np.float32(0.7)]
    for mask in (MASK, alone):
        found = advantages(RETURNS, GROUP, mask, baseline=baseline, scale=scale)
        assert np.asarray(found.value)[alone].tolist() == [0.0]
        assert bool(found.dead[3])
    assert float(found.dead_share) == 1.0


def test_a_tie_for_the_best_leads_by_nothing():
    found = advantages(*ROWS, baseline="second_best")
    assert not np.asarray(found.value)[GROUP == 1].any()
    assert found.dead.tolist() == [True, True, False, True, False, False]
    assert not bool(advantages(*ROWS).dead[1])


@pytest.mark.parametrize("size", [1e-30, 1e-6, 1e29])
@pytest.mark.parametrize("scale", ["std", "batch_std", "max"])
def test_the_size_of_returns_does_not_matter(size, scale):
    keywords = {"scale": scale, "epsilon": 0.0}
    found = advantages(RETURNS * np.float32(size), GROUP, MASK, **keywords)
    expected = advantages(*ROWS, **keywords)
    np.testing.assert_allclose(found.value, expected.value, rtol=1e-5, atol=1e-6)
    assert found.dead.tolist() == expected.dead.tolist()


@jax.jit
def three_variants(returns, group_id, mask, weight):
    return [
        advantages(returns, group_id, mask, scale="batch_std"),
        advantages(returns, group_id, mask, baseline="second_best"),
        advantages(returns, group_id, mask, weight=weight),
    ]


@pytest.mark.parametrize(
    ("poison", "name"), [(np.nan, 0), (1e30, -1), (np.inf, 99), (0.0, 2**31 - 1)]
)
def test_padding_reaches_nothing(poison, name):
    dirty = (
        np.where(MASK, RETURNS, np.float32(poison)),
        np.where(MASK, GROUP, np.int32(name)),
        MASK,
    )
    weight = np.where(MASK, WEIGHT, np.float32(poison))
    clean = three_variants(*ROWS, WEIGHT)
    chex.assert_trees_all_equal(three_variants(*dirty, weight), clean)
    eager = advantages(*dirty, weight=weight)
    np.testing.assert_allclose(eager.value, clean[2].value, rtol=1e-5)


def test_no_gradient_flows():
    @jax.jit
    @jax.grad
    def gradient_of(returns):
        return jnp.sum(advantages(returns, GROUP, MASK).value ** 2)

    gradient = gradient_of(RETURNS)
    assert not np.asarray(gradient).any()


def test_identities():
    pairs = [(b, s) for b in ("mean", "leave_one_out") for s in ("none", "std", "max")]
    pairs.append(("mean", "batch_std"))
    whole = jax.jit(
        lambda *rows: {
            (b, s): advantages(*rows, baseline=b, scale=s, epsilon=0.0).value
            for b, s in pairs
        }
    )
    found = whole(*ROWS)
    size = np.array([np.sum(MASK & (g == GROUP)) for g in GROUP])
    factor = size / np.maximum(size - 1, 1)
    for scale in ("none", "std"):
        np.testing.assert_allclose(
            found["leave_one_out", scale], factor * found["mean", scale], rtol=1e-6
        )
    np.testing.assert_array_equal(found["mean", "max"], found["leave_one_out", "max"])
    best = np.abs(found["mean", "max"])
    assert [best[g == GROUP].max() for g in (4, 1, 5)] == [1, 1, 1]
    one = whole(RETURNS, np.zeros(14, np.int32), MASK)
    np.testing.assert_array_equal(one["mean", "batch_std"], one["mean", "std"])
    assert not np.allclose(found["mean", "batch_std"], found["mean", "std"], atol=0.1)


def test_weights_count_rollouts_more_than_once():
    """A weight of 3 is the same as three copies, which all get the same."""
    times = WEIGHT.astype(int)
    copies = [np.repeat(x, times) for x in ROWS]
    for ddof in (0, 1):
        found = advantages(*ROWS, weight=WEIGHT, ddof=ddof).value
        expected = advantages(*copies, ddof=ddof).value
        alone = (GROUP == 3) | ~MASK
        np.testing.assert_allclose(
            np.repeat(np.where(alone, 0, found), times), expected, rtol=1e-5, atol=1e-6
        )


BAD = {
    "nan": (np.where(np.arange(14) == 1, np.nan, RETURNS), GROUP, None, [4]),
    "inf": (np.where(np.arange(14) == 8, -np.inf, RETURNS), GROUP, None, [1]),
    "huge": (np.where(np.arange(14) == 8, np.float32(2e30), RETURNS), GROUP, None, [1]),
    "large id": (RETURNS, np.where(np.arange(14) == 1, 6, GROUP), None, []),
    "negative id": (RETURNS, np.where(np.arange(14) == 1, -1, GROUP), None, []),
    "weight": (RETURNS, GROUP, np.where(np.arange(14) == 1, -1.0, WEIGHT), [4]),
    "no weight": (RETURNS, GROUP, np.where(np.arange(14) == 8, 0.0, WEIGHT), [1]),
}
MESSAGE = {
    "nan": r"returns: expected finite numbers .*got nan at \[1\] \(1 of 14 wrong\)",
    "inf": r"returns: expected finite numbers .*got -inf at \[8\]",
    "huge": r"returns: expected finite numbers of at most 1e30 in size .*at \[8\]",
    "large id": r"group_id: expected ids in \[0, 6\) .*got 6 at \[1\]",
    "negative id": r"group_id: expected ids in \[0, 6\) .*got -1 at \[1\]",
    "weight": r"weight: expected finite, positive .*got -1.0 at \[1\]",
    "no weight": r"weight: expected finite, positive .*got 0.0 at \[8\]",
}


@pytest.mark.parametrize("name", BAD)
def test_bad_rows_are_refused_by_name(name):
    returns, group_id, weight, _ = BAD[name]
    with pytest.raises(InputError, match=MESSAGE[name]):
        advantages(returns, group_id, MASK, weight=weight)


@pytest.mark.parametrize("name", BAD)
def test_bad_rows_under_jit_are_nan_with_their_group_and_counted(name):
    returns, group_id, weight, groups = BAD[name]
    broken = np.isin(group_id, groups) | (group_id < 0) | (group_id >= 6)
    weights = np.float32(WEIGHT if weight is None else weight)
    found = three_variants(np.float32(returns), group_id, MASK, weights)
    without = three_variants(RETURNS, GROUP, MASK & ~broken, WEIGHT)
    first = 0 if weight is None else 2
    for ours, rest in zip(found[first:], without[first:], strict=True):
        assert int(ours.num_invalid) == 1
        np.testing.assert_array_equal(np.isnan(ours.value), broken & MASK)
        np.testing.assert_array_equal(
            np.asarray(ours.value)[~broken], np.asarray(rest.value)[~broken]
        )
        chex.assert_trees_all_equal(ours.dead, rest.dead)
        chex.assert_trees_all_equal(ours.dead_share, rest.dead_share)


def test_an_all_masked_batch():
    nothing = np.zeros(14, bool)
    with pytest.raises(InputError, match="mask: expected at least one real entry"):
        advantages(RETURNS, GROUP, nothing)
    for found in three_variants(RETURNS, GROUP, nothing, WEIGHT):
        assert not np.asarray(found.value).any()
        assert not np.asarray(found.dead).any()
        assert np.isnan(found.dead_share)
        assert int(found.num_invalid) == 0


@pytest.mark.parametrize(
    ("keywords", "error", "message"),
    [
        ({"baseline": "median"}, UnknownNameError, "unknown baseline 'median'"),
        ({"scale": "batch"}, UnknownNameError, "'batch'; did you mean 'batch_std'"),
        ({"ddof": 2}, InputError, "ddof: expected 0 or 1, got 2"),
        ({"epsilon": -1e-6}, InputError, "epsilon: expected >= 0, got -1e-06"),
        ({"epsilon": np.nan}, InputError, "epsilon: expected >= 0, got nan"),
        ({"min_group_size": 1}, InputError, "min_group_size: .* number >= 2"),
        ({"num_groups": 0}, InputError, "num_groups: .* number >= 1"),
        (
            {"weight": WEIGHT, "baseline": "leave_one_out"},
            ConfigError,
            "weight: .*got baseline='leave_one_out', scale='std'",
        ),
        (
            {"weight": WEIGHT, "scale": "batch_std"},
            ConfigError,
            "weight: .*got baseline='mean', scale='batch_std'",
        ),
        (
            {"weight": WEIGHT / 2, "ddof": 1},
            InputError,
            r"weight: .*>= ddof = 1 .*got 0.5 at \[0\]",
        ),
    ],
)
def test_bad_keywords_are_named(keywords, error, message):
    with pytest.raises(error, match=message):
        advantages(*ROWS, **keywords)


def test_shapes_and_types_are_asserted():
    for rows in (
        (RETURNS[:3], GROUP, MASK),
        (RETURNS, GROUP.astype(np.float32), MASK),
        (RETURNS, GROUP, MASK.astype(np.float32)),
    ):
        with pytest.raises(AssertionError):
            advantages(*rows)
    with pytest.raises(AssertionError):
        advantages(*ROWS, weight=WEIGHT[:1])


def test_half_precision_and_integers_come_in():
    half = advantages(jnp.asarray(RETURNS, jnp.bfloat16), GROUP, MASK)
    rounded = np.asarray(jnp.asarray(RETURNS, jnp.bfloat16)).astype(np.float32)
    assert half.value.dtype == jnp.float32
    chex.assert_trees_all_equal(half, advantages(rounded, GROUP, MASK))
    won = RETURNS > 0.5
    for kind in (bool, np.int32):
        found = advantages(won.astype(kind), GROUP, MASK)
        chex.assert_trees_all_equal(
            found, advantages(won.astype(np.float32), GROUP, MASK)
        )


def test_one_trace_a_shape_and_another_for_another_variant():
    @chex.assert_max_traces(n=2)
    def plain(returns, group_id, mask, epsilon, scale):
        return advantages(returns, group_id, mask, epsilon=epsilon, scale=scale)

    run = jax.jit(plain, static_argnames="scale")
    for shift in range(3):
        run(np.roll(RETURNS, shift), GROUP, MASK, epsilon=shift / 10, scale="std")
    run(*ROWS, epsilon=0.1, scale="none")
    with pytest.raises(AssertionError, match="traced"):
        run(*ROWS, epsilon=0.1, scale="max")


@pytest.mark.parametrize("kind", [np.int8, np.uint8])
def test_ids_of_a_narrow_type_are_in_range_of_as_many_groups_as_there_are(kind):
    """128 is no number of int8, and 256 none of uint8."""
    group_id = GROUP.astype(kind)
    for num_groups in (128, 256):
        run = jax.jit(partial(advantages, num_groups=num_groups))
        found, expected = run(RETURNS, group_id, MASK), run(*ROWS)
        assert int(found.num_invalid) == 0
        np.testing.assert_array_equal(found.value, expected.value)


def test_lists_are_taken_and_traced_or_odd_counts_refused():
    found = group_relative_advantages([1.0, 0.0], [0, 0], [True, True], num_groups=1)
    np.testing.assert_allclose(found.value, [1, -1], atol=1e-5)
    for scale in (None, 3):
        with pytest.raises(ValueError, match="unknown scale"):
            group_relative_advantages(*ROWS, num_groups=4, scale=scale)
    with pytest.raises(ValueError, match=r"^mask: expected type bool, got int"):
        group_relative_advantages([1.0], [0], [1], num_groups=1)

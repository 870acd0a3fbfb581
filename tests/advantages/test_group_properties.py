"""What must hold for any returns: one shape, one compilation."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from jerp.advantages.group import group_relative_advantages
from tests.optimised import optimised_jit

ROWS, GROUPS = 12, 4
VARIANTS = (
    {"scale": "std", "epsilon": 0.0},
    {"scale": "max", "epsilon": 0.0, "baseline": "leave_one_out"},
    {"scale": "batch_std", "epsilon": 0.0, "ddof": 1},
    {"scale": "none"},
    {"scale": "none", "baseline": "leave_one_out"},
    {"scale": "none", "baseline": "second_best"},
)
UNSCALED = (3, 4, 5)
CENTRED = (0, 1, 2, 3, 4)


@optimised_jit
def run(returns, group_id, mask):
    return [
        group_relative_advantages(returns, group_id, mask, num_groups=GROUPS, **variant)
        for variant in VARIANTS
    ]


def values(returns, group_id, mask):
    return np.stack([found.value for found in run(returns, group_id, mask)])


def rows(elements, kind):
    whole = st.lists(elements, min_size=ROWS, max_size=ROWS)
    return whole.map(lambda x: np.array(x, kind))


# Multiples of 1/64: shifts and scales of them are exact in float32.
GRID = rows(st.integers(-256, 256).map(lambda i: i / 64), np.float32)
NAMES = rows(st.integers(0, GROUPS - 1), np.int32)
MASKS = rows(st.booleans(), bool).map(lambda m: m | (np.arange(ROWS) == 0))
ANY = st.sampled_from([np.nan, np.inf, -np.inf, 1e30, -1e30, 0.0])
CLOSE = {"rtol": 1e-5, "atol": 1e-5}
many = settings(deadline=None, derandomize=True)


@many
@given(GRID, NAMES, MASKS, st.permutations(range(ROWS)))
def test_order_of_rows_does_not_matter(returns, group_id, mask, order):
    found = values(returns[order], group_id[order], mask[order])
    expected = values(returns, group_id, mask)[:, order]
    np.testing.assert_allclose(found, expected, **CLOSE)


@many
@given(GRID, NAMES, MASKS, rows(st.integers(-1024, 1024), np.float32))
def test_a_shift_of_a_groups_returns_does_not_matter(returns, group_id, mask, shift):
    """Each group by its own; the batch's scale sees all groups, so there all by one."""
    moved = values(returns + shift[group_id], group_id, mask)
    expected = values(returns, group_id, mask)
    within = [i for i, v in enumerate(VARIANTS) if v["scale"] != "batch_std"]
    np.testing.assert_allclose(moved[within], expected[within], **CLOSE)
    together = values(returns + shift[0], group_id, mask)
    np.testing.assert_allclose(together, expected, **CLOSE)


@many
@given(GRID, NAMES, MASKS, st.integers(1, 1024), st.integers(-60, 60))
def test_a_scale_of_returns_does_not_matter(returns, group_id, mask, factor, exponent):
    """Or multiplies the result where it is not scaled."""
    scale = np.float32(factor / 16 * 2.0**exponent)
    found = values(returns * scale, group_id, mask)
    expected = values(returns, group_id, mask)
    found[UNSCALED,] /= scale
    np.testing.assert_allclose(found, expected, **CLOSE)


@many
@given(GRID, NAMES, MASKS, st.permutations(range(GROUPS)))
def test_names_of_groups_do_not_matter(returns, group_id, mask, names):
    names = np.array(names, np.int32)
    renamed = run(returns, names[group_id], mask)
    for found, plain in zip(renamed, run(returns, group_id, mask), strict=True):
        np.testing.assert_array_equal(found.value, plain.value)
        np.testing.assert_array_equal(np.asarray(found.dead)[names], plain.dead)
        assert float(found.dead_share) == float(plain.dead_share)


@many
@given(GRID, NAMES, MASKS, rows(ANY, np.float32), rows(st.integers(), object))
def test_padding_does_not_matter(returns, group_id, mask, poison, stray):
    stray = np.array([int(i) % 2**32 - 2**31 for i in stray]).astype(np.int32)
    found = values(
        np.where(mask, returns, poison), np.where(mask, group_id, stray), mask
    )
    np.testing.assert_array_equal(found, values(returns, group_id, mask))


# Below 1e-20 the last bits of quotients leave float32.
SIZES = st.floats(2.0**-66, 2.0**20, width=32)
FLOATS = rows(SIZES | SIZES.map(lambda x: -x) | st.just(0.0), np.float32)


@many
@given(FLOATS, NAMES, MASKS)
def test_centred_advantages_add_up_to_zero_in_every_group(returns, group_id, mask):
    found = values(returns, group_id, mask)
    assert np.isfinite(found).all()
    for name in range(GROUPS):
        of = found[:, mask & (group_id == name)]
        size = 1e-6 * ROWS * np.abs(of).max(axis=1, initial=0)
        assert (np.abs(of.sum(axis=1)) <= size)[CENTRED,].all()


@many
@given(FLOATS, NAMES, MASKS)
def test_dead_groups_are_exactly_zero_and_the_others_are_not(returns, group_id, mask):
    for i, found in enumerate(run(returns, group_id, mask)):
        value, dead = np.asarray(found.value), np.asarray(found.dead)
        for name in range(GROUPS):
            members = mask & (group_id == name)
            if i != 5:
                distinct = len(set(returns[members].tolist()))
                assert bool(dead[name]) == (distinct == 1)
            assert value[members].any() == (members.any() and not dead[name])

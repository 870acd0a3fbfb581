"""The four ways from token losses to one loss, and how they add."""

from functools import partial

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jerp.objectives.aggregate import aggregate_loss
from tests.objectives.tokens import ADVANTAGE, AGGREGATIONS, MASK, POISONS, poisoned
from tests.reference import losses as reference

LOSS = ADVANTAGE


def all_modes(loss, mask):
    return {
        mode: aggregate_loss(loss, mask, **keywords)
        for mode, keywords in AGGREGATIONS.items()
    }


def test_totals_and_weights_equal_the_reference(transform):
    for mode, ours in transform(all_modes)(LOSS, MASK).items():
        total, weight = reference.aggregate(LOSS, MASK, **AGGREGATIONS[mode])
        np.testing.assert_allclose(ours.total, total, rtol=1e-6)
        np.testing.assert_allclose(ours.weight, weight, rtol=1e-6)
        np.testing.assert_allclose(ours.value(), total / weight, rtol=1e-6)


def test_values_by_hand():
    """Tokens 1, 2, 3 and 6, and a sequence without any."""
    loss = np.array([[1.0, 2.0, 3.0], [6.0, 9.0, 9.0], [9.0, 9.0, 9.0]], np.float32)
    mask = np.array([[1, 1, 1], [1, 0, 0], [0, 0, 0]], bool)
    means = jax.jit(all_modes)(loss, mask)
    values = [means[mode].value() for mode in AGGREGATIONS]
    np.testing.assert_allclose(values, [12 / 4, (2 + 6) / 2, 12 / 2, 12 / 14])


def test_the_modes_agree_where_all_sequences_have_one_length():
    mask = np.ones_like(MASK)
    value = {mode: mean.value() for mode, mean in all_modes(LOSS, mask).items()}
    mean = value["token_mean"]
    np.testing.assert_allclose(value["sequence_mean_token_mean"], mean, rtol=1e-6)
    np.testing.assert_allclose(value["sequence_mean_token_sum"], 5 * mean, rtol=1e-6)
    np.testing.assert_allclose(value["sum_over_constant"], 5 / 7 * mean, rtol=1e-6)


@partial(jax.jit, static_argnames="mode")
def totals_and_gradients(loss, mask, mode):
    def total(loss):
        mean = aggregate_loss(loss, mask, **AGGREGATIONS[mode])
        return mean.total, mean

    return jax.value_and_grad(total, has_aux=True)(loss)


def summed(loss, mask, mode, size):
    """Value and divided gradient of all microbatches of `size` rows."""
    parts = (x.reshape(-1, size, x.shape[1]) for x in (loss, mask))
    one = partial(totals_and_gradients, mode=mode)
    (_, means), gradients = jax.vmap(one)(*parts)
    mean = jax.tree.map(jnp.sum, means)
    weight = jnp.where(mean.weight > 0, mean.weight, 1)
    return mean.value(), gradients.reshape(loss.shape) / weight


@jax.jit
def all_cuts(loss, mask):
    """By size of the microbatches: the four modes."""
    return {
        size: [summed(loss, mask, mode, size) for mode in AGGREGATIONS]
        for size in (8, 4, 1)
    }


@settings(deadline=None)
@given(
    st.lists(st.floats(-4, 4, width=32), min_size=40, max_size=40),
    st.lists(st.integers(0, 5), min_size=8, max_size=8),
)
def test_any_cut_into_microbatches_gives_the_same(loss, lengths):
    """1 x 8 = 2 x 4 = 8 x 1, empty sequences and empty microbatches included."""
    loss = np.float32(loss).reshape(8, 5)
    mask = np.arange(5) < np.array(lengths)[:, None]
    by_size = all_cuts(loss, mask)
    for size in (4, 1):
        chex.assert_trees_all_close(by_size[size], by_size[8], rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("mode", AGGREGATIONS)
def test_padding_and_its_length_change_nothing(mode):
    clean = totals_and_gradients(LOSS, MASK, mode)
    for poison in POISONS:
        dirty = totals_and_gradients(poisoned(LOSS, poison), MASK, mode)
        chex.assert_trees_all_equal(dirty, clean)
    longer = np.pad(LOSS, ((0, 4), (0, 0)), constant_values=np.nan)
    (total, mean), gradient = totals_and_gradients(
        longer, np.pad(MASK, ((0, 4), (0, 0))), mode
    )
    chex.assert_trees_all_close((total, mean), clean[0], rtol=1e-6)
    np.testing.assert_allclose(gradient[:4], clean[1], rtol=1e-6)


@pytest.mark.parametrize("mode", AGGREGATIONS)
def test_nothing_real_is_refused_eagerly_and_adds_nothing_under_jit(mode):
    nothing = np.zeros_like(MASK)
    with pytest.raises(ValueError, match="mask: expected at least one real entry"):
        aggregate_loss(LOSS, nothing, **AGGREGATIONS[mode])
    (total, mean), gradient = totals_and_gradients(LOSS, nothing, mode)
    assert total == mean.total == mean.weight == mean.value() == 0
    np.testing.assert_array_equal(gradient, 0)


@pytest.mark.parametrize(
    ("keywords", "message"),
    [
        ({"aggregation": "token-mean"}, "unknown aggregation 'token-mean'; did you"),
        ({"aggregation": "token_mean", "constant": 7.0}, "constant: expected None"),
        ({"aggregation": "sum_over_constant"}, "constant: expected a number > 0"),
        (
            {"aggregation": "sum_over_constant", "constant": 0.0},
            "constant: expected > 0, got 0.0",
        ),
    ],
)
def test_bad_keywords_are_named(keywords, message):
    with pytest.raises(ValueError, match=message):
        aggregate_loss(LOSS, MASK, **keywords)


def test_a_nan_is_refused_eagerly_and_kept_under_jit():
    loss = LOSS.copy()
    loss[1, 1] = np.nan
    with pytest.raises(ValueError, match=r"loss: expected finite .* at \[1, 1\]"):
        aggregate_loss(loss, MASK, aggregation="token_mean")
    for mode in AGGREGATIONS:
        (total, _), _ = totals_and_gradients(loss, MASK, mode)
        assert np.isnan(total)


def test_half_precision_is_accumulated_in_float32():
    """4,096 ones: bfloat16 itself stops counting at 256."""
    ones = jnp.ones((2, 2048), jnp.bfloat16)
    means = jax.jit(all_modes)(ones, np.ones((2, 2048), bool))
    assert {x.dtype for x in jax.tree.leaves(means)} == {jnp.dtype("float32")}
    assert means["token_mean"].total == 4096


def test_one_trace_a_shape_and_one_more_for_another_mode():
    traced = jax.jit(
        chex.assert_max_traces(aggregate_loss, n=1), static_argnames="aggregation"
    )
    for constant in (3.0, 4.0):
        traced(LOSS, MASK, aggregation="sum_over_constant", constant=constant)
    with pytest.raises(AssertionError, match="traced"):
        traced(LOSS, MASK, aggregation="token_mean")

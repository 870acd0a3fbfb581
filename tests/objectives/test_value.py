"""Value loss: by hand, against a loop, and where the clip holds a value."""

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jerp.objectives.value import value_loss
from tests.objectives.tokens import POISONS
from tests.reference import losses as reference

# Free; held above and below; past the clip but towards the target; padding.
VALUE = np.array([1.0, 2.0, -1.0, 2.0, 0.5, 9.0], np.float32)
OLD = np.array([1.125, 1.0, 0.5, 1.0, 0.5, 9.0], np.float32)
TARGET = np.array([3.0, 0.5, 1.0, 4.0, -0.25, 9.0], np.float32)
MASK = np.array([1, 1, 1, 1, 1, 0], bool)
BATCH = (VALUE, TARGET, MASK)
CLIPPED = {"old_value": OLD, "clip": 0.25}


def clipped(value, target, mask, old_value):
    return value_loss(value, target, mask, old_value=old_value, clip=0.25)


def test_losses_equal_the_reference(transform):
    free = transform(jax.jit(value_loss))(*BATCH).loss.value()
    np.testing.assert_allclose(
        free, reference.value_loss(VALUE[:5], TARGET[:5])[0], rtol=1e-6
    )
    output = transform(jax.jit(clipped))(*BATCH, OLD)
    loss, share = reference.value_loss(VALUE[:5], TARGET[:5], OLD[:5], 0.25)
    np.testing.assert_allclose(output.loss.value(), loss, rtol=1e-6)
    np.testing.assert_allclose(output.metrics["clip_fraction"].value(), share)


def test_loss_by_hand():
    """Errors -2, 1.5, -2, -2, .75; bounds 1.25 and .25 and 1.25 make of them .75, -.75
    and -2.75, of which only the last is larger."""
    free = value_loss(*BATCH)
    np.testing.assert_allclose(free.loss.total, (4 + 2.25 + 4 + 4 + 0.5625) / 2)
    assert free.loss.weight == 5
    held = value_loss(*BATCH, **CLIPPED)
    np.testing.assert_allclose(held.loss.total, (4 + 2.25 + 4 + 7.5625 + 0.5625) / 2)
    np.testing.assert_allclose(held.metrics["clip_fraction"].value(), 1 / 5)
    tighter = value_loss(*BATCH, old_value=OLD, clip=0.0625)
    assert tighter.loss.total > held.loss.total
    other = value_loss(*BATCH, old_value=OLD - 1, clip=0.25)
    assert other.loss.total != held.loss.total


def test_an_infinite_clip_is_none():
    held = value_loss(*BATCH, old_value=OLD, clip=np.inf)
    assert held.metrics.pop("clip_fraction").value() == 0
    chex.assert_trees_all_equal(held, value_loss(*BATCH))


@jax.jit
def all_gradients(value, target, old_value, mask):
    def total(*arrays):
        output = clipped(*arrays[:2], mask, arrays[2])
        return output.loss.total, output

    return jax.value_and_grad(total, argnums=(0, 1, 2), has_aux=True)(
        value, target, old_value
    )


def test_gradients_reach_the_value_alone_where_the_clip_does_not_hold_it():
    _, (by_value, by_target, by_old) = all_gradients(VALUE, TARGET, OLD, MASK)
    np.testing.assert_allclose(by_value, [-2.0, 1.5, -2.0, 0.0, 0.75, 0.0])
    np.testing.assert_array_equal(by_target, np.zeros(6))
    np.testing.assert_array_equal(by_old, np.zeros(6))


@pytest.mark.parametrize("poison", POISONS)
def test_padding_reaches_neither_values_nor_gradients(poison):
    dirty = [np.where(MASK, x, np.float32(poison)) for x in (VALUE, TARGET, OLD)]
    chex.assert_trees_all_equal(
        all_gradients(*dirty, MASK), all_gradients(VALUE, TARGET, OLD, MASK)
    )


@settings(deadline=None)
@given(st.lists(st.floats(-0.03125, 0.03125, width=32), min_size=6, max_size=6))
def test_rounding_never_holds_a_value_inside_the_clip(values):
    """`old + (value - old)` is not `value` in float32; its gradient must flow."""
    value, old = np.float32(values), np.full(6, 0.2, np.float32)
    target = value + np.float32(1e-8)
    (_, output), (gradient, *_) = all_gradients(value, target, old, MASK)
    assert output.metrics["clip_fraction"].value() == 0
    np.testing.assert_array_equal(gradient, np.where(MASK, value - target, 0))


def test_microbatches_add():
    loss = jax.jit(clipped)
    parts = [loss(*(x[i : i + 3] for x in (*BATCH, OLD))) for i in (0, 3)]
    chex.assert_trees_all_close(
        jax.tree.map(lambda a, b: a + b, *parts), loss(*BATCH, OLD), rtol=1e-6
    )


def test_nothing_real_is_refused_eagerly_and_adds_nothing_under_jit():
    nothing = np.zeros_like(MASK)
    with pytest.raises(ValueError, match="mask: expected at least one real entry"):
        value_loss(VALUE, TARGET, nothing)
    (total, output), (gradient, *_) = all_gradients(VALUE, TARGET, OLD, nothing)
    assert total == output.loss.weight == output.loss.value() == 0
    np.testing.assert_array_equal(gradient, np.zeros(6))


@pytest.mark.parametrize("bad", [np.nan, np.inf])
@pytest.mark.parametrize("name", ["value", "target", "old_value"])
def test_a_real_entry_that_is_no_number(name, bad):
    arrays = {"value": VALUE.copy(), "target": TARGET.copy(), "old_value": OLD.copy()}
    arrays[name][1] = bad
    with pytest.raises(ValueError, match=rf"^{name}: expected finite .* at \[1\]"):
        value_loss(**arrays, mask=MASK, clip=0.25)
    (total, output), (gradient, *_) = all_gradients(*arrays.values(), MASK)
    assert np.isnan(total)
    assert np.isnan(gradient[1])
    assert output.metrics["invalid"].total == 1


@pytest.mark.parametrize(
    ("keywords", "message"),
    [
        ({"clip": 0.25}, "expected both or neither, got clip alone"),
        ({"old_value": OLD}, "expected both or neither, got old_value alone"),
        ({"old_value": OLD, "clip": 0.0}, "clip: expected > 0, got 0.0"),
    ],
)
def test_bad_keywords_are_named(keywords, message):
    with pytest.raises(ValueError, match=message):
        value_loss(*BATCH, **keywords)


def test_half_precision_is_widened():
    half = [jnp.asarray(x, jnp.bfloat16) for x in (VALUE, TARGET)]
    assert value_loss(*half, MASK).loss.total.dtype == jnp.float32


def test_one_trace_a_shape_and_one_more_for_a_clip():
    traced = jax.jit(chex.assert_max_traces(value_loss, n=1))
    for shift in (0, 1):
        traced(VALUE + shift, TARGET, MASK)
    with pytest.raises(AssertionError, match="traced"):
        traced(*BATCH, **CLIPPED)

"""Over-long sequences: DAPO's penalty, and leaving them out of the loss."""

from functools import partial

import chex
import jax
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jerp.objectives.aggregate import aggregate_loss
from jerp.objectives.length import overlong_filter, overlong_penalty
from tests.objectives.tokens import ADVANTAGE, AGGREGATIONS, MASK
from tests.reference import losses as reference

DAPO = {"max_length": 20480, "buffer": 4096}
LENGTHS = np.array([0, 16384, 16385, 18432, 20479, 20480, 20481, 10**6], np.int32)


def test_penalties_equal_the_reference(transform):
    penalty = transform(jax.jit(partial(overlong_penalty, **DAPO)))(LENGTHS)
    expected = [reference.overlong_penalty(int(n), **DAPO) for n in LENGTHS]
    np.testing.assert_allclose(penalty, expected, rtol=1e-6)


def test_penalties_by_hand():
    penalty = overlong_penalty(np.array([80, 85, 100, 101]), max_length=100, buffer=20)
    np.testing.assert_allclose(penalty, [0.0, -0.25, -1.0, -1.0], rtol=1e-6)
    whole = overlong_penalty(np.array([50]), max_length=100, buffer=100)
    np.testing.assert_allclose(whole, [-0.5])
    shorter = overlong_penalty(np.array([85]), max_length=90, buffer=20)
    np.testing.assert_allclose(shorter, [-0.75])


@settings(deadline=None)
@given(
    st.lists(st.integers(0, 40000), min_size=8, max_size=8),
    st.integers(1, 16384),
    st.integers(0, 16384),
)
def test_penalties_fall_with_length_between_0_and_minus_1(lengths, buffer, free):
    limits = {"max_length": free + buffer, "buffer": buffer}
    penalty = np.asarray(compiled(np.int32(sorted(lengths)), limits))
    assert (np.diff(penalty) <= 0).all()
    assert ((penalty >= -1) & (penalty <= 0)).all()
    expected = [reference.overlong_penalty(n, **limits) for n in sorted(lengths)]
    np.testing.assert_allclose(penalty, expected, rtol=1e-6)


@jax.jit
def compiled(length, limits):
    return overlong_penalty(length, **limits)


def test_limits_need_no_new_trace():
    traced = jax.jit(chex.assert_max_traces(overlong_penalty, n=1))
    for max_length in (20480, 10240):
        traced(LENGTHS, max_length=max_length, buffer=100)
    with pytest.raises(AssertionError, match="traced"):
        traced(LENGTHS[:2], max_length=20480, buffer=100)


@pytest.mark.parametrize("kind", [np.uint8, np.uint32, np.int8, np.int16])
def test_no_integer_type_wraps_around(kind):
    penalty = overlong_penalty(np.arange(128, dtype=kind), max_length=100, buffer=20)
    expected = np.clip((80 - np.arange(128.0)) / 20, -1, 0)
    np.testing.assert_allclose(penalty, expected, rtol=1e-6)


def test_a_negative_length_is_refused_eagerly_and_nan_under_jit():
    lengths = np.array([5, -1], np.int32)
    with pytest.raises(ValueError, match=r"length: expected >= 0, got -1 at \[1\]"):
        overlong_penalty(lengths, **DAPO)
    penalty = compiled(lengths, DAPO)
    assert penalty[0] == 0
    assert np.isnan(penalty[1])


@pytest.mark.parametrize(
    ("limits", "message"),
    [
        ({"max_length": 100, "buffer": 0}, "buffer: expected > 0, got 0"),
        (
            {"max_length": 10, "buffer": 20},
            "max_length: expected at least buffer = 20, got 10",
        ),
    ],
)
def test_bad_limits_are_named(limits, message):
    with pytest.raises(ValueError, match=message):
        overlong_penalty(LENGTHS, **limits)


@jax.jit
def all_modes(loss, mask):
    return [aggregate_loss(loss, mask, **mode) for mode in AGGREGATIONS.values()]


TRUNCATED = np.array([0, 1, 0, 0], bool)


def test_filtered_sequences_leave_both_sides_of_the_fraction(transform):
    kept = transform(overlong_filter)(MASK, TRUNCATED)
    np.testing.assert_array_equal(kept, MASK & [[1], [0], [1], [1]])
    filtered = all_modes(ADVANTAGE, kept)
    without = all_modes(ADVANTAGE[[0, 2, 3]], MASK[[0, 2, 3]])
    chex.assert_trees_all_close(filtered, without, rtol=1e-6)
    for mean, whole in zip(filtered, all_modes(ADVANTAGE, MASK), strict=True):
        assert mean.weight < whole.weight
        assert mean.total != whole.total


def test_shapes_of_the_filter_are_checked():
    with pytest.raises(AssertionError):
        overlong_filter(MASK, TRUNCATED[:2])
    with pytest.raises(AssertionError):
        overlong_filter(MASK[0], TRUNCATED[:1])

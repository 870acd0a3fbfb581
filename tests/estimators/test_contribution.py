"""How a gain splits over two parts: by hand, over both orders, at the limits."""

import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from jerp.errors import ShapeError
from jerp.estimators.contribution import swap_contributions
from tests.reference import novelty as reference

VALUE = np.float32([[0.2, 0.3], [0.4, 0.9]])


def test_by_hand(transform):
    found = transform(swap_contributions)(VALUE)
    np.testing.assert_allclose(jnp.stack([*found]), [0.4, 0.3, 0.7, 0.4], rtol=1e-5)


@given(arrays(np.float32, (2, 2), elements=st.floats(0, 1, width=16)))
@settings(max_examples=100, deadline=None, derandomize=True)
def test_against_both_orders_of_exchange(value):
    found = _jitted(value)
    expected = reference.contributions(value.tolist())
    np.testing.assert_allclose(found[:2], expected, atol=1e-6)
    assert abs(float(found.first + found.second - found.total)) < 1e-6


def test_without_interaction_each_brings_what_it_brings_alone():
    alone = np.float32([0.1, 0.2, 0.3])
    value = jnp.stack([jnp.array([[0.0, y], [0.5, 0.5 + y]]) for y in alone])
    found = swap_contributions(value)
    np.testing.assert_allclose(found.first, [0.5] * 3, rtol=1e-6)
    np.testing.assert_allclose(found.second, alone, rtol=1e-5)
    np.testing.assert_allclose(found.interaction, 0, atol=1e-6)


def test_exchanging_the_names_of_parts_exchanges_their_contributions():
    found, other = swap_contributions(VALUE), swap_contributions(VALUE.T)
    assert float(found.first) == float(other.second)


def test_the_mean_of_tasks_is_the_contribution_to_the_mean():
    value = jax.random.uniform(jax.random.key(0), (9, 2, 2))
    each, whole = swap_contributions(value), swap_contributions(value.mean(0))
    np.testing.assert_allclose(each.first.mean(), whole.first, rtol=1e-5)


def test_a_missing_cell_has_no_contributions():
    value = VALUE.copy()
    value[0, 1] = np.nan
    found = swap_contributions(value)
    assert math.isnan(found.first) and math.isnan(found.second)
    assert not math.isnan(found.total)


def test_other_axes_are_refused():
    with pytest.raises(ShapeError, match=r"value: expected axes \[\.\.\., 2, 2\]"):
        swap_contributions(np.zeros((3, 2)))


_jitted = jax.jit(swap_contributions)

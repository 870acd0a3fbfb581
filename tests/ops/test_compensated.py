"""Sums carried to twice the digits: rounded once, whatever the order."""

import chex
import jax
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jerp.ops.compensated import compensated_returns
from jerp.ops.returns import discounted_returns
from tests.optimised import optimised_jit

RETURNS = optimised_jit(compensated_returns)
REWARD = np.random.default_rng(0).normal(size=(40, 30)).astype(np.float32)


def reference(reward, discount):
    """Backwards in float64, rounded at the end."""
    gamma, later = np.float64(np.float32(discount)), np.zeros(len(reward))
    returns = np.zeros(reward.shape)
    for t in reversed(range(reward.shape[1])):
        later = reward[:, t].astype(np.float64) + gamma * later
        returns[:, t] = later
    return returns


def test_by_hand(transform):
    reward = np.array([[1.0, 0.0, 2.0], [2.0**24, 1.0, 1.0]], np.float32)
    found = transform(lambda r: compensated_returns(r, discount=1.0))(reward)
    # Plain float32 loses each of the two ones beside 2^24.
    np.testing.assert_array_equal(found[:, 0], [3.0, 2.0**24 + 2])
    halved = transform(lambda r: compensated_returns(r, discount=0.5))(reward)
    np.testing.assert_array_equal(halved[0], [1.5, 1.0, 2.0])


@pytest.mark.parametrize("discount", [1.0, 0.95, 0.0])
@pytest.mark.parametrize("scale", [1.0, 1e-20, 1e30])
def test_every_return_is_the_exact_one_rounded(discount, scale):
    reward = REWARD * np.float32(scale)
    found = np.asarray(RETURNS(reward, discount=discount))
    exact = reference(reward, discount)
    np.testing.assert_array_equal(found, exact.astype(np.float32))


def test_equals_the_plain_recursion_to_its_rounding():
    plain = jax.vmap(lambda r, m: discounted_returns(r, m, discount=0.95))
    found = compensated_returns(REWARD, discount=0.95)
    expected = plain(REWARD, np.ones(REWARD.shape, bool))
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)


SIXTEEN = st.lists(st.floats(-100, 100, width=32), min_size=16, max_size=16)


@settings(deadline=None)
@given(SIXTEEN, st.permutations(range(16)))
def test_the_order_of_rewards_does_not_matter(rewards, order):
    row = np.array(rewards, np.float32)
    total = RETURNS(np.stack([row, row[list(order)]]), discount=1.0)[:, 0]
    assert total[0] == total[1]


def test_what_is_no_number_stays_with_its_own_steps():
    reward = np.array(
        [[1, -np.inf, 2], [1, np.nan, 2], [2e38, 2e38, 1], [1, 2, 3]], np.float32
    )
    found = compensated_returns(reward, discount=1.0)
    np.testing.assert_array_equal(found[0], [-np.inf, -np.inf, 2])
    np.testing.assert_array_equal(found[1], [np.nan, np.nan, 2])
    assert not np.isfinite(found[2, 0])
    np.testing.assert_array_equal(found[3], [6, 5, 3])


def test_one_trace_a_shape():
    run = jax.jit(chex.assert_max_traces(compensated_returns, n=1))
    for discount in (0.5, 0.9):
        run(REWARD, discount=discount)
    with pytest.raises(AssertionError, match="traced"):
        run(REWARD[:3], discount=0.5)

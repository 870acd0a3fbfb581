"""Returns against their definitions, limits, ends of both kinds and padding."""

from functools import partial

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jerp.ops.returns import discounted_returns, gae, lambda_returns
from tests.reference import returns as reference

REWARD = np.array([1.0, -0.5, 0.0, 2.0, 0.25], np.float32)
VALUE = np.array([0.3, 1.0, -1.0, 0.5, 0.75], np.float32)
NO = np.zeros(7, bool)


def padded(x, fill=0.0):
    return np.append(x, np.full(2, fill, x.dtype))


def last_real(flag):
    return np.arange(7) == 4 if flag else NO


MASK = np.arange(7) < 5


def call(function, terminated, truncated, fill=0.0, **keywords):
    return function(
        padded(REWARD, fill),
        padded(VALUE, fill),
        last_real(terminated),
        last_real(truncated),
        MASK,
        **keywords,
    )


def test_discounted_returns(transform):
    expected = reference.discounted_returns(REWARD.astype(float), 0.9)
    ours = transform(partial(discounted_returns, discount=0.9))(padded(REWARD), MASK)
    np.testing.assert_allclose(ours, [*expected, 0, 0], rtol=1e-6)


@pytest.mark.parametrize("lambda_", [0.0, 0.7, 1.0])
@pytest.mark.parametrize("end", ["terminated", "truncated", "data stop"])
def test_lambda_returns_and_gae(lambda_, end):
    end_value = 0.0 if end == "terminated" else 3.0
    keywords = {"discount": 0.9, "lambda_": lambda_}
    args = (REWARD.astype(float), VALUE.astype(float), end_value, 0.9, lambda_)
    flags = (end == "terminated", end == "truncated")
    returns = call(lambda_returns, *flags, bootstrap_value=3.0, **keywords)
    expected = [*reference.lambda_returns(*args), 0, 0]
    np.testing.assert_allclose(returns, expected, rtol=1e-6, atol=1e-6)
    advantage = call(gae, *flags, bootstrap_value=3.0, **keywords)
    expected = [*reference.gae(*args), 0, 0]
    np.testing.assert_allclose(advantage, expected, rtol=1e-6, atol=1e-6)


def test_lambda_returns_by_hand():
    """G_1 = 1 + .5 * 4 = 3; G_0 = 0 + .5 (.5 * 2 + .5 * 3) = 1.25."""
    returns = lambda_returns(
        np.array([0.0, 1.0], np.float32),
        np.array([7.0, 2.0], np.float32),
        NO[:2],
        np.array([False, True]),
        ~NO[:2],
        discount=0.5,
        lambda_=0.5,
        bootstrap_value=4.0,
    )
    np.testing.assert_allclose(returns, [1.25, 3.0])


def test_limits():
    """Lambda 1 ignores values; lambda 0 looks one step ahead."""
    keywords = {"discount": 0.9, "bootstrap_value": 3.0}
    monte_carlo = call(lambda_returns, True, False, lambda_=1.0, **keywords)
    discounted = discounted_returns(padded(REWARD), MASK, discount=0.9)
    np.testing.assert_allclose(monte_carlo, discounted, rtol=1e-6)
    one_step = call(lambda_returns, False, True, lambda_=0.0, **keywords)
    ahead = REWARD + 0.9 * np.append(VALUE[1:], 3.0)
    np.testing.assert_allclose(one_step[:5], ahead, rtol=1e-6)


def test_parity_of_transforms(transform):
    bound = partial(lambda_returns, discount=0.9, lambda_=0.7, bootstrap_value=3.0)
    expected = reference.lambda_returns(
        REWARD.astype(float), VALUE.astype(float), 3.0, 0.9, 0.7
    )
    returns = call(transform(bound), False, True)
    np.testing.assert_allclose(returns[:5], expected, rtol=1e-6)


def test_termination_wins_over_truncation():
    keywords = {"discount": 0.9, "lambda_": 0.7, "bootstrap_value": 3.0}
    both = call(lambda_returns, True, True, **keywords)
    np.testing.assert_array_equal(both, call(lambda_returns, True, False, **keywords))
    assert not np.allclose(both, call(lambda_returns, False, True, **keywords))


def test_episodes_in_one_row_do_not_mix():
    """A truncated step in the middle restarts the recursion with its own value."""
    keywords = {"discount": 0.9, "lambda_": 0.7}
    truncated = np.array([0, 1, 0, 0, 0], bool)
    terminated = np.array([0, 0, 0, 0, 1], bool)
    bootstrap = np.array([9.0, 5.0, 9.0, 9.0, 9.0], np.float32)
    row = lambda_returns(
        REWARD,
        VALUE,
        terminated,
        truncated,
        np.ones(5, bool),
        bootstrap_value=bootstrap,
        **keywords,
    )
    first = reference.lambda_returns(REWARD[:2], VALUE[:2], 5.0, 0.9, 0.7)
    second = reference.lambda_returns(REWARD[2:], VALUE[2:], 0.0, 0.9, 0.7)
    np.testing.assert_allclose(row, [*first, *second], rtol=1e-5)


@pytest.mark.parametrize("terminated", [True, False])
def test_padding_reaches_neither_values_nor_gradients(terminated):
    """NaN as the end's value, too, must not count after a natural end."""

    @jax.jit
    def both(reward, value, bootstrap):
        def total(reward, value, bootstrap):
            returns = lambda_returns(
                reward,
                value,
                last_real(terminated),
                last_real(not terminated),
                MASK,
                discount=0.9,
                lambda_=0.7,
                bootstrap_value=bootstrap,
            )
            return jnp.sum(returns**2)

        return jax.value_and_grad(total, argnums=(0, 1))(reward, value, bootstrap)

    clean = both(padded(REWARD), padded(VALUE), 3.0)
    for poison in (np.nan, 1e30):
        end = poison if terminated else 3.0
        dirty = both(padded(REWARD, poison), padded(VALUE, poison), end)
        assert all(np.isfinite(x).all() for x in jax.tree.leaves(dirty))
        chex.assert_trees_all_close(dirty, clean, rtol=1e-6)


def test_a_row_of_padding_is_zero():
    returns = lambda_returns(
        np.full(3, np.nan, np.float32),
        np.full(3, np.nan, np.float32),
        NO[:3],
        NO[:3],
        NO[:3],
        discount=0.9,
        lambda_=0.7,
        bootstrap_value=jnp.nan,
    )
    np.testing.assert_array_equal(returns, np.zeros(3))


def test_one_trace_whatever_the_discount():
    @jax.jit
    @chex.assert_max_traces(n=1)
    def returns(discount):
        return discounted_returns(REWARD, ~NO[:5], discount=discount)

    assert not np.allclose(returns(0.5), returns(0.9))

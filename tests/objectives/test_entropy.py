"""Entropy of a policy's tokens."""

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jerp.objectives.entropy import policy_entropy
from tests.objectives.tokens import POISONS
from tests.reference import losses as reference

MASK = np.array([[1, 1, 1], [1, 0, 0]], bool)
LOGITS = np.array(
    [
        [[0.0, 1.0, -2.0, 0.5], [3.0, 3.0, 3.0, 3.0], [90.0, -90.0, 0.0, 1.0]],
        [[-1.0, 0.25, 2.0, 0.0], [7.0, 7.0, 7.0, 7.0], [7.0, 7.0, 7.0, 7.0]],
    ],
    np.float32,
)
LEGAL = np.array(
    [
        [[1, 1, 0, 1], [1, 1, 0, 0], [0, 1, 1, 1]],
        [[0, 0, 1, 0], [0, 0, 0, 0], [1, 1, 1, 1]],
    ],
    bool,
)


def legal_entropy(logits, mask, legal):
    return policy_entropy(logits, mask, legal=legal)


def of_tokens(legal):
    expected = np.zeros(MASK.shape)
    for i in map(tuple, np.argwhere(MASK)):
        expected[i] = reference.entropy(LOGITS[i], legal[i])
    return expected


def test_entropies_equal_the_reference(transform):
    free = transform(jax.jit(policy_entropy))(LOGITS, MASK)
    np.testing.assert_allclose(free, of_tokens(np.ones_like(LEGAL)), atol=1e-6)
    limited = transform(jax.jit(legal_entropy))(LOGITS, MASK, LEGAL)
    np.testing.assert_allclose(limited, of_tokens(LEGAL), atol=1e-6)
    assert not np.allclose(free, limited)


def test_entropies_by_hand():
    """Uniform over 4 and 2 choices, and 1/4 against 3/4."""
    logits = np.zeros((1, 3, 4), np.float32)
    logits[0, 2, 0] = np.log(3)
    legal = np.array([[[1, 1, 1, 1], [0, 1, 1, 0], [1, 1, 0, 0]]], bool)
    entropy = jax.jit(legal_entropy)(logits, np.ones((1, 3), bool), legal)
    uneven = -(0.25 * np.log(0.25) + 0.75 * np.log(0.75))
    np.testing.assert_allclose(entropy, [[np.log(4), np.log(2), uneven]], rtol=1e-6)


@jax.jit
def entropy_and_gradient(logits, mask, legal):
    def total(logits):
        entropy = policy_entropy(logits, mask, legal=legal)
        return jnp.sum(entropy), entropy

    return jax.grad(total, has_aux=True)(logits)


def test_the_gradient_is_minus_p_times_the_surprise_beyond_the_entropy():
    gradient, entropy = entropy_and_gradient(LOGITS, MASK, LEGAL)
    z = np.where(LEGAL, LOGITS.astype(np.float64), -np.inf)[MASK]
    p = np.exp(z - z.max(-1, keepdims=True))
    p /= p.sum(-1, keepdims=True)
    surprise = np.log(np.where(p > 0, p, 1))
    expected = -p * (surprise + np.asarray(entropy)[MASK][:, None])
    np.testing.assert_allclose(np.asarray(gradient)[MASK], expected, atol=1e-6)
    assert not np.asarray(gradient)[~MASK].any()


@pytest.mark.parametrize("poison", POISONS)
def test_padding_and_illegal_logits_reach_nothing(poison):
    counted = LEGAL & MASK[..., None]
    dirty = np.where(counted, LOGITS, np.float32(poison))
    chex.assert_trees_all_equal(
        entropy_and_gradient(dirty, MASK, LEGAL),
        entropy_and_gradient(LOGITS, MASK, LEGAL),
    )


@settings(deadline=None)
@given(
    st.lists(st.floats(-60, 60, width=32), min_size=24, max_size=24),
    st.permutations(range(4)),
)
def test_entropy_is_bounded_and_blind_to_order_and_shift(logits, order):
    logits = np.float32(logits).reshape(2, 3, 4)
    everything = np.ones_like(LEGAL)
    gradient, entropy = entropy_and_gradient(logits, MASK, everything)
    entropy = np.asarray(entropy)
    assert ((entropy >= 0) & (entropy <= np.log(4) * (1 + 1e-6))).all()
    assert np.isfinite(gradient).all()
    moved = entropy_and_gradient(logits[..., order] + 1, MASK, everything)[1]
    np.testing.assert_allclose(moved, entropy, atol=1e-5)


@pytest.mark.parametrize("bad", [np.nan, -np.inf])
def test_a_logit_that_is_no_number(bad):
    logits = LOGITS.copy()
    logits[0, 1, 0] = bad
    with pytest.raises(ValueError, match=r"^logits: expected finite .* at \[0, 1, 0\]"):
        policy_entropy(logits, MASK)
    gradient, entropy = entropy_and_gradient(logits, MASK, LEGAL)
    for x in (entropy, np.asarray(gradient)[..., 0]):
        assert np.isnan(x[0, 1])
        assert np.isnan(x).sum() == 1


def test_a_token_without_a_legal_choice():
    legal = LEGAL.copy()
    legal[0, 2] = False
    with pytest.raises(ValueError, match=r"^legal: expected .* at \[0, 2\]"):
        policy_entropy(LOGITS, MASK, legal=legal)
    _, entropy = entropy_and_gradient(LOGITS, MASK, legal)
    assert np.isnan(entropy[0, 2])
    assert np.isnan(entropy).sum() == 1


def test_half_precision_is_widened():
    half = jax.eval_shape(policy_entropy, jnp.asarray(LOGITS, jnp.bfloat16), MASK)
    assert half.dtype == jnp.float32


def test_one_trace_a_shape():
    traced = jax.jit(chex.assert_max_traces(policy_entropy, n=1))
    for shift in (0, 1):
        traced(LOGITS + shift, MASK)
    with pytest.raises(AssertionError, match="traced"):
        traced(LOGITS, MASK, legal=LEGAL)

"""The controller against an independent forward pass, its masks and its sampling."""

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jerp.harness.actions import NUM_ACTIONS
from jerp.harness.state import NUM_FEATURES
from jerp.models.controller import (
    Controller,
    controller_policy,
    init_policy,
    init_value,
    log_probs,
    state_values,
)
from tests.reference import controller as reference


@pytest.fixture(scope="module")
def params():
    model = Controller(hidden_size=16)

    @jax.jit
    def init(keys):
        fresh = {
            **init_policy(keys[0], model, NUM_FEATURES),
            **init_value(keys[1], model, NUM_FEATURES),
        }
        noise = jax.random.normal(keys[2], (16,))
        return {**fresh, "hidden": {**fresh["hidden"], "bias": noise}}

    return init(jax.random.split(jax.random.key(0), 3))


def features(*shape):
    return jax.random.normal(jax.random.key(2), (*shape, NUM_FEATURES))


def masks(*shape):
    legal = jax.random.bernoulli(jax.random.key(3), 0.5, (*shape, NUM_ACTIONS))
    return legal.at[..., 3].set(True)


def test_the_papers_sizes():
    fresh = jax.eval_shape(
        lambda key: init_policy(key, Controller(), NUM_FEATURES), jax.random.key(0)
    )
    shapes = jax.tree.map(jnp.shape, fresh)
    assert shapes == {
        "hidden": {"kernel": (18, 64), "bias": (64,)},
        "logits": {"kernel": (64, 7), "bias": (7,)},
    }


def test_log_probs_equal_the_reference(params, transform):
    x, legal = features(2, 3), masks(2, 3)
    ours = np.exp(transform(lambda x, legal: log_probs(params, x, legal))(x, legal))
    layers = [params[n][k] for n in ("hidden", "logits") for k in ("kernel", "bias")]
    expected = reference.probabilities(layers, np.asarray(x), np.asarray(legal))
    np.testing.assert_allclose(ours, expected, atol=1e-6)
    assert (ours[~np.asarray(legal)] == 0).all()


def test_any_leading_axes_give_the_same_numbers(params):
    x, legal = features(2, 3), masks(2, 3)
    batch = log_probs(params, x, legal)
    np.testing.assert_allclose(
        log_probs(params, x[1, 2], legal[1, 2]), batch[1, 2], rtol=1e-5
    )
    values = state_values(params, x)
    assert values.shape == (2, 3)
    np.testing.assert_allclose(state_values(params, x[1, 2]), values[1, 2], rtol=1e-5)


def test_policy_and_value_share_nothing(params):
    x = features(4)
    gradient = jax.jit(jax.grad(lambda p: jnp.sum(state_values(p, x))))(params)
    assert not jax.tree.reduce(jnp.maximum, jax.tree.map(jnp.max, gradient["hidden"]))
    assert np.any(gradient["value_hidden"]["kernel"])


def test_samples_are_legal_and_follow_their_log_probs(params):
    num_samples = 4000
    x, legal = features(3), masks(3)
    keys = jax.random.split(jax.random.key(4), num_samples)
    sample = jax.vmap(
        jax.vmap(controller_policy, (None, None, 0, 0)), (None, 0, None, None)
    )
    action, log_prob = jax.jit(sample)(params, keys, x, legal)
    expected = log_probs(params, x, legal)
    assert np.asarray(legal)[np.arange(3), np.asarray(action)].all()
    for row in range(3):
        np.testing.assert_allclose(
            log_prob[:, row], expected[row][action[:, row]], rtol=1e-5
        )
        share = np.bincount(action[:, row], minlength=NUM_ACTIONS) / num_samples
        np.testing.assert_allclose(share, np.exp(expected[row]), atol=0.04)


def test_one_legal_action_is_certain_and_has_no_nan_gradient(params):
    legal = jnp.arange(NUM_ACTIONS) == 5
    x = features()
    action, log_prob = jax.jit(controller_policy)(params, jax.random.key(5), x, legal)
    chex.assert_type([action, log_prob], [jnp.int32, jnp.float32])
    assert (int(action), float(log_prob)) == (5, 0.0)
    gradient = jax.jit(jax.grad(lambda p: log_probs(p, x, legal)[5]))(params)
    assert all(np.isfinite(g).all() for g in jax.tree.leaves(gradient))


def test_mismatched_batches_are_refused(params):
    with pytest.raises(AssertionError, match="shape"):
        log_probs(params, features(2), masks(3))

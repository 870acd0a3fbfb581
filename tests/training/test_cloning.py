"""Demonstrations of an oracle, and policies cloned from them."""

from functools import partial

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jerp.envs.probes import probe_params
from jerp.errors import InputError
from jerp.rollout.demonstrations import demonstrations
from jerp.training.cloning import clone_policy
from jerp.typing import Outcome
from tests.training.cue_world import POLICY, STEPS, CueWorld, play

TRAIN = jax.jit(
    partial(clone_policy, learning_rate=0.02, epochs=20, batch_size=8),
    static_argnums=1,
)


@partial(jax.jit, static_argnames="batch_size")
def shown(noise, key, batch_size=64):
    return demonstrations(
        key,
        CueWorld(STEPS),
        probe_params("matching"),
        num_steps=STEPS,
        batch_size=batch_size,
        noise=noise,
    )


def test_without_noise_the_oracle_alone_acts():
    data = shown(0.0, jax.random.key(0))
    assert data.observation.shape == (64, STEPS, 2)
    np.testing.assert_array_equal(data.action, data.observation[..., 0])
    np.testing.assert_array_equal(data.log_prob, 0)
    assert float(data.reward.sum(axis=1).min()) == 1


@pytest.mark.parametrize("noise", [0.5, 1.0])
def test_with_noise_the_mixture_is_logged(noise):
    data = shown(noise, jax.random.key(0))
    follows = data.action == data.observation[..., 0]
    expected = np.where(follows, 1 - noise / 2, noise / 2)
    np.testing.assert_allclose(np.exp(data.log_prob), expected, rtol=1e-6)
    assert abs(float(follows.mean()) - (1 - noise / 2)) < 0.15


def test_noise_is_a_probability():
    """Seen, it is refused; seen by the device alone, nothing passes for a number."""
    with pytest.raises(InputError, match=r"noise: expected in \[0, 1\], got 1.5"):
        demonstrations(
            jax.random.key(0),
            CueWorld(STEPS),
            probe_params("matching"),
            num_steps=STEPS,
            batch_size=4,
            noise=1.5,
        )
    assert np.isnan(shown(1.5, jax.random.key(0)).log_prob).all()


def test_a_clone_of_nothing_says_so():
    data = jax.tree.map(np.asarray, shown(0.0, jax.random.key(1)))
    lost = data.replace(outcome=np.full(64, Outcome.INFRASTRUCTURE))
    start = POLICY.init(jax.random.key(2))
    with pytest.raises(InputError, match="valid episodes: expected at least one real"):
        clone_policy(jax.random.key(3), POLICY, start, lost)
    params, loss = TRAIN(jax.random.key(3), POLICY, start, lost)
    assert np.isnan(loss).all()
    chex.assert_trees_all_equal(params, start)


def test_a_clone_does_what_it_was_shown_and_learns_from_valid_episodes_alone():
    data = shown(0.0, jax.random.key(1))
    lost = jnp.arange(64) % 2 == 0
    outcome = jnp.where(lost, Outcome.INFRASTRUCTURE, data.outcome)
    wrong = jnp.where(lost[:, None], 1 - data.action, data.action)
    data = data.replace(outcome=outcome, action=wrong)
    start = POLICY.init(jax.random.key(2))
    params, loss = TRAIN(jax.random.key(3), POLICY, start, data)
    assert loss.shape == (20,) and loss[0] > 0.3 and loss[-1] < 0.05
    rewards = play(jax.random.key(4), params, groups=16, size=4).reward.sum(axis=1)
    assert float(rewards.mean()) > 0.9
    others = data.replace(action=jnp.where(lost[:, None], 0, data.action))
    again, _ = TRAIN(jax.random.key(3), POLICY, start, others)
    for x, y in zip(jax.tree.leaves(params), jax.tree.leaves(again), strict=True):
        np.testing.assert_array_equal(x, y)

"""The benchmark of simulators counts what it says."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from experiments.bench.simulator import Simulator, cheap_uniform, measure
from jerp.errors import ConfigError


def test_the_cheap_policy_is_uniform_over_what_is_legal():
    legal = jnp.array([False, True, False, True, True, False, False])
    keys = jax.random.split(jax.random.key(0), 3000)
    draw = jax.jit(jax.vmap(cheap_uniform, (None, 0, None, None)))
    action, log_prob = draw((), keys, jnp.zeros(18), legal)
    share = np.bincount(action, minlength=7) / 3000
    np.testing.assert_allclose(share, legal / 3, atol=3 * np.sqrt(2 / 9 / 3000))
    np.testing.assert_allclose(log_prob, -np.log(3), rtol=1e-6)


@pytest.mark.slow
def test_lengths_are_those_of_the_log():
    """A random policy made the log, so that fitted episodes are as long."""
    found = measure(Simulator(batch=512, steps=50, episodes=600, rounds=1))
    lengths = found.length["fitted, uniform"], found.length["hand-made, uniform"]
    assert abs(lengths[0] - lengths[1]) < 0.3
    assert set(found.rate) == set(found.length)
    assert found.states > 2


@pytest.mark.parametrize("name", ["batch", "steps", "episodes", "rounds"])
def test_impossible_settings_are_refused(name):
    with pytest.raises(ConfigError, match=f"{name}: expected >= 1, got 0"):
        Simulator(**{name: 0})

"""The benchmark of households draws as it says, and counts live steps."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from experiments.bench.house import WAYS, HouseBench, any_admissible, measure
from jerp.errors import ConfigError


def test_any_admissible_action_is_drawn_alike():
    legal = jnp.array([[False, True, False, True, True, False, False]] * 3000)
    share = jax.random.uniform(jax.random.key(0), (3000,))
    found = np.bincount(any_admissible(legal, share), minlength=7) / 3000
    np.testing.assert_allclose(found, legal[0] / 3, atol=3 * np.sqrt(2 / 9 / 3000))


def test_the_ends_of_the_draw_stay_among_the_admissible():
    legal = jnp.array([[False, True, True, False]] * 2)
    almost_one = jnp.nextafter(jnp.float32(1), jnp.float32(0))
    action = any_admissible(legal, jnp.stack([jnp.float32(0), almost_one]))
    assert action.tolist() == [1, 2]


@pytest.mark.slow
def test_every_way_is_measured():
    found = measure(HouseBench(batch=64, steps=40, rounds=1))
    assert set(found.rate) == set(WAYS)
    assert 0 <= found.success < 0.2


@pytest.mark.parametrize("name", ["batch", "steps", "rounds"])
def test_impossible_settings_are_refused(name):
    with pytest.raises(ConfigError, match=f"{name}: expected >= 1, got 0"):
        HouseBench(**{name: 0})

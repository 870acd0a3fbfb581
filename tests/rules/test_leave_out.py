"""Rules that are left out of prompts by chance."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jerp.errors import InputError, ShapeError
from jerp.rules.selection import leave_out

SHOWN = jnp.arange(4000, dtype=jnp.int32).reshape(500, 8)


def test_none_and_all():
    np.testing.assert_array_equal(leave_out(jax.random.key(0), SHOWN, rate=0.0), SHOWN)
    assert (leave_out(jax.random.key(0), SHOWN, rate=1.0) == -1).all()


def test_each_rule_goes_alone_and_the_others_keep_their_places():
    left = np.asarray(leave_out(jax.random.key(0), SHOWN, rate=0.3))
    gone = left == -1
    np.testing.assert_array_equal(left[~gone], np.asarray(SHOWN)[~gone])
    # Binomial(4000, .3): five standard deviations.
    assert abs(gone.mean() - 0.3) < 5 * np.sqrt(0.3 * 0.7 / gone.size)
    both = (gone[:, 0] & gone[:, 1]).mean()
    assert abs(both - 0.09) < 5 * np.sqrt(0.09 * 0.91 / len(gone))


def test_empty_places_stay_empty():
    shown = jnp.full((3, 2), -1)
    assert (leave_out(jax.random.key(1), shown, rate=0.5) == -1).all()


def test_eager_and_compiled_alike():
    compiled = jax.jit(leave_out)(jax.random.key(2), SHOWN, rate=0.4)
    eager = leave_out(jax.random.key(2), SHOWN, rate=0.4)
    np.testing.assert_array_equal(compiled, eager)


def test_mistakes_are_named():
    for rate in (-0.1, 1.1, float("nan")):
        with pytest.raises(InputError, match="rate: expected"):
            leave_out(jax.random.key(0), SHOWN, rate=rate)
    with pytest.raises(ShapeError, match="working_set: expected axes"):
        leave_out(jax.random.key(0), SHOWN[0], rate=0.5)

"""What every loss does with its arrays first, and with its metrics last."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jerp.objectives.entries import entry_mean, real_entries

MASK = np.array([1, 1, 1, 0], bool)
A = np.array([1.0, np.inf, 3.0, np.nan], np.float32)
B = np.array([4.0, 5.0, np.nan, np.inf], np.float32)


def test_an_entry_invalid_in_one_array_is_nan_in_all():
    real, invalid = jax.jit(lambda a, b: real_entries(MASK, a=a, b=b))(A, B)
    np.testing.assert_array_equal(invalid, [False, True, True, False])
    np.testing.assert_array_equal(real["a"], [1.0, np.nan, np.nan, 0.0])
    np.testing.assert_array_equal(real["b"], [4.0, np.nan, np.nan, 0.0])


def test_what_is_seen_is_refused_by_name():
    with pytest.raises(ValueError, match=r"^b: expected finite .* got nan at \[2\]"):
        real_entries(MASK, a=np.zeros(4), b=B)


def test_everything_is_float32_and_padding_has_no_gradient(transform):
    @jax.jit
    def both(a, mask):
        def total(a):
            real, invalid = real_entries(mask, a=a)
            return jnp.sum(real["a"] ** 2), (real["a"], invalid)

        return jax.grad(total, has_aux=True)(a)

    a = np.array([1.0, -2.0, 0.5, np.nan], jnp.bfloat16)
    gradient, (real, invalid) = transform(both)(a, MASK)
    assert real.dtype == jnp.float32
    assert not np.asarray(invalid).any()
    np.testing.assert_array_equal(real, [1.0, -2.0, 0.5, 0.0])
    np.testing.assert_array_equal(np.float32(gradient), [2.0, -4.0, 1.0, 0.0])


def test_means_and_shares_by_hand(transform):
    mean = transform(entry_mean)(np.array([1, 2, 6, np.nan], np.float32), MASK)
    share = transform(entry_mean)(np.array([1, 0, 1, 1], bool), MASK)
    assert (mean.total, mean.weight, mean.value()) == (9, 3, 3)
    assert (share.total, share.weight) == (2, 3)
    assert entry_mean(np.ones(4, jnp.bfloat16), MASK).total.dtype == jnp.float32

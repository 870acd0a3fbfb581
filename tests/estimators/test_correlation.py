"""Spearman's coefficient against hand-made ranks, NumPy, and every permutation."""

import itertools

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jerp.errors import InputError
from jerp.estimators.correlation import rank_correlation


def correlate(x, y, **settings):
    return rank_correlation(jax.random.key(0), x, y, **settings)


def ranks(values):
    return np.asarray([np.mean(np.flatnonzero(np.sort(values) == v)) for v in values])


def slow(x, y):
    return np.corrcoef(ranks(x), ranks(y))[0, 1]


def test_by_hand_with_a_tie():
    # Ranks 1, 2.5, 2.5, 4 and 1, 2, 3, 4: 4.5 over the root of 4.5 times 5.
    r = correlate([1.0, 2.0, 2.0, 7.0], [0.1, 0.2, 0.3, 0.4])
    assert float(r.coefficient) == pytest.approx(4.5 / np.sqrt(4.5 * 5), abs=1e-6)


def test_equals_the_correlation_of_ranks_and_ignores_monotone_maps(transform):
    rng = np.random.default_rng(0)
    x = rng.integers(0, 6, 12).astype(np.float32)
    y = rng.normal(size=12).astype(np.float32)
    found = transform(lambda a, b: correlate(a, b, num_permutations=10))(x, y)
    np.testing.assert_allclose(found.coefficient, slow(x, y), atol=1e-6)
    again = correlate(np.exp(x), y**3, num_permutations=10)
    np.testing.assert_allclose(again.coefficient, slow(x, y), atol=1e-6)


def test_p_value_is_the_share_of_permutations_as_far():
    x = np.asarray([1.0, 2.0, 3.0, 4.0, 5.0])
    y = np.asarray([2.0, 1.0, 4.0, 3.0, 5.0])
    every = [abs(slow(x, y[list(p)])) for p in itertools.permutations(range(5))]
    exact = np.mean(np.asarray(every) >= abs(slow(x, y)) - 1e-9)
    found = correlate(x, y, num_permutations=20_000)
    assert float(found.p_value) == pytest.approx(exact, abs=0.01)


def test_left_out_pairs_change_nothing():
    x = np.asarray([1.0, np.nan, 2.0, 3.0, 9.0, 4.0])
    y = np.asarray([3.0, 5.0, 1.0, 4.0, np.nan, 9.0])
    kept = [0, 2, 3, 5]
    found = correlate(x, y, num_permutations=5000)
    alone = correlate(x[kept], y[kept], num_permutations=5000)
    assert int(found.num_pairs) == 4
    assert float(found.coefficient) == pytest.approx(float(alone.coefficient), abs=1e-6)
    assert float(found.p_value) == pytest.approx(float(alone.p_value), abs=0.03)


@pytest.mark.parametrize(
    ("x", "y"), [([1.0, 1.0, 1.0], [1.0, 2.0, 3.0]), ([1.0], [2.0]), ([], [])]
)
def test_undefined_without_any_order(x, y):
    found = correlate(np.asarray(x), np.asarray(y), num_permutations=10)
    assert np.isnan(found.coefficient) and np.isnan(found.p_value)


def test_refuses_other_lengths_and_no_permutation():
    with pytest.raises(InputError, match="y"):
        correlate(jnp.ones(3), jnp.ones(4))
    with pytest.raises(InputError, match="num_permutations"):
        correlate(jnp.ones(3), jnp.ones(3), num_permutations=0)


def test_traced_once_a_shape():
    counted = jax.jit(
        chex.assert_max_traces(lambda x, y: correlate(x, y, num_permutations=3), n=1)
    )
    for seed in range(3):
        counted(jnp.arange(4.0) + seed, jnp.arange(4.0) * seed)

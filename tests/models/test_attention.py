"""Rotary positions and grouped attention against hand results and loops."""

from functools import partial

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jerp.models import attention
from tests.reference import decoder as reference


def normal(seed, *shape):
    return jax.random.normal(jax.random.key(seed), shape)


def test_rotary_by_hand(transform):
    x = jnp.array([1.0, 0.0, 0.0, 2.0])[None, None, None]  # pairs (1, 0) and (0, 2)
    angles = jnp.array([np.pi / 2, np.pi])[None, None]
    y = transform(attention.apply_rotary)(x, angles)
    np.testing.assert_allclose(y[0, 0, 0], [0, 0, 1, -2], atol=1e-6)


def test_rotary_equals_complex_rotation():
    x, positions = np.asarray(normal(0, 1, 5, 2, 6)), jnp.array([[0, 1, 2, 7, 31]])
    angles = attention.rotary_angles(positions, head_dim=6, base=50.0)
    y = np.asarray(attention.apply_rotary(jnp.asarray(x), angles))
    for t, position in enumerate([0, 1, 2, 7, 31]):
        for h in range(2):
            expected = reference.rotate(x[0, t, h], position, 50.0)
            np.testing.assert_allclose(y[0, t, h], expected, rtol=1e-4, atol=1e-5)


def test_rotary_products_depend_on_distance_alone():
    q, k = normal(0, 1, 1, 1, 8), normal(1, 1, 1, 1, 8)

    def product(at_q, at_k):
        turned = [
            attention.apply_rotary(
                x, attention.rotary_angles(jnp.array([[p]]), head_dim=8, base=100.0)
            )
            for x, p in ((q, at_q), (k, at_k))
        ]
        return float(jnp.sum(turned[0] * turned[1]))

    assert product(9, 4) == pytest.approx(product(25, 20), abs=1e-4)
    assert product(9, 4) != pytest.approx(product(9, 5), abs=1e-3)


def grouped(q, k, v, mask):
    """`grouped_attention` of keys and values in their natural layout `[B, S, G, D]`."""
    return attention.grouped_attention(
        q, jnp.moveaxis(k, 1, 3), jnp.moveaxis(v, 1, 2), mask
    )


def test_attention_by_hand(transform):
    """Equal scores average what is seen; a large score picks one."""
    q = jnp.array([[0.0], [50.0]]).reshape(1, 2, 1, 1)
    k = jnp.array([1.0, 2.0, 9.0]).reshape(1, 3, 1, 1)
    v = jnp.array([10.0, 20.0, 1e30]).reshape(1, 3, 1, 1)
    mask = jnp.array([[[True, True, False]] * 2]).reshape(1, 2, 3)
    out = transform(grouped)(q, k, v, mask)
    np.testing.assert_allclose(out.reshape(-1), [15.0, 20.0], rtol=1e-6)


@pytest.mark.parametrize(("heads", "groups"), [(4, 4), (4, 2), (6, 1)])
def test_attention_equals_loops(heads, groups):
    q, k, v = (
        normal(0, 2, 3, heads, 4),
        normal(1, 2, 5, groups, 4),
        normal(2, 2, 5, groups, 4),
    )
    mask = jax.random.bernoulli(jax.random.key(3), 0.6, (2, 3, 5)).at[..., 0].set(True)
    q, k, v, mask, out = map(
        np.asarray, (q, k, v, mask, jax.jit(grouped)(q, k, v, mask))
    )
    for b, t, h in np.ndindex(2, 3, heads):
        seen, g = np.flatnonzero(mask[b, t]), h // (heads // groups)
        expected = reference.attend(q[b, t, h], k[b, seen, g], v[b, seen, g])
        np.testing.assert_allclose(out[b, t, h], expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("poison", [1e30, -1e30])
def test_masked_positions_do_not_enter(poison):
    q, k, v = normal(0, 1, 1, 2, 4), normal(1, 1, 3, 2, 4), normal(2, 1, 3, 2, 4)
    mask = jnp.array([[[True, True, False]]])

    @jax.jit
    @partial(jax.value_and_grad, argnums=(0, 1, 2))
    def loss(q, k, v):
        return grouped(q, k, v, mask).sum()

    clean = loss(q, k, v)
    k, v = k.at[:, 2].set(poison * 1e-15), v.at[:, 2].set(poison)
    dirty = loss(q, k, v)
    chex.assert_trees_all_equal(clean, dirty)

"""Group reductions by hand, against loops, and whatever padding and ids hold."""

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jerp.ops.segments import dense_group_ids


@pytest.fixture(autouse=True)
def _strict_dtypes():
    with jax.numpy_dtype_promotion("strict"):
        yield


CLUSTER = np.array([40, -3, 40, 7, 9, 7, -3, 9], np.int32)
COUNTS = np.array([True, True, True, True, False, True, True, False])


def ids_of(*columns):
    *keys, mask = columns
    return dense_group_ids(*keys, mask=mask)


def test_ids_by_hand(transform):
    found = transform(ids_of)(CLUSTER, COUNTS)
    # In the order of the ids: -3, 7, 40; cluster 9 has no value that counts.
    assert found.index.tolist() == [2, 0, 2, 1, 8, 1, 0, 8]
    assert int(found.count) == 3
    assert found.index.dtype == found.count.dtype == jnp.int32


def test_ids_against_numpy():
    key, other = jax.random.split(jax.random.key(0))
    keys = np.asarray(jax.random.randint(key, (20, 2, 12), -2, 2))
    masks = np.array(jax.random.bernoulli(other, 0.6, (20, 12)))
    masks[:, 0] = True
    number = jax.jit(ids_of)
    for (first, second), mask in zip(keys, masks, strict=True):
        for columns in ((first,), (first, second)):
            found = number(*columns, mask)
            rows = np.stack(columns)[:, mask]
            names, index = np.unique(rows, axis=1, return_inverse=True)
            assert int(found.count) == names.shape[1]
            np.testing.assert_array_equal(np.asarray(found.index)[mask], index.ravel())
            assert (np.asarray(found.index)[~mask] == 12).all()


def test_ids_do_not_depend_on_names_and_order():
    plain = ids_of(CLUSTER, COUNTS)
    renamed = ids_of(CLUSTER * 5 + 1, COUNTS)
    chex.assert_trees_all_equal(plain, renamed)
    turned = ids_of(CLUSTER[::-1], COUNTS[::-1])
    chex.assert_trees_all_equal(plain.index[::-1], turned.index)


def test_ids_of_nothing():
    assert int(ids_of(CLUSTER, np.zeros(8, bool)).count) == 0
    empty = ids_of(jnp.zeros(0, jnp.int32), jnp.zeros(0, bool))
    assert (empty.index.shape, int(empty.count)) == ((0,), 0)

"""Which rows count, and which clusters are neighbours."""

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jerp.errors import InputError
from jerp.estimators.clusters import check_strata, kept_rows, resampling_clusters

CLUSTER = np.array([40, -3, 40, 7, 9, 7, -3, 9], np.int32)
STRATA = np.array([1, 0, 1, 1, 0, 1, 0, 0], np.int32)
MASK = np.array([True, True, True, True, False, True, True, False])


@pytest.fixture(autouse=True)
def _strict_dtypes():
    with jax.numpy_dtype_promotion("strict"):
        yield


def numbered(cluster, mask, strata):
    return resampling_clusters(cluster, mask, strata=strata)


jitted = jax.jit(numbered)


def test_neighbours_by_hand():
    """Stratum 0 has -3 alone, its 9 is masked; stratum 1 has 7 and 40."""
    found = jitted(CLUSTER, MASK, STRATA)
    assert found.index.tolist() == [2, 0, 2, 1, 8, 1, 0, 8]
    assert found.first.tolist() == [0, 1, 1, 0, 0, 0, 0, 0]
    assert found.size.tolist() == [1, 2, 2, 0, 0, 0, 0, 0]
    assert (int(found.count), bool(found.nested), bool(found.varies)) == (3, True, True)


def test_one_stratum_is_no_stratum():
    plain = jax.jit(resampling_clusters)(CLUSTER, MASK)
    one = jitted(CLUSTER, MASK, np.full(8, 7, np.int32))
    chex.assert_trees_all_equal(plain, one)
    assert plain.size.tolist() == [3, 3, 3, 0, 0, 0, 0, 0]


def test_against_dicts():
    random = np.random.default_rng(0)
    for _ in range(20):
        cluster = random.integers(-3, 3, 8).astype(np.int32)
        mask, strata = random.random(8) < 0.7, cluster % 2
        found = jitted(cluster, mask, strata)
        names = sorted(set(zip(strata[mask], cluster[mask], strict=True)))
        assert int(found.count) == len(names)
        for i, (s, c, m) in enumerate(zip(strata, cluster, mask, strict=True)):
            assert int(found.index[i]) == (names.index((s, c)) if m else 8)
        for j, (s, _) in enumerate(names):
            group = [i for i, (t, _) in enumerate(names) if t == s]
            assert (int(found.first[j]), int(found.size[j])) == (group[0], len(group))


def test_nothing_varies_where_every_stratum_has_one_cluster():
    ids = np.arange(8, dtype=np.int32)
    mask = np.ones(8, bool)
    assert not bool(jitted(ids, mask, ids).varies)
    assert bool(jitted(ids, mask, ids // 2).varies)
    assert not bool(jitted(ids, ~mask, ids // 2).varies)
    empty = np.zeros(0, np.int32)
    assert not bool(numbered(empty, np.zeros(0, bool), empty).varies)


def test_a_cluster_in_two_strata():
    strata = np.array([1, 0, 0, 1, 0, 1, 0, 0], np.int32)
    with pytest.raises(InputError, match=r"strata: .* got cluster 40 in 2 \(1 of 4"):
        check_strata(strata, CLUSTER, None)
    found = jitted(CLUSTER, MASK, strata)
    assert not bool(found.nested) and not bool(found.varies)
    elsewhere = np.where(MASK, STRATA, 1).astype(np.int32)
    check_strata(elsewhere, CLUSTER, MASK)
    assert bool(jitted(CLUSTER, MASK, elsewhere).nested)
    jax.jit(lambda s: check_strata(s, CLUSTER, None))(strata)


@pytest.mark.parametrize("poison", [np.nan, np.inf, 1e30])
def test_rows_left_out_hold_zero(poison):
    values = {"a": jnp.float32([1.0, poison, 3.0]), "b": jnp.ones((3, 2), jnp.int32)}
    mask = jnp.array([True, False, True])
    found, cluster, kept = kept_rows(values, None, mask)
    assert found["a"].tolist() == [1.0, 0.0, 3.0]
    assert found["b"].tolist() == [[1, 1], [0, 0], [1, 1]]
    assert (cluster.tolist(), kept.tolist()) == ([0, 1, 2], [True, False, True])


def test_a_nan_in_any_leaf_or_cell_leaves_the_row_out():
    values = {
        "a": jnp.float32([[1, 2], [np.nan, 2], [3, 4]]),
        "b": jnp.float32([1, 2, np.nan]),
    }
    found, _, kept = kept_rows(values, np.arange(3, dtype=np.int32), None)
    assert kept.tolist() == [True, False, False]
    assert found["a"].tolist() == [[1, 2], [0, 0], [0, 0]]

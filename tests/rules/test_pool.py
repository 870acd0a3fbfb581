"""Pools by hand: what is kept, what is counted, and what free slots may hold."""

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jerp.errors import InputError, ShapeError
from jerp.rules.pool import check_pool, init_pool, record_use
from jerp.rules.pruning import prune, retire
from tests.rules.pools import pool_of, rows_of

# By slot: score, rule id, born, uses, wins, tokens.
ROW = {
    0: (2.0, 10, 3, 0, 0, 6),
    1: (0.0, 11, 0, 0, 0, 5),
    2: (2.0, 12, 1, 0, 0, 2),
    3: (6.0, 13, 2, 0, 0, 30),
    4: (-1.0, 14, 2, 0, 0, 1),
    5: (2.0, 15, 3, 0, 0, 2),
}
OTHER = {1: (0.5, 13, 0, 7, 7, 8)}


def pruned(**keywords):
    return rows_of(prune(pool_of(ROW, OTHER, capacity=7, garbage=True), **keywords))


def ids(row):
    return [row[slot][1] for slot in sorted(row)]


def test_a_new_pool_has_free_slots_alone_and_arrays_of_its_own():
    pool = init_pool(2, 3)
    assert rows_of(pool) == [{}, {}]
    leaves = jax.tree.leaves(pool)
    assert {leaf.shape for leaf in leaves} == {(2, 3)}
    assert len({leaf.unsafe_buffer_pointer() for leaf in leaves}) == 7
    for sizes in ((0, 3), (2, 0), (2, 1.5)):
        with pytest.raises(InputError, match="expected a whole number >= 1"):
            init_pool(*sizes)


def test_a_score_has_to_be_above_the_least():
    row, other = pruned(capacity=7)
    assert row == {slot: ROW[slot] for slot in (0, 2, 3, 5)} and other == OTHER
    assert ids(pruned(capacity=7, min_score=-1)[0]) == [10, 11, 12, 13, 15]
    assert ids(pruned(capacity=7, min_score=-np.inf)[0]) == [10, 11, 12, 13, 14, 15]
    assert [ids(row) for row in pruned(capacity=7, min_score=2.0)] == [[13], []]


@pytest.mark.parametrize(
    ("capacity", "kept"),
    [(1, [13]), (2, [12, 13]), (3, [10, 12, 13]), (4, [10, 12, 13, 15])],
)
def test_beyond_the_capacity_the_last_go_and_older_ones_come_first(capacity, kept):
    row, other = pruned(capacity=capacity)
    assert ids(row) == kept and other == OTHER


@pytest.mark.parametrize(
    ("budget", "kept"),
    # Score per token: 13 has 1/5, 10 has 1/3, 12 and 15 have 1.
    [
        (40, [10, 12, 13, 15]),
        (39, [10, 12, 15]),
        (10, [10, 12, 15]),
        (9, [12, 15]),
        (3, [12]),
        (2, [12]),
        (1, []),
        (0, []),
    ],
)
def test_beyond_the_budget_the_dearest_go(budget, kept):
    assert ids(pruned(capacity=7, token_budget=budget)[0]) == kept


def test_a_rule_of_no_tokens_is_never_priced_out():
    row = {0: (1.0, 5, 0, 0, 0, 0), 1: (9.0, 6, 0, 0, 0, 3)}
    pool = prune(pool_of(row, capacity=2), capacity=2, token_budget=0)
    assert ids(rows_of(pool)[0]) == [5]


def test_capacity_comes_before_the_budget():
    row = {i: (3.0 - i, i, 0, 0, 0, 10 - 4 * i) for i in range(3)}
    pool = pool_of(row, capacity=3)
    assert ids(rows_of(prune(pool, capacity=3, token_budget=8))[0]) == [1, 2]
    assert ids(rows_of(prune(pool, capacity=2, token_budget=8))[0]) == [1]


def test_what_is_pruned_twice_is_pruned_once():
    keywords = {"capacity": 3, "token_budget": 20}
    once = prune(pool_of(ROW, OTHER, capacity=7), **keywords)
    assert rows_of(prune(once, **keywords)) == rows_of(once)


def test_use_is_counted_in_valid_episodes_of_the_same_task():
    row = {0: (1.0, 10, 0, 5, 2, 1), 2: (1.0, 11, 0, 0, 0, 1)}
    other = {1: (1.0, 10, 0, 0, 0, 1)}
    pool = pool_of(row, other, capacity=3, garbage=True)
    pool = record_use(
        pool,
        jnp.array([0, 0, 0, 1, 0]),
        # 3 is in the garbage, 99 in no pool, one episode names a rule twice.
        jnp.array([[10, 11], [11, 99], [10, -1], [10, 3], [10, 10]]),
        jnp.array([True, False, True, False, True]),
        jnp.array([True, True, False, True, True]),
    )
    assert rows_of(pool) == [
        {0: (1.0, 10, 0, 7, 4, 1), 2: (1.0, 11, 0, 2, 1, 1)},
        {1: (1.0, 10, 0, 1, 0, 1)},
    ]


def test_nothing_happened_without_episodes():
    pool = pool_of(ROW, capacity=6)
    none = np.zeros(0, bool)
    empty = record_use(pool, np.zeros(0, int), np.zeros((0, 2), int), none, none)
    assert rows_of(empty) == [ROW]


def test_what_is_retired_is_gone_from_its_own_pool():
    """Whatever its score; 99 is in no pool, 3 in the garbage, 12 in another key's."""
    pool = pool_of(ROW, OTHER, capacity=7, garbage=True)
    found = retire(pool, jnp.array([[13, 99, 10, 3], [12, -1, 3, -1]]))
    assert rows_of(found) == [{slot: ROW[slot] for slot in (1, 2, 4, 5)}, OTHER]
    found = retire(pool, jnp.array([[-1], [13]]))
    assert rows_of(found) == [ROW, {}]


def test_retiring_nothing_or_twice_changes_nothing():
    pool, twice = pool_of(ROW, OTHER, capacity=7), jnp.array([[13, 13], [13, -1]])
    for none in (jnp.full((2, 3), -1), jnp.zeros((2, 0), jnp.int32)):
        assert rows_of(retire(pool, none)) == rows_of(pool)
    once = retire(pool, twice)
    assert rows_of(retire(once, twice)) == rows_of(once)
    everything = retire(pool, jnp.stack([pool.rule_id[0], pool.rule_id[1]]))
    assert rows_of(everything) == rows_of(init_pool(2, 7)) == [{}, {}]


def test_what_cannot_be_meant_is_refused():
    with pytest.raises(ShapeError, match="rule_id: expected axes"):
        retire(pool_of(ROW, OTHER, capacity=7), jnp.array([[13]]))
    with pytest.raises(ShapeError, match="rule_id: expected type int"):
        retire(pool_of(ROW, capacity=6), jnp.array([[13.0]]))
    with pytest.raises(InputError, match="rule_id: expected ids >= 0, or -1"):
        retire(pool_of(ROW, capacity=6), jnp.array([[-2]]))
    pool = pool_of(ROW, capacity=6)
    with pytest.raises(InputError, match="capacity: expected >= 1, got 0"):
        prune(pool, capacity=0)
    with pytest.raises(InputError, match="token_budget: expected >= 0, got -1"):
        prune(pool, capacity=1, token_budget=-1)
    with pytest.raises(InputError, match="min_score: expected a number"):
        prune(pool, capacity=1, min_score=np.nan)
    sets, yes = np.array([[10]]), np.array([True])
    with pytest.raises(InputError, match=r"task: expected task keys in \[0, 1\)"):
        record_use(pool, np.array([1]), sets, yes, yes)
    with pytest.raises(ShapeError, match="success: expected type bool"):
        record_use(pool, np.array([0]), sets, np.array([1.0]), yes)
    with pytest.raises(InputError, match="finite scores of active rules"):
        check_pool(pool_of({0: (np.nan, 1, 0, 0, 0, 1)}, capacity=1))
    with pytest.raises(
        ShapeError, match=r"pool.uses: expected axes \[N, C\] = \[1, 6\]"
    ):
        check_pool(pool.replace(uses=pool.uses[:, :2]))
    with pytest.raises(ShapeError, match=r"pool.active: expected type bool"):
        check_pool(pool.replace(active=pool.uses))


def test_under_jit_a_setting_out_of_range_shows():
    pool = pool_of(ROW, capacity=6)
    for keywords in ({"min_score": np.nan}, {"capacity": 0}, {"token_budget": -1}):
        keywords = {"capacity": 6} | keywords
        found = jax.jit(lambda pool, kw: prune(pool, **kw))(pool, keywords)
        assert np.isnan(np.asarray(found.score)[np.asarray(found.active)]).all()
        sound = jax.jit(lambda pool, kw: prune(pool, **kw))(pool, {"capacity": 6})
        assert np.isfinite(sound.score).all() and sound.active.any()


def test_all_ways_of_running_agree(transform):
    pool = pool_of(ROW, OTHER, capacity=7, garbage=True)
    after = transform(lambda p: prune(p, capacity=3, token_budget=20))(pool)
    assert [ids(row) for row in rows_of(after)] == [[10, 12], [13]]
    yes = jnp.ones(2, bool)
    counted = transform(record_use)(
        pool, jnp.array([0, 1]), jnp.array([[13]] * 2), yes, yes
    )
    expected = [ROW | {3: (6.0, 13, 2, 1, 1, 30)}, {1: (0.5, 13, 0, 8, 8, 8)}]
    assert rows_of(counted) == expected
    without = transform(retire)(pool, jnp.array([[13, 11], [10, -1]]))
    assert [ids(row) for row in rows_of(without)] == [[10, 12, 14, 15], [13]]


def test_one_trace_a_shape():
    @jax.jit
    @chex.assert_max_traces(n=1)
    def run(pool, task, min_score, capacity, budget):
        yes = jnp.ones(1, bool)
        pool = record_use(pool, task, jnp.array([[13]]), yes, yes)
        return prune(pool, min_score=min_score, capacity=capacity, token_budget=budget)

    pool = pool_of(ROW, OTHER, capacity=7)
    pool = run(pool, jnp.array([0]), 0.0, 3, 90)
    pool = run(pool, jnp.array([1]), 0.25, 2, 80)
    assert [ids(row) for row in rows_of(pool)] == [[12, 13], [13]]


def test_under_jit_a_task_that_does_not_exist_uses_nothing():
    pool = pool_of(ROW, OTHER, capacity=7)
    task, sets, yes = jnp.array([-1, 2]), jnp.array([[13]] * 2), jnp.ones(2, bool)
    assert rows_of(jax.jit(record_use)(pool, task, sets, yes, yes)) == [ROW, OTHER]

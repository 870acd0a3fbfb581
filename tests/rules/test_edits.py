"""Edits by hand, against slots of dicts, and what no sequence of them may break."""

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jerp.errors import ConfigError, InputError, ShapeError, UnknownNameError
from jerp.rules.edits import EditOp, apply_edits
from tests.rules import pools
from tests.rules.pools import pool_of, rows_of

ADD, EDIT, UP, DOWN, MERGE = EditOp

# By slot: score, rule id, born, uses, wins, tokens.
ROW = {0: (3.0, 10, 0, 8, 4, 5), 1: (1.0, 11, 2, 6, 1, 7), 3: (2.0, 12, 1, 3, 3, 4)}
OTHER = {2: (9.0, 10, 0, 1, 1, 5)}


def edits_of(*edits, length=6):
    """All of one shape, which is compiled once."""
    return pools.edits_of(*edits, length=length)


def after(*edits, row=ROW, **keywords):
    """Row 0 after the edits, and what they did; row 1 stays as it is."""
    pool = pool_of(row, OTHER, capacity=4)
    pool, counts = apply_edits(pool, 0, edits_of(*edits), step=5, **keywords)
    changed, other = rows_of(pool)
    assert other == OTHER
    return changed, counts


def test_a_vote_moves_the_score_alone():
    row, counts = after((UP, 11, -1, 0, ()), (DOWN, 12, -1, 0, ()))
    assert row == ROW | {1: (2.0, 11, 2, 6, 1, 7), 3: (1.0, 12, 1, 3, 3, 4)}
    assert counts.applied.tolist() == [0, 0, 1, 1, 0]
    assert counts.dropped.tolist() == [0] * 5
    assert counts.took_effect.tolist() == [True, True] + [False] * 4


def test_a_new_rule_takes_the_first_free_slot_at_the_initial_score():
    row, _ = after((ADD, -1, 20, 6, ()))
    assert row == ROW | {2: (2.0, 20, 5, 0, 0, 6)}


def test_a_rule_that_is_there_is_not_added_and_one_without_room_neither():
    row, counts = after(
        (ADD, -1, 12, 6, ()), (ADD, -1, 20, 6, ()), (ADD, -1, 21, 6, ())
    )
    assert row == ROW | {2: (2.0, 20, 5, 0, 0, 6)}
    assert counts.applied.tolist() == [1, 0, 0, 0, 0]
    assert counts.dropped.tolist() == [2, 0, 0, 0, 0]
    assert counts.took_effect.tolist() == [False, True] + [False] * 4


def test_an_edit_keeps_age_and_use_and_adds_to_the_score():
    row, _ = after((EDIT, 11, 20, 9, ()))
    assert row == ROW | {1: (2.0, 20, 2, 6, 1, 9)}


def test_an_edit_into_a_rule_that_is_there_is_a_vote_for_it():
    row, counts = after((EDIT, 11, 12, 9, ()), upvote=4.0)
    assert row == ROW | {3: (6.0, 12, 1, 3, 3, 4)}
    assert counts.applied.tolist() == [0, 1, 0, 0, 0]
    assert counts.upvoted.tolist() == [True] + [False] * 5
    # By what is there at its turn; what is dropped is no vote, nor is another edit.
    turns = ((ADD, -1, 20, 1, ()), (EDIT, 11, 21, 1, ()), (EDIT, 12, 21, 1, ()))
    _, counts = after(*turns, (EDIT, 99, 12, 1, ()), (MERGE, -1, 12, 1, (10, 12)))
    assert counts.took_effect.tolist() == [True, True, True, False, True, False]
    assert counts.upvoted.tolist() == [False, False, True] + [False] * 3


@pytest.mark.parametrize(("merge", "score"), [("max", 3.0), ("sum", 4.0)])
def test_a_merge_leaves_one_rule_of_all(merge, score):
    row, _ = after((MERGE, -1, 20, 9, (11, 10)), merge=merge)
    assert row == {0: (score, 20, 0, 14, 5, 9), 3: ROW[3]}


def test_a_merge_into_a_rule_that_is_there_takes_it_in():
    row, _ = after((MERGE, -1, 10, 5, (11, 12)), merge="sum")
    assert row == {0: (6.0, 10, 0, 17, 8, 5)}


@pytest.mark.parametrize("members", [(), (10,), (10, 10), (10, 99), (10, 11, 99)])
def test_a_merge_of_fewer_than_two_or_of_unknown_rules_is_dropped(members):
    row, counts = after((MERGE, -1, 20, 9, members))
    assert row == ROW
    assert counts.dropped.tolist() == [0, 0, 0, 0, 1]


@pytest.mark.parametrize("op", [EDIT, UP, DOWN])
def test_what_names_a_rule_of_another_pool_or_of_none_is_dropped(op):
    row, counts = after((op, 99, 20, 1, ()), (op, -1, 20, 1, ()))
    assert row == ROW
    assert counts.dropped.tolist() == [2 * (i == op) for i in range(5)]


def test_an_empty_pool_and_no_edits_are_what_they_are():
    row, counts = after(row={})
    assert row == {} and not counts.took_effect.any()
    row, _ = after((UP, 10, -1, 0, ()), row={})
    assert row == {}
    pool = pool_of(ROW, capacity=4)
    pool, counts = apply_edits(pool, 0, edits_of(length=0))
    assert rows_of(pool) == [ROW] and counts.took_effect.shape == (0,)


def test_the_order_decides():
    """ADD comes last by default, and then finds the slot that MERGE has freed."""
    full = ROW | {2: (5.0, 13, 0, 0, 0, 3)}
    edits = ((ADD, -1, 20, 6, ()), (MERGE, -1, 21, 9, (10, 11)))
    row, counts = after(*edits, row=full, full=False)
    assert row[1] == (2.0, 20, 5, 0, 0, 6) and counts.dropped.sum() == 0
    row, counts = after(*edits, row=full, full=False, order="given")
    assert 1 not in row and counts.took_effect.tolist()[:2] == [False, True]


def test_votes_against_cost_more_in_a_full_pool():
    edits = ((DOWN, 10, -1, 0, ()), (ADD, -1, 20, 6, ()))
    for keywords, score in (
        ({}, 2.0),
        ({"full_at": 3}, 0.0),
        ({"full_at": 4}, 2.0),
        ({"full": True}, 0.0),
        ({"full": True, "full_downvote": 1.5}, 1.5),
        ({"full": False, "downvote": 0.5}, 2.5),
    ):
        assert after(*edits, **keywords)[0][0][0] == score
    full = ROW | {2: (5.0, 13, 0, 0, 0, 3)}
    assert after(*edits, row=full)[0][0][0] == 0.0


def test_every_number_has_its_keyword():
    edits = (
        (ADD, -1, 20, 1, ()),
        (EDIT, 10, 21, 1, ()),
        (UP, 11, -1, 1, ()),
        (DOWN, 12, -1, 1, ()),
    )
    numbers = {"initial_score": 7, "edit_bonus": 0.5, "upvote": 0.25, "downvote": 4}
    row, _ = after(*edits, **numbers)
    assert [row[slot][0] for slot in range(4)] == [3.5, 1.25, 7.0, -2.0]
    assert row[2][2] == 5  # born at the step


def test_what_cannot_be_meant_is_refused():
    pool, edits = pool_of(ROW, capacity=4), edits_of((UP, 10, -1, 0, ()))
    with pytest.raises(InputError, match=r"task: expected task keys in \[0, 1\)"):
        apply_edits(pool, 1, edits)
    with pytest.raises(ShapeError, match=r"task: expected axes \[\]"):
        apply_edits(pool, np.array([0]), edits)
    with pytest.raises(InputError, match=r"edits.op: expected an EditOp.* got 5"):
        apply_edits(pool, 0, edits_of((5, 10, -1, 0, ())))
    with pytest.raises(InputError, match=r"edits.rule_id: expected >= 0 .* got -1"):
        apply_edits(pool, 0, edits_of((ADD, -1, -1, 0, ())))
    with pytest.raises(InputError, match=r"edits.tokens: expected >= 0 .* got -2"):
        apply_edits(pool, 0, edits_of((EDIT, 10, 20, -2, ())))
    with pytest.raises(ShapeError, match=r"edits.target: expected axes \[E\] = \[6\]"):
        apply_edits(pool, 0, edits.replace(target=np.array([1, 2])))
    for name in ("upvote", "downvote", "full_downvote", "edit_bonus"):
        with pytest.raises(InputError, match=f"{name}: expected >= 0, got -1"):
            apply_edits(pool, 0, edits, **{name: -1.0})
    with pytest.raises(InputError, match="initial_score: expected a finite number"):
        apply_edits(pool, 0, edits, initial_score=np.inf)
    with pytest.raises(UnknownNameError, match="order"):
        apply_edits(pool, 0, edits, order="random")
    with pytest.raises(UnknownNameError, match="merge"):
        apply_edits(pool, 0, edits, merge="mean")
    with pytest.raises(ConfigError, match="full and full_at: expected one of them"):
        apply_edits(pool, 0, edits, full=True, full_at=3)
    twice = pool_of({0: ROW[0], 1: ROW[0]}, capacity=4)
    with pytest.raises(InputError, match="each rule once a row, got 10 2 times in row"):
        apply_edits(twice, 0, edits)


SEQUENCE = (
    (DOWN, 11, -1, 0, ()),
    (ADD, -1, 20, 6, ()),
    (EDIT, 12, 21, 3, ()),
    (MERGE, -1, 22, 9, (10, 21)),
)
SEQUENCE_DOES = {
    0: (3.0, 22, 0, 11, 7, 9),
    1: (0.0, 11, 2, 6, 1, 7),
    2: (2.0, 20, 5, 0, 0, 6),
}


def test_all_ways_of_running_agree(transform):
    pool = pool_of(ROW, OTHER, capacity=4)
    run = transform(lambda *a: apply_edits(*a, step=5))
    pool, counts = run(pool, jnp.int32(0), edits_of(*SEQUENCE))
    assert rows_of(pool) == [SEQUENCE_DOES, OTHER]
    assert counts.applied.tolist() == [1, 1, 0, 1, 1]
    assert counts.took_effect.tolist() == [True] * 4 + [False] * 2


def test_a_rule_at_0_can_be_saved_by_an_edit_of_the_same_batch():
    row, _ = after((EDIT, 11, 20, 4, ()), (DOWN, 11, -1, 0, ()))
    assert row[1] == (1.0, 20, 2, 6, 1, 4)


def test_garbage_changes_nothing():
    """Neither in free slots nor in edits that are not valid."""
    edits = edits_of(*SEQUENCE)
    clean = apply_edits(pool_of(ROW, OTHER, capacity=4), 0, edits, step=5)
    pool = pool_of(ROW, OTHER, capacity=4, garbage=True)
    for value in (-(2**31), -1, 0, 10, 2**31 - 1):
        stray = jax.tree.map(lambda x, v=value: x.at[4:].set(x.dtype.type(v)), edits)
        stray = stray.replace(valid=edits.valid)
        found, counts = apply_edits(pool, 0, stray, step=5)
        row = jax.tree.map(lambda x: x[:1], found)
        assert rows_of(row) == [SEQUENCE_DOES] == rows_of(clean[0])[:1]
        np.testing.assert_array_equal(counts.applied, clean[1].applied)
        np.testing.assert_array_equal(counts.dropped, clean[1].dropped)


def test_under_jit_what_cannot_be_is_dropped():
    pool = pool_of(ROW, OTHER, capacity=4)
    run = jax.jit(apply_edits)
    for task in (-1, 2, 99):
        found, counts = run(pool, task, edits_of(*SEQUENCE))
        assert rows_of(found) == [ROW, OTHER]
        assert not counts.took_effect.any() and counts.dropped.sum() == 0
    strange = [(5, 10, 20, 1, ()), (-1, 10, 20, 1, ()), (ADD, -1, -1, 1, ())]
    strange += [(EDIT, 10, -1, 1, ()), (MERGE, -1, -1, 1, (10, 11))]
    found, counts = run(pool, 0, edits_of(*strange))
    assert rows_of(found) == [ROW, OTHER]
    assert counts.dropped.tolist() == [1, 1, 0, 0, 1]


def test_under_jit_a_number_out_of_range_shows():
    pool, edits = pool_of(ROW, capacity=4), edits_of((UP, 10, -1, 0, ()))
    found, _ = jax.jit(lambda number: apply_edits(pool, 0, edits, downvote=number))(
        -1.0
    )
    assert np.isnan(found.score[0, 0]) and found.score[0, 1] == 1.0


def test_one_trace_a_shape():
    @jax.jit
    @chex.assert_max_traces(n=1)
    def run(pool, task, edits, upvote, full):
        return apply_edits(pool, task, edits, upvote=upvote, full=full)

    pool = pool_of(ROW, OTHER, capacity=4)
    one = run(pool, 0, edits_of((UP, 10, -1, 0, ())), 1.0, False)
    two = run(one[0], 1, edits_of(*SEQUENCE[:3]), 2.0, True)
    assert rows_of(two[0])[0][0][0] == 4.0


def test_edits_of_many_pools_are_one_scan():
    """Batches of edits in turn, as the loop applies those of a batch of groups."""
    pool = pool_of(ROW, OTHER, capacity=4)
    batches = [edits_of((UP, 10, -1, 0, ())) for _ in range(3)]
    batches = jax.tree.map(lambda *x: jnp.stack(x), *batches)

    def one(pool, batch):
        return apply_edits(pool, *batch)

    pool, counts = jax.lax.scan(one, pool, (jnp.array([0, 1, 0]), batches))
    assert [row[slot][0] for row, slot in zip(rows_of(pool), (0, 2), strict=True)] == [
        5.0,
        10.0,
    ]
    assert counts.applied.sum(axis=0).tolist() == [0, 0, 3, 0, 0]

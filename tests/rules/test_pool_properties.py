"""Pools against slots of plain Python, for any rules and any sequence of edits."""

import jax
import jax.numpy as jnp
import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from jerp.rules.edits import EditOp, apply_edits
from jerp.rules.pool import record_use
from jerp.rules.pruning import prune, retire
from jerp.rules.selection import select_similar, select_top
from tests.reference import rules as reference
from tests.rules.pools import FIELDS, edits_of, pool_of, rows_of

CAPACITY, IDS, EDITS, RULES = 5, 8, 7, 4
WORDS = {op: op.name.lower() for op in EditOp}
NUMBERS = ("initial_score", "upvote", "downvote", "full_downvote", "edit_bonus")
VARIANTS = (("max", "expel"), ("sum", "given"))
many = settings(max_examples=60, deadline=None, derandomize=True)

# Multiples of 1/4: all that is done to them is exact in float32.
SCORES = st.integers(-8, 16).map(lambda i: i / 4)
SMALL = st.integers(0, 3)
SLOTS = st.dictionaries(
    st.integers(0, CAPACITY - 1), st.tuples(SCORES, SMALL, SMALL, SMALL, SMALL)
)


@st.composite
def pools(draw):
    """`{slot: (score, rule_id, born, uses, wins, tokens)}`, no id twice."""
    slots = draw(SLOTS)
    ids = draw(st.permutations(range(IDS)))
    return {slot: (v[0], ids[slot], *v[1:]) for slot, v in slots.items()}


def row_of(table):
    row = [None] * CAPACITY
    for slot, (score, rule_id, born, uses, wins, tokens) in table.items():
        row[slot] = reference.Rule(score, rule_id, born, uses, wins, tokens)
    return row


def table_of(row):
    return {
        slot: (r.score, r.id, r.born, r.uses, r.wins, r.tokens)
        for slot, r in enumerate(row)
        if r is not None
    }


NAMES = st.integers(-1, IDS - 1)
NEW = st.integers(0, IDS - 1)
ONE_EDIT = st.tuples(
    st.sampled_from(EditOp), NAMES, NEW, SMALL, st.lists(NEW, max_size=3)
)


@jax.jit
def run_edits(pool, edits, numbers, full):
    return [
        apply_edits(
            pool, 1, edits, step=9, full=full, merge=merge, order=order, **numbers
        )
        for merge, order in VARIANTS
    ]


@many
@given(
    st.tuples(pools(), pools()),
    st.lists(ONE_EDIT, max_size=EDITS),
    st.fixed_dictionaries({name: SMALL.map(float) for name in NUMBERS}),
    st.booleans(),
)
def test_any_edits_do_what_plain_python_does(tables, edits, numbers, full):
    pool = pool_of(*tables, capacity=CAPACITY, garbage=True)
    found = run_edits(pool, edits_of(*edits, length=EDITS), numbers, full)
    words = [(WORDS[op], *rest) for op, *rest in edits]
    for (merge, order), (after, counts) in zip(VARIANTS, found, strict=True):
        row, done = reference.edited(
            row_of(tables[1]),
            words,
            step=9,
            merge=merge,
            order=order,
            full=full,
            **numbers,
        )
        one = jax.tree.map(lambda x: x[1:], after)
        assert rows_of(one) == [table_of(row)]
        for name in (*FIELDS, "active"):
            np.testing.assert_array_equal(
                getattr(after, name)[0], getattr(pool, name)[0]
            )
        of_op = [
            [bool(d) for e, d in zip(edits, done, strict=True) if e[0] == op]
            for op in EditOp
        ]
        assert counts.applied.tolist() == [sum(d) for d in of_op]
        assert counts.dropped.tolist() == [len(d) - sum(d) for d in of_op]
        rest = [False] * (EDITS - len(done))
        assert counts.took_effect.tolist() == [*map(bool, done), *rest]
        votes = [e[0] == EditOp.EDIT for e in edits]
        votes = [v and d == "upvote" for v, d in zip(votes, done, strict=True)]
        assert counts.upvoted.tolist() == votes + rest


@jax.jit
def run_prune(pool, min_score, capacity, budget):
    bounded = prune(pool, min_score=min_score, capacity=capacity, token_budget=budget)
    return prune(pool, min_score=min_score, capacity=capacity), bounded


@many
@given(pools(), SCORES, st.integers(1, CAPACITY), st.integers(0, 8))
def test_pruning_is_what_plain_python_does(table, least, capacity, budget):
    pool = pool_of(table, capacity=CAPACITY, garbage=True)
    found = run_prune(pool, least, capacity, budget)
    for after, tokens in zip(found, (None, budget), strict=True):
        row = reference.pruned(row_of(table), least, capacity, tokens)
        assert rows_of(after) == [table_of(row)]


run_retire = jax.jit(retire)


@many
@given(st.tuples(pools(), pools()), st.lists(st.tuples(NAMES, NAMES), max_size=4))
def test_retiring_is_what_plain_python_does(tables, names):
    pool = pool_of(*tables, capacity=CAPACITY, garbage=True)
    padded = [*names, *[(-1, -1)] * (4 - len(names))]
    found = run_retire(pool, jnp.asarray(padded, jnp.int32).T)
    wanted = [
        reference.retired(row_of(table), {pair[n] for pair in names})
        for n, table in enumerate(tables)
    ]
    assert rows_of(found) == [*map(table_of, wanted)]


EMBEDDING = np.float32(
    [[1, 0], [2, 1], [1, 2], [0, 3], [-1, 4], [-2, -1], [0, -1], [0, 0]]
)


@jax.jit
def run_select(pool, query, budget):
    task = jnp.array([0])
    top = select_top(pool, task, num_rules=RULES)
    near = select_similar(pool, task, query, EMBEDDING, num_rules=RULES)
    short = select_top(pool, task, num_rules=RULES, token_budget=budget)
    close = select_similar(
        pool, task, query, EMBEDDING, num_rules=RULES, token_budget=budget
    )
    return [top, near, short, close]


@many
@given(
    pools(), st.sampled_from([(1.0, 0.5), (-3.0, 1.0), (0.0, 0.0)]), st.integers(0, 9)
)
def test_working_sets_are_what_plain_python_chooses(table, query, budget):
    pool = pool_of(table, capacity=CAPACITY, garbage=True)
    found = run_select(pool, np.float32([query]), budget)
    row = row_of(table)
    orders = [reference.ranked(row), reference.by_similarity(row, query, EMBEDDING)]
    expected = [reference.chosen(row, order, RULES) for order in orders]
    expected += [reference.chosen(row, order, RULES, budget) for order in orders]
    assert [x.tolist()[0] for x in found] == expected


run_record = jax.jit(record_use)
EPISODES = st.tuples(
    st.integers(0, 1),
    st.lists(NAMES, min_size=3, max_size=3),
    st.booleans(),
    st.booleans(),
)


@many
@given(st.tuples(pools(), pools()), st.lists(EPISODES, min_size=4, max_size=4))
def test_use_is_counted_as_plain_python_counts(tables, episodes):
    pool = pool_of(*tables, capacity=CAPACITY, garbage=True)
    task, sets, success, valid = (np.array(x) for x in zip(*episodes, strict=True))
    found = rows_of(run_record(pool, task, sets, success, valid))
    rows = reference.used([row_of(t) for t in tables], *zip(*episodes, strict=True))
    assert found == [table_of(row) for row in rows]

"""Working sets by hand, by scores and by texts."""

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jerp.errors import InputError, ShapeError
from jerp.rules.selection import select_similar, select_top
from tests.rules.pools import pool_of

# By slot: score, rule id, born, uses, wins, tokens.
ROW = {
    0: (2.0, 10, 3, 0, 0, 6),
    1: (5.0, 11, 9, 0, 0, 9),
    2: (2.0, 12, 1, 0, 0, 2),
    4: (2.0, 13, 1, 0, 0, 4),
    5: (-1.0, 14, 0, 0, 0, 1),
}
OTHER = {3: (0.0, 0, 0, 0, 0, 8)}


def top(*tasks, num_rules, **keywords):
    pool = pool_of(ROW, OTHER, {}, capacity=6, garbage=True)
    return select_top(pool, np.array(tasks), num_rules=num_rules, **keywords).tolist()


def test_the_best_come_first_then_the_older_then_the_lower_slot():
    assert top(0, num_rules=5) == [[11, 12, 13, 10, 14]]
    assert top(1, 0, 2, 0, num_rules=2) == [[0, -1], [11, 12], [-1, -1], [11, 12]]
    assert top(0, num_rules=8) == [[11, 12, 13, 10, 14, -1, -1, -1]]


@pytest.mark.parametrize(
    ("budget", "chosen"),
    [
        (22, [11, 12, 13, 10, 14]),
        (21, [11, 12, 13, 10]),
        (16, [11, 12, 13, 14]),
        (10, [11, 14]),
        (8, [12, 13, 14]),
        (0, []),
    ],
)
def test_what_does_not_fit_is_passed_over(budget, chosen):
    found = top(0, num_rules=5, token_budget=budget)
    assert found == [[*chosen, *[-1] * (5 - len(chosen))]]


def test_a_rule_that_is_not_chosen_costs_nothing():
    assert top(0, num_rules=2, token_budget=10) == [[11, 14]]


EMBEDDING = np.zeros((15, 2), np.float32)
EMBEDDING[10:] = [[1, 0], [3, 4], [0, 1], [1e30, 1e30], [0, 0]]


def similar(query, *, num_rules=5, embedding=EMBEDDING, **keywords):
    pool = pool_of(ROW, OTHER, capacity=6, garbage=True)
    query = np.float32([query])
    task = np.zeros(1, int)
    keywords["num_rules"] = num_rules
    return select_similar(pool, task, query, embedding, **keywords).tolist()[0]


def test_the_nearest_come_first_whatever_their_score_and_length():
    """Cosines with (1, 0): 1, .6, 0, .71, 0; the two zeros go by score."""
    assert similar([1, 0]) == [10, 13, 11, 12, 14]
    assert similar([1e-30, 0]) == similar([1e30, 0]) == [10, 13, 11, 12, 14]
    assert similar([0, 2]) == [12, 11, 13, 10, 14]
    assert similar([0, -2])[-1] == 12
    assert similar([1, 0], num_rules=2) == [10, 13]


def test_without_a_direction_similarity_is_the_score():
    assert similar([0, 0]) == [11, 12, 13, 10, 14]


def test_similar_rules_too_have_to_fit():
    assert similar([1, 0], token_budget=11) == [10, 13, 14, -1, -1]


def test_what_is_not_finite_is_never_chosen():
    assert similar([np.nan, 0]) == [-1] * 5
    broken = EMBEDDING.copy()
    broken[10] = np.nan
    assert similar([1, 0], embedding=broken) == [13, 11, 12, 14, -1]
    broken[10] = np.inf
    assert similar([1, 0], embedding=broken) == [13, 11, 12, 14, -1]


def test_what_cannot_be_meant_is_refused():
    with pytest.raises(InputError, match="num_rules: expected a whole number >= 1"):
        top(0, num_rules=0)
    with pytest.raises(InputError, match="token_budget: expected >= 0, got -1"):
        top(0, num_rules=1, token_budget=-1)
    with pytest.raises(
        InputError, match=r"task: expected task keys in \[0, 3\), got 3"
    ):
        top(3, num_rules=1)
    with pytest.raises(ShapeError, match="task: expected type int"):
        top(0.5, num_rules=1)
    with pytest.raises(InputError, match=r"pool.rule_id: expected ids in \[0, 12\)"):
        similar([1, 0], embedding=EMBEDDING[:12])
    with pytest.raises(ShapeError, match=r"embedding: expected axes \[M, D\]"):
        similar([1, 0], embedding=jnp.zeros((15, 3)))


def test_all_ways_of_running_agree(transform):
    pool = pool_of(ROW, OTHER, capacity=6, garbage=True)
    task, query = jnp.array([0, 1]), jnp.array([[1.0, 0.0]] * 2)
    keywords = {"num_rules": 3, "token_budget": 16}
    found = transform(lambda p, t: select_top(p, t, **keywords))(pool, task)
    assert found.tolist() == [[11, 12, 13], [0, -1, -1]]
    found = transform(lambda *a: select_similar(*a, EMBEDDING, **keywords))(
        pool, task, query
    )
    assert found.tolist() == [[10, 13, 12], [0, -1, -1]]


def test_one_trace_a_shape():
    @jax.jit
    @chex.assert_max_traces(n=1)
    def run(pool, task, budget):
        return select_top(pool, task, num_rules=2, token_budget=budget)

    pool = pool_of(ROW, OTHER, capacity=6)
    assert run(pool, jnp.array([0]), 99).tolist() == [[11, 12]]
    assert run(pool, jnp.array([1]), 9).tolist() == [[0, -1]]


def test_under_jit_what_does_not_exist_is_not_chosen():
    pool = pool_of(ROW, OTHER, capacity=6)
    task, query = jnp.array([-1, 2, 0]), jnp.array([[1.0, 0.0]] * 3)
    top = jax.jit(lambda t: select_top(pool, t, num_rules=1))(task)
    assert top.tolist() == [[-1], [-1], [11]]
    near = jax.jit(lambda *a: select_similar(*a, EMBEDDING[:12], num_rules=3))
    assert near(pool, task, query).tolist() == [[-1] * 3, [-1] * 3, [10, 11, -1]]

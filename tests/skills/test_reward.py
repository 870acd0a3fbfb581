"""Rewards of drafts: by hand, draft by draft, and at their limits."""

from functools import partial

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jerp.advantages.group import group_relative_advantages
from jerp.errors import InputError, ShapeError
from jerp.skills.reward import format_schedule, skill_reward
from tests.reference import skills as reference

PARSED = np.array([1, 1, 1, 1, 1, 0, 0, 1], bool)
OUTCOME = np.array(
    [
        [1, 1, 1],
        [1, 0, 2],
        [1, 4, 3],
        [4, 4, 4],
        [4, 4, 1],
        [1, 1, 1],
        [9, -7, 2**31 - 1],
        [0, 0, 0],
    ],
    np.int32,
)
TOKENS = np.array([100, 0, 15, 10, 20, 21, 3, 1], np.int32)
SETTINGS = {
    "reasoning_budget": 10.0,
    "format_weight": 0.5,
    "task_weight": 2.0,
    "length_weight": 0.25,
}


@pytest.fixture(autouse=True)
def _strict_dtypes():
    with jax.numpy_dtype_promotion("strict"):
        yield


def expected(parsed, outcome, tokens, budget=256, weights=(1.0, 1.0, 1.0)):
    rows = zip(parsed.tolist(), outcome.tolist(), tokens.tolist(), strict=True)
    return list(
        zip(*(reference.reward(*row, budget, weights) for row in rows), strict=True)
    )


def assert_equal(found, columns):
    for value, column in zip(jax.tree.leaves(found), columns, strict=True):
        np.testing.assert_allclose(value, column, rtol=1e-6)


def test_by_hand():
    """(1 + 1/2 + 1) / 3; no reasoning; 1.5 budgets; not parsed; nothing answered."""
    reward = skill_reward(
        np.array([1, 1, 1, 0, 1], bool),
        np.array([[1, 0], [1, 4], [0, 2], [1, 1], [4, 4]]),
        np.array([256, 0, 384, 512, 1]),
    )
    np.testing.assert_allclose(reward.total, [2.5 / 3, 2 / 3, 0.5, 0, np.nan])
    assert reward.task.tolist()[:4] == [0.5, 1, 0, 0]
    assert reward.length.tolist() == [1, 0, 0.5, 0, 1]
    assert reward.format.tolist() == [1, 1, 1, 0, 1]
    assert reward.valid.tolist() == [True, True, True, True, False]


def test_against_the_reference(transform):
    reward = transform(partial(skill_reward, **SETTINGS))(PARSED, OUTCOME, TOKENS)
    assert_equal(reward, expected(PARSED, OUTCOME, TOKENS, 10, (0.5, 2.0, 0.25)))


compiled = jax.jit(skill_reward)

ROW = st.tuples(
    st.booleans(),
    st.lists(st.integers(0, 4), min_size=3, max_size=3),
    st.integers(0, 1200),
)


@settings(deadline=None)
@given(st.lists(ROW, min_size=8, max_size=8))
def test_any_draft(rows):
    parsed, outcome, tokens = (np.array(column) for column in zip(*rows, strict=True))
    outcome, tokens = outcome.astype(np.int32), tokens.astype(np.int32)
    reward = compiled(parsed, outcome, tokens)
    assert_equal(reward, expected(parsed, outcome, tokens))
    total = np.asarray(reward.total)[np.asarray(reward.valid)]
    assert ((total >= 0) & (total <= 1)).all()


def test_one_more_success_is_worth_a_share_and_lost_runs_nothing():
    parsed, tokens = np.ones(4, bool), np.full(4, 7)
    outcome = np.array([[0, 0, 0], [1, 0, 0], [1, 1, 0], [1, 1, 1]])
    total = np.asarray(compiled(parsed, outcome, tokens).total)
    np.testing.assert_allclose(np.diff(total), 1 / 9, rtol=1e-5)
    lost = np.concatenate([outcome, np.full((4, 2), 4)], axis=1)
    np.testing.assert_array_equal(compiled(parsed, lost, tokens).total, total)


def test_weights_of_0_leave_a_term_out_and_none_needs_a_new_trace():
    traced = jax.jit(chex.assert_max_traces(skill_reward, n=1))
    names = ("format_weight", "task_weight", "length_weight")
    plain = compiled(PARSED, OUTCOME, TOKENS)
    terms = (plain.format, plain.task, plain.length)
    alone = [
        traced(PARSED, OUTCOME, TOKENS, **{n: jnp.float32(n == name) for n in names})
        for name in names
    ]
    for reward, term in zip(alone, terms, strict=True):
        third = np.where(plain.valid, np.asarray(term) / 3, np.nan)
        np.testing.assert_allclose(reward.total, third, rtol=1e-6)
    together = sum(np.asarray(reward.total) for reward in alone)
    np.testing.assert_allclose(together, plain.total, rtol=1e-6)


def test_a_lost_draft_is_in_no_group():
    reward = compiled(PARSED, OUTCOME, TOKENS)
    groups = jnp.zeros(8, jnp.int32)
    found = group_relative_advantages(
        reward.total, groups, reward.valid, num_groups=1, scale="none"
    ).value
    kept = np.asarray(reward.valid)
    others = np.asarray(reward.total)[kept]
    np.testing.assert_allclose(found[kept], others - others.mean(), atol=1e-6)
    assert found[~kept].tolist() == [0.0]


def test_gradients_of_weights_are_finite_beside_lost_drafts():
    @jax.jit
    def mean(weight, budget):
        reward = skill_reward(
            PARSED, OUTCOME, TOKENS, task_weight=weight, reasoning_budget=budget
        )
        return jnp.sum(jnp.where(reward.valid, reward.total, 0.0))

    slope, stretch = jax.grad(mean, argnums=(0, 1))(jnp.float32(1), jnp.float32(9))
    plain = compiled(PARSED, OUTCOME, TOKENS)
    np.testing.assert_allclose(slope, np.nansum(plain.task) / 3, rtol=1e-6)
    # Of drafts with a reward only 15 tokens lie on the slope, and d(2 - n/b) = n/b^2.
    np.testing.assert_allclose(stretch, 15 / 9**2 / 3, rtol=1e-6)


def test_schedule():
    weight = format_schedule(4, start=0.8, end=0.2)
    found = [float(weight(step)) for step in (0, 1, 4, 9)]
    np.testing.assert_allclose(found, [0.8, 0.65, 0.2, 0.2], rtol=1e-6)
    for wrong in (0, 2.0):
        with pytest.raises(InputError, match="num_steps: expected a whole number"):
            format_schedule(wrong)
    with pytest.raises(InputError, match="start: expected >= 0"):
        format_schedule(4, start=-1.0)
    with pytest.raises(InputError, match="end: expected >= 0"):
        format_schedule(4, end=float("nan"))


def test_mistakes_are_named():
    outcome = np.array([[5, 0]])
    with pytest.raises(InputError, match=r"outcome: expected one of .*, got 5 at"):
        skill_reward(np.array([True]), outcome, np.array([1]))
    with pytest.raises(InputError, match="reasoning_tokens: expected >= 0, got -1"):
        skill_reward(np.array([False]), outcome, np.array([-1]))
    for name in SETTINGS:
        for wrong in (-1.0, float("nan"), float("inf")):
            with pytest.raises(InputError, match=f"{name}: expected"):
                skill_reward(PARSED, OUTCOME, TOKENS, **{name: wrong})
        with pytest.raises(ShapeError, match=rf"{name}: expected axes \[\], got \[8\]"):
            skill_reward(PARSED, OUTCOME, TOKENS, **{name: np.ones(8, np.float32)})
    with pytest.raises(ShapeError, match=r"outcome: expected axes \[N, M\]"):
        skill_reward(PARSED, OUTCOME[:3], TOKENS)
    with pytest.raises(ShapeError, match="parsed: expected type bool"):
        skill_reward(OUTCOME[:, 0], OUTCOME, TOKENS)


def test_under_jit_mistakes_are_nan_and_do_not_pass_for_lost():
    rows = np.ones(2, bool), np.array([[0, 1], [1, 9]]), np.array([1, 1])
    reward = compiled(*rows)
    assert np.isnan(reward.total).tolist() == [False, True]
    assert reward.valid.tolist() == [True, True]
    reward = compiled(rows[0], rows[1][::-1] % 2, np.array([1, -1]))
    assert np.isnan(reward.total).tolist() == [False, True]
    assert np.isnan(compiled(*rows, reasoning_budget=-1.0).total).all()
    assert np.isnan(compiled(*rows, task_weight=-1.0).total).all()

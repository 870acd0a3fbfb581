"""Absorption by hand, against plain Python, and what it is in the limits."""

import math
from functools import partial

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jerp.errors import InputError, ShapeError
from jerp.records import Interval
from jerp.rules.absorption import (
    absorbed,
    absorption_gain,
    removal_loss,
    rule_log_prob,
)
from tests.reference import rules as reference

TASKS = np.arange(48) // 2
FLAWS = np.float32((np.arange(48) % 5) > 0)  # 1 in 5 fails: 38 of 48 succeed


def loss_of(told, alone, task=TASKS, **keywords):
    return removal_loss(jax.random.key(3), told, alone, task, **keywords)


def test_a_rule_that_changes_nothing_is_absorbed():
    loss = loss_of(FLAWS, FLAWS)
    assert (float(loss.point), float(loss.low), float(loss.high)) == (0, 0, 0)
    assert int(loss.num_clusters) == 24 and bool(absorbed(loss, margin=0.13))


def test_a_rule_that_matters_is_not():
    """Without it every fourth task is lost, both of its episodes."""
    alone = np.where(TASKS % 4 == 0, 0, FLAWS)
    loss = loss_of(FLAWS, alone)
    lost = FLAWS[TASKS % 4 == 0].sum()
    np.testing.assert_allclose(loss.point, lost / 48, rtol=1e-6)
    np.testing.assert_allclose(loss.point, reference.removal_loss(FLAWS, alone), 1e-6)
    assert loss.low > 0.05 and not bool(absorbed(loss))
    # Three of 24 tasks may be lost besides, unseen.
    assert not bool(absorbed(loss, margin=float(loss.high) + 3 / 24 - 0.001))
    assert bool(absorbed(loss, margin=float(loss.high) + 3 / 24 + 0.001))
    assert float(loss.p_value) < 0.05


def test_a_rule_that_harms_is_absorbed_too():
    """Its removal loses nothing."""
    loss = loss_of(FLAWS * (TASKS % 2), FLAWS)
    assert loss.high < 0 and bool(absorbed(loss))


def test_episodes_of_a_task_are_no_new_evidence():
    """Four copies of each pair: the interval over tasks stays."""
    alone = np.where(TASKS % 4 == 0, 0, FLAWS)
    one = loss_of(FLAWS, alone)
    four = loss_of(*(np.repeat(x, 4) for x in (FLAWS, alone, TASKS)))
    np.testing.assert_allclose(four.high, one.high, rtol=1e-5)
    apart = loss_of(*(np.repeat(x, 4) for x in (FLAWS, alone)), np.arange(192))
    assert apart.high - apart.low < 0.8 * (one.high - one.low)


def test_what_nobody_answered_is_left_out():
    told, alone = FLAWS.copy(), np.where(TASKS % 4 == 0, 0, FLAWS).astype(np.float32)
    told[:3], alone[5] = np.nan, np.nan
    loss = loss_of(told, alone)
    assert int(loss.num_values) == 44
    np.testing.assert_allclose(loss.point, reference.removal_loss(told, alone), 1e-6)
    mask = ~np.isnan(told - alone)
    masked = loss_of(np.where(mask, told, 7), np.where(mask, alone, 7), mask=mask)
    assert masked.high == loss.high and masked.point == loss.point


def test_nothing_measured_is_nothing_absorbed():
    none = np.zeros(0, np.float32)
    loss = loss_of(none, none, np.zeros(0, int))
    assert np.isnan([loss.point, loss.low, loss.high]).all() and not bool(
        absorbed(loss)
    )
    one = loss_of(FLAWS, FLAWS, np.zeros(48, int))
    assert float(one.point) == 0 and np.isnan(one.high) and not bool(absorbed(one))


@pytest.mark.parametrize(("number", "shown"), [(24, False), (150, False), (151, True)])
def test_few_tasks_show_nothing(number, shown):
    """If none of n is lost, 3 / n of all may be: 2 points take more than 150."""
    same = np.ones(number, np.float32)
    assert bool(absorbed(loss_of(same, same, np.arange(number)))) is shown


@pytest.mark.parametrize("number", [85, 341])
def test_what_costs_more_than_the_margin_is_seldom_taken_for_nothing(number):
    """Of 200 tries with a true loss of 3 points; without the rule of three 8%."""
    lost = np.random.default_rng(0).random((200, number)) < 0.03
    keys = jax.random.split(jax.random.key(0), 200)
    measure = partial(removal_loss, num_resamples=400)
    found = jax.jit(jax.vmap(measure, (0, None, 0, None)))(
        keys, np.ones(number, np.float32), np.float32(~lost), np.arange(number)
    )
    by_resampling = np.mean(np.asarray(found.high) < 0.02)
    assert by_resampling > 0.05 or number > 85
    assert np.mean(absorbed(found)) < 0.025


def test_the_level_is_of_the_two_sides():
    alone = np.where(TASKS % 4 == 0, 0, FLAWS)
    one_sided = loss_of(FLAWS, alone, level=0.9)
    assert one_sided.high < loss_of(FLAWS, alone).high and one_sided.level == 0.9
    assert loss_of(FLAWS, alone, num_resamples=99).high != one_sided.high


def test_several_rules_at_once():
    alone = np.stack([FLAWS, np.zeros(48, np.float32), FLAWS])
    keys = jax.random.split(jax.random.key(1), 3)
    loss = jax.vmap(removal_loss, (0, None, 0, None))(keys, FLAWS, alone, TASKS)
    assert absorbed(loss, margin=0.13).tolist() == [True, False, True]


def test_settings_that_cannot_be_meant_are_refused():
    loss = loss_of(FLAWS, FLAWS)
    with pytest.raises(InputError, match="margin: expected > 0, got 0"):
        absorbed(loss, margin=0)
    with pytest.raises(InputError, match="expected an interval with num_clusters"):
        absorbed(Interval(point=loss.point, low=loss.low, high=loss.high))
    assert not jax.jit(lambda margin: absorbed(loss, margin=margin))(-1.0)
    assert jax.jit(lambda margin: absorbed(loss, margin=margin))(0.13)


# Two states of three actions; the second rule is about both of them.
LOG_PROB = np.log(np.float32([[0.5, 0.25, 0.25], [0.2, 0.2, 0.6]]))
FOLLOWS = np.array([[[1, 1, 0], [0, 0, 1], [1, 0, 0]], [[1, 1, 1], [0, 0, 1], [0] * 3]])
FOLLOWS = FOLLOWS.astype(bool)
APPLIES = np.array([[1, 1, 0], [0, 1, 1]], bool)
EXPECTED = [math.log(0.75), (math.log(0.25) + math.log(0.6)) / 2, math.nan]
CLOSE = {"rtol": 1e-6, "atol": 1e-6}


def test_the_actions_that_follow_a_rule_count_together(transform):
    """The third rule applies where nothing follows it: there is nothing to measure."""
    found = transform(rule_log_prob)(LOG_PROB, FOLLOWS, APPLIES)
    np.testing.assert_allclose(found.mean, EXPECTED, **CLOSE)
    assert found.weight.tolist() == [1, 2, 0]


def test_states_weigh_what_they_are_told(transform):
    run = transform(lambda *a: rule_log_prob(*a[:3], weight=a[3]))
    found = run(LOG_PROB, FOLLOWS, APPLIES, np.float32([3, 1]))
    mean = (3 * math.log(0.25) + math.log(0.6)) / 4
    np.testing.assert_allclose(found.mean[1], mean, **CLOSE)
    none = run(LOG_PROB, FOLLOWS, APPLIES, np.float32([0, 1]))
    np.testing.assert_allclose(none.mean, [math.nan, math.log(0.6), math.nan], **CLOSE)


def test_a_certain_policy_has_0_and_one_that_refuses_has_minus_infinity():
    log_prob = np.log(np.float32([[0.6, 0.4, 1e-45]]))
    log_prob[0, 2] = -np.inf
    follows = np.array([[[1, 1, 1], [0, 0, 1]]], bool)
    found = rule_log_prob(log_prob, follows, np.ones((1, 2), bool))
    assert found.mean.tolist() == [0.0, -np.inf]


def test_what_does_not_apply_may_hold_anything():
    found = rule_log_prob(LOG_PROB, FOLLOWS, APPLIES)
    for garbage in (np.nan, np.inf, -np.inf, 1e30):
        padded = np.concatenate([LOG_PROB, np.full((1, 3), garbage, np.float32)])
        follows = np.concatenate([FOLLOWS, np.ones((1, 3, 3), bool)])
        applies = np.concatenate([APPLIES, np.zeros((1, 3), bool)])
        weight = np.float32([1, 1, garbage])
        for run in (rule_log_prob, jax.jit(rule_log_prob)):
            again = run(padded, follows, applies, weight=weight)
            np.testing.assert_array_equal(again.mean, found.mean)
            np.testing.assert_array_equal(again.weight, found.weight)
    # An action that follows no rule that applies here may be worth anything too.
    poisoned = LOG_PROB.copy()
    poisoned[1, :2] = np.nan
    again = rule_log_prob(poisoned, FOLLOWS, APPLIES)
    np.testing.assert_array_equal(again.mean, found.mean)


@settings(max_examples=50, deadline=None, derandomize=True)
@given(
    st.lists(
        st.tuples(*[st.integers(0, 9)] * 3, *[st.integers(0, 7)] * 3),
        min_size=4,
        max_size=4,
    ),
    st.lists(st.integers(0, 3), min_size=4, max_size=4),
)
def test_any_states_do_what_plain_python_does(states, weight):
    counts = np.array(states)[:, :3]
    log_prob = jax.nn.log_softmax(np.float32(counts), axis=-1)
    follows = (np.array(states)[:, 3:5, None] >> np.arange(3)) & 1 > 0
    applies = (np.array(states)[:, 5:] >> np.arange(2)) & 1 > 0
    found = rule_log_prob(log_prob, follows, applies, weight=np.float32(weight))
    rows = [
        (log_prob[s], follows[s, r], r, weight[s])
        for s, r in np.argwhere(applies & follows.any(axis=-1)).tolist()
    ]
    mean, total = reference.rule_log_probs(rows, num_rules=2)
    np.testing.assert_allclose(found.mean, mean, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(found.weight, total, rtol=1e-6)


def test_the_gain_is_the_difference_to_birth():
    now, birth = (
        jnp.array([-0.5, -2.0, -1.0, -jnp.inf]),
        jnp.array([-2.0, -1.0, jnp.nan, -1.0]),
    )
    gain = absorption_gain(now, birth)
    np.testing.assert_array_equal(gain, [1.5, -1.0, np.nan, -np.inf])
    np.testing.assert_array_equal(absorption_gain(birth[:2], birth[:2]), [0, 0])


def test_arrays_that_cannot_be_meant_are_refused():
    with pytest.raises(InputError, match=r"log_prob: expected at most 0, got 0.5 at"):
        rule_log_prob(np.exp(LOG_PROB), FOLLOWS, APPLIES)
    with pytest.raises(InputError, match=r"weight: expected finite and >= 0, got -1.0"):
        rule_log_prob(LOG_PROB, FOLLOWS, APPLIES, weight=np.float32([1, -1]))
    with pytest.raises(ShapeError, match=r"follows: expected axes \[S, R, A\]"):
        rule_log_prob(LOG_PROB, FOLLOWS[:, 0], APPLIES)
    with pytest.raises(ShapeError, match="applies: expected type bool"):
        rule_log_prob(LOG_PROB, FOLLOWS, APPLIES.astype(int))
    with pytest.raises(ShapeError, match=r"at_birth: expected axes \[R\] = \[2\]"):
        absorption_gain(np.zeros(2), np.zeros(3))
    run = jax.jit(rule_log_prob)
    assert np.isnan(run(np.exp(LOG_PROB), FOLLOWS, APPLIES).mean[:2]).all()
    weight = np.float32([1, -1])
    found = run(LOG_PROB, FOLLOWS, APPLIES, weight=weight).mean
    assert np.isfinite(found[0]) and np.isnan(found[1])


def test_one_trace_a_shape():
    run = jax.jit(chex.assert_max_traces(lambda *a: rule_log_prob(*a).mean, n=1))
    first = run(LOG_PROB, FOLLOWS, APPLIES)
    second = run(LOG_PROB, FOLLOWS, ~APPLIES)
    assert first[0] != second[0]

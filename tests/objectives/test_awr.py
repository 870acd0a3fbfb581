"""AWR's weights, losses and baseline: by hand, by reference, and at their limits."""

from functools import partial

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jerp.errors import InputError
from jerp.objectives.awr import (
    awr_policy_loss,
    awr_value_loss,
    awr_weights,
    effective_sample_size,
    task_mean_baseline,
    weighted_policy_loss,
)
from tests.reference import awr as reference

ADVANTAGE = np.array([0.4, 0.0, -0.4, 0.9, -3.0, 0.1], np.float32)
MASK = np.array([1, 1, 1, 1, 1, 0], bool)
LOG_PROB = np.array([-1.0, -0.5, -2.0, -0.1, -3.0, -9.0], np.float32)
PAPER = {"temperature": 0.2, "min_weight": 0.1, "max_weight": 10.0}


def test_weights_equal_the_reference(transform):
    for standardize in (False, True):
        keywords = {**PAPER, "standardize": standardize}
        weight = transform(partial(awr_weights, **keywords))(ADVANTAGE, MASK)
        expected = reference.weights(ADVANTAGE[:5], **keywords)
        np.testing.assert_allclose(weight, [*expected, 0], rtol=1e-6)


def test_weights_by_hand():
    """exp(2), 1, exp(-2), and both bounds."""
    weight = awr_weights(ADVANTAGE, MASK, **PAPER)
    np.testing.assert_allclose(
        weight, [7.389056, 1.0, 0.13533528, 10.0, 0.1, 0.0], rtol=1e-6
    )


@pytest.mark.parametrize(
    ("name", "value"),
    [("temperature", 1.0), ("min_weight", 0.5), ("max_weight", 2.0)],
)
def test_each_keyword_changes_the_weights(name, value):
    changed = awr_weights(ADVANTAGE, MASK, **{**PAPER, name: value})
    assert not np.allclose(changed, awr_weights(ADVANTAGE, MASK, **PAPER))


def test_huge_advantages_neither_overflow_nor_give_nan():
    huge = np.array([1e6, -1e6, 1e30, -1e30], np.float32)
    with jax.debug_nans(True), jax.debug_infs(True):
        weight = awr_weights(huge, np.ones(4, bool), **PAPER)
    np.testing.assert_array_equal(weight, np.float32([10.0, 0.1, 10.0, 0.1]))


def test_infinite_temperature_weighs_all_alike():
    weight = awr_weights(ADVANTAGE, MASK, temperature=np.inf)
    np.testing.assert_array_equal(weight, MASK.astype(np.float32))


def test_standardized_weights_ignore_scale_and_shift_of_rewards():
    bound = partial(awr_weights, standardize=True)
    weight = bound(ADVANTAGE, MASK)
    np.testing.assert_allclose(bound(50 * ADVANTAGE + 7, MASK), weight, rtol=1e-4)
    constant = bound(np.full(6, 8.5737, np.float32), MASK)
    np.testing.assert_allclose(constant, MASK.astype(np.float32), rtol=1e-6)


@pytest.mark.parametrize(
    ("keywords", "message"),
    [
        ({"temperature": 0.0}, "temperature: expected > 0, got 0.0"),
        ({"temperature": float("nan")}, "temperature: expected > 0"),
        ({"temperature": jnp.float32(-1)}, "temperature: expected > 0, got -1.0"),
        ({"min_weight": -0.5}, "min_weight: expected >= 0, got -0.5"),
        (
            {"min_weight": 3.0, "max_weight": 2.0},
            "max_weight: expected > min_weight = 3.0, got 2.0",
        ),
        ({"max_weight": 0.1}, "max_weight: expected > min_weight = 0.1, got 0.1"),
    ],
)
def test_bad_keywords_are_named(keywords, message):
    with pytest.raises(InputError, match=message):
        awr_weights(ADVANTAGE, MASK, **{**PAPER, **keywords})


def test_policy_loss_by_hand():
    output = awr_policy_loss(LOG_PROB, ADVANTAGE, MASK, **PAPER)
    weight = [7.389056, 1.0, 0.13533528, 10.0, 0.1]
    expected = -np.dot(weight, LOG_PROB[:5]) / 5
    np.testing.assert_allclose(output.loss.value(), expected, rtol=1e-6)
    np.testing.assert_allclose(
        output.metrics["weight"].value(), np.mean(weight), rtol=1e-6
    )
    np.testing.assert_allclose(
        output.metrics["negative_log_likelihood"].value(), 6.6 / 5, rtol=1e-6
    )
    cloning = awr_policy_loss(LOG_PROB, ADVANTAGE, MASK, temperature=np.inf)
    np.testing.assert_allclose(cloning.loss.value(), 6.6 / 5, rtol=1e-6)
    scaled = awr_policy_loss(LOG_PROB, ADVANTAGE, MASK, **PAPER, standardize=True)
    assert not np.allclose(scaled.loss.value(), expected)


def test_losses_add_across_microbatches():
    def halves(function, *arrays):
        parts = [function(*(a[i : i + 3] for a in arrays)) for i in (0, 3)]
        return jax.tree.map(jnp.add, *parts)

    weight = awr_weights(ADVANTAGE, MASK, **PAPER)
    for function, arrays in (
        (weighted_policy_loss, (LOG_PROB, weight, MASK)),
        (awr_value_loss, (LOG_PROB, ADVANTAGE, MASK)),
    ):
        chex.assert_trees_all_close(
            halves(function, *arrays), function(*arrays), rtol=1e-6
        )


def test_value_loss_by_hand(transform):
    value, target = np.array([1.0, 2.0, 9.0], np.float32), np.float32([3.0, 1.0, 0.0])
    mask = np.array([1, 1, 0], bool)
    output = transform(awr_value_loss)(value, target, mask)
    np.testing.assert_allclose(output.loss.total, 2.5)
    np.testing.assert_allclose(output.loss.weight, 2.0)
    np.testing.assert_allclose(output.loss.value(), 1.25)


def test_gradients_reach_the_learner_alone_and_not_the_padding():
    @jax.jit
    def both(log_prob, advantage):
        def loss(log_prob, advantage):
            policy = awr_policy_loss(log_prob, advantage, MASK, **PAPER).loss
            value = awr_value_loss(log_prob, advantage, MASK).loss
            return policy.value() + value.value()

        return jax.value_and_grad(loss, argnums=(0, 1))(log_prob, advantage)

    value, (by_log_prob, by_advantage) = both(LOG_PROB, ADVANTAGE)
    weight = np.asarray(awr_weights(ADVANTAGE, MASK, **PAPER))[:5]
    expected = (-weight + LOG_PROB[:5] - ADVANTAGE[:5]) / 5
    np.testing.assert_allclose(by_log_prob, [*expected, 0], rtol=1e-5)
    np.testing.assert_array_equal(by_advantage, np.zeros(6))
    for poison in (np.nan, 1e30):
        dirty = both(
            np.where(MASK, LOG_PROB, np.float32(poison)),
            np.where(MASK, ADVANTAGE, np.float32(poison)),
        )
        chex.assert_trees_all_close(dirty, (value, (by_log_prob, by_advantage)))


RETURNS = np.array([0.9, 0.5, 0.1, 0.2, 0.3, 0.7, np.nan], np.float32)
TASKS = np.array([41, 41, 41, -7, -7, 3, 41], np.int32)
VALID = np.array([1, 1, 1, 1, 1, 1, 0], bool)


def baselines(returns, task_id, mask):
    return (
        task_mean_baseline(returns, task_id, mask),
        task_mean_baseline(returns, task_id, mask, leave_one_out=True),
    )


def test_baseline_equals_the_reference(transform):
    ours = transform(baselines)(RETURNS, TASKS, VALID)
    for baseline, leave_one_out in zip(ours, (False, True), strict=True):
        expected = reference.task_mean_baseline(RETURNS[:6], TASKS[:6], leave_one_out)
        np.testing.assert_allclose(baseline, [*expected, 0], rtol=1e-6)


def test_baseline_identities():
    """Leave-one-out is n / (n - 1) times the mean's advantage; alone: none at all."""
    mean, left_out = (RETURNS - b for b in baselines(RETURNS, TASKS, VALID))
    np.testing.assert_allclose(left_out[:3], 1.5 * mean[:3], atol=1e-6)
    np.testing.assert_allclose(left_out[3:5], 2.0 * mean[3:5], atol=1e-6)
    np.testing.assert_allclose([mean[5], left_out[5]], [0, 0], atol=1e-7)
    relabelled = task_mean_baseline(RETURNS, 1000 - 3 * TASKS, VALID)
    np.testing.assert_allclose(
        relabelled, task_mean_baseline(RETURNS, TASKS, VALID), rtol=1e-6
    )


def test_equal_returns_of_a_task_are_their_own_baseline():
    """The mean of twenty float32 9.9 is not 9.9; a temperature of 1e-6 would see it."""
    returns, task = np.full(20, 9.9, np.float32), np.zeros(20, np.int32)
    for leave_one_out in (False, True):
        baseline = task_mean_baseline(
            returns, task, np.ones(20, bool), leave_one_out=leave_one_out
        )
        np.testing.assert_array_equal(baseline, returns)


def test_bad_returns_are_named_and_reach_their_own_task_alone():
    bad = np.where(np.arange(7) == 3, np.inf, RETURNS)
    with pytest.raises(InputError, match=r"returns: expected finite .*at \[3\]"):
        task_mean_baseline(bad, TASKS, VALID)
    with pytest.raises(InputError, match="mask: expected at least one real entry"):
        task_mean_baseline(RETURNS, TASKS, np.zeros(7, bool))
    run = jax.jit(baselines)
    assert not any(np.asarray(b).any() for b in run(RETURNS, TASKS, np.zeros(7, bool)))
    for found, clean in zip(
        run(bad, TASKS, VALID), run(RETURNS, TASKS, VALID), strict=True
    ):
        assert np.isnan(found).tolist() == (TASKS == -7).tolist()
        kept = TASKS != -7
        np.testing.assert_array_equal(np.asarray(found)[kept], np.asarray(clean)[kept])


def test_effective_sample_size_by_hand(transform):
    weight = np.array([3.0, 1.0, 0.0, np.nan], np.float32)
    mask = np.array([1, 1, 1, 0], bool)
    size = transform(effective_sample_size)(weight, mask)
    np.testing.assert_allclose(size, 1.6, rtol=1e-6)
    assert effective_sample_size(weight, np.zeros(4, bool)) == 0


@pytest.mark.parametrize("standardize", [False, True])
def test_a_nan_advantage_is_refused_eagerly_and_never_weighs_the_most(standardize):
    bad = np.where(np.arange(6) == 2, np.float32(np.nan), ADVANTAGE)
    keywords = {**PAPER, "standardize": standardize}
    for function in (
        partial(awr_weights, bad, **keywords),
        partial(awr_policy_loss, LOG_PROB, bad, **keywords),
    ):
        with pytest.raises(InputError, match=r"advantage: expected finite .*at \[2\]"):
            function(mask=MASK)
    weight = jax.jit(partial(awr_weights, **keywords))(bad, MASK)
    reached = MASK if standardize else np.arange(6) == 2
    np.testing.assert_array_equal(np.isnan(weight), reached)
    assert np.isnan(jax.jit(effective_sample_size)(weight, MASK))


def test_bad_entries_of_the_weighted_loss_are_named():
    bad = np.where(np.arange(6) == 2, np.float32(np.nan), LOG_PROB)
    with pytest.raises(InputError, match=r"log_prob: expected finite .*at \[2\]"):
        weighted_policy_loss(bad, ADVANTAGE, MASK)
    with pytest.raises(InputError, match=r"weight: expected finite .*at \[2\]"):
        weighted_policy_loss(LOG_PROB, bad, MASK)
    for function in (awr_weights, partial(weighted_policy_loss, LOG_PROB)):
        with pytest.raises(InputError, match="mask: expected at least one real entry"):
            function(ADVANTAGE, np.zeros(6, bool))
    loss = jax.jit(weighted_policy_loss)
    assert np.isnan(loss(bad, ADVANTAGE, MASK).loss.total)
    empty = loss(LOG_PROB, ADVANTAGE, np.zeros(6, bool)).loss
    assert float(empty.total) == float(empty.weight) == float(empty.value()) == 0


def test_half_precision_accumulates_in_float32():
    """In bfloat16 neither 1,001 entries nor the exponential's digits can be held."""
    ones, mask = jnp.ones(1001, jnp.bfloat16), np.ones(1001, bool)
    output = jax.jit(awr_policy_loss)(-ones, 0.5 * ones, mask)
    for mean in (output.loss, *output.metrics.values()):
        assert mean.total.dtype == mean.weight.dtype == jnp.float32
        assert float(mean.weight) == 1001
    np.testing.assert_allclose(output.loss.value(), np.exp(0.5), rtol=1e-6)
    size = jax.jit(effective_sample_size)(1.3 * ones, mask)
    np.testing.assert_allclose(size, 1001, rtol=1e-6)


FINITE = st.floats(-4, 4, width=32)


@settings(deadline=None)
@given(st.lists(FINITE, min_size=8, max_size=8), st.floats(0.25, 4.0, width=32))
def test_weights_are_monotone_bounded_and_equivariant(advantage, temperature):
    advantage, mask = np.array(advantage, np.float32), np.ones(8, bool)
    weight = np.asarray(awr_weights(advantage, mask, temperature=temperature))
    order = np.argsort(advantage, kind="stable")
    assert (np.diff(weight[order]) >= 0).all()
    assert ((weight >= 0) & (weight <= 20)).all()
    permuted = awr_weights(advantage[order], mask, temperature=temperature)
    np.testing.assert_array_equal(permuted, weight[order])
    size = float(effective_sample_size(weight, mask))
    assert 1 - 1e-5 <= size <= 8 * (1 + 1e-5)

"""The learner against a NumPy reference, at its limits, and under padding."""

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jerp.errors import ConfigError
from jerp.models.controller import log_probs, state_values
from jerp.training.awr import AwrConfig, AwrHyper, hyper_grid, make_awr
from jerp.trajectory import concatenate, select
from jerp.typing import Outcome
from tests.reference import awr as reference
from tests.reference import returns as reference_returns
from tests.training.episodes import poisoned, random_trajectory, with_padding

SMALL = AwrConfig(epochs=3, batch_size=16, hidden_size=8)
KEY_SEED = 7


@pytest.fixture(scope="module")
def data():
    return random_trajectory()


@pytest.fixture(scope="module")
def train():
    """The paper's setting in small; one trace for all hyper-parameters and data."""
    plain = make_awr(SMALL)

    @jax.jit
    @chex.assert_max_traces(n=1)
    def traced(key, hyper, data):
        return plain(key, hyper, data)

    def call(data, **hyper):
        leaves = jax.tree.map(jnp.float32, AwrHyper(**hyper))
        return traced(jax.random.key(KEY_SEED), leaves, data)

    return call


@pytest.fixture(scope="module")
def train_steps():
    traced = jax.jit(
        make_awr(AwrConfig(advantage="step", epochs=2, value_epochs=3, hidden_size=8))
    )

    def call(data, **hyper):
        leaves = jax.tree.map(jnp.float32, AwrHyper(**hyper))
        return traced(jax.random.key(KEY_SEED), leaves, data)

    return call


def layers(params):
    return [
        np.asarray(params[layer][name], np.float64)
        for layer in ("hidden", "logits")
        for name in ("kernel", "bias")
    ]


def returns(data):
    return np.where(data.mask, data.reward, 0).sum(1)


def expected_weights(data, temperature, **keywords):
    """Of the episodes, by the reference; keywords choose the baseline and scaling."""
    standardize = keywords.pop("standardize", False)
    baseline = reference.task_mean_baseline(returns(data), data.task_id, **keywords)
    advantage = returns(data) - baseline
    return np.array(reference.weights(advantage, temperature, 0.1, 10.0, standardize))


def test_weights_equal_the_reference(data, train):
    np.testing.assert_allclose(
        train(data)[1]["weight"], expected_weights(data, 0.2), rtol=1e-5
    )


def test_training_equals_numpy_with_one_batch_an_epoch(data):
    """Full batches make the order of rows irrelevant: Adam step by step."""
    config = AwrConfig(epochs=12, hidden_size=8, standardize=True, leave_one_out=True)
    train = jax.jit(make_awr(config))
    hyper = AwrHyper(temperature=1.0, learning_rate=0.02)
    hyper = jax.tree.map(jnp.float32, hyper)
    start, _ = train(jax.random.key(0), hyper.replace(learning_rate=0.0), data)
    state, metrics = train(jax.random.key(0), hyper, data)
    weight = expected_weights(data, 1.0, standardize=True, leave_one_out=True)
    np.testing.assert_allclose(metrics["weight"], weight, rtol=1e-4)
    rows = (data.observation, data.action, data.legal)
    feature, action, legal = (np.asarray(x)[data.mask] for x in rows)
    step_weight = np.broadcast_to(weight[:, None], data.mask.shape)[data.mask]

    def loss_and_gradient(params):
        return reference.policy_loss_and_gradient(
            params, feature.astype(np.float64), action, legal, step_weight, 0.01
        )

    expected, losses = reference.full_batch_adam(
        layers(start.params), loss_and_gradient, 0.02, 12
    )
    for ours, theirs in zip(layers(state.params), expected, strict=True):
        np.testing.assert_allclose(ours, theirs, atol=2e-5)
    np.testing.assert_allclose(metrics["policy_loss"], losses, rtol=1e-4)
    assert (int(state.step), int(metrics["num_steps"])) == (12, data.mask.sum())


def test_infinite_temperature_is_behaviour_cloning(data, train):
    """The same parameters, bit by bit, as where no reward tells actions apart."""
    cloned, metrics = train(data, temperature=np.inf)
    equal, _ = train(data.replace(reward=np.zeros_like(data.reward)))
    chex.assert_trees_all_equal(cloned.params, equal.params)
    np.testing.assert_array_equal(metrics["weight"], np.ones(24))
    np.testing.assert_allclose(metrics["effective_sample_size"], 24.0, rtol=1e-6)
    weighted, _ = train(data)
    assert not np.allclose(weighted.params["logits"]["bias"], 0)
    assert not np.array_equal(
        weighted.params["logits"]["bias"], cloned.params["logits"]["bias"]
    )


def test_one_episode_a_task_gives_weight_one(data, train):
    alone = data.replace(task_id=np.arange(24, dtype=np.int32))
    np.testing.assert_array_equal(train(alone)[1]["weight"], np.ones(24))


@pytest.mark.parametrize("poison", [np.nan, 1e30])
def test_padding_may_hold_anything(data, train, poison):
    clean, dirty = train(data), train(poisoned(data, poison))
    chex.assert_trees_all_equal(dirty[0].params, clean[0].params)
    chex.assert_trees_all_equal(dirty[1], clean[1])


def test_neither_more_padding_nor_invalid_episodes_change_the_result(data, train):
    """Failed infrastructure stands between the real episodes, with absurd rewards."""
    nobody = select(data, np.arange(6)).replace(
        outcome=np.full(6, Outcome.INFRASTRUCTURE, np.int32),
        reward=np.full((6, 6), 1e6, np.float32),
    )
    halves = [select(data, np.arange(24) < 12), select(data, np.arange(24) >= 12)]
    mixed = with_padding(concatenate([halves[0], nobody, halves[1]]), 9)
    mixed = poisoned(mixed, np.nan)
    expected, expected_metrics = train(data)
    state, metrics = jax.jit(make_awr(SMALL))(
        jax.random.key(KEY_SEED), jax.tree.map(jnp.float32, AwrHyper()), mixed
    )
    chex.assert_trees_all_close(state.params, expected.params, rtol=1e-5, atol=1e-6)
    np.testing.assert_array_equal(metrics["weight"][12:18], np.zeros(6))
    for name in ("num_steps", "num_episodes", "effective_sample_size", "policy_loss"):
        np.testing.assert_allclose(
            metrics[name], expected_metrics[name], rtol=1e-5, err_msg=name
        )


def test_nothing_is_learned_from_an_empty_buffer(data, train):
    nothing = data.replace(outcome=np.full(24, Outcome.INFRASTRUCTURE, np.int32))
    state, metrics = train(nothing)
    start, _ = train(data, learning_rate=0.0)
    chex.assert_trees_all_equal(state.params, start.params)
    assert all(np.isfinite(x).all() for x in jax.tree.leaves(metrics))
    assert (int(state.step), int(metrics["num_episodes"])) == (0, 0)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("temperature", 1.0),
        ("min_weight", 0.7),
        ("max_weight", 1.5),
        ("entropy_weight", 0.5),
        ("learning_rate", 1e-2),
        ("discount", 0.5),
    ],
)
def test_each_hyper_parameter_matters(data, train, name, value):
    changed, expected = train(data, **{name: value})[0], train(data)[0]
    difference = np.abs(
        np.asarray(changed.params["logits"]["kernel"])
        - np.asarray(expected.params["logits"]["kernel"])
    )
    assert difference.max() > 1e-5


def test_metrics_of_the_weights_by_hand(data, train):
    metrics = train(data, temperature=0.3, min_weight=0.5, max_weight=2.0)[1]
    weight = np.asarray(metrics["weight"])
    assert 0 < (weight == 0.5).sum() < 24
    assert 0 < (weight == 2.0).sum() < 24
    np.testing.assert_allclose(metrics["share_at_min"], (weight == 0.5).mean())
    np.testing.assert_allclose(metrics["share_at_max"], (weight == 2.0).mean())
    np.testing.assert_allclose(metrics["weight_mean"], weight.mean(), rtol=1e-6)
    size = weight.sum() ** 2 / (weight**2).sum()
    np.testing.assert_allclose(metrics["effective_sample_size"], size, rtol=1e-5)


def test_illegal_actions_stay_at_zero_probability(data, train):
    probability = np.exp(log_probs(train(data)[0].params, data.observation, data.legal))
    assert (probability[~data.legal] == 0).all()
    np.testing.assert_allclose(probability.sum(-1), 1, rtol=1e-5)


def test_a_grid_of_seeds_and_hyper_parameters_is_one_compilation(data, train):
    def keys():
        return jax.vmap(jax.random.key)(jnp.array([1, KEY_SEED]))

    plain = make_awr(SMALL)

    @chex.assert_max_traces(n=1)
    def once(key, hyper, data):
        return plain(key, hyper, data)

    over_seeds = jax.vmap(once, in_axes=(0, None, None))
    grid = jax.jit(jax.vmap(over_seeds, in_axes=(None, 0, None)))
    state, metrics = grid(keys(), hyper_grid(temperature=[0.2, np.inf]), data)
    assert metrics["policy_loss"].shape == (2, 2, 3)
    for row, temperature in enumerate([0.2, np.inf]):
        expected = train(data, temperature=temperature)[0].params
        ours = jax.tree.map(lambda x, row=row: x[row, 1], state.params)
        chex.assert_trees_all_close(ours, expected, rtol=1e-4, atol=1e-5)
    first, second = state.params["hidden"]["kernel"][0]
    assert not np.allclose(first, second)
    grid(keys(), hyper_grid(temperature=[0.5, 5.0]), data)


def test_step_advantages_equal_the_reference(data, train_steps):
    """Weights follow from the returned value layers and TD(lambda) by definition."""
    hyper = {"discount": 0.9, "lambda_": 0.7, "temperature": 0.5}
    state, metrics = train_steps(data, **hyper)
    value = np.asarray(state_values(state.params, data.observation), np.float64)
    end_value = np.asarray(state_values(state.params, data.final_observation))
    for row in range(24):
        steps = data.mask[row].sum()
        end = 0.0 if data.terminated[row].any() else end_value[row]
        advantage = reference_returns.gae(
            data.reward[row, :steps], value[row, :steps], end, 0.9, 0.7
        )
        expected = reference.weights(advantage, 0.5, 0.1, 10.0)
        ours = metrics["weight"][row]
        np.testing.assert_allclose(ours[:steps], expected, rtol=1e-4)
        assert not ours[steps:].any()


def test_the_value_learns_and_its_hyper_parameters_matter(data, train_steps):
    _, metrics = train_steps(data, value_learning_rate=0.02)
    losses = np.asarray(metrics["value_loss"])
    assert losses.shape == (3,)
    assert losses[-1] < losses[0]
    base = train_steps(data)[1]["weight"]
    for change in ({"lambda_": 0.0}, {"value_learning_rate": 0.1}):
        assert not np.allclose(train_steps(data, **change)[1]["weight"], base)


def test_step_advantages_ignore_padding_too(data, train_steps):
    chex.assert_trees_all_equal(
        train_steps(poisoned(data, np.nan))[0].params, train_steps(data)[0].params
    )


def test_the_policy_starts_alike_in_both_settings(data, train, train_steps):
    still = {"learning_rate": 0.0}
    policy, both = train(data, **still)[0].params, train_steps(data, **still)[0].params
    chex.assert_trees_all_equal(policy, {k: both[k] for k in policy})
    assert set(both) - set(policy) == {"value_hidden", "value_output"}


def test_foreign_logs_without_masks_allow_every_action(data):
    """And say that nothing can be evaluated off-policy."""
    foreign = data.replace(legal=None, log_prob=None)
    train = make_awr(SMALL)
    with pytest.warns(UserWarning, match="log_prob is None"):
        state, _ = jax.eval_shape(train, jax.random.key(0), AwrHyper(), foreign)
    assert state.params["logits"]["bias"].shape == (7,)


def test_the_grid_is_the_product():
    grid = hyper_grid(
        AwrHyper(discount=0.5), temperature=[0.2, 1.0], entropy_weight=[0.0, 0.1, 0.2]
    )
    np.testing.assert_allclose(grid.temperature, [0.2] * 3 + [1.0] * 3, rtol=1e-6)
    np.testing.assert_allclose(grid.entropy_weight, [0, 0.1, 0.2] * 2, rtol=1e-6)
    np.testing.assert_array_equal(grid.discount, [0.5] * 6)


@pytest.mark.parametrize(
    ("keywords", "message"),
    [
        ({"advantage": "stage"}, "expected 'trajectory' or 'step', got 'stage'"),
        ({"epochs": 0}, "epochs: expected >= 1, got 0"),
        ({"advantage": "step", "leave_one_out": True}, "leave_one_out"),
    ],
)
def test_bad_settings_are_named(keywords, message):
    with pytest.raises(ConfigError, match=message):
        AwrConfig(**keywords)

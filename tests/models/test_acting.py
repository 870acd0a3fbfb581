"""Acting on the host: the JAX controller's distribution, equal draws everywhere."""

import subprocess
import sys
from dataclasses import replace

import jax.numpy as jnp
import numpy as np
import pytest

from jerp.errors import ConfigError, InputError, ShapeError, UnknownNameError
from jerp.models.acting import ROWS_AT_ONCE, Decision, HarnessController
from jerp.models.controller import log_probs
from jerp.models.support import BufferSupport
from tests.reference import controller as reference

F, A = 5, 4


def by_hand():
    """logits = (relu(x0), relu(-x0), 0): a hidden unit for either sign of x0."""
    return HarnessController(
        {
            "hidden": {
                "kernel": np.array([[1, -1], [0, 0]], np.float32),
                "bias": np.zeros(2, np.float32),
            },
            "logits": {
                "kernel": np.array([[1, 0, 0], [0, 1, 0]], np.float32),
                "bias": np.zeros(3, np.float32),
            },
        },
        ("doubt", "cost"),
        ("check", "revise", "submit"),
    )


def waves(*shape):
    """Numbers between -1 and 1 that no generator has to keep."""
    return np.sin(7.0 * np.arange(np.prod(shape), dtype=np.float32)).reshape(shape)


@pytest.fixture(scope="module")
def trained():
    return HarnessController(
        {
            "hidden": {"kernel": waves(F, 16), "bias": waves(16)},
            "logits": {"kernel": waves(16, A) / 2, "bias": waves(A)},
        },
        tuple(f"f{i}" for i in range(F)),
        tuple(f"a{i}" for i in range(A)),
    )


@pytest.fixture(scope="module")
def states():
    features, legal = 2 * waves(300, F), waves(300, A + 1)[:, 1:] > -0.3
    legal[:, 2] |= ~legal.any(axis=1)
    return features, legal


def test_log_probs_by_hand():
    log_prob = by_hand().log_probs([np.log(3), 9], [True, True, True])
    np.testing.assert_allclose(np.exp(log_prob), [0.6, 0.2, 0.2], rtol=1e-6)
    log_prob = by_hand().log_probs([-np.log(3), 9], [True, False, True])
    np.testing.assert_allclose(np.exp(log_prob), [0.5, 0, 0.5], rtol=1e-6)
    assert np.exp(log_prob)[1] == 0


def test_log_probs_are_those_of_the_jax_controller(trained, states):
    features, legal = states
    here = trained.log_probs(features, legal)
    there = np.asarray(log_probs(trained.params, *states))
    np.testing.assert_allclose(here[legal], there[legal], atol=1e-6)
    assert (np.exp(here[~legal]) == 0).all()
    leading = trained.log_probs(
        features.reshape(3, 100, F), legal.reshape(3, 100, A)
    ).reshape(here.shape)
    assert np.array_equal(here, leading)


def test_log_probs_are_those_of_the_slow_reference(trained, states):
    features, legal = states
    layers = [
        trained.params[layer][name]
        for layer in ("hidden", "logits")
        for name in ("kernel", "bias")
    ]
    expected = reference.probabilities(layers, features, legal)
    found = np.exp(trained.log_probs(features, legal))
    np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-300)


def test_normalised_features_are_what_the_network_sees(trained, states):
    features, legal = states
    mean, scale = np.full(F, 0.5, np.float32), np.full(F, 4.0, np.float32)
    normalised = replace(trained, mean=mean, scale=scale)
    np.testing.assert_allclose(
        normalised.log_probs(features * 4 + 0.5, legal),
        trained.log_probs(features, legal),
        atol=1e-5,
    )
    other = replace(normalised, mean=mean + 1).log_probs(features, legal)
    assert not np.allclose(other, normalised.log_probs(features, legal))


def test_a_batch_decides_as_its_rows_do_alone(trained, states):
    features, legal = states
    rows = np.resize(np.arange(300), ROWS_AT_ONCE + 2)
    together = trained.act_batch(
        features[rows], legal[rows], seeds=np.arange(len(rows))
    )
    for row in (*range(20), *range(ROWS_AT_ONCE - 2, ROWS_AT_ONCE + 2)):
        alone = trained.act(features[rows[row]], legal[rows[row]], seed=row)
        assert together[row] == alone
        chosen = trained.log_probs(features[rows[row]], legal[rows[row]])
        assert alone.log_prob == chosen[alone.action]
        assert alone.name == f"a{alone.action}"
        assert legal[rows[row], alone.action]
    greedy = trained.act_batch(features, legal, greedy=True)
    for row in range(20):
        assert greedy[row] == trained.act(features[row], legal[row], greedy=True)
    assert trained.act_batch(features[:0], legal[:0], seeds=[]) == []


def test_the_greedy_action_is_the_most_probable_and_certain():
    assert by_hand().act([1, 0], [True] * 3, greedy=True) == Decision(0, "check", 0.0)
    assert by_hand().act([1, 0], [False, True, True], greedy=True).name == "revise"


def test_decisions_are_kept_forever():
    """Drawn once; a change here would make logged deployments unrepeatable."""
    kept = [by_hand().act([0.5, 0.0], [True] * 3, seed=seed) for seed in range(12)]
    assert [d.action for d in kept] == [2, 1, 1, 0, 0, 0, 2, 0, 1, 1, 0, 0]
    found = [kept[3].log_prob, kept[1].log_prob]
    np.testing.assert_allclose(found, [-0.7943768, -1.2943768], atol=1e-7)


def test_actions_are_drawn_with_their_probabilities(trained, states):
    features, legal = states
    row = int(np.argmax(legal.sum(axis=1)))
    draws = 20_000
    decisions = trained.act_batch(
        np.tile(features[row], (draws, 1)),
        np.tile(legal[row], (draws, 1)),
        seeds=range(draws),
    )
    counts = np.bincount([d.action for d in decisions], minlength=A)
    expected = np.exp(trained.log_probs(features[row], legal[row]))
    spread = np.sqrt(expected * (1 - expected) / draws)
    assert (np.abs(counts / draws - expected) <= 4 * spread + 1e-12).all()


def test_the_largest_and_smallest_draws_take_legal_actions(monkeypatch):
    for draw, action in ((0.0, 1), (1 - 2.0**-53, 1)):
        monkeypatch.setattr("jerp.models.acting.uniform", lambda seed, u=draw: u)
        assert by_hand().act([0, 0], [False, True, False], seed=0).action == action


@pytest.mark.parametrize(
    ("features", "legal", "seed", "error", "message"),
    [
        ([np.nan, 0], [True] * 3, 0, InputError, r"got nan for 'doubt' \(index 0\)"),
        ([0, np.inf], [True] * 3, 0, InputError, r"inf for 'cost' \(index 1\)$"),
        ([0, 1e39], [True] * 3, 0, InputError, r"1e\+39 .*which overflows float32"),
        ([0, [1]], [True] * 3, 0, ShapeError, "features: .* ragged"),
        ([0, 0], [True, [True]], 0, ShapeError, "legal: .* ragged"),
        (np.ma.ones(2), [True] * 3, 0, ShapeError, "features: .* without a mask"),
        ([0, 0], np.ma.ones(3, bool), 0, ShapeError, "legal: .* without a mask"),
        ([0, 0, 0], [True] * 3, 0, ShapeError, r"axes \[F\] with F=2, got \[3\]"),
        ([[0, 0]], [True] * 3, 0, ShapeError, r"axes \[F\] with F=2, got \[1, 2\]"),
        (["a", "b"], [True] * 3, 0, ShapeError, "features: expected numbers"),
        ([0, 0], [True] * 2, 0, ShapeError, r"legal: .* A=3, \[3\], got \[2\]"),
        ([0, 0], [0, 1, 1], 0, ShapeError, "legal: expected type bool.*int64"),
        ([0, 0], [False] * 3, 0, InputError, "at least one legal action"),
        ([0, 0], [True] * 3, None, InputError, "seed: .* got None"),
        ([0, 0], [True] * 3, True, InputError, "seed: .* got True"),
        ([0, 0], [True] * 3, 0.5, InputError, "seed: .* got 0.5"),
        ([0, 0], [True] * 3, -1, InputError, "seed: .* got -1"),
        ([0, 0], [True] * 3, 1 << 64, InputError, "seed: expected an integer from 0"),
    ],
)
def test_what_cannot_be_meant_is_refused_by_name(features, legal, seed, error, message):
    with pytest.raises(error, match=message):
        by_hand().act(features, legal, seed=seed)


def test_features_may_come_in_a_type_of_jax():
    x = jnp.asarray([0.5, 3], jnp.bfloat16)
    assert by_hand().act(x, [True] * 3, seed=3) == by_hand().act(
        [0.5, 3], [True] * 3, seed=3
    )


@pytest.mark.parametrize("seeds", [1, {0: 1, 1: 2}, {5, 6}, np.array(1)])
def test_seeds_without_an_order_are_refused(seeds):
    with pytest.raises(ShapeError, match="seeds: expected B=2 integers, one a row"):
        by_hand().act_batch(np.zeros((2, 2)), np.ones((2, 3), bool), seeds=seeds)


def test_greedy_is_true_or_false():
    for greedy in ("no", 1, None):
        with pytest.raises(InputError, match="greedy: expected True or False"):
            by_hand().act([0, 0], [True] * 3, seed=0, greedy=greedy)
        with pytest.raises(InputError, match="greedy: expected True or False"):
            by_hand().act_batch([[0, 0]], [[True] * 3], seeds=[0], greedy=greedy)
    assert by_hand().act([1, 0], [True] * 3, greedy=np.True_).name == "check"


def test_a_batch_names_the_row():
    features, legal = np.zeros((3, 2)), np.ones((3, 3), bool)
    features[2, 1], legal[1] = np.nan, False
    with pytest.raises(InputError, match=r"'cost' \(index 1\) in row \[2\]"):
        by_hand().act_batch(features, legal, seeds=[0, 1, 2])
    with pytest.raises(InputError, match=r"got none in row \[1\]"):
        by_hand().act_batch(np.zeros((3, 2)), legal, seeds=[0, 1, 2])
    with pytest.raises(ShapeError, match="seeds: expected B=3, got 2"):
        by_hand().act_batch(np.zeros((3, 2)), np.ones((3, 3), bool), seeds=[0, 1])
    with pytest.raises(ShapeError, match=r"features: .* ragged or unreadable list"):
        by_hand().act_batch([[0, 0], [0]], legal[:2], seeds=[0, 1])
    with pytest.raises(ShapeError, match="leading axes of features"):
        by_hand().act_batch(np.zeros((3, 2)), np.ones((2, 3), bool), seeds=[0, 1, 2])


def measured(**changes):
    bounds = (0, 0), (1, 1), (0.0, 0.5)
    return replace(BufferSupport(1, 1, 1, *bounds, (1, 1, 1), 0, 0, 0, 1), **changes)


def changed(layer, name, value):
    params = {key: dict(leaves) for key, leaves in by_hand().params.items()}
    params[layer][name] = value
    return params


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"feature_names": ("doubt",)}, r"hidden\.kernel: expected shape \[1, 2\]"),
        ({"action_names": ("a", "b")}, r"logits\.kernel: expected shape \[2, 2\]"),
        ({"action_names": ("a", "a", "b")}, "action_names: expected different"),
        ({"feature_names": "ab"}, "feature_names: expected different texts"),
        ({"params": {}}, r"none of \['hidden\.kernel'"),
        (
            {"params": changed("logits", "bias", np.full(3, np.nan))},
            r"logits\.bias: .* NaN",
        ),
        ({"params": changed("logits", "bias", np.zeros(3, int))}, "got int64"),
        ({"params": changed("hidden", "bias", [0, [1]])}, r"hidden\.bias: .* ragged"),
        ({"mean": np.zeros(2)}, "mean, scale: expected both"),
        ({"mean": np.zeros(3), "scale": np.ones(3)}, "mean: expected 2 finite"),
        ({"mean": np.zeros(2), "scale": np.zeros(2)}, "scale: expected numbers above"),
        ({"mean": ["1", "2"], "scale": np.ones(2)}, "mean: expected 2 finite"),
        ({"mean": [0, [1]], "scale": np.ones(2)}, "mean: .* ragged"),
        ({"params": [1]}, "params: expected layers of arrays"),
        ({"params": {"hidden": 1}}, "params: expected layers of arrays"),
        ({"support": measured(feature_mean=(0.0,))}, r"feature_mean: expected 2 fin"),
        ({"support": measured(action_counts=(1, 1))}, r"action_counts: expected 3"),
        ({"support": measured(mean_return="x")}, r"support\.mean_return: expected 1"),
    ],
)
def test_a_controller_that_does_not_fit_together_is_refused(changes, message):
    with pytest.raises(ConfigError, match=message):
        replace(by_hand(), **changes)


def test_explain_replaces_one_feature_by_its_mean():
    controller = replace(by_hand(), support=measured())
    shown = controller.explain([np.log(3), 9])
    assert shown.actions == ("check", "submit")
    doubt, cost = shown.rows
    np.testing.assert_allclose(shown.probability, [0.6, 0.2], atol=1e-6)
    np.testing.assert_allclose(doubt.change, [0.6 - 1 / 3, 0.2 - 1 / 3], atol=1e-6)
    assert (doubt.feature, doubt.typical) == ("doubt", 0.0)
    assert (cost.feature, cost.value, cost.change) == ("cost", 9.0, (0.0, 0.0))
    legal = [False, True, True]
    assert controller.explain([1, 0], legal).probability[0] == 0
    assert controller.explain([1, 0], actions=["revise"]).actions == ("revise",)
    with pytest.raises(UnknownNameError, match="did you mean 'revise'"):
        controller.explain([1, 0], actions=["revize"])
    with pytest.raises(ConfigError, match="without; `jerp train harness` measures"):
        by_hand().explain([1, 0])


@pytest.mark.parametrize(
    ("legal", "message"),
    [
        ([False] * 3, r"at least one legal action of .*, got none$"),
        ([True], r"legal: expected A=3, \[3\], got \[1\]"),
        ([True, [True]], "legal: .* ragged"),
    ],
)
def test_explain_speaks_of_the_one_row_it_was_given(legal, message):
    with pytest.raises(InputError, match=message):
        replace(by_hand(), support=measured()).explain([1, 0], legal)


def test_acting_loads_no_jax():
    program = (
        "import sys, jerp.models.acting, jerp.storage.controllers\n"
        "print(*{'jax', 'flax', 'optax'} & {m.split('.')[0] for m in sys.modules})"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == ""

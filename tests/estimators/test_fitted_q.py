"""Fitted Q evaluation: tables exactly, float64 loops, derivatives by differences."""

import jax
import numpy as np
import pytest

from jerp.errors import InputError
from jerp.estimators.fitted_q import fitted_q_evaluation
from tests.estimators.table_episodes import (
    EVERY,
    HORIZON,
    SOME,
    TARGET,
    WORLD,
    arrays,
    stepped,
)
from tests.reference import ope as reference

NAMES = ("features", "action", "reward", "target_log_probs", "mask")


def fit(data, **settings):
    return fitted_q_evaluation(*(data[name] for name in NAMES), **settings)


def test_by_hand():
    """Action 0 is worth 1/2 at first, 1 gives 1 and the end: a quarter and three."""
    features = np.ones((4, 1, 1), np.float32)
    target = np.log(np.full((4, 1, 2), [0.25, 0.75], np.float32))
    reward = np.array([[0.25], [0.75], [1.0], [1.0]], np.float32)
    action = np.array([[0], [0], [1], [1]], np.int32)
    found = fitted_q_evaluation(features, action, reward, target, reward > 0)
    assert float(found.terms.value()) == pytest.approx(0.875, abs=1e-5)
    np.testing.assert_allclose(found.q[:, 0], [0.5, 0.5, 1, 1], atol=1e-5)
    np.testing.assert_allclose(found.v[:, 0], 0.875, atol=1e-5)


def test_equals_tables_of_counts_in_poisoned_padding():
    data = arrays(SOME)
    found = fit(data, discount=0.9)
    value, q = reference.fitted_q(*stepped(SOME), HORIZON, discount=0.9)
    np.testing.assert_allclose(found.terms.value(), value, rtol=1e-4)
    state = np.nan_to_num(data["features"]).argmax(axis=-1)
    expected = q[state, np.where(data["mask"], data["action"], 0)]
    np.testing.assert_allclose(
        np.asarray(found.q)[data["mask"]], expected[data["mask"]], atol=1e-4
    )
    assert not np.asarray(found.q)[~data["mask"]].any()


def test_the_reference_is_exact_where_the_log_is_as_likely_as_the_world():
    chance, every = zip(*EVERY, strict=True)
    found, _ = reference.fitted_q(*stepped(every), HORIZON, chance)
    assert found == pytest.approx(reference.exact_value(WORLD, TARGET), abs=1e-12)


def test_terms_are_the_derivative_by_counts():
    """Counting one episode more moves the value by (term - value) / B."""
    told, target = stepped(SOME)
    found = fit(arrays(SOME)).terms
    for row in (0, 11, 50):
        count, slow = np.ones(len(SOME)), []
        for change in (0.01, -0.01):
            count[row] = 1 + change
            slow.append(reference.fitted_q(told, target, HORIZON, count)[0])
        slope = (slow[0] - slow[1]) / 0.02
        term = float(found.numerator[row, 0] - found.value()) / len(SOME)
        assert term == pytest.approx(slope, abs=2e-6 + 0.01 * abs(slope))


def test_a_fold_is_predicted_without_itself():
    fold = np.arange(len(SOME), dtype=np.int32) % 2
    data, whole = arrays(SOME), fit(arrays(SOME))
    found = fit(data, fold=fold, num_folds=2)
    np.testing.assert_allclose(found.terms.value(), whole.terms.value(), rtol=1e-4)
    _, q = reference.fitted_q(*stepped(SOME[1::2]), HORIZON)
    mask = data["mask"] & (fold == 0)[:, None]
    state = np.nan_to_num(data["features"]).argmax(axis=-1)
    expected = q[state, np.where(mask, data["action"], 0)][mask]
    np.testing.assert_allclose(np.asarray(found.q)[mask], expected, atol=1e-4)
    assert np.abs(np.asarray(found.q - whole.q)).max() > 0.01


def test_features_that_always_go_together_change_nothing():
    data, alone = arrays(SOME), fit(arrays(SOME))
    data["features"] = np.concatenate([data["features"]] * 2, axis=-1)
    np.testing.assert_allclose(fit(data).q, alone.q, atol=1e-3)


def test_a_ridge_shrinks():
    assert float(fit(arrays(SOME), ridge=1.0).terms.value()) < 0.9 * float(
        fit(arrays(SOME)).terms.value()
    )


def test_refuses_by_name():
    data = arrays(SOME)
    for name, value, message in (
        ("action", 2, "action: expected ids in"),
        ("features", np.nan, "features: expected finite"),
        ("target_log_probs", 0.5, "target_log_probs: expected log-pr.*got 0.5"),
    ):
        spoilt = {**data, name: np.full_like(data[name], value)}
        with pytest.raises(InputError, match=message):
            fit(spoilt)
    with pytest.raises(InputError, match="ridge: expected > 0"):
        fit(data, ridge=0.0)
    with pytest.raises(InputError, match="num_folds: expected a whole number >= 2"):
        fit(data, fold=np.zeros(len(SOME), np.int32))
    nothing = jax.jit(lambda x: fit({**data, "reward": x}).terms.value())
    assert np.isnan(nothing(np.full_like(data["reward"], np.nan)))

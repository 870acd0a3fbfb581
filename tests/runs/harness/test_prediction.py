"""Predictions of learned controllers are those of `jerp ope`, a row an arm and seed."""

from functools import partial

import jax
import numpy as np
import pytest

from jerp.models.acting import HarnessController
from jerp.models.controller import controller_policy
from jerp.runs.harness import prediction
from jerp.runs.harness.arms import Arm
from jerp.runs.ope.predict import predict
from tests.runs.train_harness.logs import ACTIONS, FEATURES, episodes, waves

# Not in the order of the alphabet, and what compiles quickly.
METHODS = ("ordinary", "doubly_robust")
SETTINGS = {"methods": METHODS, "interval": "percentile", "num_resamples": 50}
LARGE = np.array([1, 1e3, 1, 1, 1], np.float32)


@pytest.fixture(autouse=True)
def _quick(monkeypatch):
    monkeypatch.setattr(prediction, "predict", partial(predict, **SETTINGS))


@pytest.fixture(scope="module")
def buffer():
    """96 episodes of 12 tasks, 88 valid, logged by a uniform choice."""
    data = jax.tree.map(lambda x: np.concatenate([np.asarray(x)] * 8), episodes())
    log_prob = -np.log(np.asarray(data.legal).sum(axis=-1)).astype(np.float32)
    return data.replace(log_prob=log_prob, task_id=np.arange(96, dtype=np.int32) // 8)


def params(seed, size=0.3, unit=LARGE**0):
    """Logits are of about `size`; features come in units of `unit`."""
    made = {
        "hidden": {"kernel": waves(seed, 5, 2) / unit[:, None], "bias": waves(seed, 2)},
        "logits": {"kernel": size * waves(seed + 1, 2, 4), "bias": waves(seed, 4) / 4},
        "value": {"kernel": waves(seed, 2, 1), "bias": waves(seed, 1)},
    }
    return jax.tree.map(np.float32, made)


def said(buffer, **settings):
    """By arm: two training seeds of one, and one of the other."""
    made = [params(seed, **settings) for seed in range(3)]
    arms = [
        Arm(name, controller_policy, seeds)
        for name, seeds in (("bc", made[:2]), ("awr", made[2:]))
    ]
    return prediction.predict_arms(jax.random.key(0), buffer, arms)


def test_equal_those_of_the_saved_controllers(buffer):
    found = said(buffer)
    log_probs = []
    for seed in range(3):
        layers = {k: v for k, v in params(seed).items() if k != "value"}
        controller = HarnessController(layers, FEATURES, ACTIONS, 2)
        log_probs.append(controller.log_probs(buffer.observation, buffer.legal))
    key, target = jax.random.key(0), np.stack(log_probs)
    expected = predict(key, buffer, target, **SETTINGS)
    assert {name: len(seeds) for name, seeds in found.items()} == {"bc": 2, "awr": 1}
    for one, other in zip([*found["bc"], *found["awr"]], expected, strict=True):
        assert tuple(one["methods"]) == METHODS
        for method in METHODS:
            assert one["methods"][method]["refused"] is None
            for name in ("point", "low", "high", "lower_bound"):
                number = pytest.approx(other["methods"][method][name], abs=2e-4)
                assert one["methods"][method][name] == number
    points = [p["methods"]["ordinary"]["point"] for p in expected]
    assert min(abs(np.diff(points))) > 1e-3


def test_a_feature_in_another_unit_changes_nothing(buffer):
    large = buffer.replace(observation=buffer.observation * LARGE)
    other = said(large, unit=LARGE)
    for one, same in zip(said(buffer)["bc"], other["bc"], strict=True):
        number = pytest.approx(same["methods"]["doubly_robust"]["point"], abs=2e-4)
        assert one["methods"]["doubly_robust"]["point"] == number


def test_a_refusal_says_why_by_method(buffer):
    for one in said(buffer, size=20.0)["awr"]:
        assert {m["point"] for m in one["methods"].values()} == {None}
        for method in one["methods"].values():
            assert method["refused"].startswith("the 88 episodes weigh as much as")

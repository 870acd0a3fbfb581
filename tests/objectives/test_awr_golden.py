"""AWR against the numbers of two released codes, and where jerp differs on purpose.

`golden/awr.json` says where the numbers come from. The adapters below put this
project's functions in the order of those codes.
"""

import json
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jerp.objectives.awr import awr_weights, task_mean_baseline
from jerp.ops.returns import lambda_returns

CASES = json.loads(
    (Path(__file__).parents[1] / "golden" / "awr.json").read_text(encoding="utf-8")
)["cases"]
AWR = [case for case in CASES if case["kind"] == "awr"]
HARNESS = [case for case in CASES if case["kind"] == "harness_aw"]
TOLERANCE = {"rtol": 1e-6, "atol": 1e-6}


def named(cases):
    return pytest.mark.parametrize("case", cases, ids=lambda case: case["name"])


@jax.jit
def path_targets(reward, value, failed, discount, lambda_):
    """One compilation a length of path."""
    last = jnp.arange(reward.size) == reward.size - 1
    return lambda_returns(
        reward,
        value[:-1],
        last & failed,
        last & ~failed,
        jnp.ones(reward.shape, bool),
        discount=discount,
        lambda_=lambda_,
        bootstrap_value=value[-1],
    )


def path_returns(path, inputs):
    """The released code marks how a path ends; a failure is this project's natural end.

    Its `value` holds one state more than there are rewards: the end's.
    """
    return path_targets(
        np.array(path["reward"], np.float32),
        np.array(path["value"], np.float32),
        path["end"] == "fail",
        inputs["discount"],
        inputs["td_lambda"],
    )


def test_every_case_is_compared():
    assert len(AWR) + len(HARNESS) == len(CASES) == 10


@named(AWR)
def test_targets_and_weights_of_awr(case):
    inputs, outputs = case["inputs"], case["outputs"]
    advantage = []
    for path, expected in zip(inputs["paths"], outputs["paths"], strict=True):
        returns = path_returns(path, inputs)
        np.testing.assert_allclose(returns, expected["td_return"], **TOLERANCE)
        advantage.append(returns - np.array(path["value"][:-1], np.float32))
        np.testing.assert_allclose(advantage[-1], expected["adv"], **TOLERANCE)
    weight = awr_weights(
        np.concatenate(advantage),
        np.ones(sum(map(len, advantage)), bool),
        temperature=inputs["temp"],
        max_weight=inputs["weight_clip"],
        standardize=True,
    )
    expected = np.concatenate([path["weight"] for path in outputs["paths"]])
    np.testing.assert_allclose(weight, expected, **TOLERANCE)


@named(HARNESS)
def test_advantages_and_weights_of_the_harness_code(case):
    inputs, outputs = case["inputs"], case["outputs"]
    returns = np.array(inputs["return_G"], np.float32)
    names = sorted(set(inputs["task_id"]))
    task_id = np.array([names.index(n) for n in inputs["task_id"]], np.int32)
    mask = np.ones(len(returns), bool)
    advantage = returns - task_mean_baseline(returns, task_id, mask)
    np.testing.assert_allclose(advantage, outputs["advantage"], **TOLERANCE)
    weight = awr_weights(
        advantage,
        mask,
        temperature=inputs["temperature"],
        min_weight=inputs["weight_min"],
        max_weight=inputs["weight_max"],
    )
    np.testing.assert_allclose(weight, outputs["weight_f32_per_step"], **TOLERANCE)
    assert sum(inputs["n_steps"]) == outputs["n_rows"]


def test_a_success_is_a_natural_end_at_any_step():
    """Deviation 13: there a success before the step limit is called a failure, and one
    on the last allowed step a time-out, which bootstraps. Here `terminated` is told
    apart from `truncated`, whatever the step: the same path, two different targets.
    """
    case = next(c for c in AWR if c["name"] == "fail_vs_timeout_same_path")
    ended, cut = (path_returns(p, case["inputs"]) for p in case["inputs"]["paths"])
    expected = [path["td_return"] for path in case["outputs"]["paths"]]
    np.testing.assert_allclose([ended, cut], expected, **TOLERANCE)
    assert (np.asarray(cut) > np.asarray(ended)).all()


def test_rewards_keep_their_type():
    """Deviation 14: there a first reward of integer 0 truncates all later ones."""
    returns = path_returns(
        {"reward": [0, 0.9], "value": [0.0, 0.0, 0.0], "end": "fail"},
        {"discount": 1.0, "td_lambda": 1.0},
    )
    np.testing.assert_allclose(returns, [0.9, 0.9], **TOLERANCE)


def test_advantages_are_not_standardized_unasked():
    """Deviation 15: standardising is a keyword; the default is the paper's form."""
    advantage, mask = np.array([0.0, 1.0], np.float32), np.ones(2, bool)
    np.testing.assert_allclose(awr_weights(advantage, mask), [1, np.e], **TOLERANCE)
    scaled = awr_weights(advantage, mask, standardize=True)
    np.testing.assert_allclose(scaled, [np.exp(-1), np.e], rtol=1e-4)


def test_the_exponent_is_clipped_before_exp():
    """The harness code overflows for advantages above about 142 at temperature 0.2."""
    weight = awr_weights(
        np.array([1e6], np.float32), np.ones(1, bool), temperature=0.2, max_weight=10.0
    )
    assert weight[0] == 10


def test_an_invalid_episode_enters_no_baseline():
    """There every recorded trajectory counts; here INFRASTRUCTURE ends do not."""
    returns, task = np.array([1.0, 0.0, 0.0], np.float32), np.zeros(3, np.int32)
    baseline = task_mean_baseline(returns, task, np.array([1, 1, 0], bool))
    np.testing.assert_allclose(baseline, [0.5, 0.5, 0.0])

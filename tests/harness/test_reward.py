"""The reward aggregate: by hand, against the released code, and at its limits."""

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jerp.harness.reward import (
    RewardTerms,
    aggregate_reward,
    cost_penalty,
    early_penalty,
    error_penalty,
)
from jerp.records import Criterion, Verdict
from tests.harness.golden import load

CASES = load("reward")
TERM = {
    "R_rubric": "rubric",
    "R_verify": "verify",
    "R_format": "format",
    "R_task": "task",
    "P_error": "error",
    "P_cost": "cost",
    "P_early_submit": "early",
}
WEIGHTED = ("verify", "format", "task", "error", "cost", "early")

LEFT_OUT = {
    "format": "scores text; a domain's verifier does that, with its own criteria",
    "paired_bootstrap": "compared in tests/estimators/test_intervals.py",
}


def cases(kind):
    return [case for case in CASES if case["kind"] == kind]


def test_every_golden_case_is_compared_or_left_out_on_purpose():
    compared = {
        "aggregate",
        "rubric_score",
        "error_penalty",
        "cost_penalty",
        "early_submit_penalty",
    }
    assert len(CASES) == 20
    assert {case["kind"] for case in CASES} == compared | set(LEFT_OUT)


@pytest.mark.parametrize("case", cases("aggregate"), ids=lambda case: case["why"])
def test_golden_aggregate(case, transform):
    terms = {TERM[name]: value for name, value in case["inputs"].items()}
    found = transform(aggregate_reward)(RewardTerms(**terms))
    assert float(found) == pytest.approx(case["outputs"]["R_total"], abs=1e-6)
    for name, expected in zip(WEIGHTED, case["outputs"]["weighted"], strict=True):
        alone = aggregate_reward(
            RewardTerms(rubric=0.0, **{name: terms.get(name, 0.0)})
        )
        assert abs(float(alone)) == pytest.approx(expected, abs=1e-6)


@pytest.mark.parametrize("case", cases("error_penalty"), ids=lambda c: c["outputs"])
def test_golden_error_penalty(case, transform):
    inputs = case["inputs"]
    found = transform(error_penalty)(inputs["error_count"], inputs["max_steps"])
    assert float(found) == pytest.approx(case["outputs"])


@pytest.mark.parametrize("case", cases("cost_penalty"), ids=lambda c: c["outputs"])
def test_golden_cost_penalty(case, transform):
    inputs = case["inputs"]
    found = transform(cost_penalty)(inputs["cost_so_far"], inputs["cost_budget"])
    assert float(found) == pytest.approx(case["outputs"])


@pytest.mark.parametrize(
    "case", cases("early_submit_penalty"), ids=lambda c: c["outputs"]
)
def test_golden_early_penalty(case, transform):
    inputs = case["inputs"]
    found = transform(early_penalty)(
        inputs["information_coverage"], inputs["rubric_coverage"]
    )
    assert float(found) == case["outputs"]


@pytest.mark.parametrize("case", cases("rubric_score"), ids=lambda case: case["why"])
def test_golden_rubric_score_is_the_verdict_score(case):
    """The peer's raw sum, missing list and table by category are left out: a verdict
    keeps the criteria themselves."""
    criteria = tuple(
        Criterion(c["id"], score=c["score"] / c["max_score"], weight=c["max_score"])
        for c in case["inputs"]
    )
    verdict = Verdict(criteria, success=False)
    assert verdict.score == pytest.approx(case["outputs"]["rubric_score_norm"])


def test_without_other_weights_it_is_the_rubric_score_that_jerp_trains_on():
    terms = RewardTerms(
        rubric=jnp.array([0.2, 0.9]), verify=1.0, format=1.0, task=1.0, error=1.0
    )
    found = aggregate_reward(
        terms, verify_weight=0, format_weight=0, task_weight=0, error_weight=0
    )
    np.testing.assert_array_equal(found, terms.rubric)


@pytest.mark.parametrize("name", WEIGHTED)
def test_every_weight_matters(name):
    terms = RewardTerms(*[0.5] * 7)
    sign = -1.0 if name in ("error", "cost", "early") else 1.0
    moved = aggregate_reward(terms, **{f"{name}_weight": 3.0})
    still = aggregate_reward(terms, **{f"{name}_weight": 1.0})
    assert float(moved - still) == pytest.approx(sign)


def test_gradients_are_the_weights():
    slope = jax.grad(aggregate_reward)(RewardTerms(*[0.5] * 7))
    expected = RewardTerms(1.0, 0.2, 0.1, 0.2, -0.25, -0.05, -0.1)
    chex.assert_trees_all_close(slope, jax.tree.map(jnp.float32, expected))


def test_range_of_the_paper_weights():
    best = aggregate_reward(RewardTerms(1.0, 1.0, 1.0, 1.0))
    worst = aggregate_reward(RewardTerms(0.0, error=1.0, cost=1.0, early=1.0))
    np.testing.assert_allclose([best, worst], [1.5, -0.4], rtol=1e-6)


@pytest.mark.parametrize("penalty", [error_penalty, cost_penalty])
def test_penalties_without_a_budget_are_zero_and_smooth(penalty, transform):
    found = transform(penalty)(jnp.array([1.0, 1.0, 3.0]), jnp.array([0.0, -1.0, 4.0]))
    np.testing.assert_array_equal(found, np.float32([0.0, 0.0, 0.75]))
    slope = jax.grad(lambda part: penalty(part, jnp.zeros(())))(1.0)
    assert float(slope) == 0.0


def test_early_penalty_thresholds():
    pairs = np.float64([[0.5, 0.6], [0.49, 0.6], [0.5, 0.59], [0.3, 0.3]])
    np.testing.assert_array_equal(early_penalty(pairs[:, 0], pairs[:, 1]), [0, 1, 1, 1])
    assert float(early_penalty(0.4, 0.6, min_information=0.4)) == 0
    assert float(early_penalty(0.5, 0.3, min_rubric=0.3)) == 0

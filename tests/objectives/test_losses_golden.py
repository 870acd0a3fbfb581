"""Losses and KL against verl-agent's numbers, and where jerp differs on purpose.

`golden/group.json` says where the numbers come from. Its masks are float, its fourth
aggregation lacks a division, its KL is clamped: the adapters below say how.
"""

import json
from functools import partial
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jerp.objectives.aggregate import aggregate_loss
from jerp.objectives.clipped import clipped_policy_loss
from jerp.objectives.kl import kl_estimate

CASES = json.loads(
    (Path(__file__).parents[1] / "golden" / "group.json").read_text(encoding="utf-8")
)["cases"]
LOSSES = [case for case in CASES if case["kind"] == "policy_loss"]
KL = [case for case in CASES if case["kind"] == "kl"]
TOLERANCE = {"rtol": 1e-6, "atol": 1e-6}
AGGREGATIONS = {
    "token-mean": "token_mean",
    "seq-mean-token-sum": "sequence_mean_token_sum",
    "seq-mean-token-mean": "sequence_mean_token_mean",
    "seq-mean-token-sum-norm": "sum_over_constant",
}


def named(cases):
    return pytest.mark.parametrize("case", cases, ids=lambda case: case["name"])


def adapted(name, shape):
    """Keywords, and what our value is multiplied by to be theirs.

    "seq-mean-token-sum-norm" divides by the padded length alone; the division by the
    number of sequences is what lets ours add across microbatches.
    """
    if name == "seq-mean-token-sum-norm":
        return {"aggregation": AGGREGATIONS[name], "constant": shape[1]}, shape[0]
    return {"aggregation": AGGREGATIONS[name]}, 1


def array(values):
    return np.array(values, np.float32)


def test_every_case_is_compared():
    advantages = [case for case in CASES if case["kind"] == "advantage"]
    assert len(LOSSES) + len(KL) + len(advantages) == len(CASES) == 12


@partial(jax.jit, static_argnames="name")
def one_mode(batch, keywords, name):
    """Their value of one aggregation, and its gradient."""

    def value(log_prob):
        aggregation, factor = adapted(name, log_prob.shape)
        output = clipped_policy_loss(log_prob, *batch[1:], **keywords, **aggregation)
        return factor * output.loss.value()

    return jax.value_and_grad(value)(batch[0])


@jax.jit
def metrics_of(batch, keywords):
    return clipped_policy_loss(*batch, **keywords).metrics


@named(LOSSES)
def test_losses_gradients_and_clip_fractions(case):
    inputs, outputs = case["inputs"], case["outputs"]["f64"]
    batch = [array(inputs[name]) for name in ("logp", "old_logp", "adv")]
    batch.append(array(inputs["mask"]).astype(bool))
    keywords = {
        "clip_low": inputs["clip_low"],
        "clip_high": inputs["clip_high"],
        "dual_clip": inputs["dual_clip_c"],
    }
    for name in AGGREGATIONS:
        value, gradient = one_mode(batch, keywords, name)
        np.testing.assert_allclose(value, outputs[name]["loss"], **TOLERANCE)
        np.testing.assert_allclose(gradient, outputs[name]["grad_logp"], **TOLERANCE)
    metrics = metrics_of(batch, keywords)
    for ours, theirs in (
        ("clip_fraction", "clipfrac"),
        ("dual_clip_fraction", "clipfrac_lower"),
        ("old_kl_k1", "ppo_kl"),
    ):
        np.testing.assert_allclose(metrics[ours].value(), outputs[theirs], **TOLERANCE)


@partial(jax.jit, static_argnames="estimator")
def kl_of(log_prob, anchor, mask, estimator):
    """Their tokens and aggregates, our tokens and slopes.

    Their k3 is clamped at 10, and their tokens and slopes are not masked.
    """

    def total(log_prob):
        everything = jnp.ones(log_prob.shape, bool)
        kl = kl_estimate(log_prob, anchor, everything, estimator=estimator)
        return jnp.sum(kl), kl

    slope, kl = jax.grad(total, has_aux=True)(log_prob)
    theirs = jnp.minimum(kl, 10) if estimator == "k3" else kl
    aggregates = {}
    for name in AGGREGATIONS:
        keywords, factor = adapted(name, mask.shape)
        aggregates[name] = factor * aggregate_loss(theirs, mask, **keywords).value()
    return theirs, aggregates, kl, slope


@named(KL)
@pytest.mark.parametrize("estimator", ["k1", "k2", "k3"])
def test_kl_of_tokens_aggregates_and_slopes(case, estimator):
    """The slope of a clamped token is listed in `test_k3_is_not_clamped`."""
    inputs, outputs = case["inputs"], case["outputs"][estimator]
    pair = array(inputs["logp"]), array(inputs["ref_logp"])
    mask = array(inputs["mask"]).astype(bool)
    theirs, aggregates, kl, slope = jax.tree.map(
        np.asarray, kl_of(*pair, mask, estimator)
    )
    np.testing.assert_allclose(theirs, outputs["token"], **TOLERANCE)
    assert aggregates.keys() == outputs["agg"].keys()
    for name, expected in outputs["agg"].items():
        np.testing.assert_allclose(aggregates[name], expected, **TOLERANCE)
    free = theirs == kl
    expected = array(outputs["grad_logp_of_sum"])
    np.testing.assert_allclose(slope[free], expected[free], **TOLERANCE)


def test_k3_is_not_clamped():
    """Deviation 12: 3 nats above the policy, theirs is 10 with slope 0; ours is
    exp(3) - 3 - 1 and still pulls. 40 nats below it theirs is 10 and 0 too, ours 39, 1.
    """
    case = next(case for case in KL if case["name"] == "k3_cap")
    theirs = case["outputs"]["k3"]
    assert (theirs["token"][0][0], theirs["grad_logp_of_sum"][0][0]) == (10.0, 0.0)
    real = np.array(True)
    ours = jax.jit(jax.vmap(jax.value_and_grad(lambda d: kl_estimate(0 * d, d, real))))
    value, slope = ours(np.array([3.0, -40.0], np.float32))
    np.testing.assert_allclose(value, [np.exp(3) - 4, 39.0], rtol=1e-6)
    np.testing.assert_allclose(-slope, [1 - np.exp(3), 1.0], rtol=1e-6)


def test_there_is_no_estimator_by_the_absolute_value():
    """Theirs has `abs`, which estimates no KL; it is the absolute value of k1."""
    for case in KL:
        inputs = case["inputs"]
        pair = array(inputs["logp"]), array(inputs["ref_logp"])
        mask = np.ones(pair[0].shape, bool)
        k1 = kl_of(*pair, mask, "k1")[0]
        expected = case["outputs"]["abs"]["token"]
        np.testing.assert_allclose(np.abs(k1), expected, **TOLERANCE)
        with pytest.raises(ValueError, match="unknown estimator 'abs'"):
            kl_estimate(*pair, mask, estimator="abs")


@partial(jax.jit, static_argnames="aggregation")
def mean_of(loss, mask, aggregation):
    return aggregate_loss(loss, mask, aggregation=aggregation)


def test_an_empty_sequence_enters_no_mean():
    """Deviation 11: theirs is 0 / 0 for one, so nan for all; ours the mean of the rest.
    "seq-mean-token-sum" divides by the empty ones too there: 1.5 instead of 3.
    """
    loss, mask = np.float32([[1, 2], [9, 9]]), np.array([[1, 1], [0, 0]], bool)
    with np.errstate(invalid="ignore"):
        theirs = np.mean((loss * mask).sum(1) / mask.sum(1))
    assert np.isnan(theirs)
    ours = mean_of(loss, mask, "sequence_mean_token_mean")
    assert ours.value() == 1.5
    assert np.mean((loss * mask).sum(1)) == 1.5
    ours = mean_of(loss, mask, "sequence_mean_token_sum")
    assert ours.value() == 3.0


def test_the_ratio_of_a_masked_token_reaches_no_gradient():
    """Deviation 11: theirs multiplies by the mask after exp, 0 x inf = nan."""
    mask = np.array([[True, False]])
    old, log_prob = np.float32([[-1.0, -200.0]]), np.float32([[-1.0, -1.0]])

    def theirs(log_prob):
        return jnp.sum(-jnp.exp(log_prob - old) * mask)

    def ours(log_prob):
        output = clipped_policy_loss(log_prob, old, np.float32([1.0]), mask)
        return output.loss.total

    np.testing.assert_array_equal(jax.jit(jax.grad(theirs))(log_prob), [[-1, np.nan]])
    np.testing.assert_array_equal(jax.jit(jax.grad(ours))(log_prob), [[-1, 0]])

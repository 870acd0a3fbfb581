"""The PPO family's loss: by hand, against loops in float64, and keyword by keyword."""

from functools import partial

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jerp.objectives.clipped import clipped_policy_loss
from tests.objectives.tokens import (
    ADVANTAGE,
    AGGREGATIONS,
    BATCH,
    FULL,
    LOG_PROB,
    MASK,
    OLD,
    REFERENCE,
    SAMPLER,
)
from tests.reference import losses as reference

CLOSE = {"rtol": 1e-5, "atol": 1e-6}
VARIANTS = {
    "ppo": {},
    "everything": {**FULL, "clip_low": 0.3, "clip_high": 0.28, "dual_clip": 3.0},
    "grpo": {
        "reference_log_prob": REFERENCE,
        "kl_weight": 0.04,
        **AGGREGATIONS["sequence_mean_token_mean"],
    },
    "dr_grpo": AGGREGATIONS["sum_over_constant"],
    "gspo": {
        **FULL,
        "ratio": "sequence",
        "clip_low": 0.05,
        "clip_high": 0.04,
        **AGGREGATIONS["sequence_mean_token_mean"],
    },
    "gspo_token": {
        "ratio": "sequence_token",
        "dual_clip": 1.25,
        "kl_weight": 0.5,
        "kl_estimator": "k2",
        "reference_log_prob": REFERENCE,
        **AGGREGATIONS["sequence_mean_token_sum"],
    },
    "cispo": {**FULL, "form": "cispo", "clip_low": 1.0, "kl_estimator": "k1"},
    "cispo_sequence": {"form": "cispo", "ratio": "sequence", "clip_high": 0.01},
}


@pytest.mark.parametrize("name", VARIANTS)
def test_value_and_gradient_equal_the_reference(name):
    def loss(log_prob):
        return clipped_policy_loss(
            log_prob, OLD, ADVANTAGE, MASK, **VARIANTS[name]
        ).loss.value()

    value, gradient = jax.jit(jax.value_and_grad(loss))(LOG_PROB)
    total, weight = reference.policy_loss(*BATCH, **VARIANTS[name])
    np.testing.assert_allclose(value, total / weight, **CLOSE)
    expected = reference.policy_gradient(*BATCH, **VARIANTS[name])
    np.testing.assert_allclose(gradient, expected, **CLOSE)


def test_parity_of_the_transforms(transform):
    """Of the compiled function: eager calls, slow to dispatch, are the tests below."""

    @jax.jit
    def loss(sampler, anchor, *batch):
        given = {"sampler_log_prob": sampler, "reference_log_prob": anchor}
        return clipped_policy_loss(*batch, **{**VARIANTS["everything"], **given}).loss

    output = transform(loss)(SAMPLER, REFERENCE, *BATCH)
    total, weight = reference.policy_loss(*BATCH, **VARIANTS["everything"])
    np.testing.assert_allclose(output.total, total, **CLOSE)
    np.testing.assert_allclose(output.weight, weight, rtol=0)


HALF = np.log(np.full((1, 2), 0.5, np.float32))
MOVED = np.log(np.array([[0.75, 0.25]], np.float32))  # ratios 1.5 and 0.5
TWO = np.ones((1, 2), bool)


@pytest.mark.parametrize(
    ("advantage", "keywords", "expected"),
    [
        (2.0, {}, -(2.4 + 1.0) / 2),
        (-1.0, {}, (1.5 + 0.8) / 2),
        (2.0, {"clip_high": 0.4}, -(2.8 + 1.0) / 2),
        (-1.0, {"clip_low": 0.6}, (1.5 + 0.5) / 2),
        (-1.0, {"dual_clip": 1.25}, (1.25 + 0.8) / 2),
        (2.0, {"ratio": "sequence"}, -1.7320508),  # 2 sqrt(1.5 x 0.5)
        (2.0, {"form": "cispo"}, 1.4542540),  # -(1.2 log .75 + .8 log .25)
        (2.0, {"sampler_log_prob": np.log([[0.1, 0.8]])}, -(2 * 2.4 + 0.625) / 2),
        # -1.7 + 0.5 (k3 of d = log(2 / 3) + k3 of d = log 2) / 2
        (2.0, {"reference_log_prob": HALF, "kl_weight": 0.5}, -1.6052540),
    ],
)
def test_loss_by_hand(advantage, keywords, expected):
    advantage = np.full((1, 2), advantage, np.float32)
    loss = jax.jit(lambda *x: clipped_policy_loss(*x, **keywords).loss.value())
    value = loss(MOVED, HALF, advantage, TWO)
    np.testing.assert_allclose(value, expected, rtol=1e-6)


def test_metrics_by_hand():
    """Ratios 1.5 and 0.5; the sampler's 5 (2 after the bound) and 0.625."""
    loss = partial(clipped_policy_loss, kl_estimator="k1")
    output = jax.jit(loss)(
        np.append(MOVED, [[np.nan]], 1),
        np.append(HALF, [[np.nan]], 1),
        np.array([[1.0, -1.0, np.nan]], np.float32),
        np.array([[1, 1, 0]], bool),
        dual_clip=3.0,
        sampler_log_prob=np.log([[0.1, 0.8, 0.5]]).astype(np.float32),
        reference_log_prob=np.append(HALF, [[0.0]], 1),
    )
    expected = {
        "ratio": 1.0,
        "clip_fraction": 1.0,
        "clip_fraction_upper": 0.5,
        "clip_fraction_lower": 0.5,
        "dual_clip_fraction": 0.0,
        "old_kl_k1": 0.14384104,  # -(log 1.5 + log 0.5) / 2
        "old_kl_k3": 0.14384104,  # the same, for the ratios have mean 1
        "importance_weight": (2 + 0.625) / 2,
        "importance_truncated": 0.5,
        "kl": -0.14384104,
        "tokens": 2.0,
        "invalid": 0.0,
    }
    values = {name: metric.value() for name, metric in output.metrics.items()}
    chex.assert_trees_all_close(values, expected, rtol=1e-6, atol=1e-7)
    weights = {name: float(m.weight) for name, m in output.metrics.items()}
    assert weights == {name: 1.0 if name == "tokens" else 2.0 for name in expected}
    far = jax.jit(clipped_policy_loss)(
        MOVED, HALF, np.float32([-1.0]), TWO, dual_clip=1.4, clip_low=0.6
    )
    assert far.metrics["dual_clip_fraction"].value() == 0.5
    assert far.metrics["clip_fraction"].value() == 0
    cispo = jax.jit(partial(clipped_policy_loss, form="cispo"))
    outside = cispo(MOVED, HALF, np.float32([1.0]), TWO)
    assert outside.metrics["clip_fraction_lower"].value() == 0.5


@pytest.mark.parametrize(
    ("name", "value", "others"),
    [
        ("clip_low", 0.4, {}),
        ("clip_low", 0.5, {"form": "cispo"}),
        ("clip_high", 0.6, {}),
        ("clip_high", 0.6, {"form": "cispo"}),
        ("dual_clip", 3.0, {}),
        ("form", "cispo", {}),
        ("ratio", "sequence", {}),
        ("ratio", "sequence", {"form": "cispo"}),
        ("ratio", "sequence_token", {}),
        ("sampler_log_prob", SAMPLER, {}),
        ("max_importance", 1.5, FULL),
        ("reference_log_prob", OLD, FULL),
        ("kl_weight", 0.5, FULL),
        ("kl_estimator", "k1", FULL),
        ("kl_estimator", "k2", {**FULL, "reference_log_prob": OLD}),
        ("aggregation", "sequence_mean_token_mean", {}),
        ("aggregation", "sequence_mean_token_sum", {}),
        ("constant", 5.0, AGGREGATIONS["sum_over_constant"]),
    ],
)
def test_each_keyword_changes_the_loss(name, value, others):
    default = clipped_policy_loss(*BATCH, **others).loss.value()
    changed = clipped_policy_loss(*BATCH, **{**others, name: value}).loss.value()
    assert abs(changed - default) > 1e-3


@pytest.mark.parametrize(
    ("keywords", "message"),
    [
        ({"clip_low": -0.1}, "clip_low: expected >= 0, got -0.1"),
        ({"clip_high": float("nan")}, "clip_high: expected >= 0, got nan"),
        ({"dual_clip": 1.0}, "dual_clip: expected > 1, got 1.0"),
        ({"max_importance": 0.0}, "max_importance: expected > 0, got 0.0"),
        ({**FULL, "kl_weight": -1.0}, "kl_weight: expected >= 0, got -1.0"),
        ({"kl_weight": 0.1}, "kl_weight: expected 0 without reference_log_prob"),
        ({"kl_estimator": "k4", **FULL}, "unknown estimator 'k4'"),
        ({"form": "ppo2"}, "unknown form 'ppo2'; did you mean 'ppo'"),
        ({"ratio": "word"}, "unknown ratio 'word'"),
        ({"aggregation": "mean"}, "unknown aggregation 'mean'"),
        ({"form": "cispo", "dual_clip": 3.0}, "dual_clip: expected None with form"),
        ({"form": "cispo", "ratio": "sequence_token"}, 'ratio: expected "token" or'),
        ({"constant": 3.0}, "constant: expected None unless"),
        ({"aggregation": "sum_over_constant"}, "constant: expected a number > 0"),
    ],
)
def test_bad_keywords_are_named(keywords, message):
    with pytest.raises(ValueError, match=message):
        clipped_policy_loss(*BATCH, **keywords)


def test_bad_shapes_are_refused():
    with pytest.raises(AssertionError):
        clipped_policy_loss(LOG_PROB, OLD[:, :3], ADVANTAGE, MASK)
    with pytest.raises(AssertionError):
        clipped_policy_loss(LOG_PROB, OLD, ADVANTAGE[0], MASK)
    with pytest.raises(AssertionError):
        clipped_policy_loss(LOG_PROB[0], OLD[0], ADVANTAGE[0], MASK[0])


def test_a_traced_kl_weight_needs_a_reference_too():
    with pytest.raises(ValueError, match="kl_weight: expected 0 without"):
        jax.jit(lambda w: clipped_policy_loss(*BATCH, kl_weight=w).loss)(0.0)


def test_an_advantage_a_sequence_is_every_tokens():
    by_sequence = np.array([1.5, -1.0, 0.5, np.nan], np.float32)
    by_token = np.tile(by_sequence[:, None], (1, 5))
    chex.assert_trees_all_equal(
        clipped_policy_loss(LOG_PROB, OLD, by_sequence, MASK),
        clipped_policy_loss(LOG_PROB, OLD, by_token, MASK),
    )


def test_a_reference_with_weight_0_is_only_logged():
    plain = clipped_policy_loss(*BATCH)
    logged = clipped_policy_loss(*BATCH, reference_log_prob=REFERENCE)
    chex.assert_trees_all_equal(logged.loss, plain.loss)
    assert logged.metrics["kl"].value() > 0


def test_half_precision_is_accumulated_in_float32():
    half = [jnp.asarray(x, jnp.bfloat16) for x in BATCH[:3]]
    loss = jax.jit(clipped_policy_loss)
    output = loss(*half, MASK)
    single = loss(*(x.astype(jnp.float32) for x in half), MASK)
    chex.assert_trees_all_equal(output, single)
    assert {x.dtype for x in jax.tree.leaves(output)} == {jnp.dtype("float32")}


def test_one_trace_a_shape_and_one_more_for_a_static_keyword():
    def loss(batch, clip_high, form):
        return clipped_policy_loss(*batch, clip_high=clip_high, form=form).loss

    traced = jax.jit(chex.assert_max_traces(loss, n=1), static_argnames="form")
    for shift, clip_high in ((0.0, 0.2), (1.0, 0.3)):
        traced((LOG_PROB - shift, *BATCH[1:]), clip_high, "ppo")
    with pytest.raises(AssertionError, match="traced"):
        traced(BATCH, 0.2, "cispo")


def test_gradients_reach_the_learner_alone():
    def loss(*arrays):
        keywords = dict(
            zip(("sampler_log_prob", "reference_log_prob"), arrays[3:], strict=True)
        )
        return clipped_policy_loss(
            *arrays[:3], MASK, **keywords, kl_weight=0.25
        ).loss.value()

    arrays = (LOG_PROB, OLD, ADVANTAGE, SAMPLER, REFERENCE)
    learner, *constants = jax.jit(jax.grad(loss, argnums=range(5)))(*arrays)
    assert (np.asarray(learner)[MASK] != 0).sum() > 5
    for gradient in constants:
        np.testing.assert_array_equal(gradient, np.zeros(MASK.shape))


def test_metrics_carry_no_gradient():
    def metric_sum(log_prob):
        metrics = clipped_policy_loss(log_prob, *BATCH[1:], **FULL).metrics
        return sum(metric.total for metric in metrics.values())

    gradient = jax.jit(jax.grad(metric_sum))(LOG_PROB)
    np.testing.assert_array_equal(gradient, np.zeros(MASK.shape))

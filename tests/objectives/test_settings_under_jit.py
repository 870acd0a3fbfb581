"""A traced keyword out of range gives NaN, never a clamped or inverted answer."""

import jax
import numpy as np
import pytest

from jerp.advantages.gigpo import gigpo_advantages
from jerp.advantages.group import group_relative_advantages
from jerp.objectives.aggregate import aggregate_loss
from jerp.objectives.awr import awr_weights
from jerp.objectives.clipped import clipped_policy_loss
from jerp.objectives.length import overlong_penalty
from jerp.objectives.value import value_loss

X = np.array([[0.5, -1.0], [2.0, 1.0]], np.float32)
MASK = np.ones((2, 2), bool)
IDS = np.zeros(2, np.int32)


def weights(**keywords):
    return awr_weights(X, MASK, **keywords)


def summed(**keywords):
    return aggregate_loss(X, MASK, aggregation="sum_over_constant", **keywords).value()


def policy(**keywords):
    return clipped_policy_loss(
        X, X, X, MASK, sampler_log_prob=X, reference_log_prob=X, **keywords
    ).loss.value()


def clipped_value(**keywords):
    return value_loss(X, X, MASK, old_value=X + 1, **keywords).loss.value()


def penalty(**keywords):
    length = np.array([1, 9])
    return overlong_penalty(length, **{"max_length": 8, "buffer": 4, **keywords})


def group(**keywords):
    return group_relative_advantages(X[0], IDS, MASK[0], num_groups=1, **keywords).value


def gigpo(**keywords):
    return gigpo_advantages(
        X, MASK, IDS, IDS, IDS[:, None] + MASK, num_groups=1, **keywords
    ).total


@pytest.mark.parametrize(
    ("function", "name", "good", "bad"),
    [
        (weights, "temperature", 1.0, -1.0),
        (weights, "min_weight", 0.5, -1.0),
        (weights, "max_weight", 2.0, -1.0),
        (summed, "constant", 4.0, -3.0),
        (policy, "clip_low", 0.2, -0.1),
        (policy, "clip_high", 0.2, -0.1),
        (policy, "dual_clip", 3.0, 0.5),
        (policy, "max_importance", 2.0, 0.0),
        (policy, "kl_weight", 0.1, -0.1),
        (clipped_value, "clip", 0.2, -0.2),
        (penalty, "buffer", 4.0, 0.0),
        (penalty, "max_length", 8.0, 2.0),
        (group, "epsilon", 0.1, -0.1),
        (gigpo, "epsilon", 0.1, -0.1),
        (gigpo, "discount", 0.9, 1.5),
        (gigpo, "step_weight", 1.0, -1.0),
    ],
)
def test_out_of_range_is_nan(function, name, good, bad):
    run = jax.jit(lambda value: function(**{name: value}))
    assert np.isfinite(run(good)).all()
    assert np.isnan(run(bad)).all()
    with pytest.raises(ValueError, match=f"^{name}: expected"):
        function(**{name: bad})

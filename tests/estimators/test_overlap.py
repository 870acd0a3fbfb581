"""Effective sample size, overlap and reasons to refuse, by hand; and the bound."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jerp.errors import InputError
from jerp.estimators.lower_bound import bernstein_lower_bound
from jerp.estimators.overlap import (
    Overlap,
    Refusal,
    explain_refusal,
    policy_overlap,
    refusal,
)


def overlap_of(log_prob, target, mask, **settings):
    return jax.tree.map(float, policy_overlap(log_prob, target, mask, **settings))


def test_by_hand_with_an_action_that_the_target_never_takes():
    """Weights 4, 0 and, of one step, .5; a padded row is no episode."""
    b = jnp.log(jnp.array([[0.5, 0.25], [0.5, 0.5], [1.0, 1.0], [1.0, 1.0]]))
    pi = jnp.log(jnp.array([[1.0, 0.5], [0.5, 0.0], [0.5, jnp.nan], [1.0, 1.0]]))
    mask = jnp.array([[True, True], [True, True], [True, False], [False, False]])
    found = overlap_of(b, pi, mask, large_ratio=1.5)
    weights = np.array([4.0, 0.0, 0.5])
    assert found.num_episodes == 3
    assert found.effective_sample_size == pytest.approx(4.5**2 / 16.25)
    assert found.mean_weight == pytest.approx(1.5)
    assert found.mean_weight_error == pytest.approx(weights.std(ddof=1) / 3**0.5)
    assert found.max_weight == pytest.approx(4)
    assert found.supported_mass == pytest.approx((2 + 2 + 1 + 0 + 0.5) / 5)
    assert found.large_ratio_share == pytest.approx(2 / 5)


def test_a_deterministic_behaviour_supports_its_share_of_a_target():
    """Weights all alike, so that the effective sample size sees nothing."""
    found = policy_overlap(
        jnp.zeros((99, 2)), jnp.log(jnp.full((99, 2), 0.5)), jnp.ones((99, 2), bool)
    )
    assert float(found.effective_sample_size) == pytest.approx(99)
    assert int(refusal(found, 9)) == Refusal.UNSUPPORTED
    assert "produced 25% of the episodes" in explain_refusal(3, found)


def an_overlap(**changes):
    fields = {name: 1.0 for name in Overlap.__dataclass_fields__}
    fields |= {"num_episodes": 100, "effective_sample_size": 60, "mean_weight_error": 0}
    return Overlap(**{k: jnp.float32(v) for k, v in {**fields, **changes}.items()})


@pytest.mark.parametrize(
    ("changes", "tasks", "reason"),
    [
        ({}, 4, Refusal.NONE),
        ({"num_episodes": 0}, 4, Refusal.NO_EPISODES),
        ({"effective_sample_size": np.nan}, 4, Refusal.UNDEFINED),
        ({"mean_weight": 0.9}, 4, Refusal.UNSUPPORTED),
        ({"mean_weight": 0.9, "mean_weight_error": 0.03}, 4, Refusal.NONE),
        ({"mean_weight": 1.5}, 4, Refusal.PROBABILITIES),
        ({"mean_weight": 1.5, "mean_weight_error": 0.2}, 4, Refusal.NONE),
        ({"effective_sample_size": 49}, 1, Refusal.SAMPLE_SIZE),
        ({"mean_weight": np.inf, "effective_sample_size": 1}, 4, Refusal.SAMPLE_SIZE),
        ({}, 3, Refusal.FEW_TASKS),
    ],
)
def test_the_first_reason_that_holds(changes, tasks, reason):
    overlap = an_overlap(**changes)
    assert int(refusal(overlap, tasks)) == reason
    assert bool(explain_refusal(reason, overlap)) == (reason != Refusal.NONE)


def test_overlap_and_reasons_under_every_transformation(transform):
    b, pi = jnp.log(jnp.array([[[0.5], [0.5]], [[1.0], [0.0]]]))
    mask = jnp.ones((2, 1), bool)

    def found(b, pi):
        overlap = policy_overlap(b, pi, mask)
        return overlap.effective_sample_size, refusal(overlap, 4)

    size, reason = transform(found)(b, pi)
    assert (float(size), int(reason)) == (1, Refusal.SAMPLE_SIZE)


def test_floors_are_settings():
    assert int(refusal(an_overlap(), 4, min_effective=61)) == Refusal.SAMPLE_SIZE
    low = an_overlap(mean_weight=0.9)
    assert int(refusal(low, 4, min_support=0.8)) == Refusal.NONE
    with pytest.raises(InputError, match="min_support: expected in"):
        refusal(low, 4, min_support=1.5)
    with pytest.raises(InputError, match="reason: expected one of"):
        explain_refusal(17, low)


def test_bernstein_by_hand():
    """Tasks add .5, 1.5 and 6, of which 4 counts."""
    values = jnp.array([0.0, 1.0, 1.5, 1.5, 6.0, 6.0])
    found = bernstein_lower_bound(
        values, cluster=jnp.array([0, 0, 1, 1, 2, 2]), truncation=4.0
    )
    y, doubt = np.array([0.5, 1.5, 4.0]), np.log(2 / 0.05)
    slack = np.sqrt(2 * doubt * y.var(ddof=1) / 3) + 7 * 4 * doubt / (3 * 2)
    assert float(found) == pytest.approx(y.mean() - slack, rel=1e-6)
    assert np.isnan(bernstein_lower_bound(values, cluster=jnp.zeros(6, jnp.int32)))
    assert float(bernstein_lower_bound(values, level=0.5)) > float(
        bernstein_lower_bound(values)
    )
    with pytest.raises(InputError, match="values: expected >= 0"):
        bernstein_lower_bound(-values)


def test_bernstein_holds_more_often_than_it_says():
    """200 logs of 60 skewed values with mean 1: never above it."""
    values = jax.random.exponential(jax.random.key(0), (200, 60))
    bounds = jax.vmap(lambda x: bernstein_lower_bound(x, truncation=3.0))(values)
    assert (np.asarray(bounds) < 1).all() and np.isfinite(bounds).all()

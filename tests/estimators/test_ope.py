"""Importance sampling and doubly robust: by hand, by loops, exact in expectation."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jerp.errors import InputError, ShapeError, UnknownNameError
from jerp.estimators.ope import doubly_robust, importance_sampling
from tests.estimators.table_episodes import (
    BEHAVIOUR,
    EVERY,
    HORIZON,
    SOME,
    TARGET,
    WORLD,
    arrays,
)
from tests.reference import ope as reference

KINDS = ("ordinary", "weighted", "per_decision", "weighted_per_decision")
CHANCE = np.array([p for p, _ in EVERY])


def pick(data, *more):
    return (data["reward"], data["log_prob"], data["target_log_prob"], *more)


def sampled(data, **settings):
    return importance_sampling(*pick(data), data["mask"], **settings)


def modelled(data, q):
    """q and v of a table that ignores the step."""
    state = np.nan_to_num(data["features"]).reshape(*data["mask"].shape, HORIZON, -1)
    state = state.sum(axis=2).argmax(axis=-1)
    action = np.where(data["mask"], data["action"], 0)
    return (
        np.where(data["mask"], x, np.nan).astype(np.float32)
        for x in (q[state, action], (TARGET * q).sum(axis=1)[state])
    )


def test_by_hand():
    """Weights 2 and 2 * .5 after two steps, and .5 after the only one."""
    reward = jnp.array([[1.0, 4.0], [8.0, 0.0]])
    log_prob = jnp.log(jnp.array([[0.25, 0.5], [0.5, 1.0]]))
    target = jnp.log(jnp.array([[0.5, 0.25], [0.25, 1.0]]))
    mask = jnp.array([[True, True], [True, False]])
    values = {
        kind: float(
            importance_sampling(reward, log_prob, target, mask, kind=kind).value()
        )
        for kind in KINDS
    }
    assert values == pytest.approx(
        {
            "ordinary": (1.0 * 5 + 0.5 * 8) / 2,
            "weighted": (1.0 * 5 + 0.5 * 8) / 1.5,
            "per_decision": (2 * 1 + 1 * 4 + 0.5 * 8) / 2,
            "weighted_per_decision": (2 * 1 + 0.5 * 8) / 2.5 + 1 * 4 / 1.5,
        }
    )


def test_equals_the_loops_in_poisoned_padding(transform):
    data, table = arrays(SOME), np.array([[1.0, -2.0], [0.3, 0.2], [0.0, 5.0]])

    def estimates(r, b, pi, q, v):
        kinds = [
            importance_sampling(r, b, pi, data["mask"], kind=kind, discount=0.9).value()
            for kind in KINDS
        ]
        robust = doubly_robust(r, b, pi, q, v, data["mask"], discount=0.9)
        return jnp.stack(kinds), robust.numerator[:, 0]

    found, robust = transform(estimates)(*pick(data, *modelled(data, table)))
    policies = (SOME, BEHAVIOUR, TARGET)
    slow = [
        reference.importance_sampling(*policies, kind, HORIZON, 0.9) for kind in KINDS
    ]
    np.testing.assert_allclose(found, slow, rtol=2e-6)
    slow = reference.doubly_robust(*policies, table, 0.9)
    np.testing.assert_allclose(robust, slow, rtol=2e-5, atol=1e-5)


def test_unbiased_over_everything_that_can_happen():
    discount = 0.5
    data, truth = (
        arrays([e for _, e in EVERY]),
        reference.exact_value(WORLD, TARGET, discount),
    )
    q, v = modelled(data, np.array([[1.0, -2.0], [0.3, 0.2], [0.0, 5.0]]))
    found = [sampled(data, kind=kind, discount=discount) for kind in KINDS]
    found.append(doubly_robust(*pick(data, q, v), data["mask"], discount=discount))
    assert sum(CHANCE) == pytest.approx(1)
    for terms in found:
        np.testing.assert_allclose(terms.value(CHANCE), truth, rtol=1e-5)


def test_doubly_robust_without_a_model_is_per_decision():
    data = arrays(SOME)
    zero = np.zeros(data["mask"].shape, np.float32)
    found = doubly_robust(*pick(data, zero, zero), data["mask"]).value()
    np.testing.assert_allclose(found, sampled(data, kind="per_decision").value())


def test_the_behaviour_itself_is_worth_its_mean_return():
    data = arrays(SOME, target=BEHAVIOUR)
    mean = np.nansum(data["reward"], axis=1).mean()
    for kind in KINDS:
        np.testing.assert_allclose(sampled(data, kind=kind).value(), mean, rtol=1e-6)


def test_a_deterministic_target_weighs_what_it_does_not_take_0():
    always = np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 0.0]])
    data = arrays([e for _, e in EVERY], target=always)
    assert np.isneginf(data["target_log_prob"]).any()
    truth = reference.exact_value(WORLD, always)
    for kind in KINDS:
        value = sampled(data, kind=kind).value(CHANCE)
        np.testing.assert_allclose(value, truth, rtol=1e-5)


def test_invalid_rows_and_constant_returns():
    data = arrays(SOME)
    data["mask"][-3:] = False
    for kind in KINDS:
        policies = (SOME[:-3], BEHAVIOUR, TARGET)
        slow = reference.importance_sampling(*policies, kind, HORIZON)
        np.testing.assert_allclose(sampled(data, kind=kind).value(), slow, rtol=2e-6)
    data["reward"] = np.zeros_like(data["reward"])
    data["reward"][:, 0] = 0.5
    assert float(sampled(data, kind="weighted").value()) == pytest.approx(0.5)


def test_weights_beyond_float32_do_not_spoil_weighted_ones():
    log_prob = jnp.full((2, 3), -50.0)
    value = importance_sampling(
        jnp.ones((2, 3)),
        log_prob,
        jnp.zeros((2, 3)),
        jnp.ones((2, 3), bool),
        kind="weighted",
    ).value()
    assert float(value) == pytest.approx(3.0)


def test_refuses_what_is_no_log():
    data = arrays(SOME)
    reward, log_prob, target, mask = *pick(data), data["mask"]
    with pytest.raises(
        InputError, match=r"log_prob: expected the behaviour's.*EpisodeL"
    ):
        importance_sampling(reward, None, target, mask)
    with pytest.raises(
        InputError, match=r"target_log_prob: expected log-prob.*got 0.5"
    ):
        importance_sampling(reward, log_prob, np.full_like(target, 0.5), mask)
    with pytest.raises(InputError, match="reward: expected finite"):
        importance_sampling(np.full_like(reward, np.nan), log_prob, target, mask)
    with pytest.raises(InputError, match="discount: expected in"):
        importance_sampling(reward, log_prob, target, mask, discount=1.5)
    with pytest.raises(ShapeError, match="reward: expected axes"):
        importance_sampling(reward[0], log_prob, target, mask)
    with pytest.raises(UnknownNameError, match="did you mean 'ordinary'"):
        importance_sampling(reward, log_prob, target, mask, kind="ordinry")
    jitted = jax.jit(lambda r: importance_sampling(r, log_prob, target, mask).value())
    assert np.isnan(jitted(np.full_like(reward, np.nan)))

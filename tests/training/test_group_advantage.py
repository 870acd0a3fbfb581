"""Fines for length: by hand, by the reference, in the limit. Which groups are dead."""

import jax
import numpy as np
import pytest

from jerp.errors import ConfigError
from jerp.training.group_advantage import (
    live_groups,
    penalised_reward,
    step_advantage,
)
from jerp.training.group_settings import GroupConfig, GroupHyper, algorithm
from jerp.typing import Outcome
from tests.reference import losses as reference
from tests.training.episodes import random_trajectory

STEPS = 6
fined = jax.jit(penalised_reward)


@pytest.fixture(scope="module")
def data():
    return random_trajectory(steps=STEPS)


def with_words(data, seed=0):
    """Every step says up to four tokens, some of them forced."""
    rng = np.random.default_rng(seed)
    said = rng.random((*data.mask.shape, 4)) < 0.6
    return data.replace(
        tokens=said.astype(np.int32), token_mask=said, token_log_prob=0.0 * said
    )


def test_a_fine_by_hand(data):
    """Free up to 2 steps, then a quarter a step, at the last step of the episode."""
    fines = np.asarray(
        fined(data, GroupHyper(max_length=6, length_buffer=4))
        - np.where(data.mask, data.reward, 0)
    )
    length = data.mask.sum(axis=1)
    assert set(length) == {1, 2, 3, 4, 5, 6}
    literal = {1: 0.0, 2: 0.0, 3: -0.25, 4: -0.5, 5: -0.75, 6: -1.0}
    for row, steps in zip(fines, length, strict=True):
        expected = np.zeros(STEPS)
        expected[steps - 1] = literal[int(steps)]
        np.testing.assert_allclose(row, expected, atol=1e-6)


@pytest.mark.parametrize("words", [False, True])
def test_fines_equal_the_reference(data, words):
    """Lengths are generated tokens where there are some; padding is not counted."""
    data = with_words(data) if words else data
    limits = {"max_length": 14 if words else 5, "buffer": 9 if words else 3}
    hyper = GroupHyper(max_length=limits["max_length"], length_buffer=limits["buffer"])
    found = np.asarray(fined(data, hyper)).sum(axis=1)
    rows = range(len(data.mask))
    if words:
        length = [int(data.token_mask[b][data.mask[b]].sum()) for b in rows]
    else:
        length = [int(data.mask[b].sum()) for b in rows]
    fines = [reference.overlong_penalty(n, **limits) for n in length]
    expected = np.where(data.mask, data.reward, 0).sum(axis=1) + fines
    np.testing.assert_allclose(found, expected, atol=1e-5)
    assert 0 < np.mean(np.array(fines) < 0) < 1


def test_no_limit_is_no_fine_and_a_fine_of_all_moves_nobody(data):
    plain = np.where(data.mask, data.reward, 0)
    np.testing.assert_array_equal(fined(data, GroupHyper()), plain)
    # Every episode is beyond the limit: all returns fall by 1, and no mean differs.
    advantage = jax.jit(step_advantage, static_argnums=0)
    config = GroupConfig(4, scale="none")
    free = advantage(config, GroupHyper(), data, None)
    strict = GroupHyper(max_length=0.5, length_buffer=0.5)
    found = advantage(config, strict, data, None)
    np.testing.assert_allclose(found.value, free.value, atol=1e-5)
    fall = found.metrics["return_mean"] - free.metrics["return_mean"]
    np.testing.assert_allclose(fall, -1.0, atol=1e-5)
    some = advantage(config, GroupHyper(max_length=6, length_buffer=5), data, None)
    assert np.abs(np.asarray(some.value) - free.value).max() > 0.05


def test_live_groups_are_those_whose_returns_differ(data):
    """Group 0 has equal returns, nobody answered group 1; fines can tell apart."""
    first = np.arange(STEPS) == 0
    flat = np.where(data.group_id[:, None] == 0, first * 2.0, data.reward)
    lost = np.where(data.group_id == 1, Outcome.INFRASTRUCTURE, data.outcome)
    data = data.replace(reward=flat.astype(np.float32), outcome=lost.astype(np.int32))
    live = jax.jit(live_groups, static_argnums=0)
    assert live(GroupConfig(4), GroupHyper(), data).tolist() == [
        False,
        False,
        True,
        True,
    ]
    fines = GroupHyper(max_length=6, length_buffer=5)
    assert live(GroupConfig(4), fines, data).tolist() == [True, False, True, True]
    with pytest.raises(ConfigError, match="'return' compares no groups"):
        live_groups(GroupConfig(4, advantage="return"), GroupHyper(), data)


@pytest.mark.parametrize("name", ["gigpo", "one_anchor"])
def test_equal_returns_at_different_times_teach_steps(name):
    """Group 0 is paid at once or a step later, group 1 never; both return the same."""
    data = random_trajectory(batch=4, steps=2, num_tasks=2)
    data = data.replace(
        mask=np.ones((4, 2), bool),
        reward=np.array([[1, 0], [0, 0], [0, 1], [0, 0]], np.float32),
        anchor=np.array([[0, 1], [0, 1], [0, 2], [0, 2]], np.int32),
    )
    found = jax.jit(step_advantage, static_argnums=0)
    config = GroupConfig(
        2, advantage=name, scale="none", step_scale="none", drop_dead=True
    )
    hyper = GroupHyper(discount=0.5)
    steps = found(config, hyper, data, None)
    # What followed is 1 and 0 against 1/2 and 1. The last states were met once each;
    # the control compares them too, with a mean of 5/8.
    literal = {
        "gigpo": [[0.25, 0], [-0.25, 0]],
        "one_anchor": [[0.375, -0.625], [-0.125, 0.375]],
    }
    np.testing.assert_allclose(steps.value[::2], literal[name], atol=1e-6)
    np.testing.assert_array_equal(steps.value[1::2], 0)
    assert steps.dead.tolist() == [False, True]
    assert steps.kept.tolist() == [True, False, True, False]
    assert float(steps.metrics["dead_share"]) == 0.5
    # In the limit without the term of steps it is GRPO, to which both are dead.
    limit = found(config, hyper.replace(step_weight=0.0), data, None)
    assert limit.dead.tolist() == [True, True]


def test_dapo_has_the_limits_of_its_paper():
    _, hyper = algorithm("dapo", num_groups=4)
    assert (hyper.max_length, hyper.length_buffer) == (20480, 4096)
    _, hyper = algorithm("dapo", num_groups=4, max_length=50, length_buffer=10)
    assert (hyper.max_length, hyper.length_buffer) == (50, 10)

"""Simulated against logged episodes: a simulator foretells the log that it is of."""

import json

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jerp.envs.fitted_value import expected_episode
from jerp.envs.fitting import fit_simulator
from jerp.errors import InputError
from jerp.harness.actions import Action
from jerp.harness.baselines import uniform_policy
from jerp.runs.harness.arms import Arm
from jerp.runs.harness.episodes import EpisodeTable
from jerp.runs.harness.simulator import simulate_policy, simulator_match
from jerp.trajectory import Trajectory, select
from tests.envs.logs import drawn_log

STEPS = 12


def hasty(params, key, observation, legal):
    """Drafts, then takes the action `params`: a submit."""
    del key, observation
    return jnp.where(legal[Action.DRAFT], Action.DRAFT, params), jnp.float32(0.0)


HASTY = Arm("base", hasty, [jnp.int32(Action.SUBMIT)] * 2)
UNIFORM = Arm("random", uniform_policy(), [(), ()])


@pytest.fixture(scope="module")
def log():
    """A task of its own for every episode."""
    trajectory, difficulty = drawn_log(1000)
    return trajectory.replace(task_id=np.arange(1000, dtype=np.int32)), difficulty


def table(log: Trajectory) -> EpisodeTable:
    nothing = np.zeros(len(log.score))
    return EpisodeTable(
        task_id=log.task_id,
        version=np.zeros(len(log.score), int),
        valid=log.outcome != 4,
        outcome=log.outcome,
        score=log.score,
        hms=nothing,
        steps=log.mask.sum(1),
        calls=nothing,
        tokens=nothing,
        events={},
        traces=(),
    )


def summary(q, steps, *, half=0.05):
    return {
        name: {"point": value, "low": value - half, "high": value + half}
        for name, value in (("q", q), ("steps", steps))
    }


@pytest.fixture(scope="module")
def found(log):
    trajectory, difficulty = log
    random = table(trajectory)
    # What "base" really did: three steps more than its two, and a score of .9.
    base = table(select(trajectory, slice(0, 300)))
    base.steps[:] = 5
    return simulator_match(
        jax.random.key(0),
        trajectory,
        difficulty,
        [UNIFORM, HASTY],
        {"random": random, "base": base},
        {
            "random": summary(random.score.mean(), random.steps.mean(), half=0.1),
            "base": summary(0.9, 5.0),
        },
        max_steps=STEPS,
        episodes=2048,
    )


def test_the_behaviour_policy_is_foretold(found):
    arm = found["arms"]["random"]
    assert arm["q_inside"] is arm["steps_inside"] is True
    assert abs(arm["q_error"]) < 0.03
    # Two samples of one distribution over K counts are sqrt(K (1/n + 1/m)) / 2 apart
    # in the mean, or less.
    assert 0 < arm["steps_distance"] < np.sqrt(12 * (1 / 1000 + 1 / 2048)) / 2
    assert 0 < arm["unsupported"] < 0.02
    json.dumps(found)


def test_another_policy_has_its_exact_value(found, log):
    """Two steps a hasty episode, and its score by dynamic programming."""
    trajectory, difficulty = log
    tables = fit_simulator(trajectory, difficulty, max_steps=STEPS)
    legal = np.asarray(tables.legal[tables.state])
    prob = np.zeros((STEPS, *legal.shape), np.float32)
    chosen = np.where(legal[:, Action.DRAFT], int(Action.DRAFT), int(Action.SUBMIT))
    prob[:, np.arange(len(legal)), chosen] = 1
    exact = np.asarray(jax.jit(expected_episode)(tables, jnp.asarray(prob)).score)
    # The base arm really played the first 300 tasks, so theirs is the mix.
    expected = exact[np.resize(difficulty[:300], 2048)].mean()
    arm = found["arms"]["base"]
    assert arm["steps"] == 2.0
    np.testing.assert_allclose(arm["steps_error"], -3.0)
    assert arm["steps_distance"] == 1.0
    assert abs(arm["q"] - expected) < 3 * 0.5 / np.sqrt(2 * 2048)
    assert arm["q_inside"] is arm["steps_inside"] is False
    assert arm["halted"] == arm["unsupported"] == 0.0


def test_the_summary_over_arms(found):
    arms = found["arms"]
    errors = [arm["q_error"] for arm in arms.values()]
    np.testing.assert_allclose(arms["base"]["q_error"], arms["base"]["q"] - 0.9)
    np.testing.assert_allclose(found["mean_q_error"], np.abs(errors).mean())
    gain = arms["random"]["q_error"] - arms["base"]["q_error"]
    np.testing.assert_allclose(arms["random"]["gain_error"], gain)
    np.testing.assert_allclose(found["mean_gain_error"], abs(gain))
    assert arms["base"]["gain_error"] == 0
    simulated = arms["random"]["q"] - arms["base"]["q"]
    assert found["q_rank_correlation"] == np.sign(-simulated)
    assert found["episodes"] == 2048


def test_one_key_gives_one_answer(log):
    trajectory, difficulty = log
    tables = fit_simulator(trajectory, difficulty, max_steps=STEPS)
    one, two, other, short = (
        simulate_policy(
            jax.random.key(seed),
            tables,
            UNIFORM.policy_fn,
            (),
            np.resize(difficulty, 2048),
            max_steps=max_steps,
        )
        for seed, max_steps in ((1, STEPS), (1, STEPS), (2, STEPS), (1, 2))
    )
    np.testing.assert_array_equal(one.score, two.score)
    assert (one.steps != other.steps).any()
    np.testing.assert_array_equal(short.steps, 2)
    assert one.steps.max() > 5


def test_arms_and_difficulties_without_data_are_refused(log):
    trajectory, difficulty = log
    tables = {"base": table(trajectory)}
    with pytest.raises(InputError, match=r"expected \['random'\] in all three"):
        simulator_match(
            jax.random.key(0), trajectory, difficulty, [HASTY, UNIFORM], tables, tables
        )
    with pytest.raises(InputError, match=r"expected \['best'\] in all three"):
        simulator_match(
            jax.random.key(0),
            trajectory,
            difficulty,
            [HASTY],
            tables,
            tables,
            base="best",
        )
    easy = select(trajectory, difficulty < 2)
    with pytest.raises(InputError, match=r"got none of \[2\]. Stratify"):
        simulator_match(
            jax.random.key(0),
            easy,
            difficulty,
            [HASTY],
            tables,
            {"base": summary(0.9, 5.0)},
            max_steps=STEPS,
        )

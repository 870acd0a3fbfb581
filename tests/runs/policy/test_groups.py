"""Groups of an iteration: dead ones are replaced, in the program and from the host."""

from dataclasses import replace
from functools import partial

import jax
import numpy as np
import pytest

from jerp.bridge.world_episodes import play_worlds
from jerp.envs.probes import PROBES, probe_params
from jerp.errors import ConfigError
from jerp.models.step_policy import step_policy
from jerp.runs.policy.groups import PolicyTask, play_batch, play_groups
from jerp.runs.policy.training import train_policy
from jerp.storage.metrics import read_metrics
from jerp.training.group_settings import GroupConfig, GroupHyper, algorithm
from tests.training.cue_world import STEPS, CueTable, CueWorld

POLICY = CueTable()
TASK = PolicyTask(CueWorld(STEPS), POLICY, GroupConfig(4), 4, STEPS, max_rounds=8)
TASKS = probe_params(*["constant"] * 6, *["action"] * 2)
"""Groups of the first are dead always, of the second one in eight."""
HYPER = GroupHyper(learning_rate=0.1)


@pytest.fixture(scope="module")
def params():
    return jax.jit(POLICY.init)(jax.random.key(0))


@partial(jax.jit, static_argnums=1)
def played(key, task, params):
    return play_batch(key, task, HYPER, TASKS, params)


def kinds(data):
    """Names of the probes `[M, G]`, and returns."""
    names = np.array(PROBES)[np.asarray(TASKS.kind)[np.asarray(data.task_id)]]
    return names.reshape(4, 4), np.asarray(data.reward.sum(axis=1)).reshape(4, 4)


def test_a_batch_is_of_groups_whose_returns_differ(params):
    data, metrics = played(jax.random.key(1), TASK, params)
    names, returns = kinds(data)
    assert (names == "action").all() and (names == names[:1]).all()
    assert (np.ptp(returns, axis=0) == 1).all()
    assert metrics["rounds"] > 1 and metrics["dead_share_played"] >= 0.5
    np.testing.assert_array_equal(data.group_id, np.arange(16) % 4)


def test_live_groups_of_the_first_round_stay(params):
    """And the first round alone is what is played without replacement, to the bit."""
    first = jax.jit(play_groups, static_argnums=1)(
        jax.random.key(1), TASK, TASKS, params
    )
    data, metrics = played(jax.random.key(1), replace(TASK, max_rounds=1), params)
    assert metrics == {}
    for x, y in zip(jax.tree.leaves(first), jax.tree.leaves(data), strict=True):
        np.testing.assert_array_equal(x, y)
    live = np.ptp(kinds(first)[1], axis=0) > 0
    assert 0 < live.sum() < 4
    filled, _ = played(jax.random.key(1), TASK, params)
    rows = live[np.asarray(first.group_id)]
    for x, y in zip(jax.tree.leaves(first), jax.tree.leaves(filled), strict=True):
        np.testing.assert_array_equal(np.asarray(x)[rows], np.asarray(y)[rows])


def test_from_the_host_the_batch_is_the_same(params):
    data, metrics = played(jax.random.key(1), TASK, params)
    other, shown = play_batch(
        jax.random.key(1), TASK, HYPER, TASKS, params, play=play_worlds
    )
    np.testing.assert_array_equal(other.task_id, data.task_id)
    np.testing.assert_array_equal(other.action, data.action)
    assert {k: float(v) for k, v in shown.items()} == {
        k: float(v) for k, v in metrics.items()
    }


def test_a_run_logs_its_rounds_and_learns_in_few(tmp_path, params):
    config, hyper = algorithm("dapo", num_groups=4, learning_rate=0.1)
    task = replace(TASK, config=config)
    train_policy(
        tmp_path, jax.random.key(3), task, hyper, TASKS, params, iterations=4, chunk=4
    )
    rows = read_metrics(tmp_path / "metrics.jsonl")
    assert all(1 < row["rounds"] <= 8 for row in rows)
    assert all(row["dead_share_played"] > 0 for row in rows)
    assert [row["dead_share"] for row in rows] == [0] * 4


def test_rounds_that_cannot_be_meant():
    with pytest.raises(ConfigError, match="max_rounds: expected 1, or more"):
        replace(TASK, max_rounds=0)
    config = GroupConfig(4, advantage="return")
    with pytest.raises(ConfigError, match="got 8 for 'return'"):
        replace(TASK, config=config)


@pytest.mark.parametrize(
    ("name", "fields", "actions"),
    [("field_sizes", (2, STEPS), 2), ("num_actions", (2, STEPS + 1), 3)],
)
def test_a_policy_of_other_sizes_than_the_worlds_is_refused(name, fields, actions):
    """Where a field is too small, the next one's embedding would be read."""
    policy = step_policy(fields, actions, num_steps=STEPS, hidden_size=8)
    with pytest.raises(ConfigError, match=f"policy.{name}: expected the world's"):
        replace(TASK, policy=policy)

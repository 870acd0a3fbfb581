"""Splits, plans and keys: a function of what they name, and of nothing else."""

import jax
import numpy as np
import pytest

from jerp.records import Task
from jerp.runs.harness.collection import (
    HarnessSizes,
    episode_keys,
    evaluation_plan,
    split_tasks,
    training_plan,
)

TASKS = tuple(
    Task(key=f"made/0/{i:04d}", domain="made", difficulty=i % 3, prompt="")
    for i in range(90)
)


def test_split_is_stratified_disjoint_and_complete():
    train, test = split_tasks(TASKS, num_tasks=90, held_out=0.2)
    assert not set(train) & set(test)
    assert sorted([*train, *test]) == list(range(90))
    for difficulty in range(3):
        assert sum(TASKS[i].difficulty == difficulty for i in test) == 6


def test_smaller_split_takes_a_subset_of_the_tasks():
    small = np.concatenate(split_tasks(TASKS, num_tasks=30, held_out=0.2))
    assert len(small) == 30
    assert {TASKS[i].difficulty for i in small} == {0, 1, 2}


def test_split_ignores_the_order_of_the_tasks():
    train, _ = split_tasks(TASKS, num_tasks=90, held_out=0.2)
    backwards, _ = split_tasks(TASKS[::-1], num_tasks=90, held_out=0.2)
    assert {TASKS[i].key for i in train} == {TASKS[::-1][i].key for i in backwards}


def test_rollout_asks_with_sample_index_modulo_samples():
    plan = training_plan(TASKS, np.int32([4, 7]), HarnessSizes(rollouts=5, samples=2))
    assert plan.task_id.tolist() == [4] * 5 + [7] * 5
    assert plan.sample_index.tolist() == [0, 1, 0, 1, 0] * 2
    assert [t.key for t in plan.tasks] == [TASKS[4].key] * 5 + [TASKS[7].key] * 5


def test_evaluation_uses_each_sample_once():
    plan = evaluation_plan(TASKS, np.int32([3]), HarnessSizes(samples=3))
    assert plan.sample_index.tolist() == [0, 1, 2]


def test_shards_cover_the_plan_once():
    plan = training_plan(TASKS, np.arange(10, dtype=np.int32), HarnessSizes(rollouts=3))
    rows = np.concatenate([rows for _, rows in plan.rows(7)])
    assert rows.tolist() == list(range(30))


@pytest.mark.parametrize("changed", ["seed", "role", "task", "rollout"])
def test_key_depends_on_every_part_of_an_episode(changed):
    parts = {"seed": 0, "role": "a", "task": 1, "rollout": 2}
    other = parts | {changed: "b" if changed == "role" else 9}

    def draw(p):
        keys = episode_keys(
            p["seed"], p["role"], np.int32([p["task"]]), np.int32([p["rollout"]])
        )
        return jax.random.key_data(keys).tolist()

    assert draw(parts) == draw(dict(parts))
    assert draw(parts) != draw(other)


def test_key_does_not_depend_on_its_batch():
    alone = episode_keys(0, "a", np.int32([5]), np.int32([1]))
    among = episode_keys(0, "a", np.int32([2, 5, 9]), np.int32([0, 1, 2]))
    assert np.array_equal(jax.random.key_data(alone)[0], jax.random.key_data(among)[1])

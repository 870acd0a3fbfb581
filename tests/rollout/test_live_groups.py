"""Dead groups are replaced by live ones, of rounds whose groups are known."""

from functools import cache, partial

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jerp.errors import InputError
from jerp.rollout.live_groups import (
    fill_dead_groups,
    play_live_groups,
    play_live_groups_from_host,
)
from jerp.training.group_advantage import live_groups
from jerp.training.group_settings import GroupConfig, GroupHyper
from tests.envs.smoke import random_legal
from tests.training.cue_world import play
from tests.training.episodes import random_trajectory

GROUPS, MEMBERS = 4, 3
CONFIG = GroupConfig(GROUPS)
is_live = partial(live_groups, CONFIG, GroupHyper())


@cache
def episodes():
    """Returns of 1, 2, 3 within each group, apart but for their size."""
    data = random_trajectory(batch=GROUPS * MEMBERS, steps=2, num_tasks=GROUPS)
    member = np.arange(GROUPS * MEMBERS) // GROUPS
    reward = np.zeros(data.mask.shape, np.float32)
    reward[:, 0] = 1 + member
    return data.replace(reward=reward)


def dead_with(share):
    """A way to play in which a group is dead with this probability, by its key."""

    def played(key):
        tasks, deaths = jax.random.split(key)
        dead = jax.random.bernoulli(deaths, share, (GROUPS,))
        data = jax.tree.map(jnp.asarray, episodes())
        # Fresh tasks: the number says which round and group an episode is of.
        task = jax.random.randint(tasks, (GROUPS,), 0, 2**30)[data.group_id]
        flat = jnp.where(dead[data.group_id][:, None], 0.0, data.reward)
        return data.replace(reward=flat, task_id=task)

    return played


@partial(jax.jit, static_argnames=("share", "max_rounds"))
def filled(key, share, max_rounds):
    return play_live_groups(key, dead_with(share), is_live, max_rounds=max_rounds)


def by_group(data):
    """Tasks and returns `[M, G]`."""
    total = np.where(data.mask, data.reward, 0).sum(axis=1)
    return (np.asarray(x).reshape(MEMBERS, GROUPS) for x in (data.task_id, total))


def test_filling_by_hand():
    """Slots 0 and 3 are dead; of the fresh groups 1 and 2 live."""
    old = episodes().replace(task_id=10 + episodes().group_id)
    new = episodes().replace(
        task_id=20 + episodes().group_id, reward=100 + episodes().reward
    )
    live, fresh = np.array([0, 1, 1, 0], bool), np.array([0, 1, 1, 0], bool)
    data, after = fill_dead_groups(old, live, new, fresh)
    tasks, returns = by_group(data)
    np.testing.assert_array_equal(tasks, [[21, 11, 12, 22]] * MEMBERS)
    assert (returns[:, [0, 3]] > 100).all() and (returns[:, 1:3] < 10).all()
    np.testing.assert_array_equal(data.group_id, old.group_id)
    assert after.all()
    # One live group for two dead slots: the first slot gets it.
    data, after = fill_dead_groups(old, live, new, np.array([0, 0, 0, 1], bool))
    tasks, _ = by_group(data)
    np.testing.assert_array_equal(tasks[0], [23, 11, 12, 13])
    np.testing.assert_array_equal(after, [True, True, True, False])


@pytest.mark.parametrize("seed", range(4))
def test_rounds_equal_a_loop_over_lists(seed):
    """Round after round in Python, each with the key folded from the one before."""
    key, play_one = jax.random.key(seed), jax.jit(dead_with(0.7))
    rounds = []
    for _ in range(12):
        tasks, returns = by_group(play_one(key))
        rounds.append(
            [(t, len(set(r)) > 1) for t, r in zip(tasks[0], returns.T, strict=True)]
        )
        key = jax.random.fold_in(key, 2**31 - 1)
    slots, number = rounds[0], 1
    while not all(live for _, live in slots) and number < 12:
        spare = [group for group in rounds[number] if group[1]]
        slots = [s if s[1] or not spare else spare.pop(0) for s in slots]
        number += 1
    found = filled(jax.random.key(seed), 0.7, 12)
    tasks, returns = by_group(found.data)
    assert tasks[0].tolist() == [task for task, _ in slots]
    assert (tasks == tasks[:1]).all()
    assert found.live.tolist() == [live for _, live in slots]
    assert int(found.rounds) == number > 1
    assert float(found.dead_share) == np.mean([not live for _, live in rounds[0]])
    np.testing.assert_array_equal(found.data.group_id, episodes().group_id)


def test_from_the_host_the_batch_is_the_same():
    calls, play_one = [], jax.jit(dead_with(0.7))

    def play(key):
        calls.append(key)
        return jax.device_get(play_one(key))

    found = play_live_groups_from_host(
        jax.random.key(1), play, jax.jit(is_live), max_rounds=12
    )
    chex.assert_trees_all_equal(found, filled(jax.random.key(1), 0.7, 12))
    assert len(calls) == int(found.rounds) > 1


def test_the_limit_leaves_what_is_dead():
    found = filled(jax.random.key(0), 1.0, 3)
    assert int(found.rounds) == 3 and not found.live.any()
    assert float(found.dead_share) == 1
    first = jax.jit(dead_with(1.0))(jax.random.key(0))
    chex.assert_trees_all_equal(found.data, first)
    with pytest.raises(InputError, match="max_rounds: expected a whole number >= 1"):
        filled(jax.random.key(0), 1.0, 0)


def test_where_all_live_a_round_is_what_is_played_without():
    """To the bit, in a world; a second call traces nothing anew."""
    play_randomly = partial(play, params=(), policy=random_legal)

    @jax.jit
    @chex.assert_max_traces(n=1)
    def filled(key):
        return play_live_groups(
            key, play_randomly, lambda data: jnp.ones(GROUPS, bool), max_rounds=5
        )

    for seed in (1, 2):
        found = filled(jax.random.key(seed))
        chex.assert_trees_all_equal(found.data, play_randomly(jax.random.key(seed)))
        assert int(found.rounds) == 1 and found.live.all()
        assert float(found.dead_share) == 0


def test_the_same_key_gives_the_same_batch_and_seeds_share_a_program():
    one = filled(jax.random.key(7), 0.7, 12)
    chex.assert_trees_all_equal(one, filled(jax.random.key(7), 0.7, 12))
    keys = jax.vmap(jax.random.key)(jnp.array([7, 8]))
    many = jax.jit(
        jax.vmap(
            lambda key: play_live_groups(key, dead_with(0.7), is_live, max_rounds=12)
        )
    )(keys)
    chex.assert_trees_all_equal(jax.tree.map(lambda x: x[0], many), one)
    assert (many.data.task_id[0] != many.data.task_id[1]).all()

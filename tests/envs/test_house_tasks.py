"""Tasks of the household: they can be done, by the oracle and from what is seen."""

import dataclasses
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

from jerp.envs.checks import check_environment
from jerp.envs.house_tasks import house_tasks
from jerp.envs.house_things import PLACES, HouseTask
from jerp.errors import UnknownNameError
from jerp.typing import Outcome
from tests.envs.homes import SMALL, SPLITS, WORLDS, all_tasks, tasks


@partial(jax.jit, static_argnames=("env", "num_steps"))
def by_oracle(env, key, params, num_random, num_steps):
    """When the oracle was done, after some random steps, and if all was allowed."""

    def one(key, num_random, params):
        def body(carry, t):
            (state, now), key = carry, jax.random.fold_in(keys, t)
            noise = jax.random.uniform(key, (env.num_actions,))
            action = env.oracle(state, params)
            allowed = now.legal[action] | now.terminated
            action = jnp.where(t < num_random, jnp.argmax(now.legal + noise), action)
            after = env.step(key, state, action.astype(jnp.int32), params)
            return after, (now.terminated, allowed)

        keys, start = key, env.reset(key, params)
        (_, last), record = lax.scan(body, start, jnp.arange(num_steps))
        return last.outcome, *record

    return jax.vmap(one, (None, 0, 0))(key, num_random, params)


@WORLDS
def test_the_oracle_solves_every_task_of_every_split(env):
    """300 a split, in the horizon, from the start and after five random steps."""
    params = all_tasks(env, 300)
    params = jax.tree.map(lambda x: np.concatenate([x, x]), params)
    num_random = np.repeat([0, 5], 900)
    longer = dataclasses.replace(env, horizon=env.horizon + 5)
    outcome, done, allowed = by_oracle(
        longer, jax.random.key(1), params, num_random, env.horizon + 5
    )
    assert (outcome == Outcome.SUCCESS).all()
    assert allowed.all()
    length = (~done).sum(1) - num_random
    assert length.max() <= env.horizon // 2


@WORLDS
def test_tasks_can_be_done_and_splits_share_none(env):
    goals, layouts, rows = {}, {}, {}
    for split in SPLITS:
        t = tasks(env, split)
        assert set(t.task) == set(HouseTask)
        goals[split] = set(zip(t.task, t.goal_kind, t.goal_place, strict=True))
        layouts[split] = set(t.present.tolist())
        leaves = [x.reshape(600, -1) for x in jax.tree.leaves(t)]
        rows[split] = set(map(bytes, np.concatenate(leaves, axis=1)))
        assert ((t.goal_bits & t.present) == t.goal_bits).all() and t.goal_bits.all()
        assert (t.present[:, None] >> t.place & 1).all()
        wanted = t.kind == t.goal_kind[:, None]
        np.testing.assert_array_equal(wanted.sum(1), 1 + (t.task == HouseTask.PICK_TWO))
        at_goal = wanted & (t.goal_bits[:, None] >> t.place & 1).astype(bool)
        assert not at_goal[t.task != HouseTask.LOOK].any()
        for row in range(len(env.size.places)):
            allowed = PLACES[env.size.places[row]].rooms
            assert np.isin(t.room[:, row], allowed).all()
    assert not goals["train"] & goals["seen"]
    assert not layouts["unseen"] & (layouts["train"] | layouts["seen"])
    assert not rows["train"] & (rows["seen"] | rows["unseen"])
    assert not rows["seen"] & rows["unseen"]


def test_an_unknown_split_is_refused():
    with pytest.raises(UnknownNameError, match="did you mean 'unseen'"):
        house_tasks(jax.random.key(0), 3, size=SMALL.size, split="unsen")


@WORLDS
def test_the_household_keeps_the_contract_of_a_world(env):
    env, params = dataclasses.replace(env, observation="tokens"), all_tasks(env, 8)
    check_environment(env, params, jax.random.key(0), num_steps=env.horizon + 2)


class Seeker:
    """Solves a task from what the fields show and it remembers; knows the presets."""

    def __init__(self, fields, legal):
        self.task, self.goal, goal_place = (int(x) - 1 for x in fields[:3])
        self.places = np.flatnonzero(legal[: len(SMALL.size.places)]).tolist()
        self.target = next(p for p in self.places if SMALL.size.places[p] == goal_place)
        self.number = {}

    def act(self, fields):
        appliances = {HouseTask.CLEAN: 2, HouseTask.HEAT: 1, HouseTask.COOL: 0}
        at, hand, treated, barrier = int(fields[3]) - 1, *fields[5:8].tolist()
        first_verb = len(SMALL.size.places) + SMALL.size.num_kinds
        if at >= 0 and barrier != 1:
            self.number[at] = fields[8 + self.goal]
        wanted = {p for p, n in self.number.items() if n}
        if self.task != HouseTask.LOOK:
            wanted.discard(self.target)
        if hand:
            raw = self.task in appliances and treated == 1
            goal = appliances[self.task] if raw else self.target
            verb = first_verb + 3 * (raw or self.task == HouseTask.LOOK)
        else:
            unknown = [p for p in self.places if p not in self.number]
            goal = at if at in {*wanted, *unknown} else [*wanted, *unknown][0]
            verb = len(SMALL.size.places) + self.goal
        if at != goal:
            return goal
        return first_verb + 1 if barrier == 1 else verb


def test_fields_and_a_memory_are_enough():
    """Who knows the rules and remembers what was seen solves every task in time."""
    params = all_tasks(SMALL, 60)
    reset, step = (
        jax.vmap(f, (None, *axes))
        for f, axes in ((SMALL.reset, (0,)), (SMALL.step, (0, 0, 0)))
    )
    key, step = jax.random.key(0), jax.jit(step)
    state, now = jax.jit(reset)(key, params)
    seekers = [Seeker(f, m) for f, m in zip(now.observation, now.legal, strict=True)]
    for _ in range(SMALL.horizon):
        done, fields = np.asarray(now.terminated), np.asarray(now.observation)
        actions = [
            0 if d else seeker.act(f)
            for seeker, f, d in zip(seekers, fields, done, strict=True)
        ]
        allowed = now.legal[np.arange(len(actions)), np.array(actions)]
        assert (allowed | done).all()
        state, now = step(key, state, jnp.array(actions, jnp.int32), params)
    assert now.terminated.all()

"""Rollouts keep the trajectory contract, whatever shares their batch."""

from functools import partial

import chex
import jax
import numpy as np
import pytest

from jerp.bridge.world_episodes import play_worlds
from jerp.envs.harness_sim import HarnessSim, simulated_tasks
from jerp.errors import InputError
from jerp.harness.baselines import uniform_policy
from jerp.rollout.scan import rollout
from jerp.typing import Outcome

ENV, TASKS, POLICY = HarnessSim(), simulated_tasks(3), uniform_policy()


@partial(jax.jit, static_argnames=("batch_size", "num_steps"))
@chex.assert_max_traces(n=2)
def batch(key, batch_size, num_steps):
    """Two shapes are used below, with several keys: two traces."""
    return rollout(
        key, ENV, TASKS, POLICY, (), num_steps=num_steps, batch_size=batch_size
    )


def play(batch_size, num_steps, seed=0):
    return jax.tree.map(np.asarray, batch(jax.random.key(seed), batch_size, num_steps))


@pytest.fixture(scope="module")
def full():
    return play(9, 10)


def test_ids(full):
    np.testing.assert_array_equal(full.task_id, [0, 1, 2] * 3)
    np.testing.assert_array_equal(full.group_id, full.task_id)
    np.testing.assert_array_equal(full.seed, np.repeat([0, 1, 2], 3))


def test_the_documented_loop_gives_the_same_episode(full):
    """Step by step on the host, with the keys that the docstring promises."""
    index = 4
    policy_key, env_key = (
        jax.random.fold_in(half, index) for half in jax.random.split(jax.random.key(0))
    )
    task = jax.tree.map(lambda x: x[index % 3], TASKS)
    step, policy = jax.jit(ENV.step), jax.jit(POLICY)
    state, now = ENV.reset(jax.random.fold_in(env_key, 0), task)
    for t in range(10):
        if now.terminated | now.truncated:
            assert not full.mask[index, t:].any()
            break
        np.testing.assert_allclose(full.observation[index, t], now.observation)
        np.testing.assert_array_equal(full.legal[index, t], now.legal)
        action, log_prob = policy(
            (), jax.random.fold_in(policy_key, t), now.observation, now.legal
        )
        assert full.action[index, t] == action
        np.testing.assert_allclose(full.log_prob[index, t], log_prob, rtol=1e-6)
        assert full.anchor[index, t] == now.anchor
        state, now = step(jax.random.fold_in(env_key, t + 1), state, action, task)
        np.testing.assert_allclose(full.reward[index, t], now.reward, rtol=1e-6)
        np.testing.assert_array_equal(full.usage[index, t], now.usage)
    np.testing.assert_allclose(full.final_observation[index], now.observation)
    np.testing.assert_allclose(full.score[index], now.score, rtol=1e-6)
    assert full.outcome[index] == now.outcome


def test_padding_is_zero(full):
    assert not full.mask.all()
    for name in ("observation", "action", "reward", "anchor", "usage", "log_prob"):
        assert not getattr(full, name)[~full.mask].any(), name


def test_an_episode_depends_on_neither_its_batch_nor_the_steps_after_it(full):
    """In a smaller batch it is the same; not over by the last step, it is truncated."""
    short = play(6, 4)
    np.testing.assert_array_equal(short.action, full.action[:6, :4])
    np.testing.assert_array_equal(short.observation, full.observation[:6, :4])
    over = full.mask.sum(1)[:6] <= 4
    assert 0 < over.sum() < 6
    np.testing.assert_array_equal(short.truncated[:, -1], ~over)
    np.testing.assert_array_equal(short.outcome[~over], Outcome.TRUNCATED)
    np.testing.assert_array_equal(short.outcome[over], full.outcome[:6][over])
    np.testing.assert_array_equal(short.score, np.where(over, full.score[:6], 0))


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"num_steps": 0}, "num_steps: expected a whole number >= 1.*got 0"),
        ({"batch_size": 0}, "batch_size: expected a whole number >= 1.*got 0"),
        ({"env_params": jax.tree.map(lambda x: x[:0], TASKS)}, "env_params: .* of N"),
        (
            {"env_params": ()},
            r"env_params: expected leaves \[N, ...\].*got shapes \[\]",
        ),
    ],
)
@pytest.mark.parametrize("play", [rollout, play_worlds])
def test_nothing_to_play_is_refused(play, settings, message):
    """In one compiled program, and from the host."""
    sizes = {"num_steps": 2, "batch_size": 3, "env_params": TASKS}
    with pytest.raises(InputError, match=message):
        play(jax.random.key(0), ENV, policy=POLICY, params=(), **(sizes | settings))


def test_keys_matter(full):
    assert not np.array_equal(play(9, 10, seed=1).action, full.action)


class _InWords(HarnessSim):
    """The same anchors, as two words each."""

    def reset(self, key, params):
        return self._split(*super().reset(key, params))

    def step(self, key, state, action, params):
        return self._split(*super().step(key, state, action, params))

    def _split(self, state, now):
        words = jax.numpy.stack([now.anchor // 7, now.anchor % 7])
        return state, now.replace(anchor=words)


def test_anchors_in_words_are_numbered_so_that_equal_ones_stay_equal():
    settings = {"num_steps": 4, "batch_size": 9}
    one, words = (
        rollout(jax.random.key(0), env, TASKS, POLICY, (), **settings)
        for env in (ENV, _InWords())
    )
    pairs = {
        (int(a), int(b))
        for a, b in zip(one.anchor[one.mask], words.anchor[one.mask], strict=True)
    }
    assert len(pairs) == len({a for a, _ in pairs}) == len({b for _, b in pairs}) > 3
    assert not words.anchor[~one.mask].any()

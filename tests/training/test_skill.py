"""The skill optimizer's steps: by hand, against plain gradients, and they learn."""

from dataclasses import replace

import chex
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from jerp.errors import ConfigError, ShapeError
from jerp.models.decoder import DecoderConfig
from jerp.models.draft_policy import DraftPolicy
from jerp.skills.reward import SkillReward, skill_reward
from jerp.training.skill import draft_episodes, make_skill_step, skill_algorithm
from jerp.trajectory import check_trajectory
from jerp.typing import Outcome

PROMPT, LENGTH, STATES, DRAFTS = 3, 4, 2, 4
DECODER = DecoderConfig(7, 8, 16, 1, 2, 2, 4, context_length=PROMPT + LENGTH)
POLICY = DraftPolicy(DECODER, PROMPT, LENGTH, stop_tokens=(1,))
PROMPTS = jnp.array([[2, 3, 0], [4, 5, 6]], jnp.int32)
CONFIG, HYPER = skill_algorithm(STATES, learning_rate=0.01)
STEP = make_skill_step(CONFIG, POLICY, num_drafts=DRAFTS)


# Traced once for all tests: they differ in numbers alone.
@jax.jit
@chex.assert_max_traces(n=1)
def draft(*arguments):
    return STEP.draft(*arguments)


@jax.jit
@chex.assert_max_traces(n=1)
def learn(*arguments):
    return STEP.learn(*arguments)


WON, LOST, NOBODY = Outcome.SUCCESS, Outcome.FAILURE, Outcome.INFRASTRUCTURE
RUNS = jnp.array(
    [
        *([WON, WON], [LOST, WON], [LOST, LOST], [WON, NOBODY]),
        *([NOBODY, NOBODY], [WON, WON], [LOST, LOST], [WON, LOST]),
    ],
    jnp.int32,
)
PARSED = jnp.array([1, 1, 1, 1, 1, 0, 1, 1], bool)


@pytest.fixture(scope="module")
def begun():
    state = STEP.init(jax.random.key(1), HYPER, POLICY.init(jax.random.key(0)))
    drafts = draft(state.params, jax.random.key(2), PROMPTS)
    return state, jax.tree.map(np.asarray, drafts)


@pytest.fixture(scope="module")
def episodes(begun):
    reward = skill_reward(PARSED, RUNS, jnp.full(8, 9))
    found = draft_episodes(PROMPTS, begun[1], RUNS, reward)
    return jax.tree.map(np.asarray, found)


def test_episodes_by_hand(episodes, begun):
    check_trajectory(episodes)
    assert episodes.task_id.tolist() == episodes.group_id.tolist() == [0, 1] * 4
    assert episodes.seed.tolist() == [0, 0, 1, 1, 2, 2, 3, 3]
    third = np.float32(1 / 3)
    expected = [1.0, 2.5 * third, 2 * third, 1.0, 0.0, third, 2 * third, 2.5 * third]
    np.testing.assert_allclose(episodes.reward[:, 0], expected, rtol=1e-6)
    assert episodes.score.tolist() == [1.0, 0.5, 0.0, 1.0, 0.0, 0.0, 0.0, 0.5]
    assert episodes.outcome.tolist() == [1, 0, 0, 1, 4, 3, 0, 0]
    np.testing.assert_array_equal(episodes.observation[:, 0], np.tile(PROMPTS, (4, 1)))
    np.testing.assert_array_equal(episodes.tokens[:, 0], begun[1].tokens)


def test_an_update_is_that_of_a_plain_loss(episodes, begun):
    """One pass: every ratio is 1, and the gradient that of weighted log-probability.

    L = - sum_k A_k mean_t log pi(s'_kt) / N over valid drafts, with A_k the reward less
    the mean of the state's valid drafts.
    """
    state, _ = begun
    reward, valid = episodes.reward[:, 0], episodes.outcome != NOBODY
    advantage = np.zeros(8)
    for group in range(STATES):
        rows = (episodes.group_id == group) & valid
        advantage[rows] = reward[rows] - reward[rows].mean()
    mask = episodes.token_mask[:, 0]

    def loss(params):
        log_prob = POLICY.evaluate(params, episodes).log_prob[:, 0]
        by_draft = jnp.sum(log_prob * mask, axis=1) / mask.sum(axis=1)
        return -jnp.sum(by_draft * advantage) / valid.sum()

    gradient = jax.jit(jax.grad(loss))(state.params)
    optimizer = optax.chain(optax.clip_by_global_norm(1.0), optax.adam(0.01))
    change, _ = optimizer.update(gradient, optimizer.init(state.params), state.params)
    found, metrics = learn(state, HYPER, episodes)
    for new, old, step in zip(
        *(jax.tree.leaves(x) for x in (found.params, state.params, change)), strict=True
    ):
        # Adam's first step is the sign of a gradient, whatever the size of it.
        sure = np.abs(np.asarray(step)) > 0.0099
        np.testing.assert_allclose(
            np.asarray(new)[sure], (np.asarray(old) + step)[sure], atol=2e-4
        )
        assert sure.mean() > 0.5 or not np.asarray(step).any()
    np.testing.assert_allclose(
        metrics["grad_norm"], optax.tree.norm(gradient), rtol=1e-3
    )
    assert metrics["sampler_gap"] < 1e-5


def test_a_skill_that_nobody_ran_teaches_nothing(episodes, begun):
    """Whatever was drafted and whatever stands for its reward."""
    state, _ = begun
    lost = episodes.outcome == NOBODY
    tokens = np.where(lost[:, None, None], 5, episodes.tokens)
    reward = np.where(lost[:, None], np.nan, episodes.reward)
    other = episodes.replace(tokens=tokens, reward=reward)
    clean, poisoned = (learn(state, HYPER, x)[0].params for x in (episodes, other))
    jax.tree.map(np.testing.assert_array_equal, clean, poisoned)


def test_drafts_that_earn_alike_change_nothing(episodes, begun):
    state, _ = begun
    alike = episodes.replace(reward=np.full_like(episodes.reward, 0.5))
    found, metrics = learn(state, HYPER, alike)
    assert metrics["dead_share"] == 1.0
    for new, old in zip(
        *(jax.tree.leaves(x) for x in (found.params, state.params)), strict=True
    ):
        np.testing.assert_array_equal(new, old)


def test_it_learns_which_word_pays(begun):
    """And of each state another: the prompt is read."""
    state, _ = begun
    wanted = np.tile([3, 6], DRAFTS)

    def paid(drafts):
        return np.asarray(drafts.tokens[:, 0]) == wanted

    before, after = [], []
    for update in range(90):
        drafts = draft(state.params, jax.random.key(10 + update), PROMPTS)
        right = paid(drafts).astype(np.float32)
        reward = SkillReward(*(jnp.asarray(right),) * 4, valid=jnp.ones(8, bool))
        outcome = jnp.asarray(right, jnp.int32)[:, None]
        found = draft_episodes(PROMPTS, drafts, outcome, reward)
        state, _ = learn(state, HYPER, found)
        (before if update < 10 else after if update >= 80 else []).append(right.mean())
    assert np.mean(before) < 0.5 and np.mean(after) > 0.9


def test_rows_are_drawn_by_their_own_keys(begun):
    state, drafts = begun
    again = draft(state.params, jax.random.key(2), PROMPTS)
    np.testing.assert_array_equal(again.tokens, drafts.tokens)
    assert len({tuple(row) for row in drafts.tokens[::2].tolist()}) > 1


def test_numbers_are_traced(episodes, begun):
    """Another learning rate and other prompts are no other program."""
    state, _ = begun
    still, _ = learn(state, replace(HYPER, learning_rate=0.0), episodes)
    jax.tree.map(np.testing.assert_array_equal, still.params, state.params)
    assert draft(state.params, jax.random.key(5), PROMPTS[::-1]).tokens.shape == (8, 4)


def test_settings_of_the_paper():
    config, hyper = skill_algorithm(6, ratio="token", standardize=True)
    assert (config.ratio, config.scale, config.num_groups) == ("token", "std", 6)
    assert hyper.kl_weight == 0.0


def test_bad_input(begun):
    with pytest.raises(ConfigError, match="num_drafts: expected at least 2"):
        make_skill_step(CONFIG, POLICY, num_drafts=1)
    reward = skill_reward(PARSED, RUNS, jnp.full(8, 9))
    with pytest.raises(ShapeError, match="outcome"):
        draft_episodes(PROMPTS, begun[1], RUNS[:4], reward)

"""A policy that chooses by score: acting equals evaluating, by hand and by a loop."""

from dataclasses import replace
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jerp.envs.probes import Probe, probe_params
from jerp.envs.with_actions import WithActions
from jerp.models.decoder import Decoder
from jerp.models.lora import LoraConfig
from jerp.models.scored_policy import ScoredPolicy
from jerp.models.token_policy import token_policy
from jerp.rollout.scan import rollout
from jerp.training.group import make_group_step
from jerp.training.group_settings import GroupConfig, GroupHyper
from jerp.trajectory import check_trajectory
from tests.models.line_world import WORDS, Line
from tests.models.tiny import random_params

STEPS, BATCH = 4, 8
WRITTEN = token_policy(WORDS, 3, 2, num_steps=STEPS, hidden_size=8, num_heads=2)
POLICY = ScoredPolicy(WRITTEN.config, 3, 2, STEPS, value=True)
MEAN = replace(POLICY, normalise=True)
play = jax.jit(
    partial(rollout, num_steps=STEPS, batch_size=BATCH), static_argnums=(1, 3)
)


def evaluate(policy):
    return jax.jit(policy.evaluate)


def params():
    head = {"kernel": jnp.arange(8.0), "bias": jnp.ones(())}
    return {"decoder": random_params(0, POLICY.config)["params"], "value": head}


@pytest.fixture(scope="module")
def episodes():
    tasks = jnp.array([0, 2], jnp.int32)
    found = play(jax.random.key(3), WithActions(Line()), tasks, POLICY, params())
    return jax.tree.map(np.asarray, found)


def lengths(episodes):
    """Tokens `[2, B, T]` of observations and of actions."""
    action = episodes.action[..., None, None]
    words = np.take_along_axis(episodes.observation["actions"], action, axis=2)
    pairs = (episodes.observation["tokens"], words[:, :, 0])
    return np.stack([(x != 0).sum(axis=-1) for x in pairs])


def test_acting_equals_evaluating(episodes):
    check_trajectory(episodes)
    assert episodes.tokens is None and episodes.token_mask is None
    mask = episodes.mask
    assert len(set(mask.sum(axis=1).tolist())) > 1
    legal = np.take_along_axis(episodes.legal, episodes.action[..., None], axis=-1)
    assert legal[mask].all()
    found = evaluate(POLICY)(params(), episodes)
    np.testing.assert_allclose(found.log_prob, episodes.log_prob, atol=1e-4)
    assert (episodes.log_prob[mask] < -1e-3).mean() > 0.5
    assert np.isfinite(found.value).all() and found.value.shape == mask.shape
    assert (np.asarray(found.entropy)[mask] >= 0).all()


@pytest.mark.parametrize("policy", [POLICY, MEAN])
def test_scores_by_a_plain_loop_over_one_forward_pass_a_candidate(policy, episodes):
    tree = params()
    forward = jax.jit(Decoder(POLICY.config).apply)
    found = evaluate(policy)(tree, episodes)
    row = int(episodes.mask.sum(axis=1).argmax())
    sequence = []
    for t in range(int(episodes.mask[row].sum())):
        sequence += [x for x in episodes.observation["tokens"][row, t].tolist() if x]
        scores = []
        for action in episodes.observation["actions"][row, t]:
            words = [x for x in action.tolist() if x]
            padded = np.zeros((1, POLICY.config.context_length), np.int32)
            padded[0, : len(sequence) + len(words)] = [*sequence, *words]
            logits = np.asarray(forward({"params": tree["decoder"]}, padded)[0])
            log_probs = logits - np.log(np.exp(logits).sum(axis=-1, keepdims=True))
            places = range(len(sequence) - 1, len(sequence) + len(words) - 1)
            each = [log_probs[p, w] for p, w in zip(places, words, strict=True)]
            scores.append(np.mean(each) if policy.normalise else np.sum(each))
        scores = np.where(episodes.legal[row, t], scores, -np.inf)
        share = np.exp(scores) / np.exp(scores).sum()
        if sequence:
            chosen = np.log(share[episodes.action[row, t]])
            np.testing.assert_allclose(found.log_prob[row, t], chosen, atol=1e-4)
            entropy = -sum(p * np.log(p) for p in share if p > 0)
            np.testing.assert_allclose(found.entropy[row, t], entropy, atol=1e-4)
        words = episodes.observation["actions"][row, t, episodes.action[row, t]]
        sequence += [x for x in words.tolist() if x]


def test_by_hand_where_all_tokens_are_as_likely(episodes):
    """A text of two tokens has probability V^-2, one of one token V^-1."""
    nothing = jax.tree.map(jnp.zeros_like, params())
    mask = episodes.mask
    legal, action = episodes.legal[mask], episodes.action[mask]
    words = (episodes.observation["actions"][mask] != 0).sum(axis=-1)
    weight = np.where(legal, float(WORDS) ** -words, 0)
    share = weight[np.arange(len(action)), action] / weight.sum(axis=-1)
    found = evaluate(POLICY)(nothing, episodes)
    np.testing.assert_allclose(found.log_prob[mask], np.log(share), atol=1e-5)
    found = evaluate(MEAN)(nothing, episodes)
    number = legal.sum(axis=-1)
    np.testing.assert_allclose(found.log_prob[mask], -np.log(number), atol=1e-5)


def test_actions_of_one_token_are_chosen_as_they_are_written():
    """Then renormalising over texts is renormalising over tokens."""
    settings = {"num_steps": 2, "actions": ((3,), (4,))}
    written = token_policy(5, 1, 1, hidden_size=8, num_heads=2, **settings)
    scored = ScoredPolicy(written.config, 1, 1, **settings)
    tree = {"decoder": random_params(1, written.config)["params"]}
    world, tasks = Probe(observation="tokens"), probe_params("matching", "delayed")
    short = jax.jit(partial(rollout, num_steps=2, batch_size=4), static_argnums=(1, 3))
    data = short(jax.random.key(0), world, tasks, written, tree)
    bare = scored.with_tokens(data)
    one, two = evaluate(written)(tree, data), evaluate(scored)(tree, bare)
    np.testing.assert_allclose(one.log_prob[..., 0], two.log_prob, atol=1e-5)
    np.testing.assert_allclose(one.entropy[..., 0], two.entropy, atol=1e-5)


def test_padding_may_hold_anything_and_the_future_changes_nothing(episodes):
    clean, mask = evaluate(POLICY)(params(), episodes), episodes.mask
    dirty = jax.tree.map(np.copy, episodes)
    dirty.observation["tokens"][~mask] = 10
    dirty.action[~mask], dirty.legal[~mask] = 3, True
    found = evaluate(POLICY)(params(), dirty)
    for name in ("log_prob", "entropy", "value"):
        x, y = (np.asarray(getattr(z, name)) for z in (clean, found))
        np.testing.assert_array_equal(x[mask], y[mask])
        assert np.isfinite(y).all()
    later = jax.tree.map(np.copy, episodes)
    later.observation["tokens"][:, 2, 0] = 11
    after = np.asarray(evaluate(POLICY)(params(), later).log_prob)
    np.testing.assert_array_equal(after[:, :2], np.asarray(clean.log_prob)[:, :2])
    long = mask.sum(axis=1) >= 3
    assert (np.abs(after - clean.log_prob)[long, 2:] > 1e-6).any()


def test_beyond_the_memory_there_are_no_numbers(episodes):
    """From the step on whose observation or action does not fit."""
    small, mask = replace(POLICY, capacity=5), episodes.mask
    seen, words = lengths(episodes)
    ends = (seen + words).cumsum(axis=1)
    assert ((ends - words <= 5) & (ends > 5) & mask).any()
    beyond = ends > 5
    found = np.asarray(evaluate(small)(params(), episodes).log_prob)
    np.testing.assert_array_equal(np.isnan(found)[mask], beyond[mask])
    assert 0 < beyond[mask].mean() < 1


def test_an_action_that_does_not_fit_has_no_number_in_acting():
    """An action of two words, in rows that have room for two, for one and for none."""
    small = replace(POLICY, capacity=5)
    memory = small.start(params(), 3)
    memory = memory.replace(position=jnp.array([2, 3, 4], jnp.int32))
    seen = jnp.array([[1, 0, 0]] * 3)
    observation = {"tokens": seen, "actions": jnp.array([[[5, 6], [8, 9]]] * 3)}
    keys, legal = jax.random.split(jax.random.key(0), 3), jnp.ones((3, 2), bool)
    memory, acted = jax.jit(small.act)(params(), memory, keys, observation, legal)
    assert memory.position.tolist() == [5, 6, 7]
    assert np.isnan(acted.log_prob).tolist() == [False, True, True]


@pytest.mark.slow
def test_a_full_memory_has_no_numbers_in_acting_as_in_evaluating():
    small, tasks = replace(POLICY, capacity=5), jnp.array([0, 2], jnp.int32)
    data = play(jax.random.key(3), WithActions(Line()), tasks, small, params())
    found = np.asarray(evaluate(small)(params(), data).log_prob)
    mask, missing = np.asarray(data.mask), np.isnan(np.asarray(data.log_prob))
    np.testing.assert_array_equal(np.isnan(found)[mask], missing[mask])
    assert 0 < missing[mask].mean() < 1


def test_gradients_are_finite_and_reach_every_parameter(episodes):
    """Of a memory that the last action of an episode outgrew, with padding behind it.

    That action has no number, and neither do states beyond the memory: padding's must
    be some, or all gradients are none.
    """
    mask = episodes.mask & (np.arange(STEPS) < STEPS - 1)
    ends = lengths(episodes).sum(axis=0).cumsum(axis=1)
    small = replace(POLICY, capacity=int(ends[mask].max()) - 1)
    fits = mask & (ends <= small.capacity)

    @jax.jit
    @jax.grad
    def slopes(params):
        found = small.evaluate(params, episodes.replace(mask=mask))
        return jnp.sum(jnp.where(fits, found.log_prob + found.value, 0.0))

    assert 0 < (mask & ~fits).sum() < len(mask)
    for name, leaf in jax.tree_util.tree_leaves_with_path(slopes(params())):
        assert np.isfinite(leaf).all(), name
        assert np.abs(leaf).max() > 0, name


@pytest.mark.slow
def test_adapters_learn_from_episodes_in_which_a_decision_is_a_step(episodes):
    lora = replace(POLICY, value=False, lora=LoraConfig(rank=2, alpha=4.0))
    adapters = jax.jit(lora.init)(jax.random.key(0))["adapters"]
    init, step = make_group_step(GroupConfig(2), lora)
    hyper = GroupHyper(learning_rate=0.05)
    state = init(jax.random.key(1), hyper, {"adapters": adapters})
    rewarded = np.where(episodes.mask & (episodes.action == 0), 1.0, 0.0)
    data = episodes.replace(reward=rewarded.astype(np.float32))
    decoder = {"decoder": params()["decoder"]}
    after, metrics = jax.jit(step)(state, hyper, data, frozen=decoder)
    assert float(metrics["sampler_gap"]) < 1e-4 < float(metrics["grad_norm"])
    moved = jax.tree.map(lambda x, y: np.abs(x - y).max(), after.params, state.params)
    assert max(jax.tree.leaves(moved)) > 1e-3

"""A token-stream policy: acting equals evaluating, and the past alone counts."""

from dataclasses import replace
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jerp.envs.with_actions import WithActions
from jerp.errors import ConfigError, InputError
from jerp.models.decoder import Decoder
from jerp.models.lora import LoraConfig, init_adapters
from jerp.models.scored_policy import ScoredPolicy
from jerp.models.token_policy import TokenPolicy, token_policy
from jerp.rollout.scan import rollout
from jerp.trajectory import check_trajectory
from tests.models.line_world import ACTIONS, WORDS, Line
from tests.models.tiny import random_params
from tests.reference import constrained as reference

STEPS, BATCH = 4, 8
POLICY = token_policy(
    WORDS, 3, 2, num_steps=STEPS, hidden_size=8, num_heads=2, value=True
)
evaluate = jax.jit(POLICY.evaluate)


def params(seed=0):
    tree = random_params(seed, POLICY.config)
    head = {"kernel": jnp.arange(8.0), "bias": jnp.ones(())}
    return {"decoder": tree["params"], "value": head}


@pytest.fixture(scope="module")
def episodes():
    play = partial(rollout, num_steps=STEPS, batch_size=BATCH)
    play = jax.jit(play, static_argnums=(1, 3))
    tasks = jnp.array([0, 2], jnp.int32)
    found = play(jax.random.key(3), WithActions(Line()), tasks, POLICY, params())
    return jax.tree.map(np.asarray, found)


def test_episodes_are_of_use(episodes):
    """Of several lengths, with ends that were a choice, and observations of none."""
    check_trajectory(episodes)
    assert len(set(episodes.mask.sum(axis=1).tolist())) > 1
    mask = episodes.mask
    ends = (episodes.tokens == 0) & episodes.token_mask
    assert ends[mask].any() and (~episodes.token_mask & mask[..., None]).any()
    assert (episodes.observation["tokens"][:, 1:][mask[:, 1:]] == 0).all(-1).any()
    legal = np.take_along_axis(episodes.legal, episodes.action[..., None], axis=-1)
    assert legal[mask].all()


def test_acting_equals_evaluating(episodes):
    found = evaluate(params(), episodes)
    np.testing.assert_allclose(found.log_prob, episodes.token_log_prob, atol=1e-4)
    total = np.asarray(found.log_prob).sum(axis=-1)
    np.testing.assert_allclose(total, episodes.log_prob, atol=1e-4)
    assert (np.asarray(found.entropy) >= 0).all()
    assert np.isfinite(found.value).all() and found.value.shape == episodes.mask.shape


def test_both_equal_a_plain_loop_over_one_forward_pass_a_decision(episodes):
    tree = params()
    forward = jax.jit(Decoder(POLICY.config).apply)
    row = int(episodes.mask.sum(axis=1).argmax())
    sequence = []
    for t in range(int(episodes.mask[row].sum())):
        sequence += [x for x in episodes.observation["tokens"][row, t].tolist() if x]
        actions = episodes.observation["actions"][row, t][episodes.legal[row, t]]
        tokens, generated = episodes.tokens[row, t], episodes.token_mask[row, t]
        padded = np.zeros((1, POLICY.config.context_length), np.int32)
        padded[0, : len(sequence) + 2] = [*sequence, *tokens]
        logits = forward({"params": tree["decoder"]}, padded)[0, len(sequence) - 1 :]
        if sequence:
            wanted = reference.log_probs(logits, tokens.tolist(), actions.tolist(), 0)
            log_prob = [x[0] for x in wanted]
            np.testing.assert_allclose(
                episodes.token_log_prob[row, t], log_prob, atol=1e-4
            )
            assert [x[2] for x in wanted] == generated.tolist()
        sequence += tokens[generated].tolist()


def test_a_step_sees_what_was_before_and_nothing_after(episodes):
    rows = episodes.mask.sum(axis=1) >= 3
    before = np.asarray(evaluate(params(), episodes).log_prob)
    changed = jax.tree.map(np.copy, episodes)
    changed.observation["tokens"][:, 2, 0] = 11
    after = np.asarray(evaluate(params(), changed).log_prob)
    np.testing.assert_array_equal(after[:, :2], before[:, :2])
    assert (np.abs(after - before)[rows, 2:] > 1e-6).any()


def test_padding_may_hold_anything(episodes):
    dirty, mask = jax.tree.map(np.copy, episodes), episodes.mask
    dirty.observation["tokens"][~mask] = 10
    dirty.tokens[~mask], dirty.token_mask[~mask] = 7, True
    dirty.legal[~mask] = True
    clean, found = evaluate(params(), episodes), evaluate(params(), dirty)
    for name in ("log_prob", "entropy", "value"):
        x, y = (np.asarray(getattr(z, name)) for z in (clean, found))
        np.testing.assert_array_equal(x[mask], y[mask])
        assert np.isfinite(y).all()


def test_gradients_are_finite_and_reach_every_parameter(episodes):
    @jax.jit
    @jax.grad
    def gradient(params):
        found = POLICY.evaluate(params, episodes)
        return jnp.sum(found.log_prob) + jnp.sum(found.value * episodes.mask)

    for name, leaf in jax.tree_util.tree_leaves_with_path(gradient(params())):
        assert np.isfinite(leaf).all(), name
        assert np.abs(leaf).max() > 0, name


LORA = replace(POLICY, lora=LoraConfig(rank=2, alpha=4.0))


@jax.jit
@partial(jax.value_and_grad, has_aux=True)
def adapted(params, episodes):
    found = LORA.evaluate(params, episodes)
    return jnp.sum(found.log_prob) + jnp.sum(found.value * episodes.mask), found


def test_fresh_adapters_change_nothing_and_learn(episodes):
    """Beside a decoder that would learn too, were it not left out as `frozen`."""
    fresh = jax.jit(LORA.init)(jax.random.key(0))
    tree = {**params(), "adapters": fresh["adapters"]}
    assert jax.tree.structure(fresh) == jax.tree.structure(tree)
    (_, found), slopes = adapted(tree, episodes)
    plain = evaluate(params(), episodes).log_prob
    np.testing.assert_allclose(found.log_prob, plain, atol=1e-5)
    assert np.any(slopes["decoder"]["layer_0"]["qkv"])
    assert np.any(slopes["adapters"]["layer_0"]["q"]["b"])


def test_acting_with_adapters_until_memory_is_full(episodes):
    """The first row has run for too long: its numbers are none. The second ended."""
    pairs = init_adapters(jax.random.key(0), LORA.config, LORA.lora)
    tree = {**params(), "adapters": jax.tree.map(lambda x: x + 0.5, pairs)}
    memory = LORA.start(tree, BATCH)
    memory = memory.replace(position=memory.position.at[0].set(STEPS * 5))
    first = jax.tree.map(lambda x: x[:, 0], episodes.observation)
    keys = jax.random.split(jax.random.key(1), BATCH)
    legal = episodes.legal[:, 0].copy()
    legal[1] = False
    memory, acted = jax.jit(LORA.act)(tree, memory, keys, first, legal)
    count = (first["tokens"] != 0).sum(axis=1) + acted.token_mask.sum(axis=1)
    np.testing.assert_array_equal(memory.position[1:], [0, *count[2:]])
    assert np.isnan(acted.log_prob).tolist() == [True] + [False] * (BATCH - 1)
    (_, found), _ = adapted(tree, episodes)
    plain = evaluate(params(), episodes).log_prob
    assert np.abs(found.log_prob - plain).max() > 1e-3
    same = np.asarray(acted.action) == episodes.action[:, 0]
    same[:2] = False
    assert same.any()
    np.testing.assert_allclose(
        acted.token_log_prob[same], found.log_prob[same, 0], atol=1e-4
    )


def test_a_capacity_changes_nothing_until_it_is_reached(episodes):
    """In evaluating as in acting, numbers of what lies beyond are none."""
    seen = (episodes.observation["tokens"] != 0) & episodes.mask[..., None]
    written = episodes.token_mask & episodes.mask[..., None]
    ends = (seen.sum(axis=2) + written.sum(axis=2)).cumsum(axis=1)
    capacity = int(np.median(ends[:, -1]))
    small = replace(POLICY, capacity=capacity)
    assert small.start(params(), 2).cache[0][1].shape[2] == capacity
    found = np.asarray(jax.jit(small.evaluate)(params(), episodes).log_prob)
    whole = np.asarray(evaluate(params(), episodes).log_prob)
    fits = ends <= capacity
    assert 0 < fits.mean() < 1
    np.testing.assert_allclose(found[fits], whole[fits], atol=1e-5)
    beyond = (ends[..., None] > capacity + written.sum(axis=2)[..., None]) & written
    assert beyond.any() and np.isnan(found[beyond]).all()


def test_tokens_come_from_actions(episodes):
    bare = episodes.replace(tokens=None, token_log_prob=None, token_mask=None)
    found = jax.jit(POLICY.with_tokens)(bare)
    np.testing.assert_array_equal(found.tokens, episodes.tokens)
    mask = episodes.token_mask & episodes.mask[..., None]
    np.testing.assert_array_equal(found.token_mask, mask)
    total = np.asarray(found.token_log_prob).sum(axis=-1)
    np.testing.assert_allclose(total, episodes.log_prob, atol=1e-6)
    with pytest.raises(InputError, match="with_tokens"):
        POLICY.evaluate(params(), bare)


def test_actions_that_are_fixed_need_not_be_shown(episodes):
    same = jax.tree.map(lambda x: x[::2], episodes)  # the task with the first words
    fixed = replace(POLICY, actions=ACTIONS)
    shown = jax.jit(fixed.evaluate)(
        params(), same.replace(observation=same.observation["tokens"])
    )
    wanted = evaluate(params(), episodes)
    np.testing.assert_allclose(shown.log_prob, wanted.log_prob[::2], atol=1e-5)


def test_sizes_that_do_not_fit():
    with pytest.raises(ConfigError, match="context_length: expected at least 20"):
        replace(POLICY, config=replace(POLICY.config, context_length=19))
    with pytest.raises(ConfigError, match="actions: expected 2 tokens each"):
        replace(POLICY, actions=((5, WORDS),))


@pytest.mark.parametrize("kind", [TokenPolicy, ScoredPolicy])
@pytest.mark.parametrize(
    ("second", "message"),
    [
        ((0, 0, 0), "a token at least"),
        ((5, 0, 7), "0 at the end alone"),
        ((5, 6, 0), r"different texts, got \(5, 6, 0\) twice"),
    ],
)
def test_actions_that_cannot_be_told_apart_are_refused(kind, second, message):
    """A text of nothing passed for an illegal one where texts are scored."""
    kind(POLICY.config, 3, 3, 3, ((5, 6, 0), (5, 6, 7)))
    with pytest.raises(ConfigError, match=message):
        kind(POLICY.config, 3, 3, 3, ((5, 6, 0), second))

"""A policy whose one action is a text: drawing equals evaluating, and it learns."""

from dataclasses import replace
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jerp.errors import ConfigError, InputError
from jerp.models.decoder import Decoder, DecoderConfig
from jerp.models.draft_policy import DraftPolicy
from jerp.models.lora import LoraConfig
from jerp.rollout.scan import rollout
from jerp.trajectory import check_trajectory
from tests.models.one_text import OneText
from tests.models.tiny import random_params
from tests.optimised import optimised_jit

STOP, WORDS, PROMPT, LENGTH, BATCH = 1, 9, 5, 6, 16
CONFIG = DecoderConfig(WORDS, 8, 16, 2, 2, 2, 4, context_length=PROMPT + LENGTH)
POLICY = DraftPolicy(CONFIG, PROMPT, LENGTH, (STOP,), temperature=0.7)
PARAMS = {"decoder": random_params(0, CONFIG)["params"]}
PROMPTS = jnp.array([[3, 4, 0, 0, 0], [5, 6, 7, 8, 2], [4, 0, 0, 0, 0]], jnp.int32)
evaluate = jax.jit(POLICY.evaluate)


def drawn(policy, params, seed=3, batch=BATCH, jit=jax.jit):
    play = partial(rollout, num_steps=1, batch_size=batch)
    play = jit(play, static_argnums=(1, 3))
    found = play(jax.random.key(seed), OneText(), PROMPTS, policy, params)
    return jax.tree.map(np.asarray, found)


@pytest.fixture(scope="module")
def episodes():
    return drawn(POLICY, PARAMS)


def test_drafts_are_of_use(episodes):
    """Some stop by themselves, some have no room left; nothing follows a stop."""
    check_trajectory(episodes)
    tokens, mask = episodes.tokens[:, 0], episodes.token_mask[:, 0]
    length = mask.sum(axis=1)
    assert (length < LENGTH).any() and (length == LENGTH).any()
    for row, real, number in zip(tokens, mask, length, strict=True):
        assert real[:number].all() and not row[number:].any()
        assert STOP not in row[: number - 1]
        assert row[number - 1] == STOP or number == LENGTH


def test_drawing_equals_evaluating(episodes):
    found = evaluate(PARAMS, episodes)
    np.testing.assert_allclose(found.log_prob, episodes.token_log_prob, atol=1e-5)
    total = np.asarray(found.log_prob).sum(axis=(1, 2))
    np.testing.assert_allclose(total, episodes.log_prob[:, 0], atol=1e-5)


def test_both_equal_a_forward_pass_a_token(episodes):
    forward = jax.jit(Decoder(CONFIG).apply)
    found = evaluate(PARAMS, episodes)
    for row in range(3):
        sequence = [int(x) for x in PROMPTS[row] if x]
        for i in range(int(episodes.token_mask[row].sum())):
            padded = np.zeros((1, CONFIG.context_length), np.int32)
            padded[0, : len(sequence)] = sequence
            logits = forward({"params": PARAMS["decoder"]}, padded)
            logits = np.asarray(logits)[0, len(sequence) - 1].astype(float) / 0.7
            probs = np.exp(logits - logits.max())
            probs /= probs.sum()
            token = int(episodes.tokens[row, 0, i])
            np.testing.assert_allclose(
                found.log_prob[row, 0, i], np.log(probs[token]), atol=1e-4
            )
            entropy = -(probs * np.log(probs)).sum()
            np.testing.assert_allclose(found.entropy[row, 0, i], entropy, atol=1e-4)
            sequence.append(token)


def test_what_is_behind_a_draft_changes_nothing(episodes):
    behind = episodes.replace(tokens=np.where(episodes.token_mask, episodes.tokens, 7))
    jax.tree.map(
        np.testing.assert_array_equal,
        evaluate(PARAMS, episodes),
        evaluate(PARAMS, behind),
    )


def test_a_draft_depends_on_its_own_prompt_and_key_alone():
    """The same episodes are drawn in a batch of others."""
    few, many = drawn(POLICY, PARAMS, batch=8), drawn(POLICY, PARAMS, batch=24)
    np.testing.assert_array_equal(few.tokens, many.tokens[:8])


def test_an_empty_prompt_has_no_draft():
    keys = jax.random.split(jax.random.key(0), 2)
    prompts = jnp.array([[0] * PROMPT, [3, 0, 0, 0, 0]], jnp.int32)
    _, acted = jax.jit(POLICY.act)(PARAMS, (), keys, prompts, None)
    assert not np.asarray(acted.token_mask[0]).any() and acted.log_prob[0] == 0
    assert np.asarray(acted.token_mask[1]).any()


NARROW = replace(POLICY, top_k=2)


def test_only_the_likeliest_are_drawn_where_top_k_says_so():
    """Evaluating is about the same distribution: its two tokens share all chance."""
    # Compiled in haste, the edge of what is kept is rounded in two ways.
    found = drawn(NARROW, PARAMS, batch=64, jit=optimised_jit)
    for task in range(3):
        assert len({*found.tokens[found.task_id == task][:, 0, 0].tolist()}) == 2
    narrow, whole = (jax.jit(p.evaluate)(PARAMS, found) for p in (NARROW, POLICY))
    real = found.token_mask
    np.testing.assert_allclose(narrow.log_prob, found.token_log_prob, atol=1e-5)
    assert (narrow.log_prob > whole.log_prob + 0.1)[real].any()
    chance = np.exp(np.asarray(narrow.log_prob, float))[real]
    entropy = -sum(p * np.log(p) for p in (chance, np.maximum(1 - chance, 1e-9)))
    np.testing.assert_allclose(np.asarray(narrow.entropy)[real], entropy, atol=1e-4)


def test_a_draft_of_unlikely_tokens_stays_possible(episodes):
    """Its log-probability is finite, and a gradient makes it more likely."""

    def total(decoder):
        found = NARROW.evaluate({"decoder": decoder}, episodes)
        return jnp.sum(found.log_prob), found.log_prob

    learn = jax.jit(jax.value_and_grad(total, has_aux=True))
    (before, log_prob), gradient = learn(PARAMS["decoder"])
    assert np.isfinite(log_prob).all() and np.asarray(log_prob).min() < -1
    moved = jax.tree.map(lambda p, g: p + 1e-5 * g, PARAMS["decoder"], gradient)
    assert learn(moved)[0][0] > before


def test_adapters_of_zero_change_nothing_and_alone_have_gradients(episodes):
    policy = replace(POLICY, lora=LoraConfig(2, 2.0))
    params = jax.jit(policy.init)(jax.random.key(1))
    params = {"decoder": PARAMS["decoder"], "adapters": params["adapters"]}
    frozen = {"decoder": params["decoder"]}

    def total(adapters):
        found = policy.evaluate({**frozen, "adapters": adapters}, episodes)
        return jnp.sum(found.log_prob), found.log_prob

    both = jax.jit(jax.value_and_grad(total, has_aux=True))
    (_, log_prob), gradient = both(params["adapters"])
    np.testing.assert_allclose(log_prob, evaluate(PARAMS, episodes).log_prob, atol=1e-5)
    leaves = [np.asarray(x) for x in jax.tree.leaves(gradient)]
    assert all(np.isfinite(x).all() for x in leaves)
    assert any(np.abs(x).max() > 0 for x in leaves)


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"num_draft_tokens": LENGTH + 1}, "context_length: expected at least 12"),
        ({"temperature": 0.0}, "temperature: expected > 0, got 0.0"),
        ({"stop_tokens": ()}, "stop_tokens: expected some of 1 to 8"),
        ({"stop_tokens": (9,)}, "stop_tokens: expected some of 1 to 8"),
        ({"stop_tokens": (0,)}, "stop_tokens: expected some of 1 to 8"),
    ],
)
def test_settings_that_cannot_be(change, says):
    with pytest.raises(ConfigError, match=says):
        replace(POLICY, **change)


def test_episodes_without_drafts_are_refused(episodes):
    with pytest.raises(InputError, match="expected drafts"):
        POLICY.evaluate(PARAMS, episodes.replace(tokens=None))


def test_more_than_one_step_is_refused():
    with pytest.raises(ConfigError, match="num_steps: expected at most 1"):
        rollout(
            jax.random.key(0),
            *(OneText(), PROMPTS, POLICY, PARAMS),
            num_steps=2,
            batch_size=2,
        )

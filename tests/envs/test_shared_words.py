"""One vocabulary for several worlds: the same play, in tokens with other numbers."""

import re
from dataclasses import dataclass, replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jerp.envs.house import house_small
from jerp.envs.shared_words import SharedWords, shared_vocabulary
from jerp.envs.tools import Tools
from jerp.envs.tools_tasks import tools_tasks
from jerp.envs.with_actions import WithActions
from jerp.errors import ConfigError

HOUSE, TOOLS = house_small(), Tools(observation="tokens")
WORDS = shared_vocabulary(HOUSE.vocabulary, TOOLS.vocabulary)


@dataclass(frozen=True)
class Spoken:
    """A world of a few words, as far as they are looked at."""

    vocabulary: tuple[str, ...]


def test_the_union_keeps_the_first_worlds_numbers_and_counts_a_word_once():
    assert shared_vocabulary(("", "a", "b"), ("", "c", "a"), ("", "d")) == (
        *("", "a", "b", "c", "d"),
    )
    assert WORDS[: len(HOUSE.vocabulary)] == HOUSE.vocabulary
    assert {*WORDS} == {*HOUSE.vocabulary, *TOOLS.vocabulary}
    assert len({*WORDS}) == len(WORDS)


def test_what_is_seen_and_can_be_written_are_the_same_words():
    """Over steps of the oracle, whatever the world itself shows."""
    env = replace(TOOLS, observation="fields")
    params = jax.tree.map(lambda x: x[0], tools_tasks(jax.random.key(0), 1))
    shared, key = SharedWords(env, WORDS), jax.random.key(1)
    np.testing.assert_array_equal(
        np.array(WORDS)[np.asarray(shared.action_tokens(params))],
        np.array(env.vocabulary)[np.asarray(env.action_tokens(params))],
    )
    own, (state, now) = env.reset(key, params)[0], shared.reset(key, params)
    step, own_step = jax.jit(shared.step), jax.jit(env.step)
    for _ in range(3):
        tokens = np.asarray(now.observation)
        assert tokens.dtype == np.int32
        said = np.array(env.vocabulary)[np.asarray(env.observe(own, params).tokens)]
        np.testing.assert_array_equal(np.array(WORDS)[tokens], said)
        np.testing.assert_array_equal(tokens, shared.observe(state, params).tokens)
        action = shared.oracle(state, params)
        assert bool(shared.admissible(state, params)[action])
        np.testing.assert_array_equal(
            shared.anchor(state, params), env.anchor(own, params)
        )
        state, now = step(key, state, action, params)
        own, after = own_step(key, own, action, params)
        np.testing.assert_array_equal(now.legal, after.legal)


def test_what_is_counted_of_a_world_does_not_change():
    shared = SharedWords(TOOLS, WORDS)
    for name in (
        *("num_actions", "field_sizes", "num_observation_tokens", "num_action_tokens"),
    ):
        assert getattr(shared, name) == getattr(TOOLS, name)
    assert SharedWords(replace(TOOLS, observation="fields"), WORDS).observation == (
        "tokens"
    )


def test_actions_that_come_with_observations_are_renamed_as_well():
    params = jax.tree.map(lambda x: x[0], tools_tasks(jax.random.key(0), 1))
    shared = SharedWords(TOOLS, WORDS)
    _, now = WithActions(shared).reset(jax.random.key(1), params)
    seen = now.observation
    np.testing.assert_array_equal(seen["actions"], shared.action_tokens(params))
    assert jnp.any(seen["actions"] != TOOLS.action_tokens(params))


@pytest.mark.parametrize(
    ("own", "words", "message"),
    [
        (
            ("", "a", "b", "c", "d"),
            ("", "a"),
            "expected all 5 words of the world, got none of 'b', 'c', 'd';",
        ),
        (
            ("", *"abcdef"),
            ("", "a"),
            "got none of 'b', 'c', 'd', ...; `shared_vocabulary` makes one",
        ),
        (("", "a"), ("a", ""), "expected the world's padding '' first, got ('a',)"),
        (("", "a"), (), "expected the world's padding '' first, got ()"),
    ],
)
def test_a_vocabulary_that_lacks_words_is_refused(own, words, message):
    with pytest.raises(ConfigError, match=re.escape(message)):
        SharedWords(Spoken(own), words)


@pytest.mark.parametrize("vocabularies", [(), ((),), (("", "a"), ("-", "a"))])
def test_vocabularies_without_one_padding_are_refused(vocabularies):
    with pytest.raises(ConfigError, match="all with one first word, padding"):
        shared_vocabulary(*vocabularies)

"""A world played from the host, in words or not, is the world of the compiled loop."""

from dataclasses import replace
from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jerp.bridge.world_episodes import Replay, play_worlds
from jerp.bridge.world_text import TextView
from jerp.envs.house import house_small
from jerp.envs.house_text import HouseText
from jerp.errors import InputError
from jerp.models.policy import Acted
from jerp.models.step_policy import step_policy
from jerp.models.token_policy import token_policy
from jerp.rollout.demonstrations import demonstrations
from jerp.rollout.scan import rollout
from jerp.trajectory import check_trajectory
from jerp.typing import Outcome
from tests.bridge.words import word_tokenizer
from tests.envs.homes import some_tasks

STEPS, BATCH, SEEN, WRITTEN = 6, 6, 96, 7
HOUSE = replace(house_small(), horizon=STEPS)
TASKS = some_tasks(3)
TEXT = HouseText(HOUSE.size)
RULES = ["When you hold: it, put it down.", "Open it."]
WORDS = word_tokenizer(
    "Rules: -",
    *RULES,
    *(TEXT.action(a, None) for a in range(HOUSE.num_actions)),
    "You stand in the hall. Your hand is empty. You see: nothing. hold: at >",
)
SIZES = {"num_steps": STEPS, "batch_size": BATCH}


def view(**changes):
    sizes = {"num_observation_tokens": SEEN, "num_action_tokens": WRITTEN, **changes}
    return TextView(TEXT, WORDS, num_actions=HOUSE.num_actions, **sizes)


READER = token_policy(
    WORDS.get_vocab_size(),
    SEEN,
    WRITTEN,
    num_steps=STEPS,
    hidden_size=8,
    num_layers=1,
    num_heads=1,
)


@pytest.fixture(scope="module")
def shown():
    """Episodes of a noisy oracle, from the compiled loop; some succeed."""
    show = partial(demonstrations, env=HOUSE, noise=0.2, **SIZES)
    found = jax.jit(show)(jax.random.key(2), env_params=TASKS)
    return jax.device_get(found)


@pytest.fixture(scope="module")
def read():
    params = jax.jit(READER.init)(jax.random.key(4))
    play = partial(play_worlds, env=HOUSE, env_params=TASKS, policy=READER, **SIZES)
    return params, play(jax.random.key(3), params=params, view=view())


def test_the_same_trajectory_from_both_loops():
    policy = step_policy(
        *(HOUSE.field_sizes, HOUSE.num_actions),
        num_steps=STEPS,
        hidden_size=8,
        num_layers=1,
        num_heads=1,
    )
    params = jax.jit(policy.init)(jax.random.key(1))
    play = jax.jit(partial(rollout, shared_start=True, **SIZES), static_argnums=(1, 3))
    compiled = play(jax.random.key(2), HOUSE, TASKS, policy, params)
    stepped = play_worlds(
        jax.random.key(2), HOUSE, TASKS, policy, params, shared_start=True, **SIZES
    )
    # The same bits but where two compiled programs may add in another order.
    np.testing.assert_allclose(stepped.log_prob, compiled.log_prob, atol=1e-6)
    same = stepped.replace(log_prob=compiled.log_prob)
    jax.tree.map(np.testing.assert_array_equal, same, jax.device_get(compiled))
    assert jax.tree.map(np.shape, same) == jax.tree.map(np.shape, compiled)


def test_the_same_episodes_in_words(shown):
    """Another view, and nothing else; so demonstrations are put into words."""
    told = play_worlds(
        jax.random.key(2), HOUSE, TASKS, Replay(), shown.action, view=view(), **SIZES
    )
    assert (shown.outcome == Outcome.SUCCESS).any()
    blank = {"observation": 0, "final_observation": 0, "log_prob": 0}
    jax.tree.map(
        np.testing.assert_array_equal, told.replace(**blank), shown.replace(**blank)
    )


def test_what_is_read_is_a_log(shown):
    told = play_worlds(
        jax.random.key(2), HOUSE, TASKS, Replay(), shown.action, view=view(), **SIZES
    )
    told = READER.with_tokens(told)
    pieces = [*told.observation["tokens"][0, :2], *np.asarray(told.tokens)[0, :1]]
    first, second, action = (
        " ".join(WORDS.id_to_token(i) for i in ids if i) for ids in pieces
    )
    assert first.endswith("You stand in the hall . Your hand is empty . \n >")
    said = TEXT.action(int(shown.action[0, 0]), None)
    assert action == f"{said} \n"
    assert second.startswith("You stand at the") and second.endswith("\n >")
    assert told.final_observation["tokens"].shape == (BATCH, SEEN)


def test_reading_and_learning_agree(read):
    params, played = read
    check_trajectory(played)
    found = jax.jit(READER.evaluate)(params, played)
    np.testing.assert_allclose(found.log_prob, played.token_log_prob, atol=1e-4)
    legal = np.take_along_axis(played.legal, played.action[..., None], axis=-1)
    assert legal[played.mask].all()


SETS = np.array([[1, -1], [-1, -1], [0, 1]], np.int32)


def replay(shown, **options):
    told = jax.random.key(2), HOUSE, TASKS, Replay(), shown.action
    return play_worlds(*told, **SIZES, **options)


def test_rules_are_shown_before_the_first_step_and_recorded(shown):
    plain = replay(shown, view=view())
    ruled = replay(shown, view=view(), working_set=SETS, rule_texts=RULES)
    assert plain.working_set is None
    np.testing.assert_array_equal(ruled.working_set, SETS[np.arange(BATCH) % 3])
    check_trajectory(ruled)
    first, other = (x.observation["tokens"][:, 0] for x in (ruled, plain))
    lengths = [(x != 0).sum(axis=1) for x in (first, other)]
    assert ((lengths[0] > lengths[1]) == (np.arange(BATCH) % 3 != 1)).all()
    np.testing.assert_array_equal(first[1], other[1])
    for row, (length, extra) in enumerate(zip(*lengths[::-1], strict=True)):
        np.testing.assert_array_equal(
            first[row, extra - length : extra], other[row, :length]
        )
    blank = {"working_set": None, "observation": 0}
    jax.tree.map(
        np.testing.assert_array_equal, plain.replace(**blank), ruled.replace(**blank)
    )
    np.testing.assert_array_equal(
        ruled.observation["tokens"][:, 1:], plain.observation["tokens"][:, 1:]
    )


def test_a_rule_without_room_is_not_in_the_working_set(shown):
    plain = replay(shown, view=view()).observation["tokens"][:, 0]
    size = int((plain != 0).sum(axis=1).max()) + 17  # the first rule and the heading
    sets = np.array([[-1, 0, -1, 1]] * 3, np.int32)
    small = view(num_observation_tokens=size, max_cut_share=1.0)
    found = replay(shown, view=small, working_set=sets, rule_texts=RULES)
    told = (found.observation["tokens"][:, 0] == WORDS.token_to_id("-")).sum(axis=1)
    assert {*told} == {1, 2} and small.num_rules_cut == (told == 1).sum()
    expected = np.where(told[:, None] == 1, [-1, 0, -1, -1], [-1, 0, -1, 1])
    np.testing.assert_array_equal(found.working_set, expected)
    check_trajectory(found)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"view": view(), "rule_texts": None}, "rule_texts: expected the texts"),
        ({"view": view(), "rule_texts": RULES[:1]}, "got 1 and rule 1"),
        ({"view": None, "rule_texts": RULES}, "a policy that reads no rules"),
    ],
)
def test_rules_that_nobody_could_read(shown, options, message):
    with pytest.raises(ValueError, match=message):
        replay(shown, working_set=SETS, **options)


def test_without_a_view_the_policy_is_given_the_ids(shown):
    found = play_worlds(
        *(jax.random.key(2), HOUSE, TASKS, Obedient(), shown.action),
        working_set=SETS,
        **SIZES,
    )
    np.testing.assert_array_equal(found.log_prob[:, 0], found.working_set[:, 0] - 1.0)


class Obedient(NamedTuple):
    """Says by its log-probability which rule it was given first."""

    num_rules: int = 2

    def start(self, params, batch_size, working_set):
        return working_set[:, 0]

    def act(self, params, memory, keys, observation, legal):
        action = jnp.argmax(legal, axis=1).astype(jnp.int32)
        return memory, Acted(action, memory - 1.0)


def test_transcripts_tell_what_was_read_and_written(shown):
    shown_as = view()
    ruled = replay(shown, view=shown_as, working_set=SETS, rule_texts=RULES)
    texts = shown_as.transcripts(ruled)
    assert len(texts) == BATCH and texts[0].startswith("Rules : \n - Open it . \n")
    assert not texts[1].startswith("Rules")
    for row, text in enumerate(texts):
        length = int(ruled.mask[row].sum())
        assert text.count("\n >") in (length, length + 1)
        for action in ruled.action[row, :length]:
            assert f"> {TEXT.action(int(action), None)} \n" in text


class Forgetful(NamedTuple):
    """Does what is written; the memory of row `b` is enough for `b` steps."""

    first: int = 0

    def start(self, params, batch_size):
        return jnp.zeros((), jnp.int32)

    def act(self, params, memory, keys, observation, legal):
        row = self.first + jnp.arange(params.shape[0])
        log_prob = jnp.where(memory < row, -1.0, jnp.nan)
        return memory + 1, Acted(params[:, memory], log_prob)


def test_an_episode_that_outgrows_its_memory_ends_there(shown):

    def play(first):
        return play_worlds(
            jax.random.key(2), HOUSE, TASKS, Forgetful(first), shown.action, **SIZES
        )

    cut = play(1)
    check_trajectory(cut)
    length = shown.mask.sum(axis=1)
    room = 1 + np.arange(BATCH)
    np.testing.assert_array_equal(cut.mask.sum(axis=1), np.minimum(length, room))
    outgrown = length > room
    assert 0 < outgrown.sum() < BATCH
    assert (cut.outcome[outgrown] == Outcome.TRUNCATED).all()
    assert (cut.score[outgrown] == 0).all()
    assert (cut.outcome[~outgrown] == shown.outcome[~outgrown]).all()
    last = np.take_along_axis(cut.truncated, cut.mask.sum(axis=1)[:, None] - 1, axis=1)
    assert last[outgrown].all()
    with pytest.raises(InputError, match="too small for the first step of 1 of 6"):
        play(0)


def test_texts_that_are_cut_are_counted_and_too_many_refused(shown):
    def play(shown_as):
        told = jax.random.key(2), HOUSE, TASKS, Replay(), shown.action
        return play_worlds(*told, view=shown_as, **SIZES)

    lenient = view(num_observation_tokens=20, max_cut_share=1.0)
    play(lenient)
    assert BATCH <= lenient.num_cut < lenient.num_shown
    with pytest.raises(InputError, match=r"observations are longer than 20 tokens"):
        play(view(num_observation_tokens=20))


class Keeper(NamedTuple):
    """Remembers a parameter as it was given."""

    def start(self, params, batch_size):
        return params["begin"]

    def act(self, params, memory, keys, observation, legal):
        action = jnp.argmax(legal, axis=1).astype(jnp.int32)
        return memory + 1, Acted(action, params["begin"])


def test_parameters_stay_the_callers():
    params = {"begin": jnp.zeros(BATCH)}
    play_worlds(jax.random.key(2), HOUSE, TASKS, Keeper(), params, **SIZES)
    assert params["begin"].tolist() == [0.0] * BATCH
    with pytest.raises(InputError, match="params: expected finite numbers"):
        broken = {"begin": jnp.full(BATCH, jnp.nan)}
        play_worlds(jax.random.key(2), HOUSE, TASKS, Keeper(), broken, **SIZES)

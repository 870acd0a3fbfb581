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
from jerp.envs.house_tasks import house_tasks
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

STEPS, BATCH, SEEN, WRITTEN = 6, 6, 96, 7
HOUSE = replace(house_small(), horizon=STEPS)
TASKS = house_tasks(jax.random.key(0), 3, size=HOUSE.size)
TEXT = HouseText(HOUSE.size)
WORDS = word_tokenizer(
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
    params = READER.init(jax.random.key(4))
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
    params = policy.init(jax.random.key(1))
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

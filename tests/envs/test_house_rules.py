"""Rules of a household: what is said is seen, and the oracle's moves are few."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jerp.envs.checks import check_environment
from jerp.envs.house import house_small
from jerp.envs.house_rules import TASK_TYPES, HouseRules
from jerp.envs.house_things import PLACES, HouseTask
from jerp.envs.rule_language import Situated, read_sentence, sentence
from jerp.rollout.demonstrations import demonstrations
from tests.envs.homes import some_tasks

HOUSE = house_small()
RULES = HouseRules(HOUSE.size)
ENV = Situated(HOUSE, RULES)
TASKS = jax.tree.map(jnp.asarray, some_tasks(96))


@pytest.fixture(scope="module")
def played():
    """Situations `[B, T]` and moves of an oracle that errs half of the time."""

    @jax.jit
    def play(key, other):
        data = demonstrations(
            key, ENV, TASKS, num_steps=HOUSE.horizon, batch_size=192, noise=0.5
        )
        params = jax.tree.map(lambda x: x[data.task_id], TASKS)
        oracle = demonstrations(
            other, ENV, TASKS, num_steps=HOUSE.horizon, batch_size=192
        )
        return (
            data,
            ENV.moves(data.action, data.observation, params),
            oracle,
            ENV.moves(oracle.action, oracle.observation, params),
        )

    return jax.device_get(play(jax.random.key(1), jax.random.key(2)))


def test_a_situated_house_keeps_the_contract_of_worlds():
    tasks = jax.tree.map(lambda x: x[:8], TASKS)
    check_environment(ENV, tasks, jax.random.key(0), num_steps=HOUSE.horizon + 1)


def test_all_situations_and_moves_come_up(played):
    data, moves, *_ = played
    seen = data.observation[..., -1][data.mask]
    assert set(seen) == set(range(1, len(RULES.situations)))
    # There are no kinds of place in a small home but the first ten.
    there = set(range(1, len(RULES.moves))) - {11, 12}
    assert set(moves[data.mask]) == there


@pytest.mark.parametrize(
    ("task", "situation", "expected"),
    [
        (HouseTask.HEAT, "you hold what is wanted unready somewhere else", "microwave"),
        (HouseTask.COOL, "you hold what is wanted unready somewhere else", "fridge"),
        (HouseTask.CLEAN, "you hold what is wanted unready somewhere else", "sink"),
        (HouseTask.LOOK, "you hold what is wanted unready somewhere else", "desk"),
    ],
)
def test_each_type_has_an_appliance_of_its_own(played, task, situation, expected):
    *_, data, moves = played
    here = data.mask & (data.observation[..., -1] == RULES.situations.index(situation))
    here &= np.asarray(TASKS.task)[data.task_id][:, None] == task
    assert {RULES.moves[m] for m in moves[here]} == {f"go to a {expected}"}


@pytest.mark.parametrize(
    ("situation", "move"),
    [
        (
            "your hand is empty and what is wanted is within reach",
            "take what is wanted",
        ),
        ("you hold what is wanted ready where it belongs and it is closed", "open it"),
        ("you hold what is wanted ready where it belongs", "put it down"),
        ("you hold what is wanted ready somewhere else", "go where it belongs"),
    ],
)
def test_the_oracle_does_one_thing_in_any_type(played, situation, move):
    *_, data, moves = played
    here = data.mask & (data.observation[..., -1] == RULES.situations.index(situation))
    assert here.any()
    assert {RULES.moves[m] for m in moves[here]} == {move}


def test_a_step_that_nobody_chose_makes_no_move(played):
    data, moves, *_ = played
    spent = np.where(np.arange(data.action.shape[1]) % 2, -1, data.action)
    params = jax.tree.map(lambda x: x[data.task_id], TASKS)
    found = jax.jit(ENV.moves)(spent, data.observation, params)
    assert (found[:, 1::2] == 0).all()
    np.testing.assert_array_equal(found[:, ::2], moves[:, ::2])


def test_what_is_not_wanted_is_put_down(played):
    data, _, *_ = played
    other = RULES.situations.index("you hold something that is not wanted")
    hand = data.observation[..., 5]
    goal = data.observation[..., 1]
    here = data.mask & (hand > 0) & (hand != goal)
    np.testing.assert_array_equal(
        data.observation[..., -1][data.mask] == other, here[data.mask]
    )


def test_a_situation_is_told_by_what_is_seen(played):
    """Equal fields of the house are one situation: a policy could tell it itself."""
    data, *_ = played
    rows = data.observation[data.mask]
    _, index = np.unique(rows[:, :-1], axis=0, return_inverse=True)
    for number in np.unique(index):
        assert len(set(rows[index == number, -1])) == 1


def test_sentences_are_read_as_they_are_written():
    for s in range(1, len(RULES.situations)):
        for m in range(1, len(RULES.moves)):
            text = sentence(RULES, s, m)
            assert read_sentence(RULES, text) == (s, m)
            assert len(text.split()) <= 25
            assert not any(c.isdigit() for c in text)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "Open it.",
        "When it rains, open it.",
        "When , .",
        sentence(RULES, 1, 1) + " ",
    ],
)
def test_other_words_are_not_guessed(text):
    assert read_sentence(RULES, text) is None


def test_names():
    assert len(TASK_TYPES) == len(HouseTask)
    assert len(set(RULES.moves)) == len(PLACES) + 8
    assert hash(ENV) == hash(Situated(house_small(), HouseRules(HOUSE.size)))
    assert jnp.asarray(ENV.field_sizes[-1]) == len(RULES.situations)

"""Words of worlds become tokens that a policy can tell apart."""

import jax
import numpy as np
import pytest
from tokenizers.processors import TemplateProcessing

from jerp.bridge.world_text import TextView
from jerp.envs.house import house_small
from jerp.envs.house_text import HouseText
from jerp.envs.lookup import Lookup
from jerp.envs.lookup_tasks import lookup_tasks
from jerp.envs.lookup_text import LookupText
from jerp.envs.shop import Shop
from jerp.envs.shop_tasks import shop_tasks
from jerp.envs.shop_text import ShopText
from jerp.envs.tools import Tools
from jerp.envs.tools_tasks import tools_tasks
from jerp.envs.tools_text import ToolsText
from jerp.errors import ConfigError, InputError
from tests.bridge.tiny_model import tokenizer as byte_tokenizer
from tests.bridge.words import word_tokenizer
from tests.envs.homes import some_tasks


class Counter:
    """A world in words: a number is seen, and may be raised or left."""

    def __init__(self, actions=("raise it", "leave it"), said="It is"):
        self.actions, self.said = actions, said

    def task(self, state, params):
        return f"Reach {int(params)} from {int(state)}."

    def observation(self, state, params):
        return f"{self.said} {int(state)}."

    def action(self, action, params):
        return self.actions[action]


WORDS = word_tokenizer("Reach from It is 1 2 3 . raise leave it go")
STATES, TASKS = np.array([1, 2]), np.array([3, 3])


def view(text=None, tokenizer=WORDS, **changes):
    sizes = {"num_observation_tokens": 12, "num_action_tokens": 4, **changes}
    return TextView(text or Counter(), tokenizer, num_actions=2, **sizes)


def words(ids):
    return " ".join(WORDS.id_to_token(i) for i in ids if i)


def test_what_is_asked_is_said_once():
    first = view().observations(STATES, TASKS, first=True)
    later = view().observations(STATES, TASKS, first=False)
    assert words(first[0]) == "Reach 3 from 1 . \n It is 1 . \n >"
    assert words(later[1]) == "It is 2 . \n >"
    assert first.shape == (2, 12) and first.dtype == np.int32
    assert (later[:, 6:] == 0).all()


def test_rules_stand_before_what_is_asked():
    rule = "When it is 1, raise it."
    tokenizer = word_tokenizer("Reach from It is 1 2 3 . raise", f"Rules: - {rule}")
    shown = view(tokenizer=tokenizer, num_observation_tokens=40)
    plain = shown.observations(STATES, TASKS, first=True)
    rules = [[rule], []]
    found = shown.observations(STATES, TASKS, first=True, rules=rules)
    begin = " ".join(tokenizer.id_to_token(i) for i in found[0] if i)
    assert begin.startswith("Rules : \n - When it is 1 , raise it . \n Reach 3")
    # Without rules nothing changes, and behind them the same ids stand.
    np.testing.assert_array_equal(found[1], plain[1])
    used = np.count_nonzero(plain[0])
    np.testing.assert_array_equal(found[0][found[0] != 0][-used:], plain[0][:used])
    later = shown.observations(STATES, TASKS, first=False, rules=rules)
    blank = shown.observations(STATES, TASKS, first=False)
    np.testing.assert_array_equal(later, blank)


WORDY = word_tokenizer("Reach from It is 1 2 3 . raise it", "Rules: - When , leave")
TOLD = ["When it is 1, raise it.", "When it is 2, leave it."]


def test_no_rule_takes_room_from_what_is_asked():
    """Each rule has 10 tokens, their heading 3, what is asked and seen 12."""
    said = view(tokenizer=WORDY).observations(STATES, TASKS, first=True)
    for room, fit in ((45, 2), (35, 2), (34, 1), (25, 1), (24, 0), (12, 0)):
        shown = view(tokenizer=WORDY, num_observation_tokens=room)
        rules = [TOLD, []]
        assert shown.num_fitting(STATES, TASKS, rules).tolist() == [fit, 0]
        assert shown.num_rules == 0
        found = shown.observations(STATES, TASKS, first=True, rules=rules)
        for row, plain in zip(found, said, strict=True):
            ids, plain = (x[x != 0] for x in (row, plain))
            np.testing.assert_array_equal(ids[-len(plain) :], plain)
        assert (found == WORDY.token_to_id("When")).sum() == fit
        assert shown.num_cut == 0
        assert (shown.num_rules, shown.num_rules_cut) == (2, 2 - fit)
        if fit < 2:
            with pytest.raises(InputError, match="2 rules have no room in"):
                shown.check_cuts()


def test_few_first_observations_do_not_hide_among_many():
    shown = view(num_observation_tokens=8)
    shown.observations(STATES, TASKS, first=True)
    for _ in range(200):
        shown.observations(STATES, TASKS, first=False)
    assert (shown.num_cut, shown.num_first, shown.num_first_cut) == (2, 2, 2)
    with pytest.raises(InputError, match="2 of 2 first observations are longer than 8"):
        shown.check_cuts()


def test_actions_end_with_a_line_break():
    found = view().actions(TASKS)
    assert found.shape == (2, 2, 4)
    assert words(found[0, 0]) == "raise it \n"
    np.testing.assert_array_equal(found[0], found[1])


def test_a_text_that_is_too_long_keeps_the_prompt():
    small = view(num_observation_tokens=5)
    found = small.observations(STATES, TASKS, first=True)
    assert words(found[0]) == "Reach 3 from \n >"
    assert (small.num_shown, small.num_cut) == (2, 2)
    small.observations(STATES, TASKS, first=False)
    assert (small.num_shown, small.num_cut) == (4, 4)
    whole = view()
    whole.observations(STATES, TASKS, first=True)
    whole.check_cuts()


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"num_action_tokens": 2}, r"num_action_tokens: expected at least 3.*raise it"),
        ({"text": Counter(("raise it", "pad"))}, r"token 0 stands for padding"),
    ],
)
def test_actions_that_cannot_be_written(changes, message):
    with pytest.raises(ConfigError, match=message):
        view(**changes).actions(TASKS)


def test_actions_that_read_alike_are_never_open_at_once():
    shown = view(text=Counter(("go", "go")))
    actions = shown.actions(TASKS)
    shown.check_distinct(actions, np.array([[True, False], [False, True]]), TASKS)
    with pytest.raises(ConfigError, match=r"in other words, got 'go' for 0 and 1"):
        shown.check_distinct(actions, np.array([[True, False], [True, True]]), TASKS)


def worlds():
    """Worlds that come with words, and two tasks of each."""
    house, shop, lookup, tools = house_small(), Shop(), Lookup(), Tools()
    yield house, HouseText(house.size), some_tasks(2)
    yield shop, ShopText(), shop_tasks(jax.random.key(1), 2, size=shop.size)
    yield lookup, LookupText(lookup.size), lookup_tasks(jax.random.key(2), 2)
    yield tools, ToolsText(), tools_tasks(jax.random.key(3), 2)


def test_worlds_that_come_with_words():
    for env, text, tasks in worlds():
        shown = TextView(
            text,
            byte_tokenizer(),
            num_actions=env.num_actions,
            num_observation_tokens=600,
            num_action_tokens=80,
        )
        keys = jax.random.split(jax.random.key(4), 2)
        state, now = jax.device_get(jax.jit(jax.vmap(env.reset))(keys, tasks))
        tasks = jax.device_get(tasks)
        actions = shown.actions(tasks)
        shown.check_distinct(actions, now.legal, tasks)
        first = shown.observations(state, tasks, first=True)
        later = shown.observations(state, tasks, first=False)
        shown.check_cuts()
        lengths = [(x != 0).sum(axis=1) for x in (first, later)]
        assert (lengths[0] > lengths[1] + 20).all() and (lengths[1] > 10).all()


def test_no_room_for_a_prompt():
    with pytest.raises(ConfigError, match="num_observation_tokens: expected more than"):
        view(num_observation_tokens=2)


def test_a_tokenizer_that_begins_texts_with_a_token_does_not_here():
    tokenizer = word_tokenizer("Reach from It is 1 2 3 . raise leave it go")
    plain = view(tokenizer=tokenizer).actions(TASKS)
    begin = ("it", tokenizer.token_to_id("it"))
    tokenizer.post_processor = TemplateProcessing("it $A", special_tokens=[begin])
    assert tokenizer.encode("raise").ids[0] == begin[1]
    np.testing.assert_array_equal(view(tokenizer=tokenizer).actions(TASKS), plain)

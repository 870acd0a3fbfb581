"""Words of worlds become tokens that a policy can tell apart."""

import numpy as np
import pytest
from tokenizers.processors import TemplateProcessing

from jerp.bridge.world_text import TextView
from jerp.errors import ConfigError
from tests.bridge.words import word_tokenizer


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
        ({"text": Counter(("go", "go"))}, r"every action in other words, got 'go'"),
        ({"text": Counter(("raise it", "pad"))}, r"token 0 stands for padding"),
    ],
)
def test_actions_that_cannot_be_written(changes, message):
    with pytest.raises(ConfigError, match=message):
        view(**changes).actions(TASKS)


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

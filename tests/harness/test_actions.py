import pytest

from jerp.errors import UnknownNameError
from jerp.harness.actions import ACTIONS, NUM_ACTIONS, Action, action_id


def test_the_order_is_part_of_the_schema():
    assert ACTIONS == (
        "observe",
        "retrieve",
        "call-tool",
        "draft",
        "check",
        "revise",
        "submit",
    )
    assert NUM_ACTIONS == len(Action) == 7


@pytest.mark.parametrize("action", Action)
def test_names_and_numbers_agree(action):
    assert ACTIONS[action] == action.name.lower().replace("_", "-")
    assert action_id(ACTIONS[action]) == action


def test_an_unknown_name_gets_the_nearest():
    with pytest.raises(UnknownNameError, match="did you mean 'submit'"):
        action_id("sumbit")

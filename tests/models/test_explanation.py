import numpy as np
import pytest

from jerp.errors import InputError, UnknownNameError
from jerp.models.explanation import explanation

FEATURES, X, TYPICAL = ("a", "b", "c"), np.array([1.0, 2.0, 3.0]), np.zeros(3)


def policy(rows):
    """One action moves with a by 1, with b by -2; the other with c by 1.5."""
    return np.stack([rows[:, 0] - 2 * rows[:, 1], 1.5 * rows[:, 2]], axis=1) / 10


def explain(actions=None, names=("check", "wait")):
    return explanation(
        policy, X, TYPICAL, feature_names=FEATURES, action_names=names, actions=actions
    )


def test_the_strongest_of_the_asked_actions_come_first():
    assert [row.feature for row in explain(["check", "wait"]).rows] == ["c", "b", "a"]
    only = explain()  # of "check" and "submit" the layout has the first alone
    assert [row.feature for row in only.rows] == ["b", "a", "c"]
    assert [row.change for row in only.rows] == [(-0.4,), (pytest.approx(0.1),), (0,)]


def test_a_layout_without_check_and_submit_is_explained_whole():
    assert explain(names=("go", "wait")).actions == ("go", "wait")
    with pytest.raises(UnknownNameError, match="unknown action 'check'"):
        explain(["check"], names=("go", "wait"))


@pytest.mark.parametrize(
    ("actions", "message"),
    [
        ([0, 1], r"actions: expected names of actions, such as .*, got \[0, 1\]"),
        (5, "actions: expected names of actions, .* got 5"),
        ("check", "actions: expected names of actions, .* got 'check'"),
        ([], "actions: expected names of actions"),
        (["check", "check"], "actions: expected each name once"),
    ],
)
def test_actions_are_different_names(actions, message):
    with pytest.raises(InputError, match=message):
        explain(actions)


def test_it_prints_as_a_table():
    lines = str(explain(["check", "wait"])).splitlines()
    assert len({len(line) for line in lines}) == 1
    assert lines[0].split() == ["feature", "value", "typical", "check", "wait"]
    assert lines[2].split() == ["c", "3", "0", "+0.000", "+0.450"]

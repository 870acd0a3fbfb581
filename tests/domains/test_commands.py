"""Commands in words: what is none never reaches a world; worlds are shared in turn."""

from contextlib import closing

import pytest

from jerp.domains.benchmark import Call, Say
from jerp.domains.commands import (
    CommandSession,
    IdleWorlds,
    Outcome,
    command,
    until_over,
)


def session(given, released=None):
    def act(line):
        given.append(line)
        done = line == "win"
        return Outcome(f"You {line}.", len(given) / 10, done, done, line != "fly")

    released = [] if released is None else released
    return CommandSession("Win.", act, lambda: released.append(True))


def test_an_episode_by_hand():
    given, released = [], []
    with closing(session(given, released)) as played:
        assert played.opening == "Win." and played.tools[0].name == "act"
        assert played.score().score == 0 and not played.score().success
        assert played.move(command("  open \n the door")).text == "You open the door."
        unknown = played.move(command("fly"))
        assert unknown.error and unknown.text == "You fly."
        assert played.score().score == 0.2
        won = played.move(command("win"))
        assert won.ended and not won.error and played.score().success
        assert played.move(command("go")).error
        played.close()
    assert given == ["open the door", "fly", "win"] and released == [True]


def test_admissible_commands_are_those_of_the_world_as_long_as_it_goes_on():
    left = ["win", "fly"]

    def act(line):
        left.remove(line)
        return Outcome(line, 0, line == "win", line == "win")

    with closing(CommandSession("", act, list, admissible=lambda: left)) as played:
        assert played.admissible == ("win", "fly")
        played.move(command("fly"))
        assert played.admissible == ("win",)
        left.append("look")
        played.move(command("win"))
        assert left == ["look"] and played.admissible == ()
    told = session([])
    assert told.admissible == ()
    told.close()
    closed = CommandSession("", act, list, admissible=lambda: left)
    closed.close()
    assert closed.admissible == ()


@pytest.mark.parametrize(
    "move",
    [
        Say("open"),
        Call("do", {"command": "open"}),
        Call("act"),
        Call("act", {"command": 1}),
        Call("act", {"command": "open", "more": 1}),
        command(" \n"),
        command("\x00"),
        command("a" * 1001),
    ],
)
def test_what_is_no_command_does_not_reach_the_world(move):
    given = []
    assert session(given).move(move).error and given == []


def test_a_reference_is_cut_where_it_is_done():
    given = []

    def act(line):
        given.append(line)
        return line == "win"

    assert until_over(["go", "win", "look"], act) == ["go", "win"] == given
    assert until_over(["go", "look"], act) == ["go", "look"]
    assert until_over([], act) == []


class World:
    def __init__(self, made):
        self.closed = 0
        made.append(self)

    def close(self):
        self.closed += 1


def test_worlds_are_used_again_and_ended():
    made = []
    idle = IdleWorlds(lambda: World(made), World.close)
    first, second = idle.take(), idle.take()
    assert first is not second
    idle.give(first)
    assert idle.take() is first and len(made) == 2
    idle.give(second)
    idle.close()
    idle.close()
    assert (first.closed, second.closed) == (0, 1)
    idle.give(first)
    assert first.closed == 1

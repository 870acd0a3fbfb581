"""BabyAI's missions by its own bot, and what is seen of them in words."""

import doctest
import sys
from contextlib import closing

import pytest

from jerp.domains import minigrid_words
from jerp.domains.benchmark import Call, Say
from jerp.domains.conformance import check_benchmark
from jerp.domains.minigrid import LEVELS, MiniGrid
from jerp.domains.minigrid_words import Codes, describe
from jerp.errors import ConfigError, MissingExtraError, UnknownNameError
from tests.domains.installed import needs

CODES = Codes(
    {0: "unseen", 1: "empty", 2: "wall", 3: "floor", 4: "door", 5: "key", 9: "lava"},
    {0: "red", 1: "grey"},
    {0: "open", 1: "closed", 2: "locked"},
)


def view(rows):
    """An image of rows from far to near, three numbers a cell."""
    return [[[int(n) for n in row[x]] for row in rows] for x in range(len(rows))]


def test_a_view_by_hand():
    rows = [
        ["000", "400", "200"],
        ["100", "310", "510"],
        ["900", "510", "402"],
    ]
    assert describe(view(rows), CODES) == (
        "You carry a grey key. Ahead: 1 free step, then an open red door. "
        "Left: at once lava. Right: at once a locked red door. "
        "In view: lava (1 to the left), a locked red door (1 to the right), "
        "a grey key (1 ahead, 1 to the right), an open red door (2 ahead)."
    )


def test_what_is_not_seen_is_not_told():
    free, unseen = ["100"] * 3, ["000"] * 3
    told = describe(view([unseen, free, free]), CODES)
    assert told == (
        "You carry nothing. Ahead: 1 free step, then out of sight. "
        "Left: 1 free step, then out of sight. Right: 1 free step, then out of sight. "
        "In view: nothing else."
    )
    assert doctest.testmod(minigrid_words).failed == 0


@pytest.fixture(scope="module")
def minigrid():
    needs("minigrid", "pip install 'jerp[benchmarks]'")
    return MiniGrid(each=2)


def test_the_bot_gets_full_marks_and_spoilt_ones_none(minigrid):
    found = check_benchmark(minigrid, "test")
    assert (found.tasks, found.checked, found.faults) == (12, 12, ())
    assert (found.oracle, found.dropped, found.wrong, found.nothing) == (1, 0, 0, 0)


@pytest.mark.slow
def test_the_bot_gets_full_marks_in_all_worlds(minigrid):
    for split in MiniGrid.splits:
        found = check_benchmark(MiniGrid(), split)
        assert (found.checked, found.oracle, found.faults) == (300, 1, ())


def test_tasks_are_worlds_of_each_level(minigrid, capsys):
    train, test = minigrid.tasks("train"), minigrid.tasks("test")
    assert [task.payload["kind"] for task in test] == [n for n in LEVELS for _ in "ab"]
    assert not {t.key for t in train} & {t.key for t in test}
    assert train[0].prompt == "go to the red ball"
    with closing(minigrid.start(train[0])) as session:
        assert session.opening.startswith(
            "Your mission: go to the red ball.\nYou carry"
        )
    # The package prints of worlds that it rejects.
    assert capsys.readouterr().out == ""


def test_the_reward_is_less_the_later(minigrid):
    task = minigrid.tasks("test")[0]
    solution = minigrid.oracle(task)
    scores = []
    for turns in (0, 4):
        with closing(minigrid.start(task)) as session:
            for move in (*[Call("act", {"action": "left"})] * turns, *solution):
                assert not session.score().success
                reply = session.move(move)
            assert reply.ended and reply.text.endswith("The mission is done.")
            scores.append(session.score().score)
            assert session.score().success and session.move(solution[0]).error
    # 1 - 0.9 * steps / 64, as the package has it.
    assert scores[0] == pytest.approx(1 - 0.9 * len(solution) / 64)
    assert scores[1] == pytest.approx(1 - 0.9 * (len(solution) + 4) / 64)


def test_out_of_steps_is_lost(minigrid):
    with closing(minigrid.start(minigrid.tasks("test")[0])) as session:
        replies = [session.move(Call("act", {"action": "left"})) for _ in range(64)]
        assert [r.ended for r in replies] == [False] * 63 + [True]
        assert replies[-1].text.endswith("The mission is over.")
        assert session.score().score == 0 and not session.score().success


@pytest.mark.parametrize(
    "move",
    [
        Say("hello"),
        Call("go", {"action": "left"}),
        Call("act"),
        Call("act", {"action": "jump"}),
        Call("act", {"action": ["left"]}),
        Call("act", {"action": "left", "steps": 2}),
    ],
)
def test_what_is_no_action_does_nothing(minigrid, move):
    task = minigrid.tasks("test")[0]
    with closing(minigrid.start(task)) as session:
        assert session.move(move).error
        replies = [session.move(move) for move in minigrid.oracle(task)]
        assert replies[-1].ended and session.score().success


def test_each_action_is_explained(minigrid):
    with closing(minigrid.start(minigrid.tasks("test")[0])) as session:
        (tool,) = session.tools
    names = tool.parameters["properties"]["action"]["enum"]
    assert len(names) == 7 and "done: say that nothing is left" in tool.description
    assert all(f"{name}: {name}" not in tool.description for name in names)


def test_mistakes_are_named(minigrid, monkeypatch):
    with pytest.raises(UnknownNameError, match="did you mean 'test'"):
        minigrid.tasks("tests")
    with pytest.raises(UnknownNameError, match="did you mean 'BabyAI-Open-v0'"):
        MiniGrid(("BabyAI-Opn-v0",))
    with pytest.raises(ConfigError, match="each: expected 1 to 1000000, got 0"):
        MiniGrid(each=0)
    monkeypatch.setitem(sys.modules, "minigrid.utils.baby_ai_bot", None)
    with pytest.raises(MissingExtraError, match=r"jerp\[benchmarks\]"):
        MiniGrid()

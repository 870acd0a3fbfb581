"""ALFWorld by its planner, on rooms of our own, where its package is."""

import json
import sys
from contextlib import closing

import pytest

from jerp.domains import alfworld
from jerp.domains.alfworld import KINDS, AlfWorld, new_world
from jerp.domains.alfworld_instances import SPLITS, make_instances
from jerp.domains.commands import command
from jerp.domains.conformance import check_benchmark
from jerp.errors import ConfigError, MissingExtraError, StorageError, UnknownNameError
from tests.domains.installed import needs

needs("fast_downward", "pip install 'jerp[gpl-envs]'")
needs("alfworld", "pip install 'jerp[gpl-envs]'")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("alfworld")
    assert make_instances(path, 0, 1) == len(SPLITS)
    return path


@pytest.mark.slow
def test_plans_of_all_kinds_get_full_marks(tmp_path):
    make_instances(tmp_path, 1, len(KINDS))
    with closing(AlfWorld(tmp_path)) as games:
        for split in SPLITS:
            assert {t.payload["kind"] for t in games.tasks(split)} == {*KINDS}
        found = check_benchmark(games, "train")
    assert (found.checked, found.oracle, found.faults) == (len(KINDS), 1, ())
    assert (found.dropped, found.wrong, found.nothing) == (0, 0, 0)


def test_an_episode_by_hand(folder, monkeypatch):
    made = []
    monkeypatch.setattr(alfworld, "new_world", lambda: made.append(0) or new_world())
    with closing(AlfWorld(folder, max_steps=8)) as games:
        assert games.splits == SPLITS
        (task,) = games.tasks("train")
        assert task.payload["kind"] == "pick_and_place_simple"
        solution = games.oracle(task)
        with closing(games.start(task)) as session:
            assert f"Your task is to: {task.prompt}." in session.opening
            unknown = session.move(command("frobnicate"))
            assert unknown.error and unknown.text == "Nothing happens."
            assert not session.move(command("help")).error
            for move in solution:
                assert move.arguments["command"] in session.admissible
                reply = session.move(move)
                assert not reply.error
            assert reply.ended
            assert session.score().success and session.score().score == 1
        with closing(games.start(task)) as session:
            replies = [session.move(command("look")) for _ in range(8)]
            assert [reply.ended for reply in replies] == [False] * 7 + [True]
            assert not session.score().success
    # Each holds a copy of the planner for good.
    assert len(made) == 1


def test_games_are_made_once_and_equal_elsewhere(folder, tmp_path):
    assert make_instances(folder, 0, 1) == 0
    make_instances(tmp_path, 0, 1)
    files = sorted(path.relative_to(folder) for path in folder.rglob("*.*"))
    assert len(files) == 2 * len(SPLITS)
    for file in files:
        assert (tmp_path / file).read_bytes() == (folder / file).read_bytes()


def test_the_official_form_of_folders_is_read(tmp_path):
    game = {
        **{"pddl_domain": "", "pddl_problem": "", "solvable": True},
        "grammar": '"rhs": "#look#\\n\\nYour task is to: cool some apple."',
    }
    kinds = {"a": KINDS[5], "b": "pick_and_place_with_movable_recep"}
    kinds |= {"c-movable": KINDS[0], "d-Sliced": KINDS[0], "e": KINDS[0]}
    for name, kind in kinds.items():
        place = tmp_path / "json_2.1.1" / "valid_unseen" / name / "trial"
        place.mkdir(parents=True)
        (place / "traj_data.json").write_text(json.dumps({"task_type": kind}))
        solvable = {"solvable": name != "e"}
        (place / "game.tw-pddl").write_text(json.dumps({**game, **solvable}))
    (tmp_path / "json_2.1.1" / "nothing").mkdir()
    with closing(AlfWorld(tmp_path)) as games:
        assert games.splits == ("valid_unseen",)
        (task,) = games.tasks("valid_unseen")
        assert task.key == "alfworld/valid_unseen/a/trial"
        assert task.prompt == "cool some apple" and task.payload["kind"] == KINDS[5]


def test_mistakes_are_named(tmp_path, monkeypatch):
    monkeypatch.setenv("ALFWORLD_DATA", str(tmp_path / "none"))
    with pytest.raises(ConfigError, match=r"none, got none.*--data or ALFWORLD_DATA"):
        AlfWorld()
    with pytest.raises(ConfigError, match="max_steps: expected at least 1, got 0"):
        AlfWorld(tmp_path, max_steps=0)
    with pytest.raises(ConfigError, match="number: expected at least 1, got 0"):
        make_instances(tmp_path, 0, 0)
    (tmp_path / "train").mkdir()
    (tmp_path / "train" / "game.tw-pddl").write_text("{}")
    with closing(AlfWorld(tmp_path)) as games:
        with pytest.raises(UnknownNameError, match="split"):
            games.tasks("tran")
        with pytest.raises(StorageError, match=r"traj_data\.json: no game of ALFWorld"):
            games.tasks("train")
    (tmp_path / "train" / "traj_data.json").write_text('{"task_type": "x"}')
    with (
        closing(AlfWorld(tmp_path)) as games,
        pytest.raises(StorageError, match=r"no game of ALFWorld.*pddl_domain"),
    ):
        games.tasks("train")
    monkeypatch.setitem(sys.modules, "fast_downward", None)
    with pytest.raises(MissingExtraError, match=r"alfworld.*jerp\[gpl-envs\]"):
        AlfWorld(tmp_path)

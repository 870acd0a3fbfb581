"""TextWorld by its own walkthroughs, where its package is."""

import shutil
import sys
from contextlib import closing

import pytest

from jerp.domains.commands import command
from jerp.domains.conformance import check_benchmark
from jerp.domains.textworld import TextWorld
from jerp.domains.textworld_games import KINDS, game_folder
from jerp.errors import ConfigError, MissingExtraError, StorageError, UnknownNameError
from tests.domains.installed import needs

needs("textworld", "pip install 'jerp[gpl-envs]'")

# The package itself ignores these from its import on, which pytest undoes.
pytestmark = pytest.mark.filterwarnings(
    "ignore:Unable to find valid actions", "ignore:.*is not fully supported"
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("games")


@pytest.fixture(scope="module")
def made(folder):
    with closing(TextWorld(each=1, max_steps=12, cache=folder)) as games:
        yield games


@pytest.mark.slow
@pytest.mark.parametrize("split", ["train", "test"])
def test_walkthroughs_get_full_marks(split, folder):
    with closing(TextWorld(each=3, cache=folder)) as games:
        found = check_benchmark(games, split)
    assert (found.checked, found.oracle, found.faults) == (3 * len(KINDS), 1, ())
    assert (found.dropped, found.wrong, found.nothing) == (0, 0, 0)


def test_an_episode_by_hand(made):
    coin = made.tasks("test")[0]
    assert coin.payload == {"kind": "tw-coin_collector", "split": "test", "number": 0}
    solution = made.oracle(coin)
    assert solution[-1] == command("take coin") and len(solution) == 5
    with closing(made.start(coin)) as session:
        assert "-= " in session.opening and "coin" in session.opening
        assert "___" not in session.opening
        assert session.move(command("frobnicate")).error
        assert session.move(command("save")).error
        assert session.score().score == 0
        for move in solution:
            assert move.arguments["command"] in session.admissible
            reply = session.move(move)
        assert not reply.error and reply.ended
        assert session.score().success and session.score().score == 1
    with closing(made.start(coin)) as session:
        replies = [session.move(command("look")) for _ in range(12)]
        assert [reply.ended for reply in replies] == [False] * 11 + [True]
        assert not session.score().success and session.admissible == ()


def test_games_are_made_once_and_equal_elsewhere(made, folder, tmp_path):
    coin = made.tasks("test")[0]
    made.oracle(coin)
    (file,) = folder.glob("tw-coin_collector-test-1000001.z8")
    written = file.stat().st_mtime_ns
    made.oracle(coin)
    assert file.stat().st_mtime_ns == written
    with closing(TextWorld(each=1, cache=tmp_path)) as again:
        again.oracle(coin)
    assert (tmp_path / file.name).read_bytes() == file.read_bytes()
    suffixes = {path.suffix for path in tmp_path.iterdir()}
    assert suffixes == {".z8", ".json"}


def test_a_folder_of_games(made, folder, tmp_path):
    made.oracle(made.tasks("test")[0])
    for path in folder.glob("tw-coin_collector-test-1000001.*"):
        (tmp_path / "easy").mkdir(exist_ok=True)
        shutil.copy(path, tmp_path / "easy" / f"coin{path.suffix}")
        shutil.copy(path, tmp_path / f"one{path.suffix}")
    (tmp_path / "alone.z8").write_bytes(b"without what is told of it")
    (tmp_path / "bad.z8").write_bytes(b"no game")
    (tmp_path / "bad.json").write_text("{}")
    with closing(TextWorld(tmp_path)) as games:
        assert games.splits == ("all", "easy")
        (task,) = games.tasks("easy")
        assert task.key == "textworld/easy/coin.z8"
        bad, one = games.tasks("all")
        assert games.oracle(task) == games.oracle(one)
        with closing(games.start(one)) as session:
            for move in games.oracle(one):
                assert not session.move(move).error
            assert session.score().success and session.score().score == 1
        with pytest.raises(StorageError, match=r"bad\.z8: no game of TextWorld"):
            games.start(bad)


def test_where_games_are_kept(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert game_folder("1.7") == tmp_path / "jerp" / "textworld-1.7"
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert game_folder("1.7") == tmp_path / ".cache" / "jerp" / "textworld-1.7"


def test_mistakes_are_named(made, tmp_path, monkeypatch):
    with pytest.raises(UnknownNameError, match="split"):
        made.tasks("tst")
    with pytest.raises(ConfigError, match="got 0 and 100"):
        TextWorld(each=0)
    with pytest.raises(StorageError, match="expected games of TextWorld"):
        TextWorld(tmp_path)
    (tmp_path / "file").touch()
    with (
        closing(TextWorld(each=1, cache=tmp_path / "file")) as games,
        pytest.raises(StorageError, match="the game cannot be made"),
    ):
        games.start(games.tasks("test")[0])
    monkeypatch.setitem(sys.modules, "textworld", None)
    with pytest.raises(MissingExtraError, match=r"textworld.*jerp\[gpl-envs\]"):
        TextWorld()

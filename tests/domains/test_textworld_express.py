"""TextWorldExpress by its own gold paths, where its package and Java are."""

import shutil
import sys
from contextlib import closing

import pytest

from jerp.domains import textworld_express
from jerp.domains.commands import command
from jerp.domains.conformance import check_benchmark
from jerp.domains.textworld_express import GAMES, TextWorldExpress
from jerp.errors import ConfigError, MissingExtraError, UnknownNameError
from tests.domains.installed import needs

needs("textworld_express", "pip install 'jerp[benchmarks]'")


@pytest.fixture(scope="module")
def games():
    if shutil.which("java") is None:
        pytest.skip("needs Java 8 or later")
    with closing(TextWorldExpress(each=1, max_steps=20)) as made:
        yield made


@pytest.mark.slow
@pytest.mark.parametrize("split", TextWorldExpress.splits)
def test_gold_paths_get_full_marks(split):
    with closing(TextWorldExpress()) as games:
        found = check_benchmark(games, split)
        broken = [t for t in games.tasks(split) if t.key in games.broken]
        for task in broken:
            with closing(games.start(task)) as session:
                for move in games.oracle(task):
                    session.move(move)
                assert not session.score().success, games.broken[task.key]
    assert (found.oracle, found.faults, found.broken) == (1, (), len(broken))
    assert found.checked == 25 * len(GAMES) - len(broken)


def test_an_episode_by_hand(games):
    easy = games.tasks("test")[GAMES.index("arithmetic")]
    with closing(games.start(easy)) as session:
        assert session.opening.startswith(
            "Your first task is to solve the math problem"
        )
        assert not session.move(command("help")).error
        unknown = session.move(command("frobnicate"))
        assert unknown.error and unknown.text.startswith("Unknown action")
        assert session.score().score == 0
        assert games.oracle(easy)[0].arguments["command"] in session.admissible
        replies = [session.move(move) for move in games.oracle(easy)]
        assert (
            replies[-1].ended and session.score().success and session.score().score == 1
        )


def test_the_splits_are_the_official_ones(games):
    keys = {split: {t.key for t in games.tasks(split)} for split in games.splits}
    assert all(len(own) == len(GAMES) for own in keys.values())
    seeds = {s: {t.payload["seed"] for t in games.tasks(s)} for s in games.splits}
    assert not seeds["train"] & seeds["test"] and not seeds["dev"] & seeds["test"]


def test_out_of_steps_is_over_and_lost(games):
    with closing(games.start(games.tasks("test")[0])) as session:
        replies = [session.move(command("look around")) for _ in range(21)]
        assert [reply.ended for reply in replies] == [False] * 20 + [True]
        assert not session.score().success


def test_mistakes_are_named(games, monkeypatch):
    with pytest.raises(UnknownNameError, match="split"):
        games.tasks("tst")
    with pytest.raises(ConfigError, match="got 0 and 100"):
        TextWorldExpress(each=0)
    monkeypatch.setattr(textworld_express.shutil, "which", lambda name: None)
    with pytest.raises(ConfigError, match="needs Java"):
        TextWorldExpress()
    monkeypatch.setitem(sys.modules, "textworld_express", None)
    with pytest.raises(MissingExtraError, match="textworld-express"):
        TextWorldExpress()

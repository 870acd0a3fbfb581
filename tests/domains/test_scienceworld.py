"""ScienceWorld by its own gold paths, where its package and Java are."""

import os
import shutil
import sys
from contextlib import closing

import pytest

from jerp.domains import scienceworld
from jerp.domains.commands import command
from jerp.domains.conformance import check_benchmark
from jerp.domains.scienceworld import ScienceWorld
from jerp.errors import ConfigError, MissingExtraError, UnknownNameError
from tests.domains.installed import needs

needs("scienceworld", "pip install 'jerp[benchmarks]'")


@pytest.fixture(scope="module")
def world():
    if shutil.which("java") is None:
        pytest.skip("needs Java 8 or later")
    with closing(ScienceWorld(max_steps=20)) as made:
        yield made


def of_kind(world, kind):
    return next(t for t in world.tasks("test") if t.payload["kind"] == kind)


@pytest.mark.slow
def test_a_gold_path_of_each_task_gets_full_marks():
    if shutil.which("java") is None:
        pytest.skip("needs Java 8 or later")
    with closing(ScienceWorld()) as world:
        found = check_benchmark(world, "test")
    assert (found.tasks, found.oracle, found.faults) == (1819, 1, ())
    assert found.checked == 120 and found.nothing == 0


def test_an_episode_by_hand(world, monkeypatch):
    monkeypatch.setenv("JAVA_TOOL_OPTIONS", "-Dours=kept")
    easy = of_kind(world, "lifespan-longest-lived")
    solution = world.oracle(easy)
    assert os.environ["JAVA_TOOL_OPTIONS"] == "-Dours=kept"
    with closing(world.start(easy)) as session:
        assert session.opening.startswith("Your task is to find the animal")
        unknown = session.move(command("frobnicate"))
        assert unknown.error and session.score().score == 0
        assert "look around" in session.admissible
        replies = [session.move(move) for move in solution]
        assert replies[-1].ended and session.score().success
    with closing(world.start(easy)) as session:
        replies = [session.move(command("wait1")) for _ in range(22)]
        assert not replies[5].ended and replies[-1].ended
        assert not session.score().success


def test_things_are_listed_in_the_same_order_each_time(world):
    # The three cups of paint were in any order, as Java's identity hashes were.
    mix = of_kind(world, "chemistry-mix-paint-secondary-color")
    openings = set()
    for _ in range(6):
        with closing(world.start(mix)) as session:
            openings.add(session.opening)
    assert len(openings) == 1


def test_mistakes_are_named(world, monkeypatch):
    with pytest.raises(UnknownNameError, match="split"):
        world.tasks("tst")
    monkeypatch.setattr(scienceworld.shutil, "which", lambda name: "/bin/java")
    with pytest.raises(ConfigError, match="max_steps: expected at least 1, got 0"):
        ScienceWorld(max_steps=0)
    monkeypatch.setattr(scienceworld.shutil, "which", lambda name: None)
    with pytest.raises(ConfigError, match="needs Java"):
        ScienceWorld()
    monkeypatch.setitem(sys.modules, "scienceworld", None)
    with pytest.raises(MissingExtraError, match="scienceworld"):
        ScienceWorld()

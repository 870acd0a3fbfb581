"""A run that a full disk or a kill breaks off: what its tests have in common."""

import gc
import hashlib
import subprocess
import sys
import time
from pathlib import Path

import pytest

from jerp.errors import StorageError
from tests.runs.failing_writes import POINTS, failing

__all__ = [
    "LOST",
    "check_points",
    "fail_at",
    "go_on",
    "kill_ten_times",
    "last_of",
]

LOST = pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
"""What Orbax is writing when a folder cannot be made is never awaited, which Python may
only notice in the next test."""


def check_points(points, *, appended):
    """Writes of an undisturbed run are of every kind, and many."""
    assert {*POINTS, "append"} == {*points}
    assert points.count("append") == appended
    assert len(points) > 30


def last_of(points, kind):
    """The number of the last write of a kind."""
    return max(i for i, name in enumerate(points) if name == kind)


def fail_at(monkeypatch, points, number, go):
    """Calls `go`, whose writes are `points`, while the `number`-th of them fails."""
    with failing(monkeypatch, number) as made:
        try:
            go()
        except StorageError as error:
            assert "cannot be written" in str(error) or "No space left" in str(error)
        else:
            # Nothing was to be made: the folder is there.
            assert points[number] == "mkdir"
    assert made[number] == points[number]
    if points[number] == "mkdir":
        # What Orbax was writing meanwhile comes to nothing here, and in no later test.
        time.sleep(0.2)
        gc.collect()


def kill_ten_times(program, *words):
    """As it goes on, or amid steps and their files; -9, so nothing is tidied."""
    for kill in range(10):
        moment = hashlib.sha256(str(kill).encode()).digest()[0] / 256
        with _started(program, *words) as process:
            # The number that was found done, and after a step "1".
            lines = [process.stdout.readline() for _ in range(1 if kill < 3 else 2)]
            assert all(line.strip().isdigit() for line in lines), lines
            time.sleep(moment * 0.4)
            process.kill()
            assert process.wait() == -9


def go_on(program, *words):
    """Lets a program come to its end; returns what it found done."""
    with _started(program, *words) as process:
        done = int(process.stdout.readline())
        assert process.stdout.read().split()[-1] == "done"
        assert process.wait() == 0
    return done


def _started(program, *words):
    """A process that prints the number of what is done, as it goes on and then "1"s."""
    return subprocess.Popen(
        [sys.executable, "-W", "ignore", "-c", program, *map(str, words)],
        cwd=Path(__file__).parents[2],
        stdout=subprocess.PIPE,
        text=True,
    )

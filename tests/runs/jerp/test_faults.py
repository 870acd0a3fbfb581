"""A disk that fails, a process that is killed: what goes on ends with the same bits."""

import gc
import hashlib
import subprocess
import sys
import time
from pathlib import Path

import pytest

from jerp.errors import StorageError
from jerp.runs.jerp.record import load_policy_and_pool
from tests.runs.failing_writes import POINTS, failing
from tests.runs.jerp.small_run import bits, run, written

QUIET = pytest.mark.filterwarnings("ignore:.*after the last checkpoint are taken back")
LOST = pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
"""What Orbax is writing when a folder cannot be made is never awaited, which Python may
only notice in the next test."""


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """Two iterations with a checkpoint after each, undisturbed; and its writes."""
    run(tmp_path_factory.mktemp("warm"), 2, chunk=1)
    folder = tmp_path_factory.mktemp("whole")
    with pytest.MonkeyPatch.context() as patch, failing(patch, -1) as made:
        trained = run(folder, 2, chunk=1)
    return bits(trained.state), written(folder), tuple(made)


def check_fault(whole, folder, monkeypatch, number):
    """A run whose `number`-th write fails, and what it comes to when it goes on."""
    state, files, points = whole
    folder.mkdir(exist_ok=True)
    with failing(monkeypatch, number) as made:
        try:
            run(folder, 2, chunk=1)
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
    rest = run(folder, 2, chunk=1)
    assert bits(rest.state) == state
    assert written(folder) == files
    found = load_policy_and_pool(folder)
    assert bits(found.params) == bits(rest.state.train.params)


def test_every_kind_of_write_is_among_the_points(whole):
    *_, points = whole
    assert {*POINTS, "append"} == {*points}
    # Metrics and edits of each iteration.
    assert points.count("append") == 4
    assert len(points) > 30


@QUIET
@pytest.mark.parametrize("kind", ["fsync", "replace", "rename", "append"])
def test_the_last_write_of_a_kind_fails(whole, tmp_path, monkeypatch, kind):
    *_, points = whole
    last = max(i for i, name in enumerate(points) if name == kind)
    check_fault(whole, tmp_path, monkeypatch, last)


@pytest.mark.slow
@QUIET
@LOST
def test_whatever_write_fails_the_run_ends_with_the_same_bits(
    whole, tmp_path, monkeypatch
):
    for number in range(len(whole[2])):
        check_fault(whole, tmp_path / str(number), monkeypatch, number)


PROGRAM = """
import sys
from pathlib import Path
import tests.conftest
from tests.runs.jerp.small_run import run
run(Path(sys.argv[1]), int(sys.argv[2]), chunk=1,
    on_progress=lambda done: print(done, flush=True))
print("done", flush=True)
"""


@pytest.mark.slow
@LOST
def test_ten_kills_at_random_moments_lose_nothing(tmp_path):
    """As it goes on, or amid iterations and their files; -9, so nothing is tidied."""
    iterations = 120
    for kill in range(10):
        moment = hashlib.sha256(str(kill).encode()).digest()[0] / 256
        with started(tmp_path / "killed", iterations) as process:
            # The number that was found done, and after an iteration "1".
            lines = [process.stdout.readline() for _ in range(1 if kill < 3 else 2)]
            assert all(line.strip().isdigit() for line in lines), lines
            time.sleep(moment * 0.4)
            process.kill()
            assert process.wait() == -9
    with started(tmp_path / "killed", iterations) as process:
        done = int(process.stdout.readline())
        assert 7 <= done < iterations
        assert process.stdout.read().split()[-1] == "done"
        assert process.wait() == 0
    whole = run(tmp_path / "whole", iterations)
    assert written(tmp_path / "killed") == written(tmp_path / "whole")
    found = load_policy_and_pool(tmp_path / "killed")
    assert bits(found.params) == bits(whole.state.train.params)
    assert bits(found.pool) == bits(whole.state.pool)


def started(folder, iterations):
    return subprocess.Popen(
        [sys.executable, "-W", "ignore", "-c", PROGRAM, str(folder), str(iterations)],
        cwd=Path(__file__).parents[3],
        stdout=subprocess.PIPE,
        text=True,
    )

"""A disk that fails, a process that is killed: the same bits, and no run twice."""

import gc
import hashlib
import subprocess
import sys
import time
from pathlib import Path

import pytest

from jerp.errors import StorageError
from tests.runs.failing_writes import POINTS, failing
from tests.runs.skills.small_skills import Scripted, bits, most_often, run, written

QUIET = pytest.mark.filterwarnings("ignore:.*are taken back", "ignore:.*half-written")
LOST = pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
"""What Orbax is writing when a folder cannot be made is never awaited, which Python may
only notice in the next test."""


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """Three batches with a checkpoint after each, undisturbed; and its writes."""
    folder = tmp_path_factory.mktemp("whole")
    with pytest.MonkeyPatch.context() as patch, failing(patch, -1) as made:
        trained = run(folder, 3)
    return bits(trained.state), written(folder), tuple(made)


def check_fault(whole, folder, monkeypatch, number):
    """A run whose `number`-th write fails, and what it comes to when it goes on."""
    state, files, points = whole
    workplace = Scripted()
    folder.mkdir(exist_ok=True)
    with failing(monkeypatch, number) as made:
        try:
            run(folder, 3, workplace=workplace)
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
    file, asked = folder / "runs.jsonl", len(workplace.asked)
    kept = file.read_bytes().count(b"\n") - 1 if file.exists() else 0
    rest = run(folder, 3, workplace=workplace)
    assert bits(rest.state) == state
    assert written(folder) == files
    # Executed again were those alone that the disk refused to take.
    repeated = len(workplace.asked) - len({*workplace.asked})
    assert repeated == asked - max(kept, 0) <= 5


def test_every_kind_of_write_is_among_the_points(whole):
    *_, points = whole
    assert {*POINTS, "append"} == {*points}
    assert points.count("append") == 3
    assert len(points) > 30


@QUIET
@pytest.mark.parametrize("kind", ["fsync", "append"])
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


@pytest.mark.slow
@QUIET
def test_a_death_before_any_execution_repeats_none(tmp_path):
    """Between any two calls of the executor."""
    calm = Scripted()
    trained = run(tmp_path / "calm", 3, workplace=calm)
    for dies_after in range(len(calm.asked)):
        workplace, folder = Scripted(dies_after=dies_after), tmp_path / str(dies_after)
        with pytest.raises(KeyboardInterrupt):
            run(folder, 3, workplace=workplace, execute_at_once=1)
        alive = Scripted(asked=workplace.asked)
        rest = run(folder, 3, workplace=alive, execute_at_once=1)
        assert alive.asked == calm.asked and most_often(alive) == 1
        assert bits(rest.state) == bits(trained.state)
        assert written(folder) == written(tmp_path / "calm")


PROGRAM = """
import sys
from pathlib import Path
import tests.conftest
from tests.runs.skills.small_skills import SETTINGS, Scripted, run
from dataclasses import dataclass, replace

@dataclass(frozen=True)
class Told(Scripted):
    def execute(self, trials):
        with open(Path(sys.argv[1]) / "asked.txt", "a") as file:
            for trial in trials:
                print(trial.task, trial.name, file=file, flush=True)
        return super().execute(trials)

settings = replace(SETTINGS, phases=2, batches=30)
run(Path(sys.argv[1]), settings=settings, workplace=Told(), execute_at_once=1,
    on_progress=lambda done: print(done, flush=True))
print("done", flush=True)
"""


@pytest.mark.slow
@LOST
def test_ten_kills_at_random_moments_repeat_at_most_what_was_under_way(tmp_path):
    """As it goes on, or amid batches and their files; -9, so nothing is tidied."""
    killed, calm = tmp_path / "killed", tmp_path / "calm"
    for folder in (killed, calm):
        folder.mkdir()
    for kill in range(10):
        moment = hashlib.sha256(str(kill).encode()).digest()[0] / 256
        with started(killed) as process:
            # The number that was found done, and after a batch "1".
            lines = [process.stdout.readline() for _ in range(1 if kill < 3 else 2)]
            assert all(line.strip().isdigit() for line in lines), lines
            time.sleep(moment * 0.4)
            process.kill()
            assert process.wait() == -9
    for folder in (killed, calm):
        with started(folder) as process:
            done = int(process.stdout.readline())
            assert (7 <= done < 60) == (folder == killed)
            assert process.stdout.read().split()[-1] == "done"
            assert process.wait() == 0
    assert written(killed) == written(calm)
    asked, once = ((f / "asked.txt").read_text().split("\n") for f in (killed, calm))
    # One that was being executed when it was killed was paid for and not told.
    assert {*asked} == {*once} and len(asked) <= len(once) + 10


def started(folder):
    return subprocess.Popen(
        [sys.executable, "-W", "ignore", "-c", PROGRAM, str(folder)],
        cwd=Path(__file__).parents[3],
        stdout=subprocess.PIPE,
        text=True,
    )

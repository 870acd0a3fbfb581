"""A disk that fails, a process that is killed: the same bits, and no run twice."""

from functools import partial

import pytest

from tests.runs.broken_off import (
    LOST,
    check_points,
    fail_at,
    go_on,
    kill_ten_times,
    last_of,
)
from tests.runs.failing_writes import failing
from tests.runs.skills.small_skills import Scripted, bits, most_often, run, written

QUIET = pytest.mark.filterwarnings("ignore:.*are taken back", "ignore:.*half-written")


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
    fail_at(monkeypatch, points, number, partial(run, folder, 3, workplace=workplace))
    file, asked = folder / "runs.jsonl", len(workplace.asked)
    kept = file.read_bytes().count(b"\n") - 1 if file.exists() else 0
    rest = run(folder, 3, workplace=workplace)
    assert bits(rest.state) == state
    assert written(folder) == files
    # Executed again were those alone that the disk refused to take.
    repeated = len(workplace.asked) - len({*workplace.asked})
    assert repeated == asked - max(kept, 0) <= 5


def test_every_kind_of_write_is_among_the_points(whole):
    check_points(whole[2], appended=3)


@QUIET
@pytest.mark.parametrize("kind", ["fsync", "append"])
def test_the_last_write_of_a_kind_fails(whole, tmp_path, monkeypatch, kind):
    check_fault(whole, tmp_path, monkeypatch, last_of(whole[2], kind))


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
    killed, calm = tmp_path / "killed", tmp_path / "calm"
    for folder in (killed, calm):
        folder.mkdir()
    kill_ten_times(PROGRAM, killed)
    assert 7 <= go_on(PROGRAM, killed) < 60
    assert go_on(PROGRAM, calm) == 0
    assert written(killed) == written(calm)
    asked, once = ((f / "asked.txt").read_text().split("\n") for f in (killed, calm))
    # One that was being executed when it was killed was paid for and not told.
    assert {*asked} == {*once} and len(asked) <= len(once) + 10

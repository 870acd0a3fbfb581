"""A disk that fails, a process that is killed: what goes on ends with the same bits."""

from functools import partial

import pytest

from jerp.runs.jerp.record import load_policy_and_pool
from tests.runs.broken_off import (
    LOST,
    check_points,
    fail_at,
    go_on,
    kill_ten_times,
    last_of,
)
from tests.runs.failing_writes import failing
from tests.runs.jerp.small_run import bits, run, written

QUIET = pytest.mark.filterwarnings("ignore:.*after the last checkpoint are taken back")


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
    fail_at(monkeypatch, points, number, partial(run, folder, 2, chunk=1))
    rest = run(folder, 2, chunk=1)
    assert bits(rest.state) == state
    assert written(folder) == files
    found = load_policy_and_pool(folder)
    assert bits(found.params) == bits(rest.state.train.params)


def test_every_kind_of_write_is_among_the_points(whole):
    # Metrics and edits of each iteration.
    check_points(whole[2], appended=4)


@QUIET
@pytest.mark.parametrize("kind", ["fsync", "replace", "rename", "append"])
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
    iterations = 120
    kill_ten_times(PROGRAM, tmp_path / "killed", iterations)
    assert 7 <= go_on(PROGRAM, tmp_path / "killed", iterations) < iterations
    whole = run(tmp_path / "whole", iterations)
    assert written(tmp_path / "killed") == written(tmp_path / "whole")
    found = load_policy_and_pool(tmp_path / "killed")
    assert bits(found.params) == bits(whole.state.train.params)
    assert bits(found.pool) == bits(whole.state.pool)

"""Processes side by side: what they say never stops them, what fails stops all."""

import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace

import pytest

from experiments.jobs import processes
from experiments.jobs.processes import run_together
from jerp.errors import TrainingError

TALKER = "tests.experiments.talker"

STARTER = f"""
import sys
from pathlib import Path
from experiments.jobs.processes import run_together

def watch():
    if (Path(sys.argv[1]) / "process-0.log").read_bytes():
        print("begun", flush=True)

run_together({TALKER!r}, [["1", "0", "120"]], Path(sys.argv[1]), watch)
"""
"""Starts a process that says one thing and waits for two minutes."""


def test_a_process_may_say_more_than_a_pipe_holds(tmp_path):
    seen = []
    run_together(TALKER, [["200000", "0"]], tmp_path, lambda: seen.append(1))
    assert (tmp_path / "process-0.log").stat().st_size == 200_000 and seen


def test_what_fails_stops_the_others_and_says_why(tmp_path):
    begun = time.monotonic()
    with pytest.raises(TrainingError, match=r"ended with 3: the reason; .*process-1"):
        run_together(TALKER, [["0", "0", "60"], ["0", "3"]], tmp_path, lambda: None)
    assert time.monotonic() - begun < 30


@pytest.mark.parametrize(
    ("status", "room", "said"),
    [
        (1, 2**40, "ended with 1: it said nothing; "),
        (1, 2**20, "ended with 1: it could say nothing, .+ full: 1.0 MiB are left; "),
        (-9, 2**40, "was ended by SIGKILL, as when memory runs out: it said nothing; "),
        (-15, 2**40, "was ended by SIGTERM: it said nothing; "),
        (-250, 2**40, "was ended by signal 250: "),
    ],
)
def test_what_ends_without_a_word_is_told_in_words(
    tmp_path, monkeypatch, status, room, said
):
    def started(words, log, variables):
        log.touch()
        return SimpleNamespace(poll=lambda: status, returncode=status)

    usage = SimpleNamespace(free=room)
    monkeypatch.setattr(processes, "_started", started)
    monkeypatch.setattr(processes.shutil, "disk_usage", lambda path: usage)
    with pytest.raises(TrainingError, match=f"a process of {TALKER} {said}"):
        run_together(TALKER, [[]], tmp_path, lambda: None)


def test_processes_end_with_the_one_that_started_them_even_if_it_is_killed(tmp_path):
    """They have its output too, which ends once the last of them has."""
    starter = subprocess.Popen(
        [sys.executable, "-c", STARTER, str(tmp_path)],
        stdout=subprocess.PIPE,
        cwd=Path(__file__).parents[2],
    )
    assert starter.stdout is not None and starter.stdout.readline() == b"begun\n"
    starter.kill()
    starter.communicate(timeout=30)

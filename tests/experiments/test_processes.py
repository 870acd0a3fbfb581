"""Processes side by side: what they say never stops them, what fails stops all."""

import time

import pytest

from experiments.jobs.processes import run_together
from jerp.errors import TrainingError

TALKER = "tests.experiments.talker"


def test_a_process_may_say_more_than_a_pipe_holds(tmp_path):
    seen = []
    run_together(TALKER, [["200000", "0"]], tmp_path, lambda: seen.append(1))
    assert (tmp_path / "process-0.log").stat().st_size == 200_000 and seen


def test_what_fails_stops_the_others_and_says_why(tmp_path):
    begun = time.monotonic()
    with pytest.raises(TrainingError, match=r"ended with 3: the reason; .*process-1"):
        run_together(TALKER, [["0", "0", "60"], ["0", "3"]], tmp_path, lambda: None)
    assert time.monotonic() - begun < 30

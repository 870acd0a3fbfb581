"""kill -9 while episodes are collected: the next run ends with the same files."""

import random
import select
import signal
import subprocess
import sys
import time

import jax
import numpy as np
import pytest

from jerp.bridge.store import ResponseStore
from jerp.storage.trajectories import TrajectoryFolder
from jerp.typing import USAGE_KINDS
from tests.runs.harness.collecting import collect_all

SECONDS = USAGE_KINDS.index("seconds")


def _killed_once(folder, delay: float) -> bool:
    """Kills a collecting child `delay` after its first episodes; True if killed."""
    child = subprocess.Popen(
        [sys.executable, "-m", "tests.runs.harness.collecting", str(folder)],
        stdout=subprocess.PIPE,
        text=True,
    )
    assert child.stdout is not None
    ready, _, _ = select.select([child.stdout], [], [], 120)
    assert ready, "the child never collected an episode"
    time.sleep(delay)
    child.send_signal(signal.SIGKILL)
    child.communicate()
    return child.returncode == -signal.SIGKILL


def _timeless(folder: TrajectoryFolder):
    trajectory = folder.load()
    usage = np.array(trajectory.usage)
    usage[..., SECONDS] = 0
    return trajectory.replace(usage=usage)


def _entries(folder):
    with ResponseStore(folder / "store", mode="replay") as store:
        records = {}
        for entry in store.entries():
            record = dict(entry.record)
            record["completion"] = {
                k: v for k, v in record["completion"].items() if k != "seconds"
            }
            records[entry.kind, entry.key] = record
        return records


def _check_kills(tmp_path, kills: int) -> None:
    undisturbed = collect_all(tmp_path / "whole", latency=0.0)
    draw = random.Random(0)
    killed = sum(
        _killed_once(tmp_path / "killed", draw.uniform(0.0, 0.6)) for _ in range(kills)
    )
    assert killed >= 1
    resumed = collect_all(tmp_path / "killed", latency=0.0)
    expected, got = _timeless(undisturbed), _timeless(resumed)
    jax.tree.map(np.testing.assert_array_equal, expected, got)
    assert resumed.transcripts() == undisturbed.transcripts()
    assert _entries(tmp_path / "killed") == _entries(tmp_path / "whole")


def test_collecting_survives_kills(tmp_path):
    _check_kills(tmp_path, kills=2)


@pytest.mark.slow
def test_collecting_survives_ten_kills(tmp_path):
    _check_kills(tmp_path, kills=10)

"""Two processes train and checkpoint together, and one goes on from there."""

import json
import socket
import subprocess
import sys
from contextlib import ExitStack, contextmanager
from pathlib import Path

import jax
import numpy as np
import pytest

from jerp.errors import ConfigError
from jerp.storage.metrics import read_metrics
from tests.runs.policy.distributed_program import train

PROGRAM = (sys.executable, "-m", "tests.runs.policy.distributed_program")


def free_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


@contextmanager
def two_processes(folder):
    """Of one run in `folder`; what each printed, once they are done."""
    address, outputs = f"127.0.0.1:{free_port()}", []
    with ExitStack() as stack:
        files = [stack.enter_context((folder / f"{i}.txt").open("w+")) for i in "01"]
        processes = [
            subprocess.Popen(
                [*PROGRAM, str(folder / "two"), str(rank), "2", address],
                cwd=Path(__file__).parents[3],
                stdout=file,
                stderr=subprocess.STDOUT,
            )
            for rank, file in enumerate(files)
        ]
        try:
            yield outputs
            for process, file in zip(processes, files, strict=True):
                failed = process.wait(timeout=180)
                file.seek(0)
                printed = file.read()
                assert not failed, printed
                outputs.append(json.loads(printed.splitlines()[-1]))
        finally:
            # A process that waits for another one ends in no other way.
            for process in processes:
                process.kill()
                process.wait()


def test_two_processes_train_as_one_does(tmp_path):
    with two_processes(tmp_path) as outputs:
        alone, _ = train(tmp_path / "one", None, 4)
    first, second = outputs
    assert first["params"] == second["params"]
    assert first["part"] == second["part"] == 0.5
    assert (first["shown"], second["shown"]) == ([0, 1, 2, 3], [])
    for x, y in zip(first["params"], jax.tree.leaves(alone.params), strict=True):
        np.testing.assert_allclose(x, np.ravel(y), atol=1e-5, rtol=0)
    rows, wanted = (
        read_metrics(tmp_path / name / "metrics.jsonl") for name in ("two", "one")
    )
    assert [row["step"] for row in rows] == [0, 1, 2, 3]
    for row, one in zip(rows, wanted, strict=True):
        assert row.keys() == one.keys()
        np.testing.assert_allclose([*row.values()], [*one.values()], atol=1e-5)

    # The checkpoint is whole: a single process takes it up.
    further, _ = train(tmp_path / "two", None, 6)
    wanted, _ = train(tmp_path / "one", None, 6)
    for x, y in zip(
        *map(jax.tree.leaves, (further.params, wanted.params)), strict=True
    ):
        np.testing.assert_allclose(x, y, atol=1e-5, rtol=0)


def test_what_processes_cannot_do_together_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(jax, "process_count", lambda: 2)
    with pytest.raises(
        ConfigError, match=r"mesh: expected .+ all 2 processes, got None"
    ):
        train(tmp_path, None, 2)

"""Sweeps as jobs of a cluster, which a folder of small programs stands in for."""

import io
import json
import os
import shutil
from itertools import count

import pytest
from rich.console import Console

from experiments.sweep.config import Sweep
from experiments.sweep.launchers import Resources
from experiments.sweep.records import Record, write_record
from experiments.sweep.running import run_sweep
from jerp.errors import ConfigError
from tests.experiments.made_up import begun, settings
from tests.experiments.slurm import put_slurm
from tests.experiments.test_sweep import _importable, statuses, swept

__all__ = ["_importable"]

FIRST_JOB = count(100, 100)


@pytest.fixture
def slurm(tmp_path, monkeypatch):
    """The folder of the programs."""
    folder = tmp_path / "bin"
    folder.mkdir()
    put_slurm(folder, next(FIRST_JOB))
    monkeypatch.setenv("PATH", f"{folder}{os.pathsep}{os.environ['PATH']}")
    return folder


def options(path):
    return {
        name: value
        for line in path.read_text().splitlines()
        if line.startswith("#SBATCH --")
        for name, _, value in [line.removeprefix("#SBATCH --").partition("=")]
    }


def test_a_killed_job_is_submitted_again_with_the_same_options(tmp_path, slurm):
    out = tmp_path / "sweep"
    sweep = Sweep(
        "made_up",
        launcher="slurm",
        shards=5,
        out=out,
        resources=Resources(
            gpus=1,
            partition="gpu",
            hours=1.5,
            memory_gb=8,
            cpus=4,
            slurm=("account=lab", "qos=a=b"),
        ),
    )
    document, text = swept(sweep, settings("well", "killed once"))
    assert statuses(document) == ["finished", "finished"]
    assert [begun(out, i) for i in range(2)] == [1, 2]
    assert "made_up/1 is tried again after try 1: its process ended early (FAIL" in text
    scripts = sorted(slurm.glob("*.sh"))
    assert len(scripts) == 3
    for number, script in enumerate(scripts):
        given = options(script)
        log = f"{out}/jobs/{number}/%j_0_log.out"
        assert given == {
            "job-name": "sweep-made_up",
            "time": "90",
            "partition": "gpu",
            "gpus-per-node": "1",
            "mem": "8GB",
            "cpus-per-task": "4",
            "account": "lab",
            "qos": "a=b",
            "nodes": "1",
            "signal": "USR2@90",
            "open-mode": "append",
            "output": log,
        }


def test_ctrl_c_leaves_jobs_in_the_queue_and_the_same_command_waits(tmp_path, slurm):
    out = tmp_path / "sweep"
    sweep = Sweep("made_up", launcher="slurm", out=out)
    these = settings("well", "interrupts once", session=os.getpid())
    with pytest.raises(KeyboardInterrupt):
        run_sweep(sweep, these, console=Console(file=io.StringIO()))
    left = json.loads((out / "sweep.json").read_text())
    _, last = sorted(slurm.glob("*.sh"))
    assert last.stem in [job["job_id"] for job in left["jobs"]]
    (out / "made_up" / "go on").touch()
    document, _ = swept(sweep, these)
    assert statuses(document) == ["finished", "finished"]
    assert [begun(out, i) for i in range(2)] == [1, 1]
    assert len([*slurm.glob("*.sh")]) == 2


def test_a_job_that_died_between_sessions_is_submitted_again(tmp_path, slurm):
    out = tmp_path / "sweep"
    sweep = Sweep("made_up", launcher="slurm", retries=1, out=out)
    these = settings("well")
    number = str(next(FIRST_JOB))
    (slurm / f"{number}.state").write_text("NODE_FAIL")
    write_record(these[0].placed(out), Record("running", tries=1))
    job = {"launcher": "slurm", "folder": str(out / "jobs" / "0"), "job_id": number}
    job |= {"settings": ["made_up/0"], "tries": {"made_up/0": 0}}
    kept = {"sweep_version": 1, **sweep.identity, "jobs": [job]}
    (out / "sweep.json").write_text(json.dumps(kept))
    document, text = swept(sweep, these)
    assert "made_up/0 is tried again after try 1: its process ended early" in text
    assert "(NODE_FAIL); its log ends: nothing" in text
    (entry,) = document["settings"].values()
    assert entry["status"] == "finished" and entry["tries"] == 2


def test_what_sbatch_refuses_is_said(tmp_path, slurm, capfd):
    resources = Resources(partition="refused")
    sweep = Sweep("made_up", launcher="slurm", out=tmp_path / "s", resources=resources)
    with pytest.raises(ConfigError, match="partition specified: refused; check"):
        run_sweep(sweep, settings("well"), console=Console(file=io.StringIO()))


@pytest.mark.parametrize("name", ["sbatch", "srun", "sacct"])
def test_without_slurm_its_programs_are_named(tmp_path, slurm, monkeypatch, name):
    (slurm / name).unlink()
    monkeypatch.setenv("PATH", str(slurm))
    assert shutil.which(name) is None
    sweep = Sweep("made_up", launcher="slurm", out=tmp_path / "sweep")
    with pytest.raises(ConfigError, match=f"no '{name}' here; start .* --launcher lo"):
        run_sweep(sweep, settings("well"))
    assert not sweep.folder.exists()

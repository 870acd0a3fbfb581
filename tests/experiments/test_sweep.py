"""Sweeps by submitit's local executor: every end that a job can come to."""

import io
import json
import os
import shutil
import subprocess
import sys
import types
from dataclasses import replace
from pathlib import Path

import pytest
from rich.console import Console

from experiments.settings import Setting
from experiments.sweep import keeper
from experiments.sweep.__main__ import main, parsed
from experiments.sweep.config import Sweep
from experiments.sweep.launchers import Resources
from experiments.sweep.records import Record, is_finished, read_record, write_record
from experiments.sweep.running import run_sweep
from jerp.errors import (
    ConfigError,
    MissingExtraError,
    StorageError,
    UnknownNameError,
)
from jerp.storage.locks import lock_folder
from tests.experiments.made_up import MadeUpConfig, begun, settings

ROOT = Path(__file__).parents[2]


@pytest.fixture(autouse=True)
def _importable(monkeypatch):
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    monkeypatch.setattr(keeper, "POLL_SECONDS", {"local": 0.02, "slurm": 0.02})
    monkeypatch.setattr(keeper, "GRACE_SECONDS", 0.1)


def swept(sweep, these):
    """The document and what was printed."""
    text = io.StringIO()
    document = run_sweep(sweep, these, console=Console(file=text, width=200))
    assert json.loads((sweep.folder / "sweep.json").read_text()) == document
    return document, text.getvalue()


def statuses(document):
    return [entry["status"] for entry in document["settings"].values()]


def test_what_was_killed_or_failed_is_tried_again_and_the_rest_is_merged(tmp_path):
    out = tmp_path / "sweep"
    sweep = Sweep("made_up", retries=1, out=out, resources=Resources(gpus=2))
    these = settings("well", "raises", "killed once", "leaves nothing")
    document, text = swept(sweep, these)
    assert statuses(document) == ["finished", "failed", "finished", "failed"]
    assert [e["tries"] for e in document["settings"].values()] == [1, 2, 2, 2]
    first, failed, killed, nothing = document["settings"].values()
    assert first["results"] == {"number": 0, "smoke": False, "devices": "0,1"}
    assert first["config"] == {
        "number": 0,
        "way": "well",
        "session": 0,
        "smoke": False,
        "full": False,
    }
    assert 0 <= first["seconds"] < 10
    assert killed["error"] is None and killed["results"]["number"] == 2
    assert failed["results"] is None and failed["error"] == "no such luck"
    assert "ValueError: the first line" in Path(failed["log"]).read_text()
    assert "made_up/2 is tried again after try 1: its process ended early" in text
    assert "made_up/1 is given up after try 2: no such luck" in text
    assert f"made_up/1: no such luck\n    log: {failed['log']}\n" in text
    assert "4/4" not in text and "2/4" in text
    assert nothing["error"].endswith("made_up/3: the run left no results.json")

    # The same command runs what is missing and nothing else.
    (out / "made_up" / "mended").touch()
    document, text = swept(sweep, these)
    assert statuses(document) == ["finished"] * 4
    assert [begun(out, i) for i in range(4)] == [1, 3, 2, 3]
    failed = document["settings"]["made_up/3"]
    assert failed["tries"] == 3 and failed["results"]["devices"] == "2,3"
    assert "given up" not in text

    # With nothing missing, nothing is submitted.
    jobs = sorted(out.glob("jobs/*"))
    assert swept(sweep, these)[0] == document
    assert sorted(out.glob("jobs/*")) == jobs


def test_a_setting_that_always_kills_its_process_lets_its_shard_go_on(tmp_path):
    sweep = Sweep("made_up", shards=1, retries=1, smoke=True, out=tmp_path / "sweep")
    document, _ = swept(sweep, settings("always killed", "well"))
    assert statuses(document) == ["failed", "finished"]
    killed, well = document["settings"].values()
    assert killed["tries"] == 2 and well["tries"] == 1
    assert killed["error"] == (
        "its process ended early; its log ends: == made_up/0, try 2"
    )
    assert well["results"]["smoke"] is True and well["results"]["devices"] == ""


def test_a_shard_that_cannot_begin_counts_as_a_try(tmp_path, monkeypatch):
    module = types.ModuleType("not_there")

    def run(config):
        return {}

    # Named by its module, which the shard's process will not find.
    run.__module__, run.__qualname__, module.run = "not_there", "run", run
    monkeypatch.setitem(sys.modules, "not_there", module)
    setting = Setting("made_up/0", MadeUpConfig(0), module.run)
    sweep = Sweep("made_up", retries=1, out=tmp_path / "sweep")
    document, _ = swept(sweep, (setting,))
    (entry,) = document["settings"].values()
    assert entry["status"] == "failed" and entry["tries"] == 2
    assert entry["error"] == (
        "its shard ended before it began; its log ends: "
        "ModuleNotFoundError: No module named 'not_there'"
    )


def test_ctrl_c_stops_local_jobs_and_the_same_command_goes_on(tmp_path):
    out = tmp_path / "sweep"
    sweep = Sweep("made_up", shards=1, retries=0, out=out)
    these = settings("well", "interrupts once", session=os.getpid())
    with pytest.raises(KeyboardInterrupt):
        run_sweep(sweep, these, console=Console(file=io.StringIO()))
    document = json.loads((out / "sweep.json").read_text())
    assert statuses(document) == ["finished", "waiting"]
    assert document["jobs"] == []
    lock_folder(out / "jobs" / "0").close()  # its process is gone

    document, _ = swept(sweep, these)
    assert statuses(document) == ["finished", "finished"]
    assert [begun(out, i) for i in range(2)] == [1, 2]


def placed(tmp_path, **changes):
    (setting,) = settings("well")
    setting = replace(setting, config=replace(setting.config, **changes))
    return setting.placed(tmp_path)


def test_a_setting_is_finished_with_its_config_and_readable_results(tmp_path):
    setting = placed(tmp_path)
    assert read_record(setting) == Record()
    setting.config.out.mkdir(parents=True)
    done = write_record(setting, Record("finished", 2, 1.5))
    assert read_record(setting) == done and not is_finished(setting)
    (setting.config.out / "results.json").write_text('{"a": 1')
    assert not is_finished(setting)
    (setting.config.out / "results.json").write_text('{"a": 1}')
    assert is_finished(setting)
    assert read_record(placed(tmp_path, session=5)) == Record()
    shutil.move(tmp_path / "made_up", tmp_path / "moved" / "made_up")
    assert is_finished(placed(tmp_path / "moved"))
    write_record(placed(tmp_path / "moved"), Record("failed", 2, 1.5))
    assert not is_finished(placed(tmp_path / "moved"))


def test_a_small_setting_is_not_full():
    setting = Setting("made_up/0", MadeUpConfig(0, full=True), lambda config: {})
    assert setting.placed(Path("out"), smoke=True).config == MadeUpConfig(
        0, out=Path("out/made_up/0"), smoke=True
    )
    assert setting.placed(Path("out")).config.full


def test_a_folder_of_something_else_is_refused(tmp_path):
    sweep = Sweep("made_up", out=tmp_path / "sweep")
    these = settings("well")
    sweep.folder.mkdir()
    (sweep.folder / "notes.txt").touch()
    with pytest.raises(ConfigError, match=r"one that holds 'notes.txt'; name another"):
        run_sweep(sweep, these)
    (sweep.folder / "notes.txt").unlink()
    kept = {"sweep_version": 1, "sweep": "made_up", "smoke": False, "jobs": []}
    (sweep.folder / "sweep.json").write_text(json.dumps(kept))
    with pytest.raises(ConfigError, match="another sweep: smoke: false there, true"):
        run_sweep(replace(sweep, smoke=True), these)
    with pytest.raises(ConfigError, match='another sweep: sweep: "made_up" there'):
        run_sweep(replace(sweep, name="other"), these)
    kept = {**kept, "sweep_version": 2}
    (sweep.folder / "sweep.json").write_text(json.dumps(kept))
    with pytest.raises(StorageError, match="expected sweep version 1, got 2"):
        run_sweep(sweep, these)
    with (
        lock_folder(sweep.folder),
        pytest.raises(StorageError, match=f"in use by process {os.getpid()}"),
    ):
        run_sweep(sweep, these)


def test_jobs_of_an_earlier_session_are_not_run_twice(tmp_path):
    sweep = Sweep("made_up", out=tmp_path / "sweep")
    job = tmp_path / "sweep" / "jobs" / "0"
    job.mkdir(parents=True)
    left = {"launcher": "local", "folder": str(job), "job_id": "7", "settings": ["a/0"]}
    kept = {"sweep_version": 1, "sweep": "made_up", "smoke": False, "jobs": [left]}
    (sweep.folder / "sweep.json").write_text(json.dumps(kept))
    for _ in range(2):  # the first refusal does not forget the job
        with lock_folder(job), pytest.raises(StorageError, match="jobs/0: in use by"):
            run_sweep(sweep, settings("well"))
    left["launcher"] = "slurm"
    (sweep.folder / "sweep.json").write_text(json.dumps(kept))
    with pytest.raises(ConfigError, match=r"job 7 .* go on with --launcher slurm"):
        run_sweep(sweep, settings("well"))


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Sweep("x", shards=0), "shards: expected at least 1, got 0"),
        (lambda: Sweep("x", retries=-1), "retries: expected at least 0, got -1"),
        (lambda: Resources(gpus=-1), "gpus: expected at least 0, got -1"),
        (lambda: Resources(hours=0.0), "hours: expected more than 0, got 0.0"),
        (lambda: Resources(cpus=0), "cpus: expected more than 0, got 0"),
        (lambda: Resources(memory_gb=-2), "memory_gb: expected more than 0, got -2"),
        (
            lambda: Resources(slurm=("account",)),
            "slurm: expected key=.*'account'",
        ),
    ],
)
def test_impossible_settings_are_refused(make, message):
    with pytest.raises(ConfigError, match=message):
        make()


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("partition", "gpu"),
        ("hours", 2.0),
        ("memory_gb", 8),
        ("cpus", 2),
        ("slurm", ("account=lab",)),
    ],
)
def test_options_for_slurm_are_refused_here(tmp_path, name, value):
    sweep = Sweep("made_up", resources=Resources(**{name: value}), out=tmp_path / "s")
    shown = name.replace("_", "-")
    with pytest.raises(ConfigError, match=f"{shown}: an option for Slurm"):
        run_sweep(sweep, settings("well"))
    assert not (tmp_path / "s").exists()


def test_without_submitit_the_extra_is_named(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "submitit", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'jerp\[sweep\]'"):
        run_sweep(Sweep("made_up", out=tmp_path / "sweep"), settings("well"))


def test_an_unknown_name_is_answered_with_the_nearest():
    with pytest.raises(UnknownNameError, match="did you mean 'gigpo_vs_grpo"):
        main(Sweep("gigpo_vs_grppo"))


def test_the_command_ends_as_the_sweep_did(tmp_path, monkeypatch, capsys):
    ended = {"settings": {"a/0": {"status": "finished"}}}
    monkeypatch.setattr("experiments.sweep.__main__.run_sweep", lambda *_: ended)
    sweep = Sweep("harness_control")
    assert main(sweep) == 0
    ended["settings"]["a/1"] = {"status": "failed"}
    assert main(sweep) == 1

    def interrupted(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr("experiments.sweep.__main__.run_sweep", interrupted)
    assert main(sweep) == 130
    assert "its processes were stopped" in capsys.readouterr().err
    assert main(replace(sweep, launcher="slurm")) == 130
    assert "its jobs go on" in capsys.readouterr().err


def test_bad_input_is_one_line_at_the_terminal():
    done = subprocess.run(
        [sys.executable, "-m", "experiments.sweep", "harnes", "--shards", "2"],
        capture_output=True,
        text=True,
        cwd=ROOT,
    )
    assert done.returncode == 2
    assert done.stderr.startswith("jerp: unknown setting 'harnes'; did you mean 'harn")


def test_what_is_typed_is_checked_after_parsing():
    typed = parsed(["made-up", "--gpus", "2", "--retries", "1"])
    assert typed == Sweep("made-up", retries=1, resources=Resources(gpus=2))
    with pytest.raises(ConfigError, match="shards: expected at least 1, got 0"):
        parsed(["made_up", "--shards", "0"])


def test_a_sweep_has_one_folder_however_it_is_written(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    one, other = (Sweep(name) for name in ("made-up/1", "made_up/1"))
    assert one.folder == other.folder == tmp_path / "jerp-runs" / "sweep-made_up-1"
    assert one.identity == other.identity
    beside = Sweep("made_up", out=Path("..") / "beside")
    assert beside.folder == tmp_path.parent / "beside"

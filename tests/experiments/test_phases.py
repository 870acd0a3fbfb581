"""Phases: which processes do the jobs that are left, and what a bar shows of them."""

import json

import pytest
from rich.progress import Progress

from experiments.jobs import phases
from experiments.jobs.job import Job
from experiments.jobs.phases import Phase, run_phase
from experiments.jobs.results import sizes_document
from experiments.wer.config import WerConfig

JOBS = [Job("house", "jerp", seed) for seed in range(3)]


@pytest.fixture
def started(monkeypatch):
    """The processes that were asked for; they finish the last job."""
    calls = []

    def run_together(module, arguments, folder, watch, *, environment):
        calls.append((module, arguments, folder, environment))
        finish(folder, JOBS[2])
        watch()

    monkeypatch.setattr(phases, "run_together", run_together)
    return calls


def finish(folder, job):
    where = job.folder(folder)
    where.mkdir(parents=True, exist_ok=True)
    (where / "evaluation.safetensors").touch()


def run(folder, hasty=False):
    progress = Progress(disable=True)
    settings = {"seed": 3, "arms": ["grpo"]}
    phase = Phase("arms", JOBS, 10, 2)
    run_phase(phase, "some.jobs", folder, settings, progress, hasty=hasty)
    (bar,) = progress.tasks
    return bar.description, bar.completed, bar.total


def test_processes_share_what_is_left_and_a_bar_shows_how_far_it_is(tmp_path, started):
    finish(tmp_path, JOBS[0])
    JOBS[1].folder(tmp_path).mkdir(parents=True)
    (JOBS[1].folder(tmp_path) / "metrics.jsonl").write_text("{}\n" * 4)
    assert run(tmp_path) == ("arms", 24, 30)
    ((module, arguments, folder, environment),) = started
    assert (module, folder, environment) == ("some.jobs", tmp_path, None)
    assert [words[:2] for words in arguments] == [
        [str(tmp_path), "0/2"],
        [str(tmp_path), "1/2"],
    ]
    for *_, settings, name in arguments:
        assert json.loads(settings) == {"seed": 3, "arms": ["grpo"]} and name == "arms"


def test_no_process_starts_where_all_is_done(tmp_path, started):
    for job in JOBS:
        finish(tmp_path, job)
    assert run(tmp_path) == ("arms", 30, 30)
    assert not started


def test_a_smoke_run_compiles_in_haste(tmp_path, started):
    run(tmp_path, hasty=True)
    assert started[0][-1] == {"JAX_DISABLE_MOST_OPTIMIZATIONS": "1"}


def test_a_folder_beside_the_working_directory_is_named_in_full(
    tmp_path, monkeypatch, started
):
    monkeypatch.chdir(tmp_path)
    run(tmp_path.relative_to(tmp_path))
    assert started[0][1][0][0] == str(tmp_path)


def test_sizes_are_the_document_that_a_manifest_gives_back():
    found = sizes_document(WerConfig(smoke=True).sizes)
    assert found["lengths"] == [1, 2] and found["executor"]["demonstrations"] == 512
    assert json.loads(json.dumps(found)) == found

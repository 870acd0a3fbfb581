"""Commands about what a run has left, and about models."""

import asyncio

import pytest

import jerp.bridge.local
import jerp.cli.version
import jerp.storage.weights
from jerp import cli
from jerp.bridge.executor import Completion, Message, Request
from jerp.bridge.scripted import ScriptedExecutor
from jerp.bridge.store import ResponseStore, StoredExecutor
from jerp.storage.trajectories import TrajectoryFolder, TrajectoryMeta
from tests.storage.episodes import ACTIONS, FEATURES, episodes, texts


@pytest.fixture
def folder(tmp_path):
    meta = TrajectoryMeta(FEATURES, 1, ACTIONS, {"0": "task-a", "1": "task-b"})
    made = TrajectoryFolder.create(tmp_path / "run" / "coding" / "base", meta)
    made.write_shard("0000", episodes(), texts())
    return made.folder


def test_trajectories_show_lists_episodes_and_steps(folder, capsys):
    assert cli.main(["trajectories", "show", str(folder)]) == 0
    assert "task-b" in capsys.readouterr().out
    assert cli.main(["trajectories", "show", str(folder), "--episode", "1"]) == 0
    assert "completion: 1.0" in capsys.readouterr().out
    assert cli.main(["trajectories", "show", str(folder), "--episode", "2"]) == 2
    assert "expected 0 to 1, got 2" in capsys.readouterr().err


def test_trajectories_check_exits_with_1_when_something_is_damaged(folder, capsys):
    assert cli.main(["trajectories", "check", str(folder)]) == 0
    assert "whole" in capsys.readouterr().out
    (folder / "transcripts-0000.jsonl").unlink()
    assert cli.main(["trajectories", "check", str(folder)]) == 1
    assert "lacks transcripts-0000.jsonl" in capsys.readouterr().out


def test_trajectories_check_of_a_run_has_a_line_a_folder(folder, capsys):
    run = folder.parents[1]
    meta = TrajectoryFolder.open(folder).meta
    TrajectoryFolder.create(run / "b", meta).write_shard("0000", episodes(), texts())
    assert cli.main(["trajectories", "check", str(run)]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split() for line in lines[1:]] == [
        ["b", "2", "whole"],
        ["coding/base", "2", "whole"],
    ]
    (folder / "trajectories-0000.safetensors").unlink()
    assert cli.main(["trajectories", "check", str(run)]) == 1
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 3 and "lacks trajectories-0000.safetensors" in lines[2]
    assert all(line == line.rstrip() for line in lines)


def test_a_folder_of_another_kind_is_one_line_and_status_2(tmp_path, capsys):
    assert cli.main(["trajectories", "check", str(tmp_path)]) == 2
    error = capsys.readouterr().err
    assert error.startswith("jerp: ") and error.count("\n") == 1
    assert "not a trajectory folder" in error


def test_view_prints_where_the_page_is(folder, capsys):
    run = folder.parents[1]
    assert cli.main(["view", str(run)]) == 0
    assert capsys.readouterr().out == f"{run / 'view.html'}\n"
    assert (run / "view.html").exists()


def test_view_says_what_it_left_out_and_exits_with_1(folder, capsys):
    TrajectoryFolder.open(folder).write_shard("0001", episodes(), texts())
    (folder / "transcripts-0001.jsonl").unlink()
    run = folder.parents[1]
    assert cli.main(["view", str(run)]) == 1
    shown = capsys.readouterr()
    assert shown.out == f"{run / 'view.html'}\n"
    assert shown.err.startswith("1 of 2 shards left out: ")
    assert "transcripts-0001.jsonl" in shown.err


def test_models_list_and_an_unknown_model(monkeypatch, tmp_path, capsys):
    monkeypatch.setenv("JERP_CACHE", str(tmp_path))
    assert cli.main(["models", "list"]) == 0
    assert "smollm2" in capsys.readouterr().out
    assert cli.main(["models", "pull", "smolm"]) == 2
    assert "did you mean 'smollm2'?" in capsys.readouterr().err


@pytest.fixture
def stored(monkeypatch, tmp_path):
    """A store of 20 answers, and a stand-in for the model that gave them."""
    asked = []

    def load(name):
        asked.append(name)
        return ScriptedExecutor(lambda request: Completion(f"{request.sample_index}"))

    store = ResponseStore(tmp_path / "store")
    executor = StoredExecutor(load("recorded"), store)
    prompt = (Message("user", "?"),)
    requests = [Request(prompt, sample_index=i) for i in range(20)]
    asyncio.run(executor.complete(requests))
    store.close()
    monkeypatch.setattr(jerp.storage.weights, "load_weights", load)
    monkeypatch.setattr(jerp.bridge.local, "LocalExecutor", lambda weights: weights)
    return tmp_path / "store", asked


def test_store_verify_asks_the_model_again(stored, capsys):
    folder, asked = stored
    words = ["store", "verify", "--store", str(folder), "--sample", "7"]
    assert cli.main([*words, "--model", "other"]) == 0
    shown = capsys.readouterr().out
    assert "generated again: 7\n" in shown and "different: 0\n" in shown
    assert asked == ["recorded", "other"]


def test_store_verify_exits_with_1_when_the_model_says_otherwise(
    stored, monkeypatch, capsys
):
    folder, _ = stored
    other = ScriptedExecutor(lambda _: Completion("another answer"))
    monkeypatch.setattr(jerp.storage.weights, "load_weights", lambda _: other)
    assert cli.main(["store", "verify", "--store", str(folder)]) == 1
    assert "different: 20\n" in capsys.readouterr().out


def test_store_verify_refuses_no_store_before_the_model_is_loaded(
    stored, tmp_path, capsys
):
    (tmp_path / "empty").mkdir()
    (tmp_path / "file").write_text("not a store\n")
    for name, reason in (
        ("missing", "does not exist"),
        ("empty", "no responses are stored here"),
        ("file", "file"),
    ):
        path = str(tmp_path / name)
        assert cli.main(["store", "verify", "--store", path]) == 2
        error = capsys.readouterr().err
        assert error.startswith(
            "jerp: --store: expected the store of a run (RUN/store)"
        )
        assert reason in error and error.endswith(
            "leave --store out to verify the recorded stores\n"
        )
    _, asked = stored
    assert asked == ["recorded"]

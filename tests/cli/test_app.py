import asyncio
import os
import signal
import subprocess
import sys
import types
from dataclasses import dataclass
from typing import Literal

import pytest

import jerp.bridge.local
import jerp.cli.version
import jerp.storage.weights
from jerp import cli
from jerp.bridge.executor import Completion, Message, Request
from jerp.bridge.scripted import ScriptedExecutor
from jerp.bridge.store import ResponseStore, StoredExecutor
from jerp.errors import ConfigError, UnknownNameError
from jerp.storage.trajectories import TrajectoryFolder, TrajectoryMeta
from tests.storage.episodes import ACTIONS, FEATURES, episodes, texts


@dataclass(frozen=True)
class FakeConfig:
    """What the experiment takes.

    Attributes:
      domain: which domains.
      executor: who answers.
      seeds: how many.
      smoke: quickly.
    """

    domain: tuple[str, ...] = ("coding", "research")
    executor: Literal["recorded", "smollm2"] = "recorded"
    seeds: int = 3
    smoke: bool = False

    def __post_init__(self):
        for name in self.domain:
            if name not in ("coding", "research"):
                raise UnknownNameError("domain", name, ("coding", "research"))


@pytest.fixture
def runs(monkeypatch):
    """Configs that the experiment was run with; the real experiment is left out."""
    made = []
    config = types.ModuleType("config")
    config.HarnessConfig = FakeConfig
    main = types.ModuleType("main")
    main.run = made.append
    package = "experiments.harness_control"
    monkeypatch.setitem(sys.modules, f"{package}.config", config)
    monkeypatch.setitem(sys.modules, f"{package}.main", main)
    return made


@pytest.fixture
def folder(tmp_path):
    meta = TrajectoryMeta(FEATURES, 1, ACTIONS, {"0": "task-a", "1": "task-b"})
    made = TrajectoryFolder.create(tmp_path / "run" / "coding" / "base", meta)
    made.write_shard("0000", episodes(), texts())
    return made.folder


def test_run_harness_gives_the_experiment_its_own_config(runs):
    assert cli.main(["run", "harness"]) == 0
    words = ["--domain", "coding", "--seeds", "5", "--smoke", "--executor", "smollm2"]
    assert cli.main(["run", "harness", *words]) == 0
    assert runs == [FakeConfig(), FakeConfig(("coding",), "smollm2", 5, True)]


def test_an_unknown_domain_gets_the_nearest_name_in_one_line(runs, capsys):
    assert cli.main(["run", "harness", "--domain", "codin"]) == 2
    assert capsys.readouterr().err == (
        "jerp: unknown domain 'codin'; did you mean 'coding'? "
        "(known: coding, research)\n"
    )
    assert runs == []


@pytest.mark.parametrize(
    ("words", "hint"),
    [
        (["run", "harness", "--sedes", "3"], "--seeds"),
        (["run", "harness", "--executor", "gpt"], "recorded"),
        (["run", "harness", "--seeds", "three"], "--seeds"),
        (["trajectories", "show"], "PATH"),
        ([], "version"),
    ],
)
def test_a_mistyped_word_is_refused_with_a_hint(runs, capsys, words, hint):
    with pytest.raises(SystemExit) as caught:
        cli.main(words)
    assert caught.value.code == 2
    assert hint in capsys.readouterr().err
    assert runs == []


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["rn"], "unknown command 'rn'; did you mean 'run'? (known: version, "),
        (["run", "harnes"], "unknown command of jerp run 'harnes'; did you mean 'harn"),
        (["store", "verfy"], "did you mean 'verify'? (known: verify)"),
    ],
)
def test_a_misspelt_command_gets_the_nearest_name_in_one_line(
    runs, capsys, words, message
):
    assert cli.main(words) == 2
    error = capsys.readouterr().err
    assert error.startswith("jerp: unknown command ") and error.count("\n") == 1
    assert message in error and runs == []


@pytest.mark.parametrize(
    "words",
    [
        ["--domain", "coding", "--domain", "research"],
        ["--domain=coding", "--smoke", "--domain=research"],
    ],
)
def test_an_option_given_twice_is_refused(runs, capsys, words):
    assert cli.main(["run", "harness", *words]) == 2
    assert capsys.readouterr().err == (
        "jerp: --domain: expected once, got twice; give all its values after one\n"
    )
    assert runs == []
    assert cli.main(["run", "harness", "--domain", "coding", "research"]) == 0


def test_one_option_is_one_with_dash_or_underscore(capsys):
    words = ["--min-effective", "1", "--min_effective", "2", "--controller", "c"]
    assert cli.main(["ope", "folder", *words]) == 2
    assert "--min-effective: expected once" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "name"),
    [
        (["run", "harness", "--out", ""], "--out"),
        (["run", "harness", "--out="], "--out"),
        (["view", ""], "command line"),
    ],
)
def test_an_empty_path_is_not_the_current_folder(runs, capsys, words, name):
    assert cli.main(words) == 2
    error = capsys.readouterr().err
    assert error.startswith(f"jerp: {name}: expected a name or path, got an empty text")
    assert error.count("\n") == 1 and runs == []


def test_help_lists_settings_with_their_meaning(runs, capsys):
    with pytest.raises(SystemExit) as caught:
        cli.main(["run", "harness", "--help"])
    assert caught.value.code == 0
    shown = capsys.readouterr().out
    for text in ("What the experiment takes", "--executor", "who answers", "recorded"):
        assert text in shown


def test_help_answers_without_importing_jax():
    code = "import sys; from jerp import cli\ntry: cli.main(['--help'])\n"
    code += "except SystemExit: pass\n"
    code += "print([m for m in ('jax', 'numpy', 'flax', 'transformers') "
    code += "if m in sys.modules])"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert done.stdout.splitlines()[-1] == "[]"
    names = "run train trajectories rules skills models store ope passkt sandbox serve"
    for name in (*names.split(), "version", "view"):
        assert f" {name} " in done.stdout


def test_version_names_packages_backend_and_devices(capsys):
    assert cli.main(["version"]) == 0
    lines = dict(
        line.split(maxsplit=1) for line in capsys.readouterr().out.splitlines()
    )
    assert list(lines)[:2] == ["jerp", "jax"]
    assert lines["backend"] == "cpu" and lines["devices"].startswith("cpu")


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


def test_store_verify_refuses_no_sample_before_anything_is_imported():
    code = "import sys; from jerp import cli\n"
    code += "status = cli.main(['store', 'verify', '--sample', '0'])\n"
    code += "print(status, 'jax' in sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert done.stderr == "jerp: --sample: expected at least 1, got 0\n"
    assert done.stdout == "2 False\n"


def test_an_error_that_is_ours_has_no_traceback_and_a_bug_has(
    monkeypatch, runs, capsys
):
    main = sys.modules["experiments.harness_control.main"]

    def fail(error):
        def run(_):
            raise error

        return run

    monkeypatch.setattr(main, "run", fail(ConfigError("seeds: expected 1, got 2")))
    assert cli.main(["run", "harness"]) == 2
    assert capsys.readouterr().err == "jerp: seeds: expected 1, got 2\n"
    monkeypatch.setattr(main, "run", fail(ZeroDivisionError("a bug")))
    with pytest.raises(ZeroDivisionError):
        cli.main(["run", "harness"])


def test_control_c_exits_with_130_and_says_how_to_go_on(monkeypatch, runs, capsys):
    def interrupt(_):
        os.kill(os.getpid(), signal.SIGINT)
        signal.pause()

    main = sys.modules["experiments.harness_control.main"]
    monkeypatch.setattr(main, "run", interrupt)
    assert cli.main(["run", "harness"]) == 130
    assert "the same command resumes" in capsys.readouterr().err
    monkeypatch.setattr(jerp.cli.version.Version, "__call__", interrupt)
    assert cli.main(["version"]) == 130
    assert capsys.readouterr().err == "jerp: interrupted\n"


def test_control_c_while_the_command_is_imported_has_no_traceback(monkeypatch, capsys):
    class Interrupting:
        def find_spec(self, name, *_):
            if name == "jerp.cli.app":
                raise KeyboardInterrupt

    monkeypatch.delitem(sys.modules, "jerp.cli.app")
    monkeypatch.setattr(sys, "meta_path", [Interrupting(), *sys.meta_path])
    assert cli.main(["version"]) == 130
    assert capsys.readouterr().err == "jerp: interrupted before anything began\n"


@pytest.mark.parametrize(
    ("error", "line"),
    [
        (PermissionError(13, "Permission denied", "a/b"), "a/b: Permission denied"),
        (OSError(28, "No space left on device"), "No space left on device"),
        (OSError("two\nlines"), "two lines"),
        (ConnectionResetError(), "ConnectionResetError"),
    ],
)
def test_what_the_system_refuses_is_one_line(monkeypatch, capsys, error, line):
    def refuse(_):
        raise error

    monkeypatch.setattr(jerp.cli.version.Version, "__call__", refuse)
    assert cli.main(["version"]) == 2
    assert capsys.readouterr().err == f"jerp: {line}\n"


def run_version(call, **settings):
    """`jerp version` in a process of its own, with another body."""
    code = "import sys; from jerp import cli; from jerp.cli.version import Version\n"
    code += f"Version.__call__ = lambda _: {call} or 0\nsys.exit(cli.main(['version']))"
    words = [sys.executable, "-c", code]
    return subprocess.run(words, stderr=subprocess.PIPE, **settings)


@pytest.mark.skipif(
    not os.path.exists("/dev/full"),
    reason="no /dev/full, which only Linux has, to stand for a full disk",
)
@pytest.mark.parametrize("call", ["print('short')", "print('x' * 10**6)"])
def test_output_to_a_full_disk_is_one_line_and_status_2(call):
    with open("/dev/full", "w") as full:
        done = run_version(call, stdout=full)
    assert done.returncode == 2
    assert done.stderr == b"jerp: No space left on device\n"


@pytest.mark.parametrize("encoding", ["ascii", "ascii:surrogateescape"])
def test_what_the_output_cannot_encode_is_escaped(encoding):
    environment = {**os.environ, "PYTHONUTF8": "0", "PYTHONIOENCODING": encoding}
    call = r"print('caf\u00e9 \udce9')"
    done = run_version(call, stdout=subprocess.PIPE, env=environment)
    assert (done.returncode, done.stderr) == (0, b"")
    assert done.stdout == rb"caf\xe9 \udce9" + b"\n"
    environment["PYTHONIOENCODING"] = "ascii:replace"
    done = run_version(call, stdout=subprocess.PIPE, env=environment)
    assert done.stdout == b"caf? ?\n"

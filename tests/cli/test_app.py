"""Which commands there are, and how their words are read."""

import subprocess
import sys

import pytest

from jerp import cli
from tests.cli.fake_config import FakeConfig


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

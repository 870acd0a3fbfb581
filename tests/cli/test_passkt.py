import os
import subprocess
import sys

import pytest

from jerp import cli
from jerp.runs.pass_surface import inputs, plan
from tests.runs.pass_surface.files import A, B, runs_of, write_csv, written


@pytest.fixture
def here(tmp_path, monkeypatch):
    """A current folder with the runs of two agents."""
    monkeypatch.chdir(tmp_path)
    written(tmp_path / "a.csv", A)
    written(tmp_path / "b.csv", {**B, "more": B["loss"]})
    return tmp_path


def test_two_files_are_compared_in_a_folder_named_after_them(here, capsys):
    assert cli.main(["passkt", "a.csv", "b.csv", "--resamples", "50"]) == 0
    shown = capsys.readouterr().out
    assert "10 of 10 tasks x 4 samples; protocol nested" in shown
    assert "Difference, b.csv - a.csv, paired by task" in shown
    rows = [line.split() for line in shown.splitlines()]
    assert ["3", "2", "5", "1", "2", ".219", ".438"] in [row[:7] for row in rows]
    assert "note: 1 task of b.csv left out, not in the other file: 'more'" in shown
    assert shown.endswith("json, report.html, report.md and figures: passkt-a-b\n")
    assert sorted(path.name for path in (here / "passkt-a-b").iterdir()) == [
        "curves.png",
        "curves.svg",
        "difference.png",
        "difference.svg",
        "heatmap.png",
        "heatmap.svg",
        "questions.png",
        "questions.svg",
        "report.html",
        "report.md",
        "results.json",
    ]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["missing.csv"], "missing.csv: there is no such file; check the path"),
        (["a.csv", "--ks", "1;2"], "--ks: expected numbers separated by commas, such"),
        (["a.csv", "--ks", "8"], "--ks: expected at most 4, the most samples of a ta"),
        (["a.csv", "--level", "95"], "--level: expected in (0, 1), got 95.0"),
        (
            ["a.csv", "--by", "kind"],
            "a.csv, line 1: expected a column 'kind', got 'task', 'sample', 'spent', "
            "'outcome'; add it. Needed are task, sample, spent, outcome, kind",
        ),
        (["a.csv", "--by", "nocol"], "a.csv, line 1: expected a column 'nocol', got "),
        (["a.csv", "--by", "task"], "--by: expected a further column, with one value"),
        (["a.csv", "--horizons", "1e300"], "--horizons: expected 0 or numbers from 1."),
        (["a.csv", "--protocol", "rerun"], "--protocol rerun: a.csv lacks the column"),
        (["a.csv", "--out", "."], "--out: . is, or holds, the current folder"),
        (["bad.csv"], "bad.csv, line 2, outcome: expected failure, success, truncated"),
        (["a.txt"], "a.txt: expected a name that ends in .csv, .jsonl, .parquet"),
    ],
)
def test_a_mistake_is_one_line_and_status_2_and_leaves_nothing(
    here, capsys, words, message
):
    write_csv(here / "bad.csv", runs_of("x", (1, "won")))
    before = sorted(here.iterdir())
    assert cli.main(["passkt", *words]) == 2
    error = capsys.readouterr().err
    assert error.startswith(f"jerp: {message}") and error.count("\n") == 1
    assert "rename" not in error or "rename the file" in error
    assert sorted(here.iterdir()) == before


def test_a_file_whose_name_is_not_utf8_is_read_like_any_other(here, capsys):
    odd = here / os.fsdecode(b"\xe9.csv")
    try:
        written(odd, A)
    except OSError:
        pytest.skip("this file system takes UTF-8 names only")
    words = ["passkt", odd.name, "--out", "odd", "--resamples", "50"]
    assert cli.main(words) == 0
    assert "Pass@(k, T), \\xe9.csv" in capsys.readouterr().out
    assert cli.main(words) == 0


def test_control_c_says_that_nothing_resumes(here, monkeypatch, capsys):
    def interrupt(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr(inputs, "read_runs", interrupt)
    assert cli.main(["passkt", "a.csv"]) == 130
    assert capsys.readouterr().err == (
        "jerp: interrupted; the folder of results is whole, as it was or new, and the "
        "same command begins anew\n"
    )


@pytest.mark.parametrize(
    ("words", "hint"),
    [
        (["passkt"], "PATH"),
        (["passkt", "a.csv", "--unit", "hours"], "seconds"),
        (["passkt", "a.csv", "--resampels", "1"], "--resamples"),
    ],
)
def test_a_mistyped_option_is_refused_with_a_hint(capsys, words, hint):
    with pytest.raises(SystemExit) as caught:
        cli.main(words)
    assert caught.value.code == 2 and hint in capsys.readouterr().err


def test_help_says_what_each_option_means_without_importing_jax():
    code = "import sys; from jerp import cli\n"
    code += "try: cli.main(['passkt', '--help'])\nexcept SystemExit: pass\n"
    code += "print([m for m in ('jax', 'numpy', 'matplotlib') if m in sys.modules])"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert done.stdout.splitlines()[-1] == "[]"
    for text in ("how often k runs of at most T", "--min-coverage", "default: 0.9"):
        assert text in done.stdout


def test_a_plan_is_printed_and_kept(here, capsys):
    assert cli.main(["passkt", "plan", "--expansion", "0.1", "--json", "p.json"]) == 0
    shown = capsys.readouterr().out
    assert "1 training seed, 3 categories; exact test under 0.05, Holm; no int" in shown
    rows = [line.split() for line in shown.splitlines()]
    assert ["100", "0.684"] in rows and shown.endswith("numbers: p.json\n")
    assert (here / "p.json").exists()
    assert cli.main(["passkt", "plan", "--seeds", "2", "--questions", "20"]) == 0
    assert "for each seed" in capsys.readouterr().out


def test_control_c_in_a_plan_says_that_nothing_was_written(monkeypatch, capsys):
    def interrupt(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr(plan, "plan", interrupt)
    assert cli.main(["passkt", "plan"]) == 130
    assert capsys.readouterr().err == (
        "jerp: interrupted; nothing was written, and the same command begins anew\n"
    )


def test_a_plan_that_cannot_be_is_one_line(here, capsys):
    assert cli.main(["passkt", "plan", "--expansion", "2"]) == 2
    assert capsys.readouterr().err == "jerp: --expansion: expected in [0, 1], got 2.0\n"
    assert cli.main(["passkt", "plan", "--json", "none/p.json"]) == 2
    assert capsys.readouterr().err.startswith("jerp: none/p.json")


def test_a_file_named_plan_is_a_file_by_its_path(here, capsys):
    assert cli.main(["passkt", "./plan"]) == 2
    assert capsys.readouterr().err.startswith(
        "jerp: plan: expected a name that ends in"
    )


def test_help_of_a_plan_needs_nothing_heavy(capsys):
    with pytest.raises(SystemExit) as caught:
        cli.main(["passkt", "plan", "--help"])
    assert caught.value.code == 0 and "--new-rate" in capsys.readouterr().out

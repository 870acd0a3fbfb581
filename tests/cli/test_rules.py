"""`jerp rules`: what it prints, what it refuses, and that nothing is ever lost."""

import json
import os
import re
import shlex
import signal
import sys
from pathlib import Path

import pytest

from jerp import cli
from jerp.runs.rule_editing import HELP, edit_pool
from jerp.storage.rule_documents import PoolDocument, PoolRule, pool_hash
from jerp.storage.rule_files import read_pool, write_pool
from jerp.storage.rule_ledger import RuleEdit, RuleLedger, RuleScores
from jerp.storage.rule_markdown import pool_to_markdown

HEAT = PoolRule("When it is cold, heat it.", 3, 1, 5, 3, ("t0", "t1"), "by hand")
OPEN = PoolRule("Use [red]any[/red] <lid>.", 2.5)
DOCUMENT = PoolDocument({"put hot": (HEAT, OPEN), "look": (PoolRule("Look.", 1),)})
ROWS = (
    RuleEdit(0, "put hot", "ADD", 0, "Heat it.", source_tasks=("t0",), reflector="r"),
    RuleEdit(0, "look", "ADD", 1, "Look.", source_episodes=("0/3",)),
    RuleEdit(0, "put hot", "ADD", 2, OPEN.text, source_tasks=("t5",)),
    RuleEdit(
        1, "put hot", "EDIT", 3, HEAT.text, parents=(0,), source_tasks=("t1", "t2")
    ),
    RuleScores(1, "put hot", {2: 2.0, 3: 3.0}),
    RuleEdit(2, "put hot", "UPVOTE", 2, OPEN.text, source_tasks=("t9",)),
    RuleEdit(2, "put hot", "ADD", 4, "Gone.", source_tasks=("t3",)),
    RuleScores(3, "put hot", {2: 2.5, 3: 3.0}),
    RuleEdit(3, "put hot", "PRUNE", 4, "Gone."),
)


@pytest.fixture
def run(tmp_path):
    """A folder of a run that learns rules."""
    folder = tmp_path / "run" / "seed-0"
    RuleLedger(folder / "rules.jsonl").write(ROWS)
    write_pool(folder / "pool.json", DOCUMENT)
    return folder


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "pool.json"
    write_pool(path, DOCUMENT)
    return path


def said(capsys, *words, status=0):
    """What a command prints; its one line of an error where it fails."""
    assert cli.main(["rules", *map(str, words)]) == status
    shown = capsys.readouterr()
    if status == 2:
        assert shown.err.startswith("jerp: ") and shown.err.count("\n") == 1
        assert shown.out == ""
    return shown.err if status == 2 else shown.out


def test_show_has_a_row_a_rule_whatever_the_form(file, run, capsys):
    write_pool(file.with_suffix(".md"), DOCUMENT)
    pages = {said(capsys, "show", p) for p in (file, file.with_suffix(".md"), run)}
    [page] = pages
    lines = page.splitlines()
    assert " ".join(lines[0].split()) == "task score uses wins born sources rule"
    assert lines[1].split("  ")[0] == "put hot" and "by hand" in lines[1]
    assert lines[1].split()[2:7] == ["3", "5", "3", "1", "2"]
    assert lines[2].endswith(OPEN.text)
    assert lines[4:] == ["3 rules of 2 task keys", pool_hash(DOCUMENT)]
    page = said(capsys, "show", file, "--task", "look")
    assert (
        "Look." in page and HEAT.text not in page and "1 rule of 1 task key\n" in page
    )


def test_piped_output_is_whole_and_a_terminal_is_wrapped(tmp_path, capsys, monkeypatch):
    path = tmp_path / "long.md"
    text = "When " + "it is cold and " * 9 + "so on, go."
    write_pool(path, PoolDocument({"k": (PoolRule(text, 1),)}))
    assert text in said(capsys, "show", path)
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("COLUMNS", "60")
    shown = said(capsys, "show", path)
    assert "\x1b[1m" in shown and text not in shown
    plain = re.sub(r"\x1b\[[0-9;]*m", "", shown)
    assert " ".join(plain.split("rule", 1)[1].split()).startswith("k 1 0 0 0 0 When it")
    assert max(map(len, plain.splitlines()[:-1])) <= 60


def test_leaks_are_flagged_of_a_file_and_of_a_run(file, run, tmp_path, capsys):
    digests = tmp_path / "digests.txt"
    digests.write_text("t1\nt9\nt8\n")
    page = said(capsys, "show", file, "--evaluated", digests)
    assert "learned from 1 " in page and "votes of" not in page
    assert "learned from them: 1; rules that only had their votes: 0" in page
    assert "evaluated" not in said(capsys, "show", run)
    (run / "evaluated.txt").write_text(digests.read_text())
    page = said(capsys, "show", run)
    assert "evaluated tasks: 3; rules learned from them: 1" in page
    assert "votes of 1 " in page and "their votes: 1" in page


def test_a_history_runs_through_what_a_rule_was_made_of(run, capsys):
    (run / "evaluated.txt").write_text("t3\n")
    page = said(capsys, "show", run, "--history", "--task", "put hot")
    assert page == (
        "── put hot\n"
        "3  When it is cold, heat it.  score 3\n"
        "    step 0 ADD: Heat it. (by r; from tasks t0)\n"
        "    step 1 EDIT: When it is cold, heat it. (of rules 0; from tasks t1 t2)\n"
        "    scores by step: 1:3 3:3\n"
        "2  Use [red]any[/red] <lid>.  score 2.5\n"
        "    step 0 ADD: Use [red]any[/red] <lid>. (from tasks t5)\n"
        "    votes: 1 UPVOTE, of 1 task\n"
        "    scores by step: 1:2 3:2.5\n"
        "0  Heat it.  gone at step 1 (EDIT)\n"
        "    step 0 ADD: Heat it. (by r; from tasks t0)\n"
        "4  Gone.  gone at step 3 (PRUNE)  learned from 1 of the evaluated tasks\n"
        "    step 2 ADD: Gone. (from tasks t3)\n"
    )
    assert "in episodes 0/3" in said(capsys, "show", run, "--history")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["show", "none.json"], "none.json: there is no such file"),
        (["show", "nowhere"], "nowhere: there is no such file or folder"),
        (["show", "bad.txt"], "ends with .json or .md"),
        (
            ["show", "pool.json", "--task", "lok"],
            "unknown task key 'lok'; did you mean",
        ),
        (["show", "pool.json", "--history"], "expected the folder of a run"),
        (["show", "pool.json", "--evaluated", "x.txt"], "x.txt: there is no such file"),
        (["show", "run"], "name one of run/seed-0"),
        (["show", "empty"], "found none here or below"),
        (["show", "bad.md"], "bad.md: line 3: expected '## TASK KEY'"),
        (["diff", "pool.json", "none.md"], "none.md: there is no such file"),
        (["import", "bad.md", "--out", "new.json"], "bad.md: line 3: expected"),
        (["import", "pool.json", "--out", "new.md"], "expected a name that ends with"),
        (["import", "pool.json", "--out", "pool.json"], "--force replaces it"),
        (
            ["import", "pool.json", "--out", "run/seed-0/pool.json"],
            "got a run's, whose",
        ),
        (
            ["import", "pool.json", "--out", "new.json", "--capacity", "1"],
            "pool.json: task key 'put hot': expected at most 1 rules, the capacity, g",
        ),
        (
            ["import", "pool.json", "--out", "new.json", "--capacity", "0"],
            "--capacity: expected at least 1, got 0",
        ),
        (["export", "pool.json", "new.txt"], "ends with .json or .md"),
        (["export", "pool.json", "bad.md"], "bad.md: it is there already; --force"),
        (["export", "pool.json", "new.md", "--without-leaks"], "by --evaluated"),
        (["export", "pool.json", "empty"], "expected the file of a pool, got a folder"),
        (["export", "pool.json", "run/seed-0/pool.json", "--force"], "got a run's"),
        (["edit", "pool.json"], "$EDITOR is not set"),
        (["edit", "run/seed-0", "--editor", "true"], "jerp rules export run/seed-0"),
        (["edit", "run/seed-0/pool.json", "--editor", "true"], "start a run from it"),
        (["edit", "pool.txt", "--editor", "true"], "ends with .json or .md"),
        (["edit", "pool.json", "--editor", "no-such-editor -w"], "can be started"),
        (["edit", "pool.json", "--editor", "'"], "can be started"),
        (["edit", "pool.json", "--editor", "false"], "the pool is as it was"),
        (
            ["edit", "pool.json", "--editor", "rm"],
            "left no file behind; the pool is as",
        ),
        (
            ["shw", "pool.json"],
            "unknown command of jerp rules 'shw'; did you mean 'show'",
        ),
    ],
)
def test_a_mistake_is_one_line_and_changes_nothing(
    file, run, tmp_path, monkeypatch, capsys, words, message
):
    (tmp_path / "empty").mkdir()
    (tmp_path / "bad.md").write_text("# jerp rules, version 1\n\n- a rule.\n")
    (tmp_path / "bad.txt").touch()
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("EDITOR", raising=False)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    before = files_below(tmp_path)
    assert message in said(capsys, *words, status=2)
    assert files_below(tmp_path) == before
    assert not list(tmp_path.glob("jerp-rules-*"))


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["edit", "pipe.md", "--editor", "true"], "pipe.md: expected a regular file"),
        (["show", "pipe.md"], "pipe.md: expected a regular file, got a folder, a pipe"),
        (["show", "zero.json"], "zero.json: expected a regular file"),
        (
            ["import", "huge.json", "--out", "new.json"],
            "at most 64 MiB, got 68157440 bytes; ch",
        ),
    ],
)
def test_what_is_no_file_of_a_pool_is_not_read(
    tmp_path, monkeypatch, capsys, words, message
):
    """A pipe would wait for ever, and a device never end."""
    os.mkfifo(tmp_path / "pipe.md")
    (tmp_path / "zero.json").symlink_to("/dev/zero")
    (tmp_path / "huge.json").touch()
    os.truncate(tmp_path / "huge.json", 65 << 20)
    monkeypatch.chdir(tmp_path)
    assert message in said(capsys, *words, status=2)


def test_pools_with_rules_are_named_before_those_without(tmp_path, capsys):
    """And before those that cannot be read."""
    for name, document in {"a": PoolDocument({"k": ()}), "c": DOCUMENT}.items():
        (tmp_path / name).mkdir()
        write_pool(tmp_path / name / "pool.json", document)
    (tmp_path / "b").mkdir()
    (tmp_path / "b" / "pool.json").write_text("{")
    names = ", ".join(str(tmp_path / name) for name in "cab")
    assert said(capsys, "show", tmp_path, status=2).endswith(f"name one of {names}\n")


def files_below(folder):
    found = sorted(path for path in folder.rglob("*") if path.is_file())
    return {path: path.read_bytes() for path in found}


def test_diff_names_what_was_added_removed_and_changed(file, tmp_path, capsys):
    assert said(capsys, "diff", file, file) == "no difference\n"
    other = PoolDocument(
        {
            "put hot": (
                PoolRule(HEAT.text, 3.5, 2),
                *(PoolRule("Open it.", 2), PoolRule("a.", 1), PoolRule("b.", 1)),
            ),
            "cool": (),
        }
    )
    write_pool(tmp_path / "other.md", other)
    lines = said(capsys, "diff", file, tmp_path / "other.md", status=1).splitlines()
    changes = "changed removed added added added removed added 4"
    assert " ".join(line.split()[0] for line in lines[1:]) == changes
    assert "3 → 3.5" in lines[1] and "1 → 2" in lines[1] and HEAT.text in lines[1]
    assert lines[2].endswith(OPEN.text) and "look" in lines[6]
    assert lines[7].endswith("(a key without rules)")
    assert lines[8] == "4 added, 2 removed, 1 changed"


def test_diff_knows_the_order_of_equals_and_no_counts(tmp_path, capsys):
    rules = [PoolRule("a.", 1), PoolRule("b.", 1)]
    for name, order in (("one", rules), ("two", rules[::-1])):
        write_pool(tmp_path / f"{name}.json", PoolDocument({"k": order}))
    paths = [tmp_path / "one.json", tmp_path / "two.json"]
    assert "the order of rules of equal" in said(capsys, "diff", *paths, status=1)
    counted = PoolDocument({"k": (PoolRule("a.", 1, 0, 9, 9, note="n"), rules[1])})
    write_pool(paths[1], counted)
    assert said(capsys, "diff", *paths) == "no difference\n"


def test_export_and_import_keep_all_that_is_known(run, tmp_path, capsys):
    page, back = tmp_path / "rules.md", tmp_path / "back.json"
    assert said(capsys, "export", run, page) == f"{page}: 3 rules\n"
    words = ("import", page, "--out", back)
    assert said(capsys, *words, "--capacity", 2) == f"{back}: {pool_hash(DOCUMENT)}\n"
    assert back.read_bytes() == (run / "pool.json").read_bytes()
    back.write_text("{}")
    assert said(capsys, *words, "--force").endswith(f"{pool_hash(DOCUMENT)}\n")
    assert read_pool(back) == DOCUMENT


def test_export_can_leave_out_what_was_learned_from_evaluated_tasks(
    run, tmp_path, capsys
):
    page = tmp_path / "rules.json"
    (run / "evaluated.txt").write_text("t1\nt9\n")
    words = ("export", run, page, "--without-leaks")
    assert said(capsys, *words) == f"{page}: 2 rules, 1 left out\n"
    assert read_pool(page).pools["put hot"] == (OPEN,)
    assert said(capsys, "export", run, page, "--force") == f"{page}: 3 rules\n"


def editor(tmp_path, change, status=0):
    """A command that applies the Python expression `change` to `text` of a file."""
    script = tmp_path / "editor.py"
    script.write_text(
        "import os, signal, sys\nfrom pathlib import Path\npath = Path(sys.argv[1])\n"
        f"text = path.read_text()\npath.write_text({change})\nsys.exit({status})\n"
    )
    return f"{shlex.quote(sys.executable)} {shlex.quote(str(script))}"


@pytest.mark.parametrize("suffix", [".json", ".md"])
def test_edit_takes_over_what_was_written(tmp_path, monkeypatch, capsys, suffix):
    path = tmp_path / f"pool{suffix}"
    write_pool(path, DOCUMENT)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    change = "text.replace('## look', '- **1** Wait.\\n\\n<!-- mine -->\\n## look')"
    monkeypatch.setenv("EDITOR", editor(tmp_path, change))
    page = said(capsys, "edit", path)
    assert "added" in page and page.endswith(f"{path}: changed\n")
    found = read_pool(path)
    assert found.pools["put hot"] == (HEAT, OPEN, PoolRule("Wait.", 1))
    assert ("<!-- mine -->" in path.read_text()) == (suffix == ".md")
    assert ("A rule is one line" in path.read_text()) is False
    assert not list(tmp_path.glob("jerp-rules-*"))


def test_edit_that_changes_nothing_says_so(file, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    before = files_below(tmp_path)
    page = said(capsys, "edit", file, "--editor", "true")
    assert page == f"{file}: nothing was changed\n"
    assert files_below(tmp_path) == before


def test_edit_mends_a_markdown_file_that_cannot_be_read(tmp_path, capsys):
    path = tmp_path / "pool.md"
    path.write_text("# jerp rules, version 1\n## k\n- **1** Wait\n")
    command = editor(tmp_path, "text.replace('Wait', 'Wait.')")
    assert said(capsys, "edit", path, "--editor", command) == f"{path}: changed\n"
    assert read_pool(path) == PoolDocument({"k": (PoolRule("Wait.", 1),)})


@pytest.mark.parametrize(
    ("old", "new", "status", "message"),
    [
        ("heat it.", "heat it", 0, "text: expected a full stop"),
        ("**3**", "**x**", 0, "score: expected a number, got 'x'"),
        ("# jerp rules", "# rules", 0, "expected '# jerp rules, version 1' first"),
        ("version 1", "version 9", 0, "version: expected 1, got 9"),
        ("Look.", "See.", 3, "ended with 3; the pool is as it was"),
    ],
)
def test_what_was_written_is_kept_when_it_cannot_be_taken_over(
    file, tmp_path, monkeypatch, capsys, old, new, status, message
):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    before = file.read_bytes()
    command = editor(tmp_path, f"text.replace({old!r}, {new!r})", status)
    error = said(capsys, "edit", file, "--editor", command, status=2)
    [copy] = tmp_path.glob("jerp-rules-*/pool.md")
    assert message in error and str(copy) in error
    assert file.read_bytes() == before
    markdown = HELP + pool_to_markdown(DOCUMENT)
    assert copy.read_text() == markdown.replace(old, new) != markdown
    # And the way back that the message gives is right.
    if "mend it, then" in error:
        command = error.split("mend it, then ")[1].strip()
        write_pool(copy, PoolDocument({"k": ()}))
        assert cli.main(shlex.split(command)[1:]) == 0
        assert read_pool(file) == PoolDocument({"k": ()})


def test_an_edit_does_not_undo_that_of_somebody_else(
    file, tmp_path, monkeypatch, capsys
):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    change = f"(Path({str(file)!r}).write_text('{{}}'), text + '- **1** Wait.')[1]"
    command = editor(tmp_path, change)
    error = said(capsys, "edit", file, "--editor", command, status=2)
    assert "somebody else changed it in the meantime" in error
    [copy] = tmp_path.glob("jerp-rules-*/pool.md")
    assert "- **1** Wait." in copy.read_text() and file.read_text() == "{}"


def test_control_c_in_the_editor_keeps_what_was_written(file, tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))

    def interrupted(words, **_):
        Path(words[-1]).write_text("half a rule")
        os.kill(os.getpid(), signal.SIGINT)
        signal.pause()

    monkeypatch.setattr("subprocess.run", interrupted)
    with pytest.raises(
        OSError, match=r"interrupted; the pool is as it was, and .*pool\.md"
    ):
        edit_pool(file, "editor")
    assert read_pool(file) == DOCUMENT
    [copy] = tmp_path.glob("jerp-rules-*/pool.md")
    assert copy.read_text() == "half a rule"


def test_a_damaged_ledger_is_named(run, capsys):
    path = run / "rules.jsonl"
    path.write_text("{}\n" + path.read_text())
    assert "rules.jsonl: line 1 is no row" in said(capsys, "show", run, status=2)
    path.unlink()
    assert HEAT.text in said(capsys, "show", run)
    assert "expected the folder" in said(capsys, "show", run, "--history", status=2)


def test_the_json_is_for_other_programs_too(file):
    content = json.loads(file.read_text())
    assert content["pools"]["look"][0]["text"] == "Look."

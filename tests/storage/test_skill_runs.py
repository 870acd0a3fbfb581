"""Runs on disk: each once, whole or not at all, and one writer's at a time."""

import io
import json
import os
import re
from pathlib import Path

import pytest

from jerp.errors import InputError, StorageError
from jerp.skills.document import Skill, render_skill
from jerp.storage.skill_document import skill_hash
from jerp.storage.skill_runs import FIELDS, SkillRun, SkillRunFile, Trial
from jerp.typing import Outcome

SKILL = Skill("Move", "Files.", ("Find it.",))
TEXT = render_skill(SKILL)
TRIALS = (Trial("a", TEXT, 0), Trial("a", None, 0), Trial("b", TEXT, 7))
RUNS = (
    SkillRun(Outcome.SUCCESS, ["é\ud800", {"x": 1.5}], 3, 40),
    SkillRun(Outcome.FAILURE),
    SkillRun(Outcome.INFRASTRUCTURE, None, 1),
)
HEAD = '{"format": "jerp skill runs", "version": 1, "workplace": "here"}\n'


@pytest.fixture
def path(tmp_path):
    return tmp_path / "run" / "runs.jsonl"


def opened(path, workplace="here"):
    return SkillRunFile(path, workplace=workplace)


def written(path, number=3):
    with opened(path) as file:
        file.append(TRIALS[:number], RUNS[:number])
    return path.read_bytes()


def test_runs_come_back_by_task_text_and_sample(path):
    data = written(path)
    assert data.startswith(HEAD.encode()) and data.count(b"\n") == 4
    with opened(path) as file:
        assert len(file) == 3
        assert tuple(file[trial] for trial in TRIALS) == RUNS
        for other in (("b", TEXT, 0), ("a", TEXT, 7), ("a", TEXT + "x", 0)):
            assert Trial(*other) not in file
        with pytest.raises(KeyError):
            file[Trial("c", None, 0)]
        file.append([Trial("c", None, 0)], [RUNS[0]])
        assert file[Trial("c", None, 0)] == RUNS[0]
    assert path.read_bytes().startswith(data)


def test_a_trial_knows_its_skill_by_hash():
    assert TRIALS[0].skill_hash == skill_hash(SKILL)
    assert TRIALS[0].name == f"{skill_hash(SKILL)[7:19]}/0"
    assert TRIALS[1].skill_hash is None and TRIALS[1].name == "none/0"


def test_what_was_executed_stays_and_another_outcome_is_refused(path):
    with opened(path) as file:
        file.append(TRIALS[:1], RUNS[:1])
        data = path.read_bytes()
        again = SkillRun(Outcome.SUCCESS, "told otherwise")
        file.append(TRIALS[:1], [again])
        assert path.read_bytes() == data and file[TRIALS[0]] == RUNS[0]
        said = "one outcome of a task.*got SUCCESS and FAILURE of task 'a'"
        with pytest.raises(StorageError, match=said):
            file.append(TRIALS[1::-1], RUNS[1:2] * 2)
        twice = (SkillRun(Outcome.FAILURE), SkillRun(Outcome.TRUNCATED))
        with pytest.raises(StorageError, match="got FAILURE and TRUNCATED"):
            file.append(TRIALS[1:2] * 2, twice)
        assert path.read_bytes() == data and len(file) == 1
        file.append(TRIALS[1:2] * 2, RUNS[1:2] * 2)
        assert len(file) == 2
    line = path.read_text().splitlines()[1]
    path.write_text(path.read_text() + line + "\n")
    opened(path).close()
    path.write_text(path.read_text() + line.replace('e": 1', 'e": 0') + "\n")
    with pytest.raises(StorageError, match="got SUCCESS and FAILURE of task 'a'"):
        opened(path)


def test_a_torn_last_line_is_dropped_and_said(path):
    whole = written(path)
    before = whole[:-1].rindex(b"\n") + 1
    for size in (before + 1, len(whole) - 2):
        path.write_bytes(whole[:size])
        said = f"half-written last line of {size - before} bytes is left out"
        with pytest.warns(UserWarning, match=said), opened(path) as file:
            assert len(file) == 2 and TRIALS[2] not in file
            file.append(TRIALS[2:], RUNS[2:])
        assert path.read_bytes() == whole
    path.write_bytes(whole[:20])
    with pytest.warns(UserWarning, match="last line of 20 bytes"):
        assert written(path) == whole


def test_a_last_line_that_lacks_its_newline_is_kept(path):
    whole = written(path)
    path.write_bytes(whole[:-1])
    with opened(path) as file:
        assert [file[trial] for trial in TRIALS] == list(RUNS)
        assert path.read_bytes() == whole
    path.write_text(HEAD.strip())
    assert written(path) == whole
    path.write_bytes(whole + b"{}")
    with pytest.raises(StorageError, match="line 5 is no run"):
        opened(path)
    assert path.read_bytes() == whole + b"{}"


OTHERS = [b"notes", "é".encode(), HEAD.encode("utf-16"), b"\0" * 99_999, b'{"a": [']


@pytest.mark.parametrize("data", [*OTHERS, HEAD[:-4].encode() + b"x"])
def test_a_file_of_something_else_is_refused_and_stays(path, data):
    path.parent.mkdir()
    path.write_bytes(data)
    with pytest.raises(StorageError, match=r"begins with .*skill runs.*nothing was"):
        opened(path)
    assert path.read_bytes() == data
    begun = HEAD[:30].encode() + b"\0" * 9
    path.write_bytes(begun)
    with pytest.warns(UserWarning, match="half-written"):
        opened(path).close()
    assert path.read_text() == HEAD


@pytest.mark.parametrize("nuls", [b"\0" * 5, b"\0" * 4 + b"\n", b"\0\n\0\n\0"])
def test_nuls_behind_the_last_line_are_a_torn_end(path, nuls):
    whole = written(path)
    path.write_bytes(whole + nuls)
    said = "half-written last line of 5 bytes is left out"
    with pytest.warns(UserWarning, match=said), opened(path) as file:
        assert [file[trial] for trial in TRIALS] == list(RUNS)
    assert path.read_bytes() == whole


def test_nuls_before_a_whole_line_are_damage(path):
    head, first, *rest = written(path).splitlines(keepends=True)
    for line in (b"\0\0\n", first.replace(b"task", b"ta\0k")):
        data = b"".join([head, line, *rest])
        path.write_bytes(data)
        with pytest.raises(StorageError, match=r"line 2 is no run.*bring the"):
            opened(path)
        assert path.read_bytes() == data


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("{", "Expecting property"),
        ("[]", "expected the fields evidence, executor_calls"),
        ("[" * 100_000, "recursion"),
        ('{"task": "a"}', "expected the fields"),
    ],
)
def test_a_line_that_is_no_run_is_named(path, line, message):
    data = written(path, 1) + line.encode() + b"\n"
    path.write_bytes(data)
    with pytest.raises(StorageError, match=rf"line 3 is no run.*{message}.*bring the"):
        opened(path)
    assert path.read_bytes() == data


@pytest.mark.parametrize(
    ("name", "value"),
    [
        *(("task", ""), ("skill", 3), ("skill", "sha256:12"), ("sample", -1)),
        *(("outcome", 5), ("tokens", None), ("evidence", [float("nan")])),
    ],
)
def test_a_field_that_cannot_be_meant_is_named(path, name, value):
    written(path, 1)
    head, line = path.read_text().splitlines()
    row = {**json.loads(line), name: value}
    path.write_text(f"{head}\n{json.dumps(row)}\n")
    with pytest.raises(StorageError, match=f"line 2 .*{name}: expected"):
        opened(path)


def test_runs_of_another_workplace_or_format_are_refused(path):
    data = written(path)
    with pytest.raises(StorageError, match=r"line 1 .*expected 'there', got 'here'"):
        opened(path, "there")
    assert path.read_bytes() == data
    path.write_text(HEAD.replace("1", "2"))
    with pytest.raises(StorageError, match=r"line 1 is no head.*expected 1, got 2"):
        opened(path)
    path.unlink()
    os.mkfifo(path)
    with pytest.raises(StorageError, match=r"regular file.*name the file of runs"):
        opened(path)


def test_one_writer_at_a_time(path):
    with opened(path), pytest.raises(StorageError, match="someone else writes to it"):
        opened(path)
    for _ in range(2):
        with pytest.raises(StorageError, match="workplace"):
            opened(path, "there")
    opened(path).close()


@pytest.mark.parametrize("evidence", [float("nan"), {1, 2}, b"x"])
def test_evidence_that_json_cannot_hold_is_refused(path, evidence):
    with opened(path) as file:
        run = SkillRun(Outcome.SUCCESS, evidence)
        with pytest.raises(InputError, match="evidence: expected texts"):
            file.append(TRIALS[:2], [RUNS[0], run])
        assert path.read_text() == HEAD and len(file) == 0


def test_a_full_disk_leaves_the_file_as_it_was(path, monkeypatch):
    data = written(path, 1)
    with opened(path) as file:
        real = file._file

        class Full(io.RawIOBase):
            def write(self, line):
                real.write(line[:5])
                raise OSError(28, "No space left on device")

            seek, truncate, fileno = real.seek, real.truncate, real.fileno

        with monkeypatch.context() as patch:
            patch.setattr(file, "_file", Full())
            with pytest.raises(StorageError, match=r"runs.jsonl: cannot .*No space"):
                file.append(TRIALS, RUNS)
        assert path.read_bytes() == data and len(file) == 1
        file.append(TRIALS, RUNS)
        assert tuple(file[trial] for trial in TRIALS) == RUNS


@pytest.mark.parametrize(
    ("made", "message"),
    [
        (lambda: Trial("", None, 0), "task: expected its key"),
        (lambda: Trial("a", "", 0), "skill: expected a text or None"),
        (lambda: Trial("a", None, 1.0), "sample: expected a whole"),
        (lambda: SkillRun(9), "outcome: expected 0 to 4, got 9"),
        (lambda: SkillRun(1, executor_calls=-1), "executor_calls: expected a whole"),
    ],
)
def test_bad_records(made, message):
    with pytest.raises(InputError, match=message):
        made()


def test_a_file_of_the_first_release_is_read(path):
    kept = Path(__file__).parent / "version1" / "skill-runs.jsonl"
    path.parent.mkdir()
    path.write_bytes(kept.read_bytes())
    with opened(path, "smollm2-135m, files") as file:
        assert len(file) == 3
        run = file[Trial("move-3", TEXT, 0)]
        evidence = [{"call": "find", "returned": "é"}, 1.5]
        assert run == SkillRun(Outcome.SUCCESS, evidence, 4, 310)
        assert file[Trial("move-3", None, 0)].outcome == Outcome.FAILURE
        assert file[Trial("copy-1", TEXT, 17)].outcome == Outcome.INFRASTRUCTURE
    assert path.read_bytes() == kept.read_bytes()


def test_the_page_names_the_fields():
    page = (Path(__file__).parents[2] / "docs" / "skill_runs.md").read_text()
    table = page.partition("## Files of runs, format version 1")[2].partition("\n## ")[
        0
    ]
    assert {*re.findall(r"^\| `(\w+)` \|", table, re.MULTILINE)} == FIELDS

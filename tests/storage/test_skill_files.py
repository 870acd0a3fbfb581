"""Files of skills: they come back, tell the same text, and name each mistake's line."""

import dataclasses
import doctest
import importlib
import os
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jerp.errors import InputError, StorageError, UnknownNameError
from jerp.skills.document import Skill, render_skill
from jerp.storage.skill_document import (
    SkillDocument,
    skill_from_text,
    skill_hash,
    skill_to_text,
)
from jerp.storage.skill_files import find_skills, read_skill, skill_path, write_skill

SEEDED = settings(deadline=None, derandomize=True)
VERSION1 = Path(__file__).parent / "version1" / "skill.md"
SKILL = Skill("Move a file", "Files that move.", ("Find “it”.", "Move it."), ("Ask.",))
DOCUMENT = SkillDocument(
    SKILL, "files", 0.125, (-0.03, 0.21), 0.9, 40, "no skill", "test", "a: “b”", "c # d"
)
TEXT = """\
---
format: "jerp skill"
version: 1
domain: "files"
effect: 0.125
interval: [-0.03, 0.21]
level: 0.9
tasks: 40
against: "no skill"
split: "test"
model: "a: “b”"
run: "c # d"
hash: "sha256:71e93a1e1c5d8b4e3f0f9f7f"
---

# Move a file

Files that move.

## Workflow

1. Find “it”.
2. Move it.

## Notes

- Ask.
"""
TEXT = TEXT.replace("sha256:71e93a1e1c5d8b4e3f0f9f7f", skill_hash(SKILL))


def test_the_literal_form():
    assert skill_to_text(DOCUMENT) == TEXT
    assert skill_from_text(TEXT) == DOCUMENT
    alone = skill_to_text(SkillDocument(SKILL))
    known = [line.split(":")[0] for line in alone.split("---")[1].split("\n") if line]
    assert known == ["format", "version", "hash"]
    assert skill_from_text(alone) == SkillDocument(SKILL)


def test_the_first_release_is_read():
    found = read_skill(VERSION1)
    assert found == SkillDocument(
        Skill(
            "Move a file to a folder",
            "Requests to put a file into a folder that may not be there yet.",
            (
                "List the folder that the file is in, and note its exact name.",
                "If the target folder is missing, make it before anything else.",
                "Move the file, and list the target folder to see that it is there.",
            ),
            ("A file of the same name in the target is replaced without a question.",),
        ),
        *("files", 0.18, (0.06, 0.29), 0.95, 40, "no skill", "test"),
        *("SmolLM2-135M-Instruct", "wer"),
    )
    assert skill_to_text(found) == VERSION1.read_text(encoding="utf-8")


def test_a_file_comes_back_whatever_its_line_ends(tmp_path):
    path = tmp_path / "skill.md"
    write_skill(path, DOCUMENT)
    assert read_skill(path) == DOCUMENT and path.read_text(encoding="utf-8") == TEXT
    for change in (("\n", "\r\n"), ("\n", " \n"), ("---\n\n", "---\n")):
        path.write_bytes(b"\xef\xbb\xbf\n" + TEXT.replace(*change).encode())
        assert read_skill(path) == DOCUMENT
    path.write_text(render_skill(SKILL), encoding="utf-8")
    assert read_skill(path) == SkillDocument(SKILL)


def test_numbers_are_kept_to_six_digits():
    found = SkillDocument(SKILL, effect=np.float32(0.1), interval=[-0.0, 1 / 3])
    assert found.effect == 0.1 and found.interval == (0.0, 0.333333)
    assert "interval: [0.0, 0.333333]" in skill_to_text(found)
    assert SkillDocument(SKILL, effect=1).effect == 1.0


@SEEDED
@given(
    st.floats(-1, 1), st.floats(-1, 1), st.integers(1, 2**31 - 1), st.text(max_size=9)
)
def test_any_document_comes_back(one, other, tasks, text):
    interval = (min(one, other), max(one, other))
    try:
        document = SkillDocument(
            SKILL, "a-B_1", one, interval, 0.5, tasks, text, run=text
        )
    except InputError:
        document = SkillDocument(SKILL, "a-B_1", one, interval, 0.5, tasks)
    assert skill_from_text(skill_to_text(document)) == document


@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        ("domain", "a b", "domain: expected a name of at most 64 letters"),
        ("domain", "../a", "domain: expected a name"),
        ("domain", 5, "domain: expected a name"),
        ("effect", float("nan"), "effect: expected a number from -1 to 1, got nan"),
        ("effect", 1.5, "effect: expected a number from -1 to 1, got 1.5"),
        ("effect", True, "effect: expected a number from -1 to 1, got True"),
        ("effect", "0.1", "effect: expected a number from -1 to 1, got '0.1'"),
        ("effect", None, "interval: expected an effect that it is of, got none"),
        ("interval", (0.2, 0.1), "interval: expected the low end first, got 0.2 and"),
        ("interval", (0.2,), "interval: expected a low and a high end"),
        ("interval", 0.2, "interval: expected a low and a high end"),
        ("interval", (0.2, float("nan")), "interval: expected a number from -1 to 1"),
        ("level", 1, "level: expected it between 0 and 1, got 1"),
        ("level", 95, "level: expected a number from -1 to 1, got 95"),
        ("tasks", 0, "tasks: expected a whole number >= 1, got 0"),
        ("tasks", 4.0, "tasks: expected a whole number >= 1, got 4.0"),
        ("against", "a\nb", "against: expected one line"),
        ("model", "a" * 201, "model: expected at most 200 characters"),
        ("run", None, "run: expected a text, got NoneType"),
        ("version", 2, "version: expected 1, got 2; a newer jerp"),
        ("version", "1", "version: expected 1, got '1'"),
    ],
)
def test_what_cannot_be_meant_is_refused_by_its_name(field, value, message):
    error = StorageError if field == "version" else InputError
    with pytest.raises(error) as caught:
        dataclasses.replace(DOCUMENT, **{field: value})
    assert message in str(caught.value)


def broken(old, new):
    assert TEXT.count(old) >= 1
    return TEXT.replace(old, new, 1)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "line 1: expected '# NAME', got the end of the text"),
        ("---\n", "line 1: expected another '---' below, found none"),
        ("\n" + TEXT.split("---\n\n")[0], "line 2: expected another '---' below"),
        ("---\n---\n" + render_skill(SKILL), "line 2: expected the field 'format'"),
        (broken("version: 1\n", ""), "line 13: expected the field 'version'"),
        (broken("hash: ", "# hash: "), "line 13: expected 'NAME: VALUE', got '# hash"),
        (broken('"jerp skill"', '"skill"'), "format: expected 'jerp skill'"),
        (broken("version: 1", "version: 2"), "version: expected 1, got 2; a newer"),
        (broken("effect", "efect"), "line 5: unknown field 'efect'; did you mean 'eff"),
        (broken("level: 0.9", "tasks: 1\nlevel: 0.9"), "line 9: expected 'tasks' once"),
        (broken("0.125", "0,125"), "line 5: effect: expected a text in quotes"),
        (broken("0.125", "NaN"), "effect: expected a number from -1 to 1, got nan"),
        (broken("0.125", "[" * 10**5), "line 5: effect: expected a text in quotes"),
        (broken("40", "1" * 5000), "line 8: tasks: expected a text in quotes"),
        (broken('"files"', "files"), "line 4: domain: expected a text in quotes"),
        (broken('"files"', "[]"), "domain: expected a name"),
        (broken('"a: “b”"', "5"), "model: expected a text, got int"),
        (broken("1. Find", "1. find"), "hash: expected that of the skill below"),
        (broken("2. Move", "3. Move"), "line 23: expected '2. STEP' or '## Notes'"),
        (broken("- Ask.", "- Ask <b>."), "line 27: notes 1: expected words without"),
    ],
)
def test_a_mistake_in_a_file_is_named(tmp_path, text, message):
    path = tmp_path / "skill.md"
    path.write_text(text, encoding="utf-8")
    with pytest.raises((InputError, StorageError)) as caught:
        read_skill(path)
    assert str(caught.value).startswith(f"{path}: {message}")
    assert len(str(caught.value)) < len(str(path)) + 400


def test_what_is_no_file_of_a_skill_is_refused(tmp_path):
    path = tmp_path / "skill.md"
    with pytest.raises(StorageError, match="there is no such file"):
        read_skill(path)
    path.write_bytes(TEXT.encode()[:-1] + b"\xff\n")
    with pytest.raises(InputError, match="line 27: expected text in UTF-8"):
        read_skill(path)
    path.write_bytes(b"a" * (2**20 + 1))
    with pytest.raises(InputError, match="at most 1 MiB, got 1048577 bytes"):
        read_skill(path)
    path.unlink()
    os.mkfifo(path)
    with pytest.raises(InputError, match="a regular file, got a folder, a pipe"):
        read_skill(path)
    with pytest.raises(InputError, match="a regular file"):
        read_skill(tmp_path)
    with pytest.raises(StorageError, match="cannot be written"):
        write_skill(tmp_path / "none" / "skill.md", DOCUMENT)


@pytest.fixture
def run(tmp_path):
    """The folder of a run that wrote the skills of two domains."""
    for domain in ("trading", "files"):
        path = skill_path(tmp_path / "wer" / "seed-0", domain)
        path.parent.mkdir(parents=True, exist_ok=True)
        write_skill(path, dataclasses.replace(DOCUMENT, domain=domain))
    return tmp_path / "wer" / "seed-0"


def test_the_skills_of_a_run_are_found_by_domain(run):
    assert list(find_skills(run)) == ["files", "trading"]
    assert find_skills(run, domain="files") == {"files": DOCUMENT}
    assert find_skills(skill_path(run, "files")) == {"files": DOCUMENT}
    with pytest.raises(UnknownNameError, match="domain 'file'; did you mean 'files'"):
        find_skills(run, domain="file")
    with pytest.raises(UnknownNameError, match="known: files"):
        find_skills(skill_path(run, "files"), domain="trading")


def test_no_domain_can_be_chosen_of_a_file_that_says_none(tmp_path):
    path = tmp_path / "a.md"
    write_skill(path, dataclasses.replace(DOCUMENT, domain=""))
    assert list(find_skills(path)) == [""]
    with pytest.raises(InputError, match=r"a\.md says no domain.*'x'; leave --domain"):
        find_skills(path, domain="x")


def test_a_folder_without_skills_names_those_below(run, tmp_path):
    with pytest.raises(StorageError, match=f"name one of {run}$"):
        find_skills(tmp_path)
    (tmp_path / "empty").mkdir()
    with pytest.raises(StorageError, match="found none here or below"):
        find_skills(tmp_path / "empty")
    with pytest.raises(StorageError, match="no such file or folder"):
        find_skills(tmp_path / "none")
    for seed in range(1, 8):
        folder = run.parent / f"seed-{seed}" / "skills"
        folder.mkdir(parents=True)
        (folder / "files.md").write_text(TEXT, encoding="utf-8")
    with pytest.raises(StorageError, match="seed-4 and 3 more"):
        find_skills(tmp_path)


def test_a_file_of_a_run_says_the_domain_that_it_is_named_by(run):
    skill_path(run, "files").rename(skill_path(run, "travel"))
    with pytest.raises(InputError, match=r"skill of 'travel', .* is 'files'"):
        find_skills(run)
    with pytest.raises(InputError, match="domain: expected a name"):
        skill_path(run, "../files")


@pytest.mark.parametrize("name", ["skill_document", "skill_files"])
def test_examples_print_what_they_say(name):
    result = doctest.testmod(importlib.import_module(f"jerp.storage.{name}"))
    assert result.failed == 0 and result.attempted > 0

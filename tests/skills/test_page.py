"""The program and commands of docs/skills.md run, and its tables name what there is."""

import re
import shlex
from pathlib import Path
from typing import get_args

import pytest

from jerp import cli
from jerp.skills.document import SKILL_LIMITS, parse_skill, render_skill
from jerp.skills.draft import MAX_DRAFT
from jerp.skills.faults import FaultKind
from jerp.skills.node import SkillNode
from jerp.storage.skill_document import FIELDS, SkillDocument
from jerp.storage.skill_files import read_skill, skill_path, write_skill
from jerp.storage.skill_tree import SkillTreeFile
from tests.pages import run_program
from tests.skills.test_draft import HOSTILE

PAGE = (Path(__file__).parents[2] / "docs" / "skills.md").read_text(encoding="utf-8")
[PROGRAM] = re.findall(r"```python\n(.+?)```", PAGE, re.DOTALL)
[COMMANDS] = re.findall(r"```bash\n(.+?)```", PAGE, re.DOTALL)
[MARKDOWN] = re.findall(r"````markdown\n(.+?)````", PAGE, re.DOTALL)


def test_the_program_finds_what_the_draft_tells(capsys):
    run_program(PROGRAM, "skills.md", {})
    assert capsys.readouterr().out == (
        "changed workflow 1 Make the folder 'Tax 2024'.\n"
        "secret workflow 1 a text of the task that begins with 't'\n"
        "('secret',)\n"
    )


def test_the_skill_of_the_page_is_one():
    skill = parse_skill(MARKDOWN)
    assert render_skill(skill) == MARKDOWN and len(skill.workflow) == 3


def column(header):
    """The names in the first column of the table that begins with `header`."""
    rows = PAGE.partition(f"| {header} |")[2].partition("\n\n")[0].splitlines()[2:]
    return [name for row in rows for name in re.findall(r"`(\w+)`", row.split("|")[1])]


def test_the_tables_name_every_fault_and_field():
    assert column("field") == [*FIELDS]
    faults = column("fault")
    assert {*get_args(FaultKind)} < {*faults} and len(faults) == len({*faults})
    # Every fault of the page has been had by an answer of the tests.
    assert {*faults} == {
        name for _, all_of in HOSTILE.values() for name in all_of.split()
    }
    said, most = " ".join(PAGE.split()), SKILL_LIMITS
    assert (
        f"A name of at most {most.name} characters, a description of at most "
        f"{most.description}, 1 to {most.steps} steps and at most {most.notes} notes "
        f"of at most {most.line} each"
    ) in said
    assert f"more than {MAX_DRAFT:,} characters" in said


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Where the commands of the page have what they name."""
    monkeypatch.chdir(tmp_path)
    skill = parse_skill(MARKDOWN)
    Path("skill.md").write_text(MARKDOWN)
    Path("revision.md").write_text(MARKDOWN)
    path = skill_path("RUN", "files")
    path.parent.mkdir(parents=True)
    write_skill(path, SkillDocument(skill, "files", 0.1))
    with SkillTreeFile("RUN/tree.jsonl") as file:
        file.append(SkillNode(0, None, "move", 0, MARKDOWN, outcomes=(0, 1)))
    return tmp_path


def test_the_commands_run(folder, capsys):
    lines = COMMANDS.splitlines()
    assert len(lines) == 5
    for line in lines:
        assert cli.main(shlex.split(line)[1:]) == 0, line
    shown = capsys.readouterr().out
    assert "no difference\n" in shown and "└── 0  phase 0  1 of 2" in shown
    assert read_skill(folder / "files.md").effect == 0.1
    assert (folder / "tree.png").read_bytes().startswith(b"\x89PNG")

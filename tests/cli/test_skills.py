"""`jerp skills`: what it prints, and what it refuses in one line."""

import dataclasses

import pytest

from jerp import cli
from jerp.skills.document import Skill, render_skill
from jerp.skills.node import SkillNode
from jerp.storage.skill_document import SkillDocument, skill_hash
from jerp.storage.skill_files import read_skill, skill_path, write_skill
from jerp.storage.skill_tree import SkillTreeFile

SKILL = Skill("Move a file", "Files.", ("Find [red]it[/red].", "Move it."), ("Ask.",))
LATER = Skill("Move a file", "Files.", ("Log in.", "Find {name}.", "Move it."))
DOCUMENT = SkillDocument(
    SKILL, "files", 0.125, (-0.03, 0.21), 0.9, 40, "no skill", "test", "tiny", "wer"
)


@pytest.fixture
def run(tmp_path):
    """The folder of a run that wrote the skills of two domains, and drew up a tree."""
    folder = tmp_path / "wer" / "seed-0"
    for document in (DOCUMENT, SkillDocument(LATER, "travel")):
        path = skill_path(folder, document.domain)
        path.parent.mkdir(parents=True, exist_ok=True)
        write_skill(path, document)
    texts = render_skill(SKILL), render_skill(LATER)
    with SkillTreeFile(folder / "tree.jsonl") as tree:
        tree.append(
            SkillNode(0, None, "move", 0, texts[0], outcomes=(0, 1), retained=True)
        )
        tree.append(SkillNode(1, 0, "move", 1, texts[1], outcomes=(1, 1), reward=1.0))
        tree.append(SkillNode(2, 0, "move", 1, None, faults=("two_skills",)))
    return folder


def said(capsys, *words, status=0):
    """What a command prints; its one line of an error where it fails."""
    assert cli.main(["skills", *map(str, words)]) == status
    shown = capsys.readouterr()
    if status == 2:
        assert shown.err.startswith("jerp: ") and shown.err.count("\n") == 1
        assert shown.out == ""
    return shown.err if status == 2 else shown.out


def test_show_says_what_is_known_and_then_the_skill(run, capsys):
    files = (
        "domain: files\n"
        "effect: +0.125 (0.9 interval -0.030 to +0.210, against no skill, 40 tasks, "
        "split test)\n"
        "executor: tiny\n"
        "run: wer\n"
        f"hash: {skill_hash(SKILL)}\n\n{render_skill(SKILL)}"
    )
    travel = (
        "domain: travel\neffect: not measured\n"
        f"hash: {skill_hash(LATER)}\n\n{render_skill(LATER)}"
    )
    assert said(capsys, "show", skill_path(run, "files")) == files
    assert said(capsys, "show", run, "--domain", "travel") == travel
    assert said(capsys, "show", run) == f"{files}\n{travel}"


def test_show_of_a_text_that_a_person_wrote(tmp_path, capsys):
    path = tmp_path / "mine.md"
    path.write_text(render_skill(SKILL))
    assert said(capsys, "show", path).startswith("effect: not measured\nhash: sha256:")
    write_skill(path, SkillDocument(SKILL, effect=-0.5))
    assert said(capsys, "show", path).startswith("effect: -0.500 (no interval)\n")


def test_diff_says_each_change_and_whether_there_is_one(run, tmp_path, capsys):
    path = tmp_path / "later.md"
    write_skill(path, dataclasses.replace(DOCUMENT, skill=LATER))
    assert said(capsys, "diff", run, path, "--domain", "files", status=1) == (
        "workflow 1 changed\n"
        "  - Find [red]it[/red].\n"
        "  + Log in.\n"
        "workflow 2 added\n"
        "  + Find {name}.\n"
        "notes 1 removed\n"
        "  - Ask.\n"
    )
    same = skill_path(run, "travel")
    assert said(capsys, "diff", path, same) == "no difference\n"


def test_export_keeps_what_was_measured(run, tmp_path, capsys):
    out = tmp_path / "skill.md"
    words = ("export", run, "--out", out, "--domain", "files")
    assert said(capsys, *words) == f"{out}: {skill_hash(SKILL)}\n"
    assert read_skill(out) == DOCUMENT
    assert "it is there already; --force" in said(capsys, *words, status=2)
    out.write_text("")
    said(capsys, *words, "--force")
    assert read_skill(out) == DOCUMENT
    alone = tmp_path / "alone.md"
    assert said(capsys, "export", skill_path(run, "travel"), "--out", alone)
    assert read_skill(alone).skill == LATER


def test_tree_draws_who_came_of_whom(run, capsys):
    drawn = (
        "move\n"
        "└── 0  phase 0  1 of 2  kept\n"
        "    ├── 1  phase 1  2 of 2  reward 1.00\n"
        "    └── 2  phase 1  no skill: two_skills\n"
    )
    assert said(capsys, "tree", run) == drawn
    assert said(capsys, "tree", run / "tree.jsonl", "--task", "move") == drawn


def test_tree_says_what_a_kill_cut_off(run, capsys):
    with open(run / "tree.jsonl", "ab") as file:
        file.write(b'{"id": 3')
    assert cli.main(["skills", "tree", str(run)]) == 0
    shown = capsys.readouterr()
    assert shown.out.startswith("move\n└── 0") and shown.out.count("\n") == 4
    assert shown.err.startswith("jerp: ") and shown.err.count("\n") == 1
    assert "last line of 8 bytes is left out" in shown.err


@pytest.mark.parametrize(("name", "head"), [("a.png", b"\x89PNG"), ("a.svg", b"<?xml")])
def test_tree_is_drawn_in_a_file(run, tmp_path, capsys, name, head):
    file = tmp_path / name
    words = ("tree", run, "--figure", file)
    all_of_it = f"{file}: 1 of 1 tasks, 3 of 3 drafts: move\n"
    assert said(capsys, *words) == all_of_it
    assert file.read_bytes().startswith(head)
    assert "it is there already; --force" in said(capsys, *words, status=2)
    file.write_text("")
    assert said(capsys, *words, "--force", "--task", "move") == all_of_it
    assert file.read_bytes().startswith(head)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("show none.md", "there is no such file or folder"),
        ("show .", "name one of wer/seed-0"),
        ("show RUN --domain trading", "unknown domain 'trading'; did you mean"),
        ("show plain.md --domain x", "plain.md says no domain, so none can be chosen"),
        ("show broken.md", "broken.md: line 1: expected '# NAME', got 'a'"),
        ("diff RUN RUN", "--domain: expected one of files, travel; RUN has a skill"),
        ("export RUN --out a.md", "--domain: expected one of files, travel"),
        ("export RUN --out a.json", "--out: expected a name that ends with .md"),
        ("export RUN --domain files --out no/a.md", "no/a.md: cannot be written"),
        ("tree none", "none: there is no such file or folder"),
        ("tree broken.md", "broken.md: "),
        ("tree wer/seed-0/skills", "with tree.jsonl, of a run that writes skills, fou"),
        ("tree wer", "a run that writes skills; name one of wer/seed-0"),
        ("tree RUN --task trade", "task: expected one of the tree (move), got 'trade'"),
        ("tree RUN --figure a.pdf", "--figure: expected a name that ends with .png or"),
        ("tree RUN --figure no/a.png", "no/a.png: cannot be written"),
        ("tree RUN --figure a.svg --task x", "task: expected one of the tree (move)"),
        ("tree none --figure a.svg", "none: there is no such file or folder"),
        ("tree empty.jsonl --figure a.svg", "tree: expected at least one draft to dr"),
        ("tree RUN --force", "--force: expected with --figure FILE, got it alone"),
        ("shw RUN", "did you mean 'show'? (known: show, diff, tree, export)"),
    ],
)
def test_a_mistake_is_one_line(run, monkeypatch, capsys, words, message):
    monkeypatch.chdir(run.parents[1])
    (run.parents[1] / "broken.md").write_text("a")
    (run.parents[1] / "plain.md").write_text(render_skill(SKILL))
    SkillTreeFile(run.parents[1] / "empty.jsonl").close()
    words = words.replace("RUN", "wer/seed-0").split()
    found = said(capsys, *words, status=2)
    assert message.replace("RUN", "wer/seed-0") in found

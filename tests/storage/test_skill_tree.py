"""A tree on disk: appended, whole or not at all, and one writer's at a time."""

import io
import json
import os
import re
import subprocess
import sys
from dataclasses import MISSING, fields
from pathlib import Path

import pytest

from jerp.errors import InputError, StorageError
from jerp.skills.node import SkillNode
from jerp.skills.tree import SkillTree
from jerp.storage.skill_tree import SkillTreeFile, read_tree

NODES = (
    SkillNode(0, None, "move", 0, "# A", "Why.", outcomes=(1, 0), retained=True),
    SkillNode(1, 0, "move", 1, None, "é\ud800\n", faults=("order",), tokens=3),
    SkillNode(
        2, 0, "move", 1, "# B\n\nx", outcomes=(1, 4), reward=0.5, evidence=("a",)
    ),
)
HEAD = '{"format": "jerp skill tree", "version": 1}\n'


@pytest.fixture
def path(tmp_path):
    return tmp_path / "run" / "tree.jsonl"


def written(path, nodes=NODES):
    with SkillTreeFile(path) as file:
        for node in nodes:
            file.append(node)
    return path.read_bytes()


def test_nodes_come_back_as_they_were_written(path):
    data = written(path, NODES[:2])
    assert data.startswith(HEAD.encode()) and written(path, ()) == data
    with SkillTreeFile(path) as file:
        assert file.tree.nodes == NODES[:2]
        file.append(NODES[2])
        assert file.tree.nodes == NODES and read_tree(path).nodes == NODES
    assert path.read_bytes().startswith(data)
    last = json.loads(path.read_text().splitlines()[-1])
    assert last["outcomes"] == [1, 4] and last["reward"] == 0.5


def test_several_nodes_at_once_are_those_one_by_one(path):
    whole = written(path)
    path.unlink()
    with SkillTreeFile(path) as file:
        file.append(NODES[0])
        before = path.read_bytes()
        for wrong in ((NODES[1], NODES[1]), (NODES[1], NODES[0])):
            with pytest.raises(InputError, match="id: expected"):
                file.extend(wrong)
        assert path.read_bytes() == before and len(file.tree) == 1
        file.extend(NODES[1:])
        assert file.tree.nodes == NODES
    assert path.read_bytes() == whole


def test_a_torn_last_line_is_dropped_and_said(path):
    whole = written(path)
    before = whole[:-1].rindex(b"\n") + 1
    for size in (before + 1, before + 20, len(whole) - 2):
        path.write_bytes(whole[:size])
        said = f"half-written last line of {size - before} bytes is left out"
        with pytest.warns(UserWarning, match=said):
            assert read_tree(path).nodes == NODES[:2]
        with pytest.warns(UserWarning, match=said), SkillTreeFile(path) as file:
            file.append(NODES[2])
        assert path.read_bytes() == whole


def test_a_last_line_that_lacks_its_newline_is_kept(path):
    whole = written(path)
    path.write_bytes(whole[:-1])
    assert read_tree(path).nodes == NODES
    with SkillTreeFile(path, num_nodes=3) as file:
        assert file.tree.nodes == NODES
    assert path.read_bytes() == whole


@pytest.mark.parametrize("data", [b"notes", HEAD.encode("utf-16"), b'{"a": ['])
def test_a_file_of_something_else_is_refused_and_stays(path, data):
    path.parent.mkdir()
    path.write_bytes(data)
    with pytest.raises(StorageError, match=r"begins with .*skill tree.*nothing was"):
        SkillTreeFile(path)
    assert path.read_bytes() == data


NULS = (b"\0" * 5, b"\0" * 4 + b"\n", b"\0\n\0\n\0", b'\0\0"}\n', b"\0\n{\0}")
"""What a crash of the machine leaves behind the last line, five bytes each."""


@pytest.mark.parametrize("nuls", NULS)
def test_nuls_behind_the_last_line_are_a_torn_end(path, nuls):
    whole = written(path)
    path.write_bytes(whole + nuls)
    with pytest.warns(UserWarning, match=r"half-written last line of 5 bytes is left"):
        assert read_tree(path).nodes == NODES
    assert path.read_bytes() == whole + nuls
    with pytest.warns(UserWarning, match="last line of 5 bytes"):
        assert written(path, ()) == whole


def test_nuls_before_a_whole_line_are_damage(path):
    head, first, *rest = written(path).splitlines(keepends=True)
    for line in (b"\0\0\n", first.replace(b"move", b"mo\0e")):
        data = b"".join([head, line, *rest])
        path.write_bytes(data)
        for opened in (read_tree, SkillTreeFile):
            with pytest.raises(StorageError, match=r"line 2 is no node.*bring the"):
                opened(path)
        assert path.read_bytes() == data


def test_a_torn_head_is_a_new_file(path):
    whole = written(path)
    path.write_bytes(HEAD[:9].encode())
    with pytest.raises(StorageError, match="expected a tree of skills, got 9 bytes"):
        read_tree(path)
    with pytest.warns(UserWarning, match="last line of 9 bytes"):
        assert written(path) == whole


def test_nodes_after_a_checkpoint_are_taken_back(path):
    whole = written(path)
    with pytest.warns(UserWarning, match="2 nodes after the checkpoint are taken back"):
        file = SkillTreeFile(path, num_nodes=1)
    with file:
        assert file.tree.nodes == read_tree(path).nodes == NODES[:1]
        file.append(NODES[1])
        file.append(NODES[2])
    assert path.read_bytes() == whole
    with pytest.raises(StorageError, match="the 4 nodes before the checkpoint, got 3"):
        SkillTreeFile(path, num_nodes=4)
    with pytest.raises(InputError, match="num_nodes: expected a whole number >= 0"):
        SkillTreeFile(path, num_nodes=-1)
    assert path.read_bytes() == whole
    SkillTreeFile(path, num_nodes=3).close()


def test_what_is_damaged_after_a_checkpoint_does_not_matter(path):
    written(path, NODES[:1])
    kept = path.read_bytes()
    path.write_bytes(kept + b"{}\n")
    with pytest.raises(StorageError, match="line 3 is no node"):
        SkillTreeFile(path)
    with pytest.warns(UserWarning, match="1 nodes after"):
        SkillTreeFile(path, num_nodes=1).close()
    assert path.read_bytes() == kept


def test_a_node_that_does_not_fit_is_not_written(path):
    with SkillTreeFile(path) as file:
        file.append(NODES[0])
        data = path.read_bytes()
        for wrong in (NODES[0], SkillNode(5, 4, "move", 1, "# C")):
            with pytest.raises(InputError, match="expected a n"):
                file.append(wrong)
        assert path.read_bytes() == data and len(file.tree) == 1


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("", "Expecting value"),
        ("[]", "row: expected a mapping"),
        ("{}", "id: expected it in a row"),
        (
            '{"id": 1, "parent": 9, "task": "a", "phase": 0, "skill": "b"}',
            "parent: exp",
        ),
        (
            '{"id": 0, "parent": null, "task": "a", "phase": NaN, "skill": "b"}',
            "phase:",
        ),
        ("[" * 100_000, "recursion"),
        ('{"id": 1, "parent": null, "task": "\udcff"}', "codec"),
    ],
)
def test_a_line_that_is_no_node_is_named(path, line, message):
    written(path, NODES[:1])
    data = path.read_bytes() + line.encode(errors="surrogateescape") + b"\n"
    path.write_bytes(data)
    with pytest.raises(StorageError, match=rf"line 3 is no node.*{message}.*bring the"):
        read_tree(path)
    with pytest.raises(StorageError, match="line 3"):
        SkillTreeFile(path)
    assert path.read_bytes() == data


@pytest.mark.parametrize(
    ("head", "message"),
    [
        ('{"format": "jerp skill tree", "version": 2}', r"expected 1, got 2; a newer"),
        ('{"format": "jerp skill tree", "version": true}', r"expected 1, got True\)"),
        ('{"format": "rules", "version": 1}', "expected the format 'jerp skill tree'"),
        ('{"id": 0}', "expected the format"),
        ("7", "expected the format"),
    ],
)
def test_another_format_is_refused(path, head, message):
    path.parent.mkdir()
    path.write_text(head + "\n")
    for read in (read_tree, SkillTreeFile):
        with pytest.raises(StorageError, match=f"line 1 is no head.*{message}"):
            read(path)
    assert path.read_text() == head + "\n"


HOLDER = (
    "import fcntl, sys\n"
    "file = open(sys.argv[1], 'ab')\n"
    "fcntl.flock(file, fcntl.LOCK_EX)\n"
    "print(flush=True)\n"
    "sys.stdin.read()\n"
)


def test_one_writer_at_a_time_and_any_reader(path):
    written(path)
    with SkillTreeFile(path):
        with pytest.raises(StorageError, match="someone else writes to it; wait"):
            SkillTreeFile(path)
        assert read_tree(path).nodes == NODES
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    with subprocess.Popen([sys.executable, "-c", HOLDER, path], **pipes) as other:
        assert other.stdout.readline()
        with pytest.raises(StorageError, match="someone else writes to it; wait"):
            SkillTreeFile(path)
        assert read_tree(path).nodes == NODES
        other.stdin.close()
    SkillTreeFile(path).close()


def test_a_failed_opening_holds_no_lock(path):
    written(path)
    for _ in range(2):
        with pytest.raises(StorageError, match="got 3"):
            SkillTreeFile(path, num_nodes=9)
    SkillTreeFile(path).close()


def test_a_full_disk_leaves_file_and_tree_as_they_were(path, monkeypatch):
    data = written(path, NODES[:1])
    with SkillTreeFile(path) as file:
        real = file._file

        class Full(io.RawIOBase):
            def write(self, line):
                real.write(line[:5])
                raise OSError(28, "No space left on device")

            def __getattr__(self, name):
                return getattr(real, name)

            seek, truncate, fileno = real.seek, real.truncate, real.fileno

        monkeypatch.setattr(file, "_file", Full())
        with pytest.raises(StorageError, match=r"tree.jsonl: cannot .*No space left"):
            file.append(NODES[1])
        assert path.read_bytes() == data and len(file.tree) == 1
        monkeypatch.setattr(file, "_file", real)
        file.append(NODES[1])
    assert read_tree(path).nodes == NODES[:2]


def test_a_line_is_on_disk_before_the_tree_has_it(path, monkeypatch):
    with SkillTreeFile(path) as file:
        seen = []
        real = os.fsync

        def fsync(descriptor):
            seen.append((path.read_bytes().count(b"\n"), len(file.tree)))
            real(descriptor)

        monkeypatch.setattr(os, "fsync", fsync)
        file.append(NODES[0])
        assert seen == [(2, 0)]


def test_what_is_no_file(tmp_path, path):
    for read in (read_tree, SkillTreeFile):
        with pytest.raises(StorageError, match="expected a regular file, got a folder"):
            read(tmp_path)
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(StorageError, match="expected a regular file"):
        read_tree(tmp_path / "pipe")
    with pytest.raises(StorageError, match="there is no such file"):
        read_tree(path)


def test_the_first_release_is_read():
    tree = read_tree(Path(__file__).parent / "version1" / "tree.jsonl")
    assert isinstance(tree, SkillTree) and tree.nodes == NODES


def test_the_page_has_every_field_and_what_is_left_out():
    page = (Path(__file__).parents[2] / "docs" / "skill_runs.md").read_text()
    table = page.partition("## Files of trees, format version 1")[2]
    rows = re.findall(r"^\| `(\w+)` \|.+\| (?:`?([^|`]+)`? )?\|$", table, re.MULTILINE)
    found = {name: json.loads(word) if word else MISSING for name, word in rows}
    known = {field.name: field.default for field in fields(SkillNode)}
    assert list(found) == list(known)
    assert found == {k: [] if v == () else v for k, v in known.items()}

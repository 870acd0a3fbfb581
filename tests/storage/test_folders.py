import os
import platform
import subprocess
import sys

import pytest

from jerp.errors import StorageError
from jerp.storage.folders import replaced_folder


def content(folder):
    return {path.name: path.read_text() for path in folder.iterdir()}


@pytest.fixture
def folder(tmp_path):
    made = tmp_path / "results"
    made.mkdir()
    (made / "old").write_text("old")
    return made


@pytest.mark.parametrize("name", ["results", "new", "below/new"])
def test_the_new_folder_takes_the_place_of_the_old(folder, name):
    path = folder.parent / name
    with replaced_folder(path) as fresh:
        (fresh / "new").write_text("new")
        assert content(folder) == {"old": "old"}
    assert content(path) == {"new": "new"}
    assert not [p for p in path.parent.iterdir() if p.name.startswith(".")]


def test_after_an_error_nothing_has_changed(folder):
    with pytest.raises(ZeroDivisionError), replaced_folder(folder) as fresh:
        (fresh / "new").write_text("new")
        raise ZeroDivisionError
    assert content(folder) == {"old": "old"}
    assert [p.name for p in folder.parent.iterdir()] == ["results"]


def test_a_rename_that_fails_is_taken_back(folder, monkeypatch):
    real = os.replace

    def refuse(source, target):
        if str(source).endswith(".old.tmp") or target != folder.resolve():
            return real(source, target)
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(os, "replace", refuse)
    with (
        pytest.raises(StorageError, match="what it held is unchanged"),
        replaced_folder(folder),
    ):
        pass
    assert content(folder) == {"old": "old"}


def test_a_file_in_the_way_is_refused_and_kept(folder):
    with (
        pytest.raises(StorageError, match="Not a directory"),
        replaced_folder(folder / "old"),
    ):
        pass
    assert content(folder) == {"old": "old"}


def test_a_link_keeps_pointing_at_the_folder_that_is_replaced(folder):
    link = folder.parent / "link"
    link.symlink_to(folder)
    with replaced_folder(link) as fresh:
        (fresh / "new").write_text("new")
    assert link.is_symlink() and content(folder) == {"new": "new"}


@pytest.fixture
def killed(folder):
    """Makes the folders that a killed writer of the folder leaves; returns names."""
    writer = subprocess.Popen([sys.executable, "-c", ""])
    writer.wait()

    def leave(name=folder.name, host=None, process=writer.pid):
        host = platform.node() if host is None else host
        names = {f".{name}.{host}.{process}{kind}.tmp" for kind in ("", ".old")}
        for each in names:
            (folder.parent / each).mkdir()
            (folder.parent / each / "part").write_text("part")
        return names

    return leave


def names_beside(folder):
    return {path.name for path in folder.parent.iterdir()}


def test_what_a_killed_writer_left_goes_with_the_next_success(folder, killed):
    left = killed()
    with pytest.raises(ZeroDivisionError), replaced_folder(folder):
        raise ZeroDivisionError
    assert names_beside(folder) == {"results", *left}
    with replaced_folder(folder):
        pass
    assert names_beside(folder) == {"results"}


DIES_BETWEEN_RENAMES = """
import os, pathlib, sys
from jerp.storage import folders

real, renames = os.replace, []

def replace(*paths):
    renames.append(paths)
    if len(renames) == 2:
        os._exit(9)
    real(*paths)

os.replace = replace
with folders.replaced_folder(pathlib.Path(sys.argv[1])) as fresh:
    (fresh / "new").write_text("new")
"""


def test_a_kill_between_the_renames_leaves_old_and_new_whole_beside(folder):
    writer = subprocess.run([sys.executable, "-c", DIES_BETWEEN_RENAMES, folder])
    assert writer.returncode == 9 and not folder.exists()
    left = sorted(folder.parent.iterdir(), key=lambda path: len(path.name))
    assert [content(path) for path in left] == [{"new": "new"}, {"old": "old"}]
    with replaced_folder(folder) as fresh:
        (fresh / "third").write_text("third")
    assert names_beside(folder) == {"results"} and content(folder) == {"third": "third"}


def test_the_folders_of_other_writers_stay(folder, killed):
    left = (
        killed(name="other") | killed(host="elsewhere") | killed(process=os.getppid())
    )
    (folder.parent / ".results.tmp").mkdir()
    (folder.parent / f".results.{platform.node()}.0.tmp").mkdir()
    before = names_beside(folder)
    with replaced_folder(folder):
        pass
    assert names_beside(folder) == before and left <= before

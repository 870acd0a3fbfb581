import errno
import os
import resource
import signal
from pathlib import Path

import pytest

from jerp.errors import StorageError
from jerp.storage.atomic import make_folder, read_bytes, temporaries, write_bytes


def test_a_written_file_is_there_and_nothing_else(tmp_path):
    write_bytes(tmp_path / "a", b"one")
    write_bytes(tmp_path / "a", b"two")
    assert read_bytes(tmp_path / "a") == b"two"
    assert [p.name for p in tmp_path.iterdir()] == ["a"]


def fail_with(monkeypatch, name, number):
    def fail(*_):
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(os, name, fail)


@pytest.mark.parametrize("name", ["fsync", "replace"])
@pytest.mark.parametrize(
    ("number", "advice"),
    [(errno.ENOSPC, "free some room"), (errno.EACCES, "permissions")],
)
def test_a_failed_write_leaves_what_was_there(
    tmp_path, monkeypatch, name, number, advice
):
    path = tmp_path / "a"
    write_bytes(path, b"old")
    fail_with(monkeypatch, name, number)
    message = f"a: cannot be written.*{advice}.*Whatever was written before this is"
    with pytest.raises(StorageError, match=message):
        write_bytes(path, b"new")
    assert path.read_bytes() == b"old"
    assert temporaries(tmp_path) == []


def test_a_disk_that_refuses_all_is_named_by_the_file_and_no_other(
    tmp_path, monkeypatch
):
    """A read-only one also refuses to remove what is not there."""

    def unlink(*_, **__):
        raise OSError(errno.EROFS, os.strerror(errno.EROFS))

    fail_with(monkeypatch, "replace", errno.EROFS)
    monkeypatch.setattr(Path, "unlink", unlink)
    with pytest.raises(StorageError, match=r"^\S+/a: cannot be written \(Read-only"):
        write_bytes(tmp_path / "a", b"new")


def test_a_real_limit_on_the_size_of_files_is_reported_as_a_full_disk(tmp_path):
    path = tmp_path / "a"
    write_bytes(path, b"old")
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, limits[1]))
    try:
        with pytest.raises(StorageError, match="free some room"):
            write_bytes(path, b"x" * (2 << 20))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
        signal.signal(signal.SIGXFSZ, handler)
    assert path.read_bytes() == b"old"
    assert temporaries(tmp_path) == []


def test_an_interrupted_write_leaves_nothing(tmp_path, monkeypatch):
    def interrupt(_):
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "fsync", interrupt)
    with pytest.raises(KeyboardInterrupt):
        write_bytes(tmp_path / "a", b"new")
    assert list(tmp_path.iterdir()) == []


def test_reading_what_is_not_there_names_the_file(tmp_path):
    with pytest.raises(StorageError, match="nowhere: there is no such file"):
        read_bytes(tmp_path / "nowhere")
    with pytest.raises(StorageError, match="cannot be read"):
        read_bytes(tmp_path)


def test_a_file_in_the_way_of_a_folder_is_named(tmp_path):
    make_folder(tmp_path / "a" / "b")
    (tmp_path / "c").write_text("")
    with pytest.raises(StorageError, match="expected a folder or nothing, found"):
        make_folder(tmp_path / "c")
    with pytest.raises(StorageError, match="cannot be written"):
        make_folder(tmp_path / "c" / "d")

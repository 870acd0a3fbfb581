"""Files of lines that are appended and never rewritten, by one process at a time.

A line is there as a whole or not at all: what a kill or a crash of the machine cut off
is left out when the file is opened again, and said. Anyone may read while someone
writes.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import warnings
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import IO, Any, Self

from jerp.errors import InputError, StorageError
from jerp.storage.atomic import make_folder

__all__ = [
    "AppendedFile",
    "append_lines",
    "check_begun",
    "check_head",
    "check_regular",
    "disk_errors",
    "end_lines",
    "say_torn",
    "whole_size",
]

MOST_NULS = 1 << 16
"""Behind a head that was not written as a whole."""


class AppendedFile:
    """A file of appended lines, which is locked until it is closed.

    Args:
      path: of the file; it is made where there is none, with its folder.
      what: the file holds.

    Attributes:
      path: of the file.

    Raises:
      StorageError: another process writes to it, it is no regular file, or the disk
        refuses.
    """

    def __init__(self, path: Path | str, what: str):
        self.path = Path(path)
        make_folder(self.path.parent)
        check_regular(self.path, what)
        self._file = _open_locked(self.path)

    def close(self) -> None:
        """Gives the file free."""
        self._file.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @contextlib.contextmanager
    def _closed_on_failure(self) -> Iterator[None]:
        """Gives the file free if what is inside fails, for `__init__` of a subclass."""
        try:
            yield
        except BaseException:
            self.close()
            raise


def append_lines(path: Path, file: IO[bytes], lines: bytes) -> int:
    """Appends, and waits until it is on disk; returns where the lines begin.

    Raises:
      StorageError: the disk refuses; the file is as it was.
    """
    with disk_errors(path):
        before = file.seek(0, os.SEEK_END)
        try:
            while lines:
                lines = lines[file.write(lines) :]
            os.fsync(file.fileno())
        except OSError:
            # What comes next must not follow half a line.
            file.truncate(before)
            raise
    return before


def check_regular(path: Path, what: str) -> None:
    """Raises `StorageError` for what is there and no file of `what`.

    A pipe would never end, and a device never fill.
    """
    if path.exists() and not path.is_file():
        raise StorageError(
            f"{path}: expected a regular file, got a folder, a pipe or a device; name "
            f"the file of {what}"
        )


def check_head(row: Any, form: str, version: int) -> Mapping[str, Any]:
    """The first line of a file; raises `InputError` if it is not of this format."""
    if not isinstance(row, dict) or row.get("format") != form:
        raise InputError(f"expected the format {form!r}, got {row!r:.80}")
    found = row.get("version")
    if type(found) is not int or found != version:
        newer = type(found) is int and found > version
        hint = "; a newer jerp may have written it" if newer else ""
        raise InputError(f"version: expected {version}, got {found!r}{hint}")
    return row


def whole_size(lines: Iterable[bytes]) -> int:
    r"""Bytes up to the end of the last line that is whole; the rest is torn.

    Where a machine crashed, a file may end in NUL bytes for what the disk never got:
    a line with one of them is not whole. Before a whole line it is damage, which
    counts as what it is. A last line that lacks only its newline is whole: no part of
    an object of JSON is one itself.

    Args:
      lines: of the file, with their ends.

    Example:
      >>> whole_size([b"{}\n", b"{}\n", b"\0\0\n", b"\0"])
      6
      >>> whole_size([b"{}\n", b"{}"]), whole_size([b"{}\n", b"{"])
      (5, 3)
    """
    place = whole = 0
    for line in lines:
        place += len(line)
        if b"\0" not in line and (line.endswith(b"\n") or _is_object(line)):
            whole = place
    return whole


def check_begun(path: Path, file: IO[bytes], head: bytes) -> None:
    """Refuses a file without a whole line that is not the beginning of its head.

    A kill while the first line was written leaves such a beginning, and a crash of the
    machine NUL bytes behind it. Everything else is another's, and stays.

    Args:
      path: of the file.
      file: open to read.
      head: the first line that would be written.

    Raises:
      StorageError: it is no such beginning.
    """
    with disk_errors(path):
        size = file.seek(0, os.SEEK_END)
        file.seek(0)
        begun = file.read(len(head) + MOST_NULS)
    if len(begun) < size or not head.startswith(begun.rstrip(b"\0")):
        raise StorageError(
            f"{path}: expected a file that begins with {head.decode().strip():.200}, "
            f"got {begun!r:.80}; nothing was changed. Name another file, or remove "
            "this one"
        )


def end_lines(path: Path, file: IO[bytes], whole: int, head: bytes) -> None:
    """Leaves the whole lines in a file, each with its newline, and a head in front.

    Args:
      path: of the file.
      file: open to read and to append.
      whole: see `whole_size`; what follows is cut off.
      head: the first line, which is written where there is none.

    Raises:
      StorageError: the disk refuses.
    """
    with disk_errors(path):
        file.truncate(whole)
        file.seek(max(whole - 1, 0))
        end = file.read(1)
    if not whole:
        append_lines(path, file, head)
    elif end != b"\n":
        append_lines(path, file, b"\n")


def say_torn(path: Path, torn: int) -> None:
    """Warns of a last line that is not whole; of the caller's caller's caller."""
    if torn:
        warnings.warn(
            f"{path}: a half-written last line of {torn} bytes is left out",
            stacklevel=4,
        )


@contextlib.contextmanager
def disk_errors(path: Path) -> Iterator[None]:
    """What the disk refuses as a `StorageError` that names the file."""
    try:
        yield
    except StorageError:
        raise
    except OSError as error:
        raise StorageError(
            f"{path}: cannot be written ({error.strerror}); what was written before is "
            "whole. Make room or check the permissions, then run the command again"
        ) from error


def _is_object(line: bytes) -> bool:
    try:
        return isinstance(json.loads(line), dict)
    except (ValueError, RecursionError):
        return False


def _open_locked(path: Path) -> IO[bytes]:
    """The file, open to append without a buffer, and no other process's."""
    with disk_errors(path):
        file = open(path, "a+b", buffering=0)  # noqa: SIM115  (it stays open)
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        file.close()
        raise StorageError(
            f"{path}: someone else writes to it; wait for that, or name another file"
        ) from error
    return file

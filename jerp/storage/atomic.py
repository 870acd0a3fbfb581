"""Files that are complete or absent, whatever happens to the process or the disk.

A file is written under a hidden temporary name, flushed to the disk and renamed, so
that nobody ever reads half of it. What a killed process leaves behind is a temporary
file, which `temporaries` finds. Every failure becomes a `StorageError` that names the
file and says what to do.
"""

from __future__ import annotations

import errno
import os
import stat
from contextlib import suppress
from pathlib import Path

from jerp.errors import InputError, StorageError

__all__ = ["make_folder", "read_bytes", "read_regular", "temporaries", "write_bytes"]


def write_bytes(path: Path, data: bytes) -> None:
    """Makes `path` hold `data`, or leaves what it held before.

    Raises:
      StorageError: nothing was changed; the message says why.
    """
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        with open(temporary, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
        _sync_folder(path.parent)
    except OSError as error:
        raise StorageError(_write_message(path, error)) from error
    finally:
        # A disk that cannot be written refuses this too, of what is not there.
        with suppress(OSError):
            temporary.unlink(missing_ok=True)


def read_bytes(path: Path) -> bytes:
    """The content of `path`.

    Raises:
      StorageError: it is missing or cannot be read.
    """
    try:
        return path.read_bytes()
    except FileNotFoundError as error:
        raise StorageError(f"{path}: there is no such file; check the path") from error
    except OSError as error:
        raise StorageError(f"{path}: cannot be read: {error.strerror}") from error


def read_regular(path: Path, what: str, *, max_bytes: int) -> bytes:
    """The content of a file that a user named; a pipe would never end, for one.

    Args:
      path: of the file.
      what: it should be, such as "pool", for messages.
      max_bytes: that one may have, whole MiB.

    Raises:
      InputError: it is no file of its own, or too large.
      StorageError: it is missing or cannot be read.
    """
    try:
        found = path.stat()
    except OSError:
        return read_bytes(path)  # which says why
    if not stat.S_ISREG(found.st_mode):
        raise InputError(
            f"{path}: expected a regular file, got a folder, a pipe or a device; name "
            f"the file of a {what}"
        )
    if found.st_size > max_bytes:
        raise InputError(
            f"{path}: expected a {what} of at most {max_bytes >> 20} MiB, got "
            f"{found.st_size} bytes; check the path"
        )
    return read_bytes(path)


def make_folder(path: Path) -> None:
    """Makes the folder `path`, with its parents, unless it exists.

    Raises:
      StorageError: a file is in the way, or the disk refuses.
    """
    try:
        path.mkdir(parents=True, exist_ok=True)
    except FileExistsError as error:
        raise StorageError(
            f"{path}: expected a folder or nothing, found a file; name another folder"
        ) from error
    except OSError as error:
        raise StorageError(_write_message(path, error)) from error


def temporaries(folder: Path) -> list[Path]:
    """Temporary files in `folder`: a live writer's, or left by a killed one."""
    return sorted(folder.glob(".*.tmp"))


def _sync_folder(folder: Path) -> None:
    """Makes a rename survive a power cut, where the system can open folders."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _write_message(path: Path, error: OSError) -> str:
    full = error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
    advice = (
        "the disk or a quota is full; free some room and run the same command again"
        if full
        else "check the folder and its permissions, then run the command again"
    )
    return (
        f"{path}: cannot be written ({error.strerror}): {advice}. "
        "Whatever was written before this is whole"
    )

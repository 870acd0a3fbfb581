"""Folders that are replaced as a whole.

A result of several files that belong together is written into a hidden folder beside
its place, which then takes that place: never half of it is there. To replace something
takes two renames, as Python cannot exchange two folders in one. In the instant between
them a reader finds nothing, and a writer killed right then leaves nothing in the place:
old and new lie beside it, whole and hidden, until the next success there removes what
dead writers left. A reader that opens one file after the other may get an old and a new
one; what must belong together has to say so, as the files of a controller do.
"""

from __future__ import annotations

import os
import platform
import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from jerp.errors import StorageError
from jerp.storage.atomic import make_folder

__all__ = ["replaced_folder"]


@contextmanager
def replaced_folder(path: Path) -> Iterator[Path]:
    """A new folder that takes the place of `path` if the block ends without an error.

    What `path` held is then gone, so make sure first that nobody misses it. After an
    error, though not after a kill, `path` is as it was.

    Raises:
      StorageError: the disk refuses, or `path` is a file.
    """
    target = path.resolve()
    make_folder(target.parent)
    fresh = target.with_name(f"{_mark(target)}{os.getpid()}.tmp")
    shutil.rmtree(fresh, ignore_errors=True)
    make_folder(fresh)
    try:
        yield fresh
        _put_in_place(fresh, target)
        _remove_left_over(target)
    finally:
        shutil.rmtree(fresh, ignore_errors=True)


def _mark(target: Path) -> str:
    """How temporary names begin: process numbers mean something on one host only."""
    return f".{target.name}.{platform.node()}."


def _remove_left_over(target: Path) -> None:
    """Removes folders of writers of `target` that are dead, killed before they ended.

    Only after a success, because one of them may hold the results that `target` lost
    when its writer was killed between two renames.
    """
    name = re.compile(re.escape(_mark(target)) + r"([1-9][0-9]{0,8})(\.old)?\.tmp")
    try:
        beside = list(target.parent.iterdir())
    except OSError:
        return
    for path in beside:
        writer = name.fullmatch(path.name)
        if writer and not _is_alive(int(writer[1])):
            shutil.rmtree(path, ignore_errors=True)


def _is_alive(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except OSError:
        return True
    return True


def _put_in_place(fresh: Path, target: Path) -> None:
    """Renames `fresh` to `target`; what was there is moved aside, then removed."""
    aside = fresh.with_suffix(".old.tmp")
    try:
        if target.is_dir():
            os.replace(target, aside)
        try:
            os.replace(fresh, target)
        except OSError:
            if aside.exists():
                os.replace(aside, target)
            raise
    except OSError as error:
        raise StorageError(
            f"{target}: cannot be replaced ({error.strerror}); what it held is "
            "unchanged. Check the folder's permissions, or name another folder"
        ) from error
    shutil.rmtree(aside, ignore_errors=True)

"""A pool in a person's editor: as Markdown, checked when it closes, nothing lost."""

from __future__ import annotations

import shlex
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import NoReturn

from jerp.errors import ConfigError, InputError, JerpError, StorageError
from jerp.runs.rule_pools import check_no_run
from jerp.storage.atomic import read_bytes, write_bytes
from jerp.storage.rule_documents import PoolDocument
from jerp.storage.rule_files import SUFFIXES, read_file, read_pool, write_pool
from jerp.storage.rule_markdown import pool_to_markdown

__all__ = ["Edited", "edit_pool"]

HELP = """\
<!-- A rule is one line that ends with a full stop. A new one needs no more than -->
<!-- "- **SCORE** Text." below its heading; take out a rule with all its lines. -->
<!-- Save and close to take over what is here, or leave it as it is. -->
"""

Edited = tuple[PoolDocument | None, PoolDocument]
"""A pool before and after; None before where the file could not be read."""


def edit_pool(path: Path, editor: str) -> Edited | None:
    """Opens a pool in an editor and takes over what was written, if it can be meant.

    A Markdown file is edited as it stands, one in JSON as Markdown.

    Args:
      path: of a pool; not of a run's.
      editor: a command that ends when the file is closed; the file's name is added.

    Returns:
      The pool before and after; None if nothing was changed.

    Raises:
      ConfigError: a run's pool, or an editor that cannot be started.
      InputError: what was written cannot be meant; it is kept, and its file named.
      StorageError: the editor failed, or the pool changed in the meantime; likewise.
    """
    check_no_run(path, "edit")
    if path.suffix not in SUFFIXES:
        raise ConfigError(f"{path}: expected a file that ends with .json or .md")
    before = read_file(path)
    text = before
    if path.suffix == ".json":
        text = (HELP + pool_to_markdown(read_pool(path))).encode()
    folder = Path(tempfile.mkdtemp(prefix="jerp-rules-"))
    copy = folder / f"{path.stem}.md"
    write_bytes(copy, text)
    _run(editor, copy, text)
    if not copy.is_file():
        shutil.rmtree(folder)
        raise StorageError(
            f"--editor: {editor!r} left no file behind; the pool is as it was"
        )
    if read_bytes(copy) == text:
        shutil.rmtree(folder)
        return None
    try:
        edited = _taken_over(path, before, copy)
    except JerpError as error:
        kind = InputError if isinstance(error, InputError) else StorageError
        raise kind(f"{error}. {_kept(path, copy)}") from error
    shutil.rmtree(folder)
    return edited


def _run(editor: str, copy: Path, text: bytes) -> None:
    try:
        done = subprocess.run([*shlex.split(editor), str(copy)], check=False)
    except (OSError, ValueError) as error:
        shutil.rmtree(copy.parent)
        raise ConfigError(
            f"--editor: expected a command that can be started, got {editor!r}: {error}"
        ) from error
    except KeyboardInterrupt:
        _not_taken_over(copy, text, "interrupted")
    if done.returncode == 0:
        return
    _not_taken_over(copy, text, f"--editor: {editor!r} ended with {done.returncode}")


def _not_taken_over(copy: Path, text: bytes, said: str) -> NoReturn:
    if copy.exists() and copy.read_bytes() != text:
        raise StorageError(f"{said}; the pool is as it was, and {copy} as it was left")
    shutil.rmtree(copy.parent)
    raise StorageError(f"{said}; the pool is as it was")


def _taken_over(path: Path, before: bytes, copy: Path) -> Edited:
    after = read_pool(copy)
    if read_bytes(path) != before:
        raise StorageError(f"{path}: somebody else changed it in the meantime")
    try:
        old = read_pool(path)
    except JerpError:
        old = None
    if path.suffix == ".json":
        write_pool(path, after)
    else:
        write_bytes(path, copy.read_bytes())  # with a person's comments
    return old, after


def _kept(path: Path, copy: Path) -> str:
    names = [shlex.quote(str(name)) for name in (copy, path)]
    back = "jerp rules import {} --out {} --force".format(*names)
    if path.suffix != ".json":
        back = "cp {} {}".format(*names)
    return (
        f"{path} is as it was; what you wrote is kept in {copy}: mend it, then {back}"
    )

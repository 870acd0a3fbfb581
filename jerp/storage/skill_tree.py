"""The tree of revisions as JSON lines, appended and never rewritten.

The first line names the format, each other one is a node. A line is there as a whole
or not at all: what a kill cut off is dropped when the file is opened, and said. One
process at a time writes; anyone may read meanwhile.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import warnings
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import IO, Any

from jerp.errors import InputError, StorageError
from jerp.ops.checks import check_count
from jerp.skills.node import SkillNode, node_from_row, node_row
from jerp.skills.tree import SkillTree
from jerp.storage.atomic import make_folder, read_bytes

__all__ = ["TREE_VERSION", "SkillTreeFile", "read_tree"]

TREE_VERSION = 1

FORMAT = "jerp skill tree"


class SkillTreeFile:
    """Appends nodes to a file such as `tree.jsonl`, which it locks until it is closed.

    Args:
      path: of the file; it is made where there is none.
      num_nodes: how many nodes there were at a checkpoint; later ones, of a session
        that went further, are taken back, and said. None keeps all.

    Attributes:
      path: of the file.
      tree: of all nodes, those just written too.

    Raises:
      StorageError: another process writes to the file, it is damaged before its last
        line, of another version, has fewer nodes, or the disk refuses.
    """

    def __init__(self, path: Path | str, *, num_nodes: int | None = None):
        if num_nodes is not None:
            check_count("num_nodes", num_nodes, least=0)
        self.path = Path(path)
        make_folder(self.path.parent)
        _check_regular(self.path)
        self._file = _locked(self.path)
        with contextlib.ExitStack() as on_failure:
            on_failure.callback(self._file.close)
            self.tree = self._recovered(num_nodes)
            on_failure.pop_all()

    def append(self, node: SkillNode) -> None:
        """Adds a node to the tree and waits until it is on disk.

        Raises:
          InputError: it cannot be added, see `SkillTree.add`; nothing is written.
          StorageError: the disk refuses; file and tree are as they were.
        """
        self.tree.check(node)
        self._write(_line(node_row(node)))
        self.tree.add(node)

    def close(self) -> None:
        """Gives the file free."""
        self._file.close()

    def __enter__(self) -> SkillTreeFile:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def _recovered(self, num_nodes: int | None) -> SkillTree:
        """The tree of the nodes that stay; afterwards the file has no others."""
        with _said(self.path):
            self._file.seek(0)
            lines, torn = _lines(self._file.read())
        number = max(len(lines) - 1, 0)
        kept = number if num_nodes is None else num_nodes
        if kept > number:
            raise StorageError(
                f"{self.path}: expected the {kept} nodes before the checkpoint, got "
                f"{number}; bring the file back, or remove the newest checkpoints to "
                "go on from an earlier one"
            )
        whole = lines[: kept + 1]
        tree = _tree(self.path, whole)
        if kept < number:
            warnings.warn(
                f"{self.path}: {number - kept} nodes after the checkpoint are taken "
                "back",
                stacklevel=3,
            )
        _say_torn(self.path, torn)
        with _said(self.path):
            self._file.truncate(sum(len(line) + 1 for line in whole))
        if not lines:
            self._write(_line({"format": FORMAT, "version": TREE_VERSION}))
        return tree

    def _write(self, line: bytes) -> None:
        with _said(self.path):
            before = self._file.seek(0, os.SEEK_END)
            try:
                while line:
                    line = line[self._file.write(line) :]
                os.fsync(self._file.fileno())
            except OSError:
                # What comes next must not follow half a line.
                self._file.truncate(before)
                raise


def read_tree(path: Path | str) -> SkillTree:
    """The tree that a file holds; a last line that is not whole is left out, and said.

    Args:
      path: of the file.

    Raises:
      StorageError: it is missing, of another version, or has a line that is no node of
        the tree; the message names it.
    """
    path = Path(path)
    _check_regular(path)
    lines, torn = _lines(read_bytes(path))
    if not lines:
        raise StorageError(
            f"{path}: expected a tree of skills, got {torn} bytes without a whole line"
        )
    _say_torn(path, torn)
    return _tree(path, lines)


def _locked(path: Path) -> IO[bytes]:
    """The file, open to append without a buffer, and no other process's."""
    with _said(path):
        file = open(path, "a+b", buffering=0)  # noqa: SIM115  (it stays open)
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        file.close()
        raise StorageError(
            f"{path}: someone else writes to it; wait for that, or name another file"
        ) from error
    return file


def _lines(data: bytes) -> tuple[list[bytes], int]:
    """The whole lines, and how many bytes are left over."""
    *lines, torn = data.split(b"\n")
    return lines, len(torn)


def _tree(path: Path, lines: list[bytes]) -> SkillTree:
    """The tree of the lines, or an error that names the one that does not fit."""
    tree = SkillTree()
    for number, line in enumerate(lines, start=1):
        try:
            row = json.loads(line)
            if number == 1:
                _check_header(row)
            else:
                tree.add(node_from_row(row))
        except (InputError, ValueError, RecursionError) as error:
            what = "no node of the tree" if number > 1 else "no head of a tree"
            raise StorageError(
                f"{path}: line {number} is {what} ({str(error)[:300]}); bring the "
                "file back, or remove the lines from it on"
            ) from error
    return tree


def _check_header(row: Any) -> None:
    if not isinstance(row, dict) or row.get("format") != FORMAT:
        raise InputError(f"expected the format {FORMAT!r}, got {row!r:.80}")
    version = row.get("version")
    if type(version) is not int or version != TREE_VERSION:
        newer = type(version) is int and version > TREE_VERSION
        hint = "; a newer jerp may have written it" if newer else ""
        raise InputError(f"version: expected {TREE_VERSION}, got {version!r}{hint}")


def _say_torn(path: Path, torn: int) -> None:
    if torn:
        warnings.warn(
            f"{path}: a half-written last line of {torn} bytes is left out",
            stacklevel=4,
        )


def _check_regular(path: Path) -> None:
    """A pipe would never end, and a device never fill."""
    if path.exists() and not path.is_file():
        raise StorageError(
            f"{path}: expected a regular file, got a folder, a pipe or a device; name "
            "the file of a tree"
        )


def _line(row: dict[str, Any]) -> bytes:
    return json.dumps(row, allow_nan=False).encode() + b"\n"


@contextlib.contextmanager
def _said(path: Path) -> Iterator[None]:
    """What the disk refuses as an error that names the file."""
    try:
        yield
    except OSError as error:
        raise StorageError(
            f"{path}: cannot be written ({error.strerror}); what was written before is "
            "whole. Make room or check the permissions, then run the command again"
        ) from error

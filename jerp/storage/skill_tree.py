"""The tree of revisions as JSON lines, appended and never rewritten.

The first line names the format, each other one is a node. A line is there as a whole
or not at all: what a kill or a crash cut off is dropped when the file is opened, and
said. One process at a time writes; anyone may read meanwhile.
"""

from __future__ import annotations

import io
import json
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from jerp.errors import InputError, StorageError
from jerp.ops.checks import check_count
from jerp.skills.node import SkillNode, node_from_row, node_row
from jerp.skills.tree import SkillTree
from jerp.storage.appended_lines import (
    AppendedFile,
    append_lines,
    check_begun,
    check_head,
    check_regular,
    disk_errors,
    end_lines,
    say_torn,
    whole_size,
)
from jerp.storage.atomic import read_bytes

__all__ = ["TREE_VERSION", "SkillTreeFile", "read_tree"]

TREE_VERSION = 1

FORMAT = "jerp skill tree"


class SkillTreeFile(AppendedFile):
    """Appends nodes to a file such as `tree.jsonl`, which it locks until it is closed.

    Args:
      path: of the file; it is made where there is none.
      num_nodes: how many nodes there were at a checkpoint; later ones, of a session
        that went further, are taken back, and said. None keeps all.

    Attributes:
      path: of the file.
      tree: of all nodes, those just written too.

    Raises:
      StorageError: another process writes to the file, it is no tree, damaged before
        its last line, of another version, has fewer nodes, or the disk refuses.
    """

    def __init__(self, path: Path | str, *, num_nodes: int | None = None):
        if num_nodes is not None:
            check_count("num_nodes", num_nodes, least=0)
        super().__init__(path, "a tree")
        with self._closed_on_failure():
            self.tree = self._recovered(num_nodes)

    def append(self, node: SkillNode) -> None:
        """Adds a node to the tree and waits until it is on disk.

        Raises:
          InputError: it cannot be added, see `SkillTree.add`; nothing is written.
          StorageError: the disk refuses; file and tree are as they were.
        """
        self.extend([node])

    def extend(self, nodes: Sequence[SkillNode]) -> None:
        """As `append`, of several nodes of which none is below another, at once."""
        for node in nodes:
            self.tree.check(node)
        if len({node.id for node in nodes}) < len(nodes):
            raise InputError("id: expected nodes of different ids, got one twice")
        lines = b"".join(_line(node_row(node)) for node in nodes)
        append_lines(self.path, self._file, lines)
        for node in nodes:
            self.tree.add(node)

    def _recovered(self, num_nodes: int | None) -> SkillTree:
        """The tree of the nodes that stay; afterwards the file has no others."""
        with disk_errors(self.path):
            self._file.seek(0)
            data = self._file.read()
        lines, torn = _lines(data)
        number = max(len(lines) - 1, 0)
        kept = number if num_nodes is None else num_nodes
        if kept > number:
            raise StorageError(
                f"{self.path}: expected the {kept} nodes before the checkpoint, got "
                f"{number}; bring the file back, or remove the newest checkpoints to "
                "go on from an earlier one"
            )
        head = _line({"format": FORMAT, "version": TREE_VERSION})
        if not lines:
            check_begun(self.path, self._file, head)
        whole = lines[: kept + 1]
        tree = _tree(self.path, whole)
        if kept < number:
            warnings.warn(
                f"{self.path}: {number - kept} nodes after the checkpoint are taken "
                "back",
                stacklevel=3,
            )
        say_torn(self.path, torn)
        # The last line may lack its newline.
        size = min(sum(len(line) + 1 for line in whole), len(data) - torn)
        end_lines(self.path, self._file, size, head)
        return tree


def read_tree(path: Path | str) -> SkillTree:
    """The tree that a file holds; a last line that is not whole is left out, and said.

    Args:
      path: of the file.

    Raises:
      StorageError: it is missing, of another version, or has a line that is no node of
        the tree; the message names it.
    """
    path = Path(path)
    check_regular(path, "a tree")
    lines, torn = _lines(read_bytes(path))
    if not lines:
        raise StorageError(
            f"{path}: expected a tree of skills, got {torn} bytes without a whole line"
        )
    say_torn(path, torn)
    return _tree(path, lines)


def _lines(data: bytes) -> tuple[list[bytes], int]:
    """The whole lines, and how many bytes are left over."""
    whole = whole_size(io.BytesIO(data))
    lines = data[:whole].removesuffix(b"\n").split(b"\n") if whole else []
    return lines, len(data) - whole


def _tree(path: Path, lines: list[bytes]) -> SkillTree:
    """The tree of the lines, or an error that names the one that does not fit."""
    tree = SkillTree()
    for number, line in enumerate(lines, start=1):
        try:
            row = json.loads(line)
            if number == 1:
                check_head(row, FORMAT, TREE_VERSION)
            else:
                tree.add(node_from_row(row))
        except (InputError, ValueError, RecursionError) as error:
            what = "no node of the tree" if number > 1 else "no head of a tree"
            raise StorageError(
                f"{path}: line {number} is {what} ({str(error)[:300]}); bring the "
                "file back, or remove the lines from it on"
            ) from error
    return tree


def _line(row: dict[str, Any]) -> bytes:
    return json.dumps(row, allow_nan=False).encode() + b"\n"

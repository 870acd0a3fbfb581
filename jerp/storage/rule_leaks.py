"""Rules that were learned from tasks which are now evaluated.

A task is recognised by a digest of what describes it, in whatever split or row it
stands. A rule that was learned from an evaluated task may hold its answer; one that
only had its vote owes its place to it, though not its words. Both are said, the first
can be taken out.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jax
import numpy as np

from jerp.errors import InputError, StorageError
from jerp.storage.atomic import read_bytes, write_bytes
from jerp.storage.rule_documents import PoolDocument
from jerp.storage.rule_fields import check_sources
from jerp.storage.rule_history import RuleHistories

__all__ = [
    "Leak",
    "leaks",
    "read_digests",
    "task_digests",
    "without_leaks",
    "write_digests",
]


_WORD = re.compile(r"[0-9A-Za-z]{1,100}")


@dataclass(frozen=True)
class Leak:
    """A rule that knows of evaluated tasks.

    Attributes:
      task_key: whose pool.
      text: of the rule.
      sources: digests of the evaluated tasks that its text was learned from.
      voters: of those that only voted on it; a document does not know them.
    """

    task_key: str
    text: str
    sources: tuple[str, ...]
    voters: tuple[str, ...] = ()


def task_digests(env_params: Any) -> tuple[str, ...]:
    """A name for each task that is the same wherever the task is.

    Args:
      env_params: parameters of a world, leaves `[N, ...]`, one row a task.

    Returns:
      N texts: the first 16 hex digits of SHA-256 over the row of every leaf, with the
      leaf's name, type and shape.

    Raises:
      InputError: no leaves, or leaves of several lengths.

    Example:
      >>> task_digests({"kind": np.array([1, 2, 1], np.int32)})
      ('31d47eebe6aa4cb9', 'bebcfff71e80d969', '31d47eebe6aa4cb9')
    """
    leaves = [
        (jax.tree_util.keystr(path), np.asarray(leaf))
        for path, leaf in jax.tree_util.tree_leaves_with_path(env_params)
    ]
    lengths = {leaf.shape[:1] for _, leaf in leaves}
    if len(lengths) != 1 or lengths == {()}:
        raise InputError(
            f"env_params: expected leaves with one row a task, got "
            f"{[leaf.shape for _, leaf in leaves]}"
        )
    return tuple(_digest(leaves, row) for row in range(len(leaves[0][1])))


def leaks(
    rules: PoolDocument | RuleHistories, evaluated: Collection[str]
) -> tuple[Leak, ...]:
    """The rules that know of evaluated tasks.

    Args:
      rules: a document, for the rules that it has; histories, for all that ever were.
      evaluated: digests, as `task_digests` returns them.

    Example:
      >>> from jerp.storage.rule_fields import PoolRule
      >>> rules = PoolRule("Heat it.", 2, sources=("a1", "b2")), PoolRule("Cool it.", 2)
      >>> [leak.sources for leak in leaks(PoolDocument({"put": rules}), ["b2", "c3"])]
      [('b2',)]
    """
    known = frozenset(evaluated)
    found = [
        Leak(key, text, _among(sources, known), _among(voters, known))
        for key, text, sources, voters in _rules(rules)
    ]
    return tuple(leak for leak in found if leak.sources or leak.voters)


def without_leaks(document: PoolDocument, evaluated: Collection[str]) -> PoolDocument:
    """The document without the rules that were learned from evaluated tasks.

    Args:
      document: any.
      evaluated: digests, as `task_digests` returns them.

    Example:
      >>> from jerp.storage.rule_fields import PoolRule
      >>> document = PoolDocument({"put": (PoolRule("Heat it.", 2, sources=("a1",)),)})
      >>> without_leaks(document, ["a1"]).pools
      {'put': ()}
    """
    known = frozenset(evaluated)
    pools = {
        key: tuple(rule for rule in rules if not known & {*rule.sources})
        for key, rules in document.pools.items()
    }
    return PoolDocument(pools)


def write_digests(path: Path, digests: Iterable[str]) -> None:
    """Writes the digests of evaluated tasks, a line each, none twice.

    Args:
      path: of the file.
      digests: as `task_digests` returns them.
    """
    lines = check_sources(tuple(digests))
    write_bytes(path, "".join(f"{line}\n" for line in lines).encode())


def read_digests(path: Path) -> frozenset[str]:
    """The digests in a file, a line each; blank lines are none.

    Args:
      path: of the file.

    Raises:
      StorageError: there is no such file, or a line is no digest: of other characters
        than letters and digits, or of another length than the first, as one that was
        cut off.
    """
    lines = read_bytes(path).decode("utf-8", "replace").splitlines()
    found = [(i, line.strip()) for i, line in enumerate(lines, 1) if line.strip()]
    for number, line in found:
        if not _WORD.fullmatch(line) or len(line) != len(found[0][1]):
            raise StorageError(
                f"{path}: line {number}: expected the digest of a task, letters and "
                f"digits, all of one length, got {line!r:.80}; write the file again, "
                "with jerp.storage.rule_leaks.write_digests"
            )
    return frozenset(line for _, line in found)


def _digest(leaves: list[tuple[str, np.ndarray]], row: int) -> str:
    found = hashlib.sha256()
    for name, leaf in leaves:
        values = np.ascontiguousarray(leaf[row])
        found.update(f"{name} {leaf.dtype} {leaf.shape[1:]}\n".encode())
        found.update(values.tobytes())
    return found.hexdigest()[:16]


def _rules(
    rules: PoolDocument | RuleHistories,
) -> Iterable[tuple[str, str, tuple[str, ...], tuple[str, ...]]]:
    if isinstance(rules, PoolDocument):
        for key, pool in rules.pools.items():
            for rule in pool:
                yield key, rule.text, rule.sources, ()
    else:
        for name in rules:
            history = rules[name]
            yield history.task_key, history.text, history.sources, history.voters


def _among(digests: Iterable[str], known: frozenset[str]) -> tuple[str, ...]:
    return tuple(digest for digest in digests if digest in known)

"""Where pools of rules are: files, and folders of runs that learn rules.

A run keeps its pool in `pool.json` and its ledger in `rules.jsonl`. It may say which
tasks it is evaluated on in `evaluated.txt`, a digest a line.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from jerp.errors import ConfigError, JerpError, StorageError
from jerp.storage.rule_documents import PoolDocument
from jerp.storage.rule_files import read_pool
from jerp.storage.rule_leaks import read_digests
from jerp.storage.rule_ledger import RuleHistories, histories, read_ledger

__all__ = ["FoundPool", "check_no_run", "find_pool"]

POOL, LEDGER, EVALUATED = "pool.json", "rules.jsonl", "evaluated.txt"


@dataclass(frozen=True)
class FoundPool:
    """A pool and what is known of it.

    Attributes:
      document: the pool.
      histories: of its rules and of those that are gone; None without a ledger.
      evaluated: digests of the tasks that are evaluated; None if nobody said.
    """

    document: PoolDocument
    histories: RuleHistories | None
    evaluated: frozenset[str] | None


def find_pool(path: Path, *, evaluated: Path | None = None) -> FoundPool:
    """The pool of a file or of a run's folder.

    Args:
      path: a file that ends with .json or .md, or a folder with a `pool.json`.
      evaluated: a file with the digests of evaluated tasks; None takes the folder's
        `evaluated.txt`, if there is one.

    Raises:
      StorageError: there is none; pools in folders below are named.
      InputError: a file is damaged or cannot be meant.
    """
    if not path.exists():
        raise StorageError(f"{path}: there is no such file or folder; check the path")
    if not path.is_dir():
        named = None if evaluated is None else read_digests(evaluated)
        return FoundPool(read_pool(path), None, named)
    if not (path / POOL).exists():
        raise StorageError(_no_pool(path))
    kept = path / EVALUATED
    if evaluated is None and kept.exists():
        evaluated = kept
    ledger = path / LEDGER
    return FoundPool(
        read_pool(path / POOL),
        histories(read_ledger(ledger)) if ledger.exists() else None,
        None if evaluated is None else read_digests(evaluated),
    )


def check_no_run(path: Path, what: str) -> None:
    """Refuses to change the pool of a run: its policy knows it by its hash.

    Args:
      path: a run's folder or a file.
      what: is about to be done, in a word.

    Raises:
      ConfigError: it is a folder, or the pool file of a run.
    """
    folder = path if path.is_dir() else path.parent
    of_run = path.name == POOL and (
        (folder / LEDGER).exists() or (folder / "checkpoints").exists()
    )
    if path.is_dir() and not (path / POOL).exists():
        raise ConfigError(f"{path}: expected the file of a pool, got a folder")
    if path.is_dir() or of_run:
        raise ConfigError(
            f"{path}: expected the file of a pool to {what}, got a run's, whose policy "
            f"was trained with it and would no longer be loaded. Export it (jerp rules "
            f"export {folder} rules.md), {what} that file, and start a run from it"
        )


def _has_rules(path: Path) -> bool:
    """Whether a pool has any; one that cannot be read is no better than none."""
    try:
        return any(read_pool(path).pools.values())
    except JerpError:
        return False


def _no_pool(folder: Path) -> str:
    below = sorted(
        (found.parent for found in folder.rglob(POOL)),
        key=lambda one: (not _has_rules(one / POOL), one),
    )
    if not below:
        return (
            f"{folder}: expected a folder with {POOL}, of a run that learns rules, "
            "found none here or below; check the path"
        )
    names = ", ".join(map(str, below[:5]))
    more = f" and {len(below) - 5} more" if len(below) > 5 else ""
    return f"{folder}: expected a folder with {POOL}; name one of {names}{more}"

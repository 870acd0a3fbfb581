"""Reads what a finished job left, and says how to make again what cannot be read.

A job that is done is not run again, so that a damaged file of one stays damaged until
somebody deletes the job's folder.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from jerp.errors import InputError, StorageError
from jerp.storage.checkpoints import Checkpoints
from jerp.storage.documents import read_json
from jerp.storage.metrics import read_metrics
from jerp.storage.rule_documents import PoolDocument, pool_hash
from jerp.storage.rule_files import read_pool
from jerp.storage.rule_history import LedgerRow
from jerp.storage.rule_ledger import read_ledger
from jerp.storage.tensors import load_tree

__all__ = [
    "JobRules",
    "read_job_json",
    "read_job_metrics",
    "read_job_rules",
    "read_job_tree",
]

METRICS = ("success", "sampler_gap")
"""What reports need of every iteration of training."""


def read_job_tree(folder: Path, name: str) -> tuple[Any, dict[str, Any]]:
    """A job's tensors and their document, as `load_tree` returns them.

    Raises:
      StorageError: the file is missing or damaged; it says what to delete.
    """
    with _remedy(folder):
        return load_tree(folder / name)


def read_job_json(folder: Path, name: str, fields: Iterable[str]) -> dict[str, Any]:
    """A job's JSON document, which has all `fields`.

    Raises:
      StorageError: the file is missing or damaged; it says what to delete.
    """
    path = folder / name
    with _remedy(folder):
        document = read_json(path)
        _check_fields(path, document, fields)
    return document


def read_job_metrics(
    folder: Path, iterations: int, fields: Iterable[str] = METRICS
) -> list[dict[str, Any]]:
    """A job's metrics, a row with all `fields` for each of the `iterations`.

    Raises:
      StorageError: the file is missing, damaged or lacks rows; it says what to delete.
    """
    path = folder / "metrics.jsonl"
    with _remedy(folder):
        rows = read_metrics(path)
        if [row["step"] for row in rows] != [*range(iterations)]:
            there = f"{len(rows)} rows" if path.exists() else "no file"
            raise StorageError(
                f"{path}: expected a row for each of {iterations} iterations, in "
                f"order, got {there}"
            )
        for row in rows:
            _check_fields(path, row, fields)
    return rows


class JobRules(NamedTuple):
    """The rules of a job: its pool, and where all rules came from."""

    pool: PoolDocument
    ledger: tuple[LedgerRow, ...]


def read_job_rules(folder: Path) -> JobRules:
    """A job's rules, those that its policy was trained with.

    Raises:
      StorageError: a file is missing, damaged, or another than the one that the newest
        checkpoint knows; it says what to delete.
    """
    pool, ledger = folder / "pool.json", folder / "rules.jsonl"
    with _remedy(folder):
        found, known = read_pool(pool), _newest_checkpoint(folder / "checkpoints")
        if pool_hash(found) != known["pool_hash"]:
            raise StorageError(
                f"{pool}: expected the pool that the policy was trained with, "
                f"{known['pool_hash']}, got {pool_hash(found)}"
            )
        rows = read_ledger(ledger)
        if not ledger.exists() or len(rows) != known["ledger_rows"]:
            there = f"{len(rows)} rows" if ledger.exists() else "no file"
            raise StorageError(
                f"{ledger}: expected the {known['ledger_rows']} rows of the training, "
                f"got {there}"
            )
    return JobRules(found, rows)


def _newest_checkpoint(folder: Path) -> dict[str, Any]:
    """The document of the newest checkpoint, which nobody edits."""
    if not folder.is_dir():
        raise StorageError(f"{folder}: there is no such folder")
    with Checkpoints(folder) as checkpoints:
        document = checkpoints.document()
    _check_fields(folder, document, ("pool_hash", "ledger_rows"))
    return document


def _check_fields(
    path: Path, document: Mapping[str, Any], fields: Iterable[str]
) -> None:
    missing = [name for name in fields if name not in document]
    if missing:
        raise StorageError(f"{path}: expected {', '.join(missing)} in it, got none")


@contextmanager
def _remedy(folder: Path) -> Iterator[None]:
    try:
        yield
    except (InputError, StorageError) as error:
        raise StorageError(
            f"{error}; delete {folder}; the same command makes it again"
        ) from error

"""Reads what a finished job left, and says how to make again what cannot be read.

A job that is done is not run again, so that a damaged file of one stays damaged until
somebody deletes the job's folder.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from jerp.errors import InputError, StorageError
from jerp.storage.documents import read_json
from jerp.storage.metrics import read_metrics
from jerp.storage.rule_documents import PoolDocument
from jerp.storage.rule_files import read_pool
from jerp.storage.rule_history import LedgerRow
from jerp.storage.rule_ledger import read_ledger
from jerp.storage.tensors import load_tree

__all__ = [
    "read_job_json",
    "read_job_ledger",
    "read_job_metrics",
    "read_job_pool",
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


def read_job_pool(folder: Path) -> PoolDocument:
    """A job's pool of rules.

    Raises:
      StorageError: the file is missing or damaged; it says what to delete.
    """
    with _remedy(folder):
        return read_pool(folder / "pool.json")


def read_job_ledger(folder: Path) -> tuple[LedgerRow, ...]:
    """Where a job's rules came from.

    Raises:
      StorageError: the file is missing or damaged; it says what to delete.
    """
    with _remedy(folder):
        return read_ledger(folder / "rules.jsonl")


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

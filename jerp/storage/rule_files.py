"""Files of pools, JSON or Markdown by their ending: whole, and checked when read."""

from __future__ import annotations

from pathlib import Path

from jerp.errors import ConfigError, InputError, StorageError
from jerp.storage.atomic import read_regular, write_bytes
from jerp.storage.rule_documents import PoolDocument, check_capacity
from jerp.storage.rule_json import pool_from_json, pool_to_json
from jerp.storage.rule_markdown import pool_from_markdown, pool_to_markdown

__all__ = ["SUFFIXES", "pool_text", "read_file", "read_pool", "write_pool"]

READERS = {".json": pool_from_json, ".md": pool_from_markdown}
WRITERS = {".json": pool_to_json, ".md": pool_to_markdown}
SUFFIXES = tuple(READERS)

MAX_BYTES = 64 << 20
"""Of a file that is read: some hundred thousand rules."""


def read_pool(path: Path | str, *, capacity: int | None = None) -> PoolDocument:
    """The pool that a file holds.

    Args:
      path: ends with .json or .md.
      capacity: more rules of a task key are refused; None for any number.

    Raises:
      InputError: the file, the line, what was expected and what came; or it is no
        regular file, or too large.
      StorageError: there is no such file, or it is of another version.
      ConfigError: another ending.
    """
    path = Path(path)
    read = READERS[_suffix(path)]
    data = read_file(path)
    try:
        document = read(data.decode("utf-8-sig").replace("\r\n", "\n"))
        if capacity is not None:
            check_capacity(document, capacity)
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise InputError(f"{path}: line {line}: expected text in UTF-8") from error
    except InputError as error:
        raise InputError(f"{path}: {error}") from error
    except StorageError as error:
        raise StorageError(f"{path}: {error}") from error
    return document


def read_file(path: Path) -> bytes:
    """The content of a file that can be a pool's.

    Raises:
      InputError: it is no file of its own, or too large.
      StorageError: it is missing or cannot be read.
    """
    return read_regular(path, "pool", max_bytes=MAX_BYTES)


def write_pool(path: Path | str, document: PoolDocument) -> None:
    """Writes a pool to a file, complete or not at all.

    Args:
      path: ends with .json or .md.
      document: any.

    Raises:
      ConfigError: another ending.
      StorageError: the disk refuses.
    """
    path = Path(path)
    write_bytes(path, pool_text(path, document).encode())


def pool_text(path: Path, document: PoolDocument) -> str:
    """What a file of that name would hold."""
    return WRITERS[_suffix(path)](document)


def _suffix(path: Path) -> str:
    if path.suffix not in SUFFIXES:
        raise ConfigError(
            f"{path}: expected a file whose name ends with {' or '.join(SUFFIXES)}"
        )
    return path.suffix

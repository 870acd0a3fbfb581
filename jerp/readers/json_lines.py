"""Files as they are read: what cannot be is said in our words, and JSON a line.

Lines end at a newline alone, never at other characters that Unicode calls line ends.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from jerp.errors import InputError, JerpError, StorageError

__all__ = ["json_lines", "readable"]


@contextmanager
def readable(path: Path) -> Iterator[None]:
    """Says in our words why a file cannot be read.

    Raises:
      StorageError: it is missing, a folder, no text in UTF-8, or withheld.
    """
    try:
        if path.is_dir():
            raise StorageError(f"{path}: expected a file, found a folder; name a file")
        yield
    except JerpError:
        raise
    except FileNotFoundError as error:
        raise StorageError(f"{path}: there is no such file; check the path") from error
    except UnicodeDecodeError as error:
        raise StorageError(
            f"{path}: expected text in UTF-8, got the byte "
            f"{error.object[error.start]:#04x}. Save it as UTF-8; a Parquet file needs "
            "a name that ends in .parquet"
        ) from error
    except OSError as error:
        raise StorageError(f"{path}: cannot be read: {error.strerror}") from error


def json_lines(path: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    """The objects of a JSONL file with their lines, from 1; blank lines are none.

    Raises:
      StorageError: a line is no JSON object.
      InputError: a line's object has a key twice.
    """
    with open(path, encoding="utf-8-sig", newline="\n") as file:
        for number, line in enumerate(file, 1):
            if line.strip():
                yield number, _json_object(f"{path}, line {number}", line)


def _json_object(where: str, line: str) -> dict[str, Any]:
    try:
        row = _DECODER.decode(line)
    except _RepeatedKeyError as error:
        raise InputError(
            f"{where}: expected each key once, got {error.args[0]!r} twice in one "
            "object; take one of them out"
        ) from error
    except (ValueError, RecursionError) as error:
        raise StorageError(
            f"{where}: not JSON ({_place(error)}); expected one object a line, mend "
            "the line or take it out"
        ) from error
    if not isinstance(row, dict):
        raise StorageError(
            f"{where}: expected a JSON object, got {line.strip()[:40]!r}; write each "
            'run as {"task": ..., "sample": ..., "spent": ..., "outcome": ...}'
        )
    return row


class _RepeatedKeyError(Exception):
    """A key that an object has twice."""


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """The object of these pairs; JSON would let the last of equal keys win."""
    row = dict(pairs)
    if len(row) < len(pairs):
        keys = [key for key, _ in pairs]
        raise _RepeatedKeyError(next(key for key in keys if keys.count(key) > 1))
    return row


_DECODER = json.JSONDecoder(object_pairs_hook=_once)
"""One for all lines: `json.loads` would make one for each."""


def _place(error: Exception) -> str:
    """What is wrong and at which column; the line is the file's, not the parser's."""
    if isinstance(error, json.JSONDecodeError):
        return f"{error.msg}, column {error.pos + 1}"
    return str(error)

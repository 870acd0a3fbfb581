"""Files of JSON: lists that are too large to be read at once, and mappings."""

from __future__ import annotations

import codecs
import json
import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from jerp.errors import InputError, StorageError

__all__ = ["Seen", "read_mapping", "read_records"]

Seen = Callable[[bytes], object]
"""Called with the bytes of a file, as they are read."""

_PIECE = 1 << 20
_LONGEST = 1 << 26
"""Characters of a record; what is longer was not ended."""

_BETWEEN = re.compile(r"[\s,]*")


def read_records(path: Path, seen: Seen) -> Iterator[tuple[int, Mapping[str, Any]]]:
    """The objects of a file that holds a list of such, numbered from 1 on.

    Args:
      path: of the file; a piece of it at a time is in memory.
      seen: see `Seen`.

    Raises:
      StorageError: it cannot be read.
      InputError: it is no list of objects, or ends too early.
    """
    text, number = "", 0
    for piece in _pieces(path, seen):
        text += piece
        if number == 0:
            text = text.lstrip()
            if text and text[0] != "[":
                break
        place = _begin(text, 0 if number else 1)
        while (found := _record(text, place)) is not None:
            number += 1
            yield number, found[0]
            place = _begin(text, found[1])
        text = text[place:] if number else text
        if len(text) > _LONGEST:
            break
    if text.strip() != "]" and not (number == 0 and text[1:].strip() == "]"):
        raise InputError(
            f"{path}, record {number + 1}: expected a list of objects of JSON, got "
            f"{text[:60]!r} before its end"
        )


def read_mapping(path: Path, seen: Seen) -> Mapping[str, Any]:
    """The object that a file holds.

    Args:
      path: of the file.
      seen: see `Seen`.

    Raises:
      StorageError: it cannot be read.
      InputError: it holds no object.
    """
    try:
        found = json.loads("".join(_pieces(path, seen)))
    except json.JSONDecodeError as error:
        raise InputError(f"{path}: expected an object of JSON: {error}") from error
    if not isinstance(found, Mapping):
        raise InputError(
            f"{path}: expected an object of JSON, got a {type(found).__name__}"
        )
    return found


def _pieces(path: Path, seen: Seen) -> Iterator[str]:
    decoder = codecs.getincrementaldecoder("utf-8")()
    try:
        with path.open("rb") as file:
            while piece := file.read(_PIECE):
                seen(piece)
                yield decoder.decode(piece)
        yield decoder.decode(b"", final=True)
    except OSError as error:
        raise StorageError(f"{path}: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise InputError(f"{path}: expected UTF-8: {error}") from error


def _begin(text: str, place: int) -> int:
    """Where the next record begins, or what else follows."""
    between = _BETWEEN.match(text, place)
    return between.end() if between else place


def _record(text: str, place: int) -> tuple[Mapping[str, Any], int] | None:
    """An object and its end; None where there is none, or not all of it yet."""
    if not text.startswith("{", place):
        return None
    try:
        return json.JSONDecoder().raw_decode(text, place)
    except json.JSONDecodeError:
        return None

"""JSON with the line of every value, for files that people write by hand."""

from __future__ import annotations

import bisect
import json
import re
from typing import Any

from jerp.errors import InputError

__all__ = ["Place", "read_located"]

Place = tuple[str | int, ...]
"""How a value is reached from the outermost: names of fields and places in lists."""

_BLANK = re.compile(r"[ \t\n\r]*")


def read_located(text: str) -> tuple[Any, dict[Place, int]]:
    r"""The value of a JSON text, and the line where each value in it begins.

    Args:
      text: of one value.

    Raises:
      InputError: it is no JSON, or an object has a field twice; with the line.

    Example:
      >>> value, lines = read_located('{"a":\n [1,\n  2]}')
      >>> value["a"][1], lines["a", 1]
      (2, 3)
    """
    try:
        json.loads(text)
        walk = _Walk(text)
        value, _ = walk.value(0, ())
    except json.JSONDecodeError as error:
        raise InputError(
            f"line {error.lineno}: expected JSON, got something else at column "
            f"{error.colno} ({error.msg})"
        ) from error
    except (RecursionError, ValueError) as error:
        if isinstance(error, InputError):
            raise
        raise InputError(f"line 1: expected JSON, got {error}") from error
    return value, walk.lines


class _Walk:
    """Reads a text that is known to be JSON, value by value."""

    def __init__(self, text: str):
        self.text = text
        self.lines: dict[Place, int] = {}
        self._breaks = [match.start() for match in re.finditer("\n", text)]
        self._decoder = json.JSONDecoder()

    def value(self, at: int, place: Place) -> tuple[Any, int]:
        """The value that begins at or after `at`, and where it ends."""
        at = self._skip(at)
        self.lines[place] = self._line(at)
        if self.text[at] == "{":
            return self._object(at + 1, place)
        if self.text[at] == "[":
            return self._list(at + 1, place)
        return self._decoder.raw_decode(self.text, at)

    def _object(self, at: int, place: Place) -> tuple[dict[str, Any], int]:
        found: dict[str, Any] = {}
        at = self._skip(at)
        while self.text[at] != "}":
            line = self._line(at)
            name, at = self._decoder.raw_decode(self.text, at)
            if name in found:
                raise InputError(f"line {line}: expected {name!r} once, got it again")
            at = self._skip(at) + 1  # the colon
            found[name], at = self.value(at, (*place, name))
            at = self._after(at)
        return found, at + 1

    def _list(self, at: int, place: Place) -> tuple[list[Any], int]:
        found: list[Any] = []
        at = self._skip(at)
        while self.text[at] != "]":
            value, at = self.value(at, (*place, len(found)))
            found.append(value)
            at = self._after(at)
        return found, at + 1

    def _after(self, at: int) -> int:
        """Where the next item begins, or what closes the list or object."""
        at = self._skip(at)
        return self._skip(at + 1) if self.text[at] == "," else at

    def _skip(self, at: int) -> int:
        blank = _BLANK.match(self.text, at)
        return blank.end() if blank else at

    def _line(self, at: int) -> int:
        return bisect.bisect_left(self._breaks, at) + 1

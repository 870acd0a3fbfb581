"""JSON documents of any size, a part at a time.

The value of one key of the top object, a list, is given element by element; everything
else of the document is given whole. Memory is that of the largest element.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Any, TextIO

from jerp.errors import StorageError

__all__ = ["json_elements", "json_keys", "json_rest"]

CHUNK = 2**20
LONGEST_WORD = 16
"""No literal and no escape of JSON is longer."""

_DECODER = json.JSONDecoder()
_BLANK = " \t\n\r"


def json_rest(path: Path, key: str) -> dict[str, Any]:
    """The top object without the list under `key`.

    Raises:
      StorageError: the file is no whole JSON object.
    """
    rest: dict[str, Any] = {}
    for name, value in _members(path, (key,)):
        if name != key:
            rest[name] = value
    return rest


def json_elements(path: Path, key: str) -> Iterator[Any]:
    """The elements of the list under `key`, in order.

    Raises:
      StorageError: the file is no whole JSON object.
    """
    for name, value in _members(path, (key,)):
        if name == key and value is not _BEGIN:
            yield value


def json_keys(path: Path, lists: Collection[str]) -> list[str]:
    """The keys of the top object, up to the first of some that hold a list.

    Raises:
      StorageError: the file is no JSON object so far.
    """
    keys = []
    for name, value in _members(path, lists):
        keys.append(name)
        if value is _BEGIN:
            break
    return keys


_BEGIN = object()


def _members(path: Path, lists: Collection[str]) -> Iterator[tuple[str, Any]]:
    with open(path, encoding="utf-8-sig") as file:
        yield from _object(_Window(path, file), lists)


def _object(window: _Window, lists: Collection[str]) -> Iterator[tuple[str, Any]]:
    window.expect("{")
    if window.peek() == "}":
        return
    while True:
        name = window.value()
        window.expect(":")
        if name in lists:
            yield name, _BEGIN
            for element in _elements(window):
                yield name, element
        else:
            yield name, window.value()
        if window.expect(",}") == "}":
            return


def _elements(window: _Window) -> Iterator[Any]:
    window.expect("[")
    if window.peek() == "]":
        window.expect("]")
        return
    while True:
        yield window.value()
        if window.expect(",]") == "]":
            return


class _Window:
    """The part of a file that is being looked at."""

    def __init__(self, path: Path, file: TextIO) -> None:
        self.path, self.file = path, file
        self.text, self.at, self.before = "", 0, 0

    def peek(self) -> str:
        """The next sign that is not blank."""
        while True:
            while self.at < len(self.text) and self.text[self.at] in _BLANK:
                self.at += 1
            if self.at < len(self.text):
                return self.text[self.at]
            if not self._more():
                raise self._cut()

    def expect(self, signs: str) -> str:
        """Takes one of some signs."""
        sign = self.peek()
        if sign not in signs:
            raise self._broken(f"expected {' or '.join(signs)}, got {sign!r}")
        self.at += 1
        return sign

    def value(self) -> Any:
        """Takes a value, reading on until it is whole."""
        self.peek()
        while True:
            try:
                value, end = _DECODER.raw_decode(self.text, self.at)
            except json.JSONDecodeError as error:
                self._read_on(error)
                continue
            except RecursionError as error:
                raise self._broken("too many values inside of each other") from error
            length = end - self.at
            # A number at the very end of what was read may go on.
            if end < len(self.text) or not self._more():
                self.at += length
                return value

    def _read_on(self, error: json.JSONDecodeError) -> None:
        """Reads on if a value may only be cut by the end of the window."""
        near_end = error.pos >= len(self.text) - LONGEST_WORD
        may_go_on = near_end or error.msg.startswith("Unterminated")
        if not may_go_on:
            raise self._broken(error.msg) from error
        if not self._more():
            raise self._cut() from error

    def _more(self) -> bool:
        """Reads on, at least as much again as is there; False at the file's end."""
        self.before += self.at
        self.text, self.at = self.text[self.at :], 0
        fresh = self.file.read(max(CHUNK, len(self.text)))
        self.text += fresh
        return bool(fresh)

    def _cut(self) -> StorageError:
        return StorageError(
            f"{self.path}: the JSON ends in the middle of a value; the file was cut "
            "off, take it from where it was written again"
        )

    def _broken(self, what: str) -> StorageError:
        return StorageError(
            f"{self.path}: not JSON ({what}, after {self.before + self.at} "
            "characters); mend it or write it again"
        )

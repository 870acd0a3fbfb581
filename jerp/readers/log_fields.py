"""Fields of a record in a foreign log: found by their names, or refused by them.

A record is what JSON makes of one run. Whoever reads it says what a field must be; what
it is not is refused with the file, the run, the field, what was expected and what came.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from typing import Any

from jerp.errors import InputError

__all__ = [
    "MISSING",
    "column",
    "found",
    "is_finite",
    "listed_names",
    "need",
    "refusal",
    "spent_at",
]

MISSING = object()
"""What `found` gives for a path that leads nowhere; None is a value."""

KINDS = {
    "a text": lambda value: isinstance(value, str) and bool(value.strip()),
    "a text or a number": lambda value: (
        (isinstance(value, str) and bool(value.strip()))
        or (isinstance(value, int | float) and not isinstance(value, bool))
    ),
    "true or false": lambda value: isinstance(value, bool),
    "an object": lambda value: isinstance(value, dict),
    "a list": lambda value: isinstance(value, list),
    "a list of objects": lambda value: (
        isinstance(value, list) and all(isinstance(each, dict) for each in value)
    ),
    "a whole number": lambda value: (
        isinstance(value, int) and not isinstance(value, bool)
    ),
    "a number of runs": lambda value: (
        isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= 10**6
    ),
}


def is_finite(value: Any) -> bool:
    """Whether a value is a number, no truth value, that a float can hold."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    # Integers of JSON have no end; math.isfinite fails on those beyond a float.
    return abs(value) <= sys.float_info.max


def refusal(where: str, field: str, expected: str, got: Any) -> InputError:
    """The error that a field of the run at `where` is not what was expected."""
    shown = "nothing" if got is MISSING or got is None else repr(got)
    shown = shown if len(shown) <= 60 else shown[:57] + "..."
    return InputError(f"{where}, {field}: expected {expected}, got {shown}")


def found(record: Any, path: str) -> Any:
    """The value at a path such as `usage.tokens`, or `MISSING`.

    A dot may also be part of a key: the longest key that leads on is taken last.
    """
    if not isinstance(record, Mapping):
        return MISSING
    if path in record:
        return record[path]
    for i, sign in enumerate(path):
        if sign == "." and path[:i] in record:
            value = found(record[path[:i]], path[i + 1 :])
            if value is not MISSING:
                return value
    return MISSING


def need(record: Any, path: str, where: str, kind: str) -> Any:
    """The value at a path, which must be there and of a kind that `KINDS` names.

    Raises:
      InputError: it is not.
    """
    value = found(record, path)
    if not KINDS[kind](value):
        raise refusal(where, path, kind, value)
    return value


def column(places: Sequence[Any], name: str, where: str) -> Any:
    """A further column of a run: a text, a number, or a truth value as text.

    Args:
      places: records in which to look, in this order.
      name: a path.
      where: for errors.

    Raises:
      InputError: no place has it, or it is something else.
    """
    values = (found(place, name) for place in places)
    value = next((value for value in values if value is not MISSING), MISSING)
    if value is MISSING:
        keys = dict.fromkeys(
            key for place in places if isinstance(place, Mapping) for key in place
        )
        raise InputError(
            f"{where}: expected a field {name!r}, got {listed_names(keys)}; a field "
            "inside of another is named like 'outer.inner'"
        )
    if isinstance(value, bool):
        return str(value).lower()
    if not KINDS["a text or a number"](value):
        raise refusal(where, name, "a text or a number", value)
    return value


def spent_at(record: Any, path: str, where: str, *, may_lack: bool) -> float | None:
    """The number at a path, which `--spent` names; None only where it may lack.

    Raises:
      InputError: it is not there, or is no finite number.
    """
    value = found(record, path)
    if may_lack and (value is MISSING or value is None):
        return None
    if not is_finite(value):
        expected = "a finite number (--spent names another field)"
        raise refusal(where, path, expected, value)
    return value


def listed_names(names: Any) -> str:
    """The first of some names, in quotes."""
    text = ", ".join(map(repr, names))
    return (text if len(text) <= 160 else text[:157] + "...") or "none"

"""DB-Bench's official judgement: hashes of tables, and labels.

Answers are compared as AgentBench's processor of results compares them, which forgives
notation (`1,200` is `1200`, `5%` is `5`, numbers agree within 0.01), and nothing that a
number or a name does not forgive.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Any

__all__ = ["labels_match", "table_hash"]

_NOTHING = frozenset(
    {"", "none", "null", "undefined", "nan", "inf", "infinity", "-inf", "-infinity"}
)
_TOLERANCE = 1e-2


def table_hash(tables: Sequence[Sequence[Sequence[Any]]]) -> str:
    """The hash of a database's tables, as published.

        hash(table) = md5(join(sort(md5(join(row))[:5] for each row)))

    A row's values are joined by commas, NULL left out; so are the rows' hashes. Several
    tables' hashes are sorted and joined by underscores.

    Args:
      tables: rows of each.

    Returns:
      Hexadecimal; `None` stands for a table without rows, of which MySQL has no hash.

    Example:
      >>> table_hash([[("a", "1")]])
      'd6e541b432246b89e4109f7c9303d06a'
    """
    return "_".join(sorted(map(_hash_of_rows, tables)))


def _hash_of_rows(rows: Sequence[Sequence[Any]]) -> str:
    joined = [",".join(str(v) for v in row if v is not None) for row in rows]
    return _md5(",".join(sorted(_md5(row)[:5] for row in joined))) if rows else "None"


def _md5(text: str) -> str:
    return hashlib.md5(text.encode(), usedforsecurity=False).hexdigest()


def labels_match(answers: Sequence[Any], label: Sequence[Any]) -> bool:
    """Whether answers are the label.

    One answer is compared with one label as numbers where both are, else as text.
    Several numbers must pair off with as many; other answers are compared as sets.

    Args:
      answers: values, or rows of one value.
      label: the right ones.

    Example:
      >>> labels_match(["1,200"], ["1200.0"])
      True
      >>> labels_match([("b",), ("a",)], ["a", "b"])
      True
    """
    given, right = [[*map(_plain, values)] for values in (answers, label)]
    numbers = [[_number(value) for value in values] for values in (given, right)]
    if all(number is not None for values in numbers for number in values):
        return _pair_off(*numbers)
    if len(given) == len(right) == 1:
        return given == right
    return set(given) == set(right)


def _plain(value: Any) -> str:
    """A value in one notation; nothing at all counts as 0."""
    if isinstance(value, list | tuple) and len(value) == 1:
        value = value[0]
    text = "" if value is None else str(value).strip().strip("'\"").strip()
    if text.endswith("%"):
        return text[:-1].strip()
    if not (text.startswith("[") or text.endswith("]")):
        text = text.replace(",", "")
    return "0" if text.lower() in _NOTHING else text


def _number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None


def _pair_off(given: Sequence[Any], right: Sequence[Any]) -> bool:
    """Each takes the first that is left and near enough, as the official code does."""
    left = list(right)
    for number in given:
        near = [i for i, other in enumerate(left) if abs(number - other) <= _TOLERANCE]
        if not near:
            return False
        del left[near[0]]
    return not left

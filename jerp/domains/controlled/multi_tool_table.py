"""The table and the unit converter of the multi-tool domain.

`select` runs a real SQLite SELECT in an in-memory database made from the task's rows
and then set to `query_only`. The harness composes the SQL from the task: names of
columns are the generator's own, values are bound. No text of the executor gets here.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from contextlib import closing
from fractions import Fraction

from jerp.errors import ConfigError, UnknownNameError

__all__ = ["UNITS", "convert", "query", "select"]

UNITS: dict[str, tuple[str, Fraction]] = {
    "g": ("mass", Fraction(1)),
    "kg": ("mass", Fraction(1000)),
    "cm": ("length", Fraction(1)),
    "m": ("length", Fraction(100)),
    "ml": ("volume", Fraction(1)),
    "l": ("volume", Fraction(1000)),
    "min": ("time", Fraction(1)),
    "h": ("time", Fraction(60)),
}
"""Unit to its dimension and its size in the dimension's smallest unit here."""


def convert(value: Fraction, source: str, target: str) -> Fraction:
    """`value` of unit `source` in unit `target`, exact.

    Args:
      value: any number.
      source: unit of `value`, in `UNITS`.
      target: unit of the result, of the same dimension.

    Raises:
      UnknownNameError: a unit that is not in `UNITS`.
      ConfigError: units of different dimensions.

    Example:
      >>> convert(Fraction(250), "g", "kg")
      Fraction(1, 4)
    """
    for unit in (source, target):
        if unit not in UNITS:
            raise UnknownNameError("unit", unit, UNITS)
    (dimension, size), (other, target_size) = UNITS[source], UNITS[target]
    if dimension != other:
        raise ConfigError(
            f"target: expected a unit of {dimension} like {source}, "
            f"got {target}, a unit of {other}"
        )
    return value * size / target_size


def query(columns: Sequence[str], num_items: int) -> str:
    """The SELECT for `num_items` items, named by bound parameters.

    Example:
      >>> query(("item", "coins"), 2)
      'SELECT item, coins FROM stock WHERE item IN (?, ?) ORDER BY rowid'
    """
    marks = ", ".join("?" * num_items)
    names = ", ".join(columns)
    return f"SELECT {names} FROM stock WHERE item IN ({marks}) ORDER BY rowid"


def select(
    columns: Sequence[str], rows: Sequence[Sequence[str | int]], items: Sequence[str]
) -> list[tuple[str | int, ...]]:
    """The rows of `items`, in the table's order.

    Args:
      columns: names of the columns, `item` first.
      rows: the whole table.
      items: names to look up.

    Returns:
      One tuple a row found.
    """
    marks = ", ".join("?" * len(columns))
    with closing(sqlite3.connect(":memory:")) as database:
        database.execute(f"CREATE TABLE stock ({', '.join(columns)})")
        database.executemany(f"INSERT INTO stock VALUES ({marks})", rows)
        database.execute("PRAGMA query_only = ON")
        return database.execute(query(columns, len(items)), list(items)).fetchall()

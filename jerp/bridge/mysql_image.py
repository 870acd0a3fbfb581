"""A MySQL database as bytes: definitions and rows of its tables, in JSON."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from jerp.bridge.sql_report import SqlTable, SqlValue

__all__ = ["image_of", "load", "mysql_name", "new_image"]

_ROWS_AT_ONCE = 200


def mysql_name(name: str) -> str:
    """A table's or column's name as MySQL says it.

    Example:
      >>> print(mysql_name("the `best` of"))
      `the ``best`` of`
    """
    return "`" + name.replace("`", "``") + "`"


def new_image(tables: Sequence[SqlTable]) -> bytes:
    """Of tables that are yet to be created."""
    found = []
    for table in tables:
        columns = ", ".join(
            f"{mysql_name(name)} {kind}" for name, kind in table.columns
        )
        found.append(
            {
                "create": f"CREATE TABLE {mysql_name(table.name)} ({columns})",
                "name": table.name,
                "columns": [name for name, _ in table.columns],
                "rows": [[*map(_encoded, row)] for row in table.rows],
            }
        )
    return _as_bytes(found)


def image_of(connection: Any, most: int) -> bytes:
    """Of the tables of a connection's database.

    Args:
      connection: to the database.
      most: bytes of all its rows.

    Raises:
      OverflowError: there are more.
    """
    found, left = [], most
    with connection.cursor() as cursor:
        cursor.execute("SHOW TABLES")
        names = sorted(str(row[0]) for row in cursor)
    for name in names:
        table = _table(connection, name, left)
        left -= len(json.dumps(table["rows"]))
        found.append(table)
    return _as_bytes(found)


def load(connection: Any, image: bytes) -> None:
    """Creates the tables of an image in an empty database."""
    tables = json.loads(image)
    with connection.cursor() as cursor:
        for table in tables:
            cursor.execute(table["create"])
        for table in tables:
            columns = ", ".join(map(mysql_name, table["columns"]))
            into = f"INSERT INTO {mysql_name(table['name'])} ({columns}) VALUES "
            rows = table["rows"]
            for first in range(0, len(rows), _ROWS_AT_ONCE):
                block = rows[first : first + _ROWS_AT_ONCE]
                values = [connection.escape([*map(_decoded, row)]) for row in block]
                cursor.execute(into + ", ".join(values))


def _table(connection: Any, name: str, most: int) -> dict[str, Any]:
    from pymysql.cursors import SSCursor

    with connection.cursor() as cursor:
        cursor.execute(f"SHOW CREATE TABLE {mysql_name(name)}")
        create = str(cursor.fetchone()[1])
        cursor.execute(f"SHOW COLUMNS FROM {mysql_name(name)}")
        columns = [row[0] for row in cursor if "GENERATED" not in str(row[5]).upper()]
    names = ", ".join(map(mysql_name, columns)) or "1"
    # All are read, because the protocol has no way to stop; those over the limit, which
    # one statement had the time to write, are only counted.
    rows = []
    with connection.cursor(SSCursor) as cursor:
        cursor.execute(f"SELECT {names} FROM {mysql_name(name)}")
        for row in cursor:
            most -= sum(len(str(value)) for value in row)
            if most >= 0:
                rows.append([*map(_encoded, row)])
    if most < 0:
        raise OverflowError("the database is over its limit")
    return {"create": create, "name": name, "columns": columns, "rows": rows}


def _as_bytes(tables: Sequence[dict[str, Any]]) -> bytes:
    return json.dumps(tables, ensure_ascii=False).encode()


def _encoded(value: SqlValue) -> Any:
    return {"blob": value.hex()} if isinstance(value, bytes) else value


def _decoded(value: Any) -> SqlValue:
    return bytes.fromhex(value["blob"]) if isinstance(value, dict) else value

"""Runs one statement of untrusted SQL and writes what came of it (child side).

Each statement has a SQLite database of its own, in memory, made from the bytes that the
request brings: there is no file to open, and what a statement changed counts only as
far as the parent keeps the bytes that come back. Step, heap and size limits end what is
legal but too much. One JSON object is written; `jerp.bridge.sql_report` reads it.
"""

from __future__ import annotations

import base64
import json
import os
import random
import sqlite3
from collections.abc import Callable
from typing import Any

from sandbox_authorizer import authorizer

__all__ = ["evaluate"]

_SYNTAX = ("syntax error", "unrecognized token", "incomplete input", "null character")
_TOO_MUCH = ("too many", "too large", "too big", "too complex", "stack overflow")
_FORBIDDEN = ("may not be", "one statement at a time", "unsafe use of")
_STEPS_AT_A_TIME = 1000
_PAGE_BYTES = 4096


class _TooMuchError(Exception):
    """A statement returns more than it may."""


def evaluate(request: dict, limits: dict, handle: int) -> None:
    """Runs the request's statement; creates its tables first, where it names any.

    Args:
      request: `image` (base64 of a database, "" is an empty one), `tables` to create,
        `statement` (None runs none) and `read_only`.
      limits: see `jerp.bridge.sql_report.SqlLimits`.
      handle: file descriptor for the answer.
    """
    try:
        answer = _answer(request, limits)
    except MemoryError:
        answer = {"status": "memory", "text": "ran out of memory"}
    except sqlite3.Error as error:  # a damaged database
        answer = {"status": "error", "text": str(error)}
    except Exception as error:  # nothing that SQL can do ends here
        answer = {"status": "failed", "text": f"{type(error).__name__}: {error}"}
    data = json.dumps(answer).encode()
    while data:
        data = data[os.write(handle, data) :]


def _answer(request: dict, limits: dict) -> dict[str, Any]:
    before = base64.b64decode(request["image"])
    connection = _opened(before, limits)
    try:
        for table in request["tables"]:
            _create(connection, **table)
    except (sqlite3.Error, ValueError, OverflowError) as error:
        return {"status": "error", "text": str(error)}
    answer: dict[str, Any] = {"status": "ok", "text": ""}
    if request["statement"] is not None:
        answer |= _run(connection, request, limits)
    if answer["status"] != "ok":
        return answer
    if request["read_only"]:
        return answer | {"image": None}
    # Without a page there is nothing to serialize, which is an error.
    pages = connection.execute("PRAGMA page_count").fetchone()[0]
    after = connection.serialize() if pages else b""
    changed = after != before
    return answer | {"image": base64.b64encode(after).decode() if changed else None}


def _opened(image: bytes, limits: dict) -> sqlite3.Connection:
    connection = sqlite3.connect(":memory:", isolation_level=None)
    if image:
        connection.deserialize(image)
    for setting in (
        "temp_store = MEMORY",  # sorts must not want a file
        f"max_page_count = {(limits['database_mib'] << 20) // _PAGE_BYTES}",
        f"hard_heap_limit = {limits['memory_mib'] << 19}",
        "trusted_schema = OFF",
        "cell_size_check = ON",
        "foreign_keys = ON",
    ):
        connection.execute(f"PRAGMA {setting}")
    connection.text_factory = lambda raw: raw.decode("utf-8", "replace")
    return connection


def _create(
    connection: sqlite3.Connection, name: str, columns: list, rows: list
) -> None:
    """Makes a table of the user's own; nothing of this is untrusted."""
    declared = ", ".join(f"{_quoted(column)} {kind}" for column, kind in columns)
    connection.execute(f"CREATE TABLE {_quoted(name)} ({declared})")
    places = ", ".join("?" * len(columns))
    connection.execute("BEGIN")
    connection.executemany(
        f"INSERT INTO {_quoted(name)} VALUES ({places})", map(_decoded, rows)
    )
    connection.execute("COMMIT")


def _run(connection: sqlite3.Connection, request: dict, limits: dict) -> dict[str, Any]:
    """Binds the connection, for good, and runs the statement."""
    if request["read_only"]:
        connection.execute("PRAGMA query_only = ON")
    refused: list[str] = []
    stopped: list[int] = []
    _replace_randomness(connection)
    _limit_sizes(connection, limits)
    connection.set_progress_handler(
        _counter(limits["steps"], stopped), _STEPS_AT_A_TIME
    )
    connection.set_authorizer(authorizer(request["read_only"], refused))
    try:
        result = _fetched(connection, request["statement"], limits)
    except _TooMuchError as error:
        result = {"status": "limit", "text": str(error)}
    except (sqlite3.Error, sqlite3.Warning, ValueError, OverflowError) as error:
        if refused:
            result = {"status": "denied", "text": f"not allowed: {refused[0]}"}
        elif stopped:
            text = f"more than {limits['steps']} steps"
            result = {"status": "limit", "text": text}
        else:
            result = {"status": _class_of(error), "text": str(error)}
    connection.set_authorizer(None)
    connection.set_progress_handler(None, 0)
    return result


def _replace_randomness(connection: sqlite3.Connection) -> None:
    """The same statement must draw the same numbers, run after run."""
    draws = random.Random(0)
    connection.create_function("random", 0, lambda: draws.getrandbits(64) - (1 << 63))
    connection.create_function(
        "randomblob", 1, lambda n: draws.randbytes(min(max(int(n or 0), 1), 1 << 16))
    )


def _limit_sizes(connection: sqlite3.Connection, limits: dict) -> None:
    most_bytes = limits["row_kib"] << 10
    for kind, most in (
        (sqlite3.SQLITE_LIMIT_LENGTH, max(most_bytes, 1 << 16)),
        (sqlite3.SQLITE_LIMIT_SQL_LENGTH, 1 << 20),
        (sqlite3.SQLITE_LIMIT_COLUMN, 1000),
        (sqlite3.SQLITE_LIMIT_EXPR_DEPTH, 200),
        (sqlite3.SQLITE_LIMIT_COMPOUND_SELECT, 100),
        (sqlite3.SQLITE_LIMIT_VDBE_OP, 250_000),
        (sqlite3.SQLITE_LIMIT_FUNCTION_ARG, 100),
        (sqlite3.SQLITE_LIMIT_ATTACHED, 0),
        (sqlite3.SQLITE_LIMIT_LIKE_PATTERN_LENGTH, 1000),
        (sqlite3.SQLITE_LIMIT_TRIGGER_DEPTH, 20),
        (sqlite3.SQLITE_LIMIT_WORKER_THREADS, 0),
    ):
        connection.setlimit(kind, most)


def _counter(most_steps: int, stopped: list[int]) -> Callable[[], int]:
    rounds = 0

    def count() -> int:
        nonlocal rounds
        rounds += 1
        if rounds * _STEPS_AT_A_TIME < most_steps:
            return 0
        stopped.append(rounds)
        return 1

    return count


def _fetched(
    connection: sqlite3.Connection, statement: str, limits: dict
) -> dict[str, Any]:
    before = connection.total_changes
    if not statement.strip("; \t\r\n\f"):
        return {"status": "syntax", "text": "there is no statement"}
    cursor = connection.execute(statement)
    rows, size = [], 0
    for row in cursor:
        rows.append([*map(_encoded, row)])
        size += len(json.dumps(rows[-1]))
        if len(rows) > limits["rows"]:
            raise _TooMuchError(f"more than {limits['rows']} rows")
        if size > limits["row_kib"] << 10:
            raise _TooMuchError(f"more than {limits['row_kib']} KiB of rows")
    return {
        "columns": [column[0] for column in cursor.description or ()],
        "rows": rows,
        "changes": connection.total_changes - before,
    }


def _class_of(error: Exception) -> str:
    text = str(error).lower()
    code = getattr(error, "sqlite_errorname", "")
    if any(words in text for words in _FORBIDDEN):
        return "denied"
    if isinstance(error, ValueError) or any(words in text for words in _SYNTAX):
        return "syntax"
    too_much = any(words in text for words in _TOO_MUCH)
    if too_much or code in ("SQLITE_FULL", "SQLITE_TOOBIG"):
        return "limit"
    return "error"


def _encoded(value: Any) -> Any:
    return {"blob": value.hex()} if isinstance(value, bytes) else value


def _decoded(row: list) -> list:
    return [bytes.fromhex(v["blob"]) if isinstance(v, dict) else v for v in row]


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'

"""Runs one statement of untrusted SQL and writes what came of it (child side).

Each statement has a SQLite database of its own, in memory, made from the bytes that the
request brings: there is no file to open, and what a statement changed counts only as
far as the parent keeps the bytes that come back. Allow-lists say which actions, PRAGMAs
and functions there are; step, heap and size limits end what is legal but too much. One
JSON object is written; `jerp.bridge.sql_report` reads it.
"""

from __future__ import annotations

import base64
import json
import os
import random
import sqlite3
from collections.abc import Callable
from typing import Any

__all__ = ["evaluate"]

_READS = {
    sqlite3.SQLITE_SELECT: "SELECT",
    sqlite3.SQLITE_READ: "READ",
    sqlite3.SQLITE_FUNCTION: "FUNCTION",
    sqlite3.SQLITE_RECURSIVE: "RECURSIVE",
    sqlite3.SQLITE_PRAGMA: "PRAGMA",
}
_WRITES = {
    sqlite3.SQLITE_INSERT: "INSERT",
    sqlite3.SQLITE_UPDATE: "UPDATE",
    sqlite3.SQLITE_DELETE: "DELETE",
    sqlite3.SQLITE_CREATE_TABLE: "CREATE TABLE",
    sqlite3.SQLITE_CREATE_INDEX: "CREATE INDEX",
    sqlite3.SQLITE_CREATE_VIEW: "CREATE VIEW",
    sqlite3.SQLITE_CREATE_TRIGGER: "CREATE TRIGGER",
    sqlite3.SQLITE_DROP_TABLE: "DROP TABLE",
    sqlite3.SQLITE_DROP_INDEX: "DROP INDEX",
    sqlite3.SQLITE_DROP_VIEW: "DROP VIEW",
    sqlite3.SQLITE_DROP_TRIGGER: "DROP TRIGGER",
    sqlite3.SQLITE_ALTER_TABLE: "ALTER TABLE",
    sqlite3.SQLITE_REINDEX: "REINDEX",
}
_ALONE = "because each statement stands alone"
_OTHERS = {
    sqlite3.SQLITE_ATTACH: "ATTACH, or VACUUM, which attaches",
    sqlite3.SQLITE_DETACH: "DETACH",
    sqlite3.SQLITE_ANALYZE: "ANALYZE",
    sqlite3.SQLITE_CREATE_VTABLE: "CREATE VIRTUAL TABLE",
    sqlite3.SQLITE_DROP_VTABLE: "DROP of a virtual table",
    sqlite3.SQLITE_TRANSACTION: f"transactions, {_ALONE}",
    sqlite3.SQLITE_SAVEPOINT: f"savepoints, {_ALONE}",
    sqlite3.SQLITE_CREATE_TEMP_TABLE: f"temporary tables, {_ALONE}",
    sqlite3.SQLITE_CREATE_TEMP_INDEX: f"temporary indices, {_ALONE}",
    sqlite3.SQLITE_CREATE_TEMP_VIEW: f"temporary views, {_ALONE}",
    sqlite3.SQLITE_CREATE_TEMP_TRIGGER: f"temporary triggers, {_ALONE}",
}
_PRAGMAS = """table_info table_xinfo table_list index_list index_info index_xinfo
foreign_key_list"""
_FUNCTIONS = """
abs changes char coalesce format glob hex ifnull iif instr last_insert_rowid length like
likelihood likely lower ltrim max min nullif printf quote random randomblob replace
round rtrim sign soundex sqlite_version substr substring total_changes trim typeof unhex
unicode unlikely upper zeroblob concat concat_ws octet_length
avg count group_concat string_agg sum total median percentile
row_number rank dense_rank percent_rank cume_dist ntile lag lead first_value last_value
nth_value
date time datetime julianday unixepoch strftime timediff current_date current_time
current_timestamp
acos acosh asin asinh atan atan2 atanh ceil ceiling cos cosh degrees exp floor ln log
log10 log2 mod pi pow power radians sin sinh sqrt tan tanh trunc
json json_array json_array_length json_error_position json_extract json_insert
json_object json_patch json_pretty json_quote json_remove json_replace json_set
json_type json_valid json_group_array json_group_object -> ->>
sqlite_rename_column sqlite_rename_table sqlite_rename_test sqlite_drop_column
sqlite_rename_quotefix
"""
"""The last five are what SQLite itself calls to alter a table; where called directly it
has them refuse."""

_OWN_TABLES = (
    "sqlite_master",
    "sqlite_schema",
    "sqlite_temp_master",
    "sqlite_sequence",
)
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
    connection.set_authorizer(_authorizer(request["read_only"], refused))
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


def _authorizer(read_only: bool, refused: list[str]) -> Callable[..., int]:
    names = _READS | _WRITES | _OTHERS
    allowed = _READS if read_only else _READS | _WRITES
    pragmas, functions = set(_PRAGMAS.split()), set(_FUNCTIONS.split())

    def authorize(
        action: int, first: str | None, second: str | None, *_: str | None
    ) -> int:
        reason = ""
        if action not in allowed:
            reason = names.get(action, f"action {action}")
            reason += " in a read-only statement" if action in _WRITES else ""
        elif action == sqlite3.SQLITE_PRAGMA and first not in pragmas:
            reason = f"PRAGMA {first}"
        elif action == sqlite3.SQLITE_FUNCTION and second not in functions:
            reason = f"function {second}"
        elif _is_own(action, first):
            reason = f"table {first}"
        if reason:
            refused.append(reason)
        return sqlite3.SQLITE_DENY if reason else sqlite3.SQLITE_OK

    return authorize


def _is_own(action: int, table: str | None) -> bool:
    """Whether a table is one of SQLite's that nobody needs, such as `sqlite_dbpage`."""
    about_tables = (
        sqlite3.SQLITE_READ,
        sqlite3.SQLITE_INSERT,
        sqlite3.SQLITE_UPDATE,
        sqlite3.SQLITE_DELETE,
    )
    name = (table or "").lower()
    own = name.startswith("sqlite_") or name == "dbstat"
    return action in about_tables and own and name not in _OWN_TABLES


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

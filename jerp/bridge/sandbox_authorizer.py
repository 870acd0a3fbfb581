"""Which actions, PRAGMAs and functions untrusted SQL may use: allow-lists (child side).

SQLite asks for each thing that a statement does, before anything of it is done, also
for what a view or a trigger does in its name.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable

__all__ = ["authorizer"]

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


def authorizer(read_only: bool, refused: list[str]) -> Callable[..., int]:
    """What SQLite asks while it compiles a statement.

    Args:
      read_only: allow what reads alone.
      refused: gets the reason of each refusal.
    """
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
        elif action == sqlite3.SQLITE_PRAGMA and str(first).lower() not in pragmas:
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

"""Hostile SQL, how it must be reported, and what a bare SQLite makes of some of it.

`{folder}` is a folder that the test process may write; `table` is there and has rows.
"""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["ATTACKS", "HARMFUL_IF_BARE", "READ_ONLY_ATTACKS", "SqlAttack"]

ENDLESS = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n)"


@dataclass(frozen=True)
class SqlAttack:
    """A statement, the class in which it must be reported, and words of the reason."""

    statement: str
    status: str
    reason: str


def denied(statement: str, reason: str) -> SqlAttack:
    return SqlAttack(statement, "denied", reason)


ATTACKS = {
    # files
    "attach_to_write": denied("ATTACH '{folder}/planted' AS other", "ATTACH"),
    "attach_to_read": denied("ATTACH 'file:/etc/passwd?mode=ro' AS other", "ATTACH"),
    "attach_memory": denied("ATTACH ':memory:' AS other", "ATTACH"),
    "detach": denied("DETACH main", "DETACH"),
    "vacuum_into": denied("VACUUM INTO '{folder}/planted'", "ATTACH"),
    "vacuum": denied("VACUUM", "ATTACH"),
    "read_file": SqlAttack("SELECT readfile('/etc/passwd')", "error", "readfile"),
    "write_file": SqlAttack(
        "SELECT writefile('{folder}/planted', 'x')", "error", "writefile"
    ),
    "edit": SqlAttack("SELECT edit('x', 'touch {folder}/planted')", "error", "edit"),
    "csv_table": denied(
        "CREATE VIRTUAL TABLE v USING csv(filename='/etc/passwd')", "VIRTUAL TABLE"
    ),
    "temporary_folder": denied(
        "PRAGMA temp_store_directory = '{folder}'", "temp_store_directory"
    ),
    "where_files_are": denied("SELECT * FROM pragma_database_list", "database_list"),
    # foreign code
    "load_extension": denied("SELECT load_extension('libm.so.6')", "load_extension"),
    "tokenizer": denied(
        "SELECT fts3_tokenizer('x', x'4141414141414141')", "fts3_tokenizer"
    ),
    "full_text_table": denied("CREATE VIRTUAL TABLE v USING fts5(a)", "VIRTUAL TABLE"),
    # the database's own structure
    "writable_schema": denied("PRAGMA writable_schema = ON", "writable_schema"),
    "schema_version": denied("PRAGMA schema_version = 7", "schema_version"),
    "insert_schema": denied(
        "INSERT INTO sqlite_master VALUES ('table', 'x', 'x', 2, 'x')", "sqlite_master"
    ),
    "update_schema": denied("UPDATE sqlite_master SET sql = 'x'", "sqlite_master"),
    "delete_schema": denied("DELETE FROM sqlite_schema", "sqlite_master"),
    "pages": denied("SELECT * FROM dbstat", "dbstat"),
    "raw_pages": SqlAttack("UPDATE sqlite_dbpage SET data = x'00'", "error", "dbpage"),
    "statistics": denied("ANALYZE", "ANALYZE"),
    # what holds it
    "journal": denied("PRAGMA journal_mode = WAL", "journal_mode"),
    "heap_limit": denied("PRAGMA hard_heap_limit = 0", "hard_heap_limit"),
    "page_count": denied("PRAGMA max_page_count = 1073741823", "max_page_count"),
    "trusted_schema": denied("PRAGMA trusted_schema = ON", "trusted_schema"),
    "memory_map": denied("PRAGMA mmap_size = 1073741824", "mmap_size"),
    "threads": denied("PRAGMA threads = 64", "threads"),
    "compile_options": denied("PRAGMA compile_options", "compile_options"),
    # more than one statement
    "stacked": denied("SELECT 1; DROP TABLE t", "one statement at a time"),
    "stacked_behind_a_comment": denied(
        "SELECT 1 /* */; -- x\nDROP TABLE t", "one statement at a time"
    ),
    "begin": denied("BEGIN EXCLUSIVE", "transactions"),
    "savepoint": denied("SAVEPOINT x", "savepoints"),
    "temporary_trigger": denied(
        "CREATE TEMP TRIGGER g AFTER INSERT ON t BEGIN DELETE FROM t; END", "temporary"
    ),
    "temporary_table": denied("CREATE TEMP TABLE u (a)", "temporary"),
    "null_character": SqlAttack("SELECT 1\0; DROP TABLE t", "syntax", "null"),
    # time
    "endless": SqlAttack(f"{ENDLESS} SELECT count(*) FROM n", "limit", "steps"),
    "endless_join": SqlAttack(
        "SELECT count(*) FROM t a, t b, t c, t d, t e, t f, t g, t h, t i, t j",
        "limit",
        "steps",
    ),
    "endless_insert": SqlAttack(
        f"{ENDLESS} INSERT INTO t SELECT randomblob(60000), i FROM n", "limit", "full"
    ),
    "endless_update": SqlAttack(
        f"UPDATE t SET b = ({ENDLESS} SELECT count(*) FROM n)", "limit", "steps"
    ),
    "long_step": SqlAttack("SELECT printf('%.*c', 2000000000, 'x')", "timeout", "time"),
    # memory
    "blob": SqlAttack("SELECT length(zeroblob(2000000000))", "limit", "too big"),
    "doubling": SqlAttack(
        "WITH RECURSIVE n(s) AS (SELECT 'x' UNION ALL SELECT s || s FROM n) "
        "SELECT length(s) FROM n",
        "limit",
        "too big",
    ),
    "many_blobs": SqlAttack(
        "WITH RECURSIVE n(s) AS (SELECT 1 UNION ALL SELECT randomblob(60000) FROM n) "
        "SELECT count(DISTINCT s) FROM n",
        "memory",
        "memory",
    ),
    "replacing": SqlAttack(
        "SELECT replace(hex(zeroblob(60000)), '0', hex(zeroblob(60000)))",
        "limit",
        "too big",
    ),
    # output
    "many_rows": SqlAttack(f"{ENDLESS} SELECT i FROM n", "limit", "rows"),
    "wide_rows": SqlAttack(
        f"{ENDLESS} SELECT hex(randomblob(20000)) FROM n", "limit", "KiB"
    ),
    # the parser
    "deep": SqlAttack("SELECT " + "(" * 3000 + "1" + ")" * 3000, "limit", "stack"),
    "deep_sum": SqlAttack("SELECT " + "1+" * 3000 + "1", "limit", "too large"),
    "wide": SqlAttack("SELECT " + "1," * 3000 + "1", "limit", "too many columns"),
    "compound": SqlAttack(
        "SELECT 1 " + "UNION ALL SELECT 1 " * 3000, "limit", "too many terms"
    ),
    "pattern": SqlAttack(
        "SELECT 'a' LIKE '" + "%a" * 3000 + "'", "limit", "too complex"
    ),
    "long": SqlAttack("SELECT '" + "x" * 200_000 + "'", "limit", "characters"),
}

READ_ONLY_ATTACKS = (
    "INSERT INTO t VALUES ('x', 1)",
    "INSERT INTO t VALUES ('x', 1) RETURNING *",
    "UPDATE t SET a = 'x'",
    "DELETE FROM t",
    "WITH x AS (SELECT 1) DELETE FROM t",
    "REPLACE INTO t VALUES ('x', 1)",
    "DROP TABLE t",
    "CREATE TABLE u (a)",
    "CREATE VIEW v AS SELECT 1",
    "ALTER TABLE t ADD COLUMN c",
    "CREATE INDEX i ON t (a)",
    "CREATE TRIGGER g AFTER INSERT ON t BEGIN SELECT 1; END",
    "PRAGMA query_only = OFF",
    "PRAGMA user_version = 7",
)

HARMFUL_IF_BARE = (
    "attach_to_write",
    "vacuum_into",
    "where_files_are",
    "pages",
    "writable_schema",
    "compile_options",
    "heap_limit",
    "temporary_table",
    "statistics",
    "blob",
    "replacing",
)
"""Attacks that a bare connection lets pass: without the sandbox their tests fail."""

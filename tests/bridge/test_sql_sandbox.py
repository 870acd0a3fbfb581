"""SQL in the sandbox: results, classes of failure, attacks, its own failures."""

import dataclasses
import os
import signal
import sqlite3

import pytest

from jerp.bridge.sandbox_pool import REQUIRED_PROTECTIONS
from jerp.bridge.sql_report import read_answer
from jerp.bridge.sql_sandbox import Database, SqlLimits, SqlSandbox, SqlTable
from jerp.errors import ConfigError, SandboxError, UnknownNameError
from tests.bridge.sandbox_attacks import processes_in, sandbox_sessions
from tests.bridge.sql_attacks import ATTACKS, HARMFUL_IF_BARE, READ_ONLY_ATTACKS

LIMITS = SqlLimits(steps=1_000_000, cpu_seconds=1, memory_mib=128, database_mib=2)
ROWS = [(name, number) for number, name in enumerate("abcdefghijkl")]
TABLE = SqlTable("t", (("a", "TEXT COLLATE NOCASE"), ("b", "INTEGER")), ROWS)


@pytest.fixture(scope="module")
def sandbox():
    with SqlSandbox(LIMITS) as made:
        try:
            made.protections  # noqa: B018
        except SandboxError as error:
            pytest.skip(f"no sandbox on this system: {error}")
        yield made


@pytest.fixture(scope="module")
def database(sandbox):
    return sandbox.create([TABLE])


def test_rows_columns_and_changes(sandbox, database):
    found = sandbox.run(database, "SELECT b, a AS letter FROM t WHERE a = 'C';")
    assert (found.status, found.columns, found.rows) == (
        "ok",
        ("b", "letter"),
        ((2, "c"),),
    )
    assert found.database is database and found.changes == 0
    after = sandbox.run(database, "UPDATE t SET b = 7 WHERE b < 3")
    assert (after.status, after.columns, after.rows, after.changes) == ("ok", (), (), 3)
    count = "SELECT count(*) FROM t WHERE b = 7"
    assert sandbox.run(after.database, count).rows == ((4,),)
    assert sandbox.run(database, count).rows == ((1,),)


def test_values_come_back_as_they_are(sandbox):
    values = (None, -(1 << 63), 1.5, "\x00'ü\U0001f600", b"\x00\xff")
    columns = tuple((f"c{number}", "") for number in range(len(values)))
    odd = SqlTable('a "b" [c] `d`', columns, [values])
    database = sandbox.create([odd, TABLE])
    statement = 'SELECT *, 9e999, CAST(x\'ff\' AS TEXT) FROM "a ""b"" [c] `d`"'
    assert sandbox.run(database, statement).rows == ((*values, float("inf"), "\ufffd"),)


def test_the_empty_database_takes_statements(sandbox):
    made = sandbox.run(Database(), "CREATE TABLE u (a)")
    assert sandbox.run(made.database, "SELECT name FROM sqlite_master").rows == (
        ("u",),
    )
    assert sandbox.run(Database(), "SELECT 1").rows == ((1,),)


@pytest.mark.parametrize(
    ("statement", "status", "text"),
    [
        ("SELEC 1", "syntax", 'near "SELEC": syntax error'),
        ("SELECT 'x", "syntax", "unrecognized token"),
        ("SELECT (1", "syntax", "incomplete input"),
        (" ;; ", "syntax", "there is no statement"),
        ("SELECT '\ud800'", "syntax", "surrogates"),
        ("SELECT x FROM t", "error", "no such column: x"),
        ("SELECT a FROM missing", "error", "no such table: missing"),
        ("INSERT INTO t VALUES (1)", "error", "table t has 2 columns"),
        ("SELECT abs(-9223372036854775808)", "error", "integer overflow"),
    ],
)
def test_what_fails_says_why_and_changes_nothing(
    sandbox, database, statement, status, text
):
    result = sandbox.run(database, statement)
    assert result.status == status and text in result.text
    assert result.database is database and result.rows == ()


@pytest.mark.parametrize("name", ATTACKS)
def test_no_attack_succeeds(sandbox, database, name, tmp_path):
    attack = ATTACKS[name]
    result = sandbox.run(database, attack.statement.replace("{folder}", str(tmp_path)))
    assert result.status == attack.status, result
    assert attack.reason in result.text
    assert result.database is database and result.rows == ()
    assert list(tmp_path.iterdir()) == []
    assert sandbox.run(database, "SELECT count(*) FROM t").rows == ((len(ROWS),),)


@pytest.mark.parametrize("statement", READ_ONLY_ATTACKS)
def test_a_read_only_statement_changes_nothing(sandbox, database, statement):
    result = sandbox.run(database, statement, read_only=True)
    assert result.status == "denied" and "not allowed" in result.text
    assert result.database is database and result.rows == ()


@pytest.mark.parametrize("name", HARMFUL_IF_BARE)
def test_the_attacks_do_harm_where_nothing_stops_them(name, tmp_path):
    connection = sqlite3.connect(":memory:", isolation_level=None)
    connection.execute("CREATE TABLE t (a, b)")
    statement = ATTACKS[name].statement.replace("{folder}", str(tmp_path))
    if name == "blob":
        statement = statement.replace("2000000000", "999999999")
    if name == "replacing":
        statement = statement.replace("60000", "600")
    connection.execute(statement).fetchall()
    connection.execute("CREATE TABLE IF NOT EXISTS u (a)")
    planted = {"attach_to_write", "vacuum_into"}
    assert (list(tmp_path.iterdir()) == []) == (name not in planted)
    connection.close()


def test_what_a_view_or_trigger_hides_is_refused_where_it_is_used(sandbox, database):
    view = sandbox.run(database, "CREATE VIEW v AS SELECT load_extension('x')")
    found = sandbox.run(view.database, "SELECT * FROM v", read_only=True)
    assert (found.status, found.rows) == ("denied", ())
    trigger = (
        "CREATE TRIGGER g AFTER INSERT ON t BEGIN INSERT INTO t VALUES (1, 2); END"
    )
    looping = sandbox.run(database, trigger).database
    for pragma in ("recursive_triggers = ON", "foreign_keys = OFF"):
        assert sandbox.run(looping, f"PRAGMA {pragma}").status == "denied"
    assert sandbox.run(looping, "INSERT INTO t VALUES (3, 4)").changes == 2


def test_tables_change_in_every_ordinary_way(sandbox, database):
    for statement in (
        "ALTER TABLE t RENAME COLUMN a TO c",
        "ALTER TABLE t ADD COLUMN d",
        "ALTER TABLE t RENAME TO u",
        "CREATE INDEX i ON u (c)",
        "DROP INDEX i",
        "ALTER TABLE u DROP COLUMN b",
        "REPLACE INTO u VALUES ('x', 'y')",
        "CREATE TABLE w AS SELECT c, row_number() OVER (ORDER BY c) AS n FROM u",
        "DELETE FROM w WHERE n > 2",
    ):
        result = sandbox.run(database, statement)
        assert result.status == "ok", (statement, result.text)
        database = result.database
    assert sandbox.run(database, "SELECT * FROM w").rows == (("a", 1), ("b", 2))
    described = sandbox.run(database, "PRAGMA Table_Info(u)", read_only=True).rows
    assert [row[1] for row in described] == ["c", "d"]


def test_the_same_statement_draws_the_same_numbers(sandbox):
    statement = "SELECT random(), random(), hex(randomblob(4)), hex(randomblob(-1))"
    first, second = (sandbox.run(Database(), statement).rows[0] for _ in range(2))
    assert first == second and first[0] != first[1] and len(first[3]) == 2


def test_limits_are_the_ones_given(database):
    limits = SqlLimits(rows=2, output_kib=1, steps=5000)
    few = "SELECT a FROM t LIMIT {}"
    long = "SELECT substr(hex(zeroblob(600)), 1, {})"
    counted = (
        "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n LIMIT {}) "
        "SELECT max(i) FROM n"
    )
    with SqlSandbox(limits) as tight:
        for statement, most, over in (
            (few, 2, 3),
            (long, 1000, 1100),
            (counted, 100, 1000),
        ):
            assert tight.run(database, statement.format(most)).status == "ok"
            assert tight.run(database, statement.format(over)).status == "limit"


@pytest.mark.parametrize(
    ("name", "number"), [("steps", 10), ("memory_mib", 16), ("rows", 0)]
)
def test_senseless_limits_are_refused(name, number):
    with pytest.raises(ConfigError, match=f"{name}: expected >= .*, got {number}"):
        SqlLimits(**{name: number})


@pytest.mark.parametrize(
    ("columns", "rows", "message"),
    [
        ((), [], "columns: expected 1 to 1000"),
        ((("a", "TEXT); DROP TABLE t; --"),), [], "columns: expected a declared type"),
        ((("a", "TEXT"),), [(1, 2)], "rows: expected 1 values in row 0"),
    ],
)
def test_tables_that_cannot_be_are_refused(columns, rows, message):
    with pytest.raises(ConfigError, match=message):
        SqlTable("t", columns, rows)


def test_tables_that_sqlite_refuses_are_refused(sandbox):
    for tables in ([TABLE, TABLE], [dataclasses.replace(TABLE, name="sqlite_x")]):
        with pytest.raises(ConfigError, match="tables: expected some that SQLite"):
            sandbox.create(tables)
    with pytest.raises(ConfigError, match="too large"):
        sandbox.create([SqlTable("t", (("a", ""),), [(1 << 70,)])])


def test_a_damaged_database_is_an_error_of_the_statement(sandbox, database):
    for image in (b"x" * 4096, database.image[:4096]):
        damaged = Database(image)
        result = sandbox.run(damaged, "SELECT * FROM t")
        assert result.status == "error" and result.database is damaged


@pytest.mark.parametrize(
    "results",
    [
        "",
        "null",
        "[]",
        "{}",
        '{"status": "fine"}',
        '{"status": "ok"}',
        '{"status": "ok", "image": 1}',
        '{"status": "ok", "image": "*"}',
        '{"status": "ok", "image": null, "rows": [[[]]]}',
        '{"status": "ok", "image": null, "rows": 1}',
        '{"status": "ok", "image": null, "rows": [[{"blob": "x"}]]}',
        "[" * 100_000,
    ],
)
def test_garbled_answers_are_crashes_of_the_statement(results):
    before = Database(b"x")
    result = read_answer({"end": "exit", "number": 0, "results": results}, before)
    assert (result.status, result.database, result.rows) == ("crash", before, ())


def test_a_crash_is_the_statements_and_a_failed_sandbox_is_not():
    before = Database()
    assert read_answer({"end": "signal", "number": 11}, before).status == "crash"
    assert read_answer({"end": "output", "number": 9}, before).status == "limit"
    answer = {"end": "exit", "results": '{"status": "failed", "text": "no serialize"}'}
    with pytest.raises(SandboxError, match="could not run SQL: no serialize"):
        read_answer(answer, before)


def test_a_dead_worker_is_replaced(database):
    before = sandbox_sessions()
    with SqlSandbox(LIMITS) as victim:
        assert victim.run(database, "SELECT 1").status == "ok"
        for pid in processes_in(sandbox_sessions() - before):
            os.kill(pid, signal.SIGKILL)
        while victim._pool._idle[0].alive:
            pass
        assert victim.run(database, "SELECT 1").status == "ok"


def test_protections_are_named_and_weak_isolation_is_refused(sandbox):
    assert set(REQUIRED_PROTECTIONS) <= set(sandbox.protections)
    assert {"time", "output", "database", "statements"} <= set(sandbox.protections)
    with pytest.raises(SandboxError, match="allow_weaker=True"):
        SqlSandbox(isolation="limits").run(Database(), "SELECT 1")
    with pytest.raises(UnknownNameError):
        SqlSandbox(isolation="none")  # pyright: ignore[reportArgumentType]


@pytest.mark.parametrize("isolation", ["filter", "limits"])
def test_statements_run_the_same_in_other_isolations(isolation, database):
    with SqlSandbox(LIMITS, isolation=isolation, allow_weaker=True) as other:
        after = other.run(database, "DELETE FROM t WHERE b > 0")
        assert (after.status, after.changes) == ("ok", len(ROWS) - 1)
        sorted_rows = other.run(database, "SELECT b FROM t ORDER BY a DESC").rows
        assert sorted_rows[0] == (len(ROWS) - 1,)
        assert (
            other.run(database, ATTACKS["attach_to_write"].statement).status == "denied"
        )

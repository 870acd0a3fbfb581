"""SQL on a real server, where the variable JERP_MYSQL names one."""

import os
from contextlib import closing

import pytest

from jerp.bridge.mysql_address import VARIABLE, read_address
from jerp.bridge.mysql_report import MySqlLimits
from jerp.bridge.mysql_sandbox import MySqlSandbox
from jerp.bridge.mysql_server import MySqlServer
from jerp.bridge.sql_report import SqlTable
from jerp.errors import ConfigError

if not os.environ.get(VARIABLE):
    pytest.skip(
        f"no MySQL server: name one by {VARIABLE} (mysql://user@127.0.0.1:3306)",
        allow_module_level=True,
    )

LIMITS = MySqlLimits(wall_seconds=2, database_mib=1, output_kib=16)
ROWS = [("Kiel", "1"), ("Århus", None), ("%", "")]
TABLE = SqlTable("a `b`", (("c", "TEXT"), ("d%", "TEXT")), ROWS)
NAME = "`a ``b```"


@pytest.fixture(scope="module")
def sandbox():
    with MySqlSandbox(limits=LIMITS) as made:
        yield made


@pytest.fixture(scope="module")
def database(sandbox):
    return sandbox.create([TABLE])


def databases(sandbox):
    """As the server's user sees them."""
    return {row[0] for row in sandbox._server._ask("SHOW DATABASES")}


def test_rows_and_changes(sandbox, database):
    found = sandbox.run(database, f"SELECT * FROM {NAME} WHERE c = 'KIEL';")
    assert (found.columns, found.rows) == (("c", "d%"), (("Kiel", "1"),))
    found = sandbox.run(database, f"SELECT COUNT(*), SUM(`d%`), 1.50 FROM {NAME}")
    assert found.rows == ((3, 1.0, "1.50"),)
    after = sandbox.run(database, f"UPDATE {NAME} SET c = 'x' WHERE c = 'arhus'")
    assert (after.status, after.changes, after.columns) == ("ok", 1, ())
    reading = sandbox.reading(TABLE.name, ["c", "d%"])
    rows = sandbox.run(after.database, reading, read_only=True).rows
    assert rows == (("Kiel", "1"), ("x", None), ("%", ""))
    # What it was made from is as before, however often something is made from it.
    assert sandbox.run(database, reading).rows == tuple(ROWS)


def test_definitions_survive(sandbox, database):
    change = (
        f"ALTER TABLE {NAME} ADD id INT AUTO_INCREMENT PRIMARY KEY, ADD e DOUBLE "
        "DEFAULT 59, ADD n INT GENERATED ALWAYS AS (CHAR_LENGTH(c)) STORED"
    )
    after = sandbox.run(database, change).database
    with MySqlSandbox(limits=LIMITS) as again:  # which has to make it once more
        more = again.run(after, f"INSERT INTO {NAME} (c) VALUES ('new')")
        found = again.run(more.database, f"SELECT id, n FROM {NAME}").rows
        assert found == ((1, 4), (2, 5), (3, 1), (4, 3))
        [*rows] = again.run(more.database, again.reading(TABLE.name, ["e"])).rows
        assert rows == [("59",)] * 4


CATALOGUE = "information_schema.columns"
LONG = f"INSERT INTO {NAME} (c) " + " UNION ALL ".join(
    ["SELECT REPEAT('x', 60000)"] * 20
)


@pytest.mark.parametrize(
    ("statement", "status"),
    [
        ("SELECT SLEEP(60)", "timeout"),
        (f"UPDATE {NAME} SET c = SLEEP(60)", "timeout"),
        ("SELECT 1; SELECT 2", "syntax"),
        ("SELECT '\ud800'", "syntax"),
        ("SELECT * FROM mysql.user", "denied"),
        ("CREATE TABLE other.t (a INT)", "denied"),
        ("DROP TABLE mysql.user", "denied"),
        ("SET @a = 1", "denied"),
        ("SELECT * FROM missing", "error"),
        (f"INSERT INTO {NAME} (c) VALUES (REPEAT('x', 70000))", "error"),
        ("SELECT REPEAT('x', 100000)", "limit"),
        (f"SELECT 1 FROM {CATALOGUE} a, {CATALOGUE} b", "limit"),
        (LONG, "limit"),
        (" " * 100_001, "limit"),
    ],
)
def test_what_fails_changes_nothing(sandbox, database, statement, status):
    found = sandbox.run(database, statement)
    assert (found.status, found.database) == (status, database), found.text
    assert "jerp_" not in found.text
    assert len(sandbox.run(database, f"SELECT * FROM {NAME}").rows) == len(ROWS)


def test_reading_cannot_change(sandbox, database):
    for statement in (f"DELETE FROM {NAME}", "CREATE TABLE t (a INT)"):
        found = sandbox.run(database, statement, read_only=True)
        assert (found.status, found.database) == ("denied", database)


def test_nothing_but_tables_outlives_a_statement(sandbox, database):
    sandbox.run(database, "SELECT @a := 7")
    sandbox.run(database, "SELECT GET_LOCK('jerp-test', 0)")
    with MySqlSandbox() as other:
        found = other.run(other.create([TABLE]), "SELECT IS_FREE_LOCK('jerp-test')")
    assert found.rows == ((1,),)
    assert sandbox.run(database, "SELECT @a").rows == ((None,),)


def test_databases_do_not_see_each_other(sandbox, database):
    if not sandbox._server.own_accounts:
        pytest.skip("the server's user may not create users")
    places = [sandbox._server.make() for _ in range(2)]
    try:
        read = "SHOW DATABASES LIKE 'jerp%'"
        with closing(
            sandbox._server.connect(places[0], setup="SET @a = 1", read_timeout=9)
        ) as connection, connection.cursor() as cursor:  # fmt: skip
            cursor.execute(read)
            assert cursor.fetchall() == ((places[0].name,),)
    finally:
        for place in places:
            sandbox._server.drop(place)


def test_all_is_dropped_in_the_end_and_what_a_crash_left_at_the_next_start(sandbox):
    with MySqlSandbox() as other:
        other.create([TABLE])
        token = other._server._token
        assert [name for name in databases(sandbox) if token in name]
    assert not [name for name in databases(sandbox) if token in name]
    crashed = MySqlServer(read_address(os.environ[VARIABLE]))
    left = crashed.make().name
    alive = sandbox._server.make()
    crashed.close()
    assert left in databases(sandbox)
    MySqlSandbox().close()
    assert left not in databases(sandbox) and alive.name in databases(sandbox)
    sandbox._server.drop(alive)


def test_tables_that_cannot_be_created(sandbox):
    with pytest.raises(ConfigError, match=r"expected some that .* can create"):
        sandbox.create([TABLE, TABLE])


def test_protections_are_listed(sandbox):
    told = sandbox.protections
    assert ("NOT PROTECTED" in told["account"]) != sandbox._server.own_accounts
    assert sandbox.version in told["server"] and told["time"].startswith("2 s")

"""Which statements a MySQL server is given, and where that server is."""

import json

import pytest

from jerp.bridge.mysql_address import PASSWORD, VARIABLE, read_address
from jerp.bridge.mysql_image import mysql_name, new_image
from jerp.bridge.mysql_report import MySqlLimits, failed
from jerp.bridge.mysql_sandbox import MySqlSandbox
from jerp.bridge.mysql_server import MySqlServer
from jerp.bridge.mysql_statements import only_reads, refusal
from jerp.bridge.sql_report import Database, SqlTable
from jerp.errors import ConfigError, InfrastructureError, MissingExtraError


@pytest.mark.parametrize(
    ("statement", "why"),
    [
        ("SET GLOBAL general_log = 1", "SET"),
        ("  -- a\n/* b */ # c\n set @a = 1", "SET"),
        ("LOAD DATA LOCAL INFILE '/etc/hostname' INTO TABLE t", "LOAD"),
        ("SELECT 1 INTO/**/OUTFILE '/tmp/x'", "INTO OUTFILE"),
        ("SELECT 1 into\n dumpfile '/tmp/x'", "INTO OUTFILE"),
        ("SELECT load_file ('/etc/hostname')", "LOAD_FILE"),
        ("/*!50000 SET GLOBAL a = 1 */", "comments that are executed"),
        ("SELECT /*M!100000 1 */", "comments that are executed"),
        (
            "SELECT /*+ MAX_EXECUTION_TIME(0) */ SLEEP(9)",
            "comments that are executed",
        ),
        ("CREATE DATABASE other", "CREATE DATABASE"),
        ("CREATE USER a", "CREATE USER"),
        ("CREATE OR REPLACE VIEW v AS SELECT 1", "CREATE OR"),
        ("CREATE FUNCTION f() RETURNS INT RETURN 1", "CREATE FUNCTION"),
        (
            "CREATE TRIGGER a BEFORE INSERT ON t FOR EACH ROW SET @a = 1",
            "CREATE TRIGGER",
        ),
        ("CREATE TABLE t (a INT) ENGINE=FEDERATED", "ENGINE"),
        ("ALTER TABLE t ENGINE = `CONNECT`", "ENGINE"),
        ("CREATE TABLE t (a INT) DATA DIRECTORY '/tmp'", "DATA DIRECTORY"),
        ("DROP DATABASE mysql", "DROP DATABASE"),
        ("GRANT ALL ON *.* TO a", "GRANT"),
        ("USE mysql", "USE"),
        ("CALL p()", "CALL"),
        ("PREPARE s FROM 'SELECT 1'", "PREPARE"),
        ("KILL 1", "KILL"),
        ("DO SLEEP(9)", "DO"),
        ("HANDLER t OPEN", "HANDLER"),
        ("LOCK TABLES t WRITE", "LOCK"),
        ("BEGIN", "BEGIN"),
        ("SHUTDOWN", "SHUTDOWN"),
        ("INSTALL PLUGIN a SONAME 'b'", "INSTALL"),
    ],
)
def test_what_is_refused(statement, why):
    assert refusal(statement) == why


@pytest.mark.parametrize(
    "statement",
    [
        "SELECT 'x INTO OUTFILE', \"/*! \", `LOAD_FILE` FROM t",
        "SELECT 'it''s \\' INTO OUTFILE' FROM t -- INTO OUTFILE",
        "SELECT 1 /* INTO OUTFILE */",
        "(SELECT Engine FROM cars) UNION (SELECT 1)",
        "insert into `Data directory` values (1)",
        "CREATE TABLE cars (Engine TEXT) ENGINE=InnoDB",
        "CREATE OR REPLACE TABLE t (a INT)",
        "CREATE UNIQUE INDEX i ON t (a)",
        "TRUNCATE t",
        "WITH a AS (SELECT 1) SELECT * FROM a",
        "",
        "SELECT 'unfinished",
    ],
)
def test_what_is_not(statement):
    assert refusal(statement) is None


def test_what_only_reads():
    for reads in ("select 1", "((SELECT 1))", "SHOW TABLES", "EXPLAIN DELETE FROM t"):
        assert only_reads(reads) and refusal(reads, read_only=True) is None
    for writes in (
        "DELETE FROM t",
        "EXPLAIN ANALYZE DELETE a FROM a, b",
        "WITH a AS (",
    ):
        assert not only_reads(writes)
        assert "where reading is meant" in (refusal(writes, read_only=True) or "")


def test_an_address_holds_no_password():
    assert str(read_address("mysql://a%40b@[::1]:3307")) == "mysql://a@b@::1:3307"
    assert str(read_address("mariadb://me@/tmp/my.sock")) == "mysql://me@/tmp/my.sock"
    with pytest.raises(ConfigError, match=PASSWORD) as told:
        read_address("mysql://me:secret@127.0.0.1")
    assert "secret" not in str(told.value)
    for wrong in (
        *("", "localhost", "http://me@host", "mysql://host", "mysql://me@host/db"),
        *("mysql://me@", "mysql://me@host:port", "mysql://me@host?a=b"),
    ):
        with pytest.raises(ConfigError, match="expected an address such as"):
            read_address(wrong)


def test_a_server_has_to_be_named_and_to_answer(monkeypatch):
    monkeypatch.delenv(VARIABLE, raising=False)
    with pytest.raises(ConfigError, match=f"name it by the variable {VARIABLE}"):
        MySqlSandbox()
    address = read_address("mysql://me@127.0.0.1:1")
    monkeypatch.setenv(PASSWORD, "secret")
    try:
        import pymysql  # noqa: F401
    except ImportError:
        with pytest.raises(MissingExtraError, match=r"jerp\[mysql\]"):
            MySqlServer(address)
        return
    with pytest.raises(InfrastructureError, match="cannot reach mysql://me@") as told:
        MySqlServer(address)
    assert "secret" not in str(told.value)


def test_limits_are_checked():
    with pytest.raises(ConfigError, match="rows: expected >= 1, got 0"):
        MySqlLimits(rows=0)
    with pytest.raises(ConfigError, match=r"wall_seconds: expected >= 0\.1, got 0"):
        MySqlLimits(wall_seconds=0)


@pytest.mark.parametrize(
    ("code", "status"),
    [
        *((1064, "syntax"), (1142, "denied"), (1969, "timeout"), (3024, "timeout")),
        *((1153, "limit"), (1041, "memory"), (1146, "error")),
    ],
)
def test_an_error_of_the_server_is_a_class_without_the_random_name(code, status):
    told = failed(
        "jerp_1_2", Database(b"x"), Exception(code, "No jerp_1_2.t for jerp_1_2")
    )
    assert (told.status, told.database) == (status, Database(b"x"))
    assert "jerp_1_2" not in told.text
    if status == "error":
        assert told.text == "No t for database"


def test_an_image_has_definitions_and_rows():
    table = SqlTable("a`b", (("c", "TEXT"), ("d", "INT")), [("é", None), ("", 2)])
    [found] = json.loads(new_image([table]))
    assert found["create"] == "CREATE TABLE `a``b` (`c` TEXT, `d` INT)"
    assert found["rows"] == [["é", None], ["", 2]]
    assert mysql_name("x") == "`x`"

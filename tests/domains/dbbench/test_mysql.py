"""DB-Bench on a real server, where the variable JERP_MYSQL names one."""

import os

import pytest

from jerp.bridge.executor import Completion
from jerp.bridge.mysql_address import VARIABLE
from jerp.bridge.mysql_sandbox import MySqlSandbox
from jerp.bridge.sql_sandbox import SqlSandbox
from jerp.domains.benchmark import Call
from jerp.domains.conformance import check_benchmark
from jerp.domains.dbbench import DbBench, DbBenchDomain
from jerp.domains.dbbench.entries import read_entries, with_named_columns
from jerp.errors import ConfigError
from jerp.harness.actions import ACTIONS, Action
from tests.domains.dbbench.files import RECORDS, write_files


@pytest.fixture(scope="module")
def benchmark(tmp_path_factory):
    address = os.environ.get(VARIABLE)
    if not address:
        pytest.skip(
            f"no MySQL server: name one by {VARIABLE} (mysql://user@127.0.0.1:3306)"
        )
    made = DbBench(write_files(tmp_path_factory.mktemp("files")), mysql=address)
    yield made
    made.close()


def test_the_variable_decides_and_sqlite_is_the_default(monkeypatch, tmp_path):
    folder = write_files(tmp_path)
    monkeypatch.delenv(VARIABLE, raising=False)
    benchmark = DbBench(folder)
    assert (
        isinstance(benchmark.sandbox, SqlSandbox) and "mysql" not in benchmark.version
    )
    monkeypatch.setenv(VARIABLE, "no address")
    with pytest.raises(ConfigError, match="mysql: expected an address such as"):
        DbBench(folder)
    monkeypatch.delenv(VARIABLE)
    with pytest.raises(ConfigError, match="mysql: expected an address such as"):
        DbBench(folder, mysql="no address")


def test_a_column_without_a_name_gets_one(tmp_path):
    columns = [{"name": name, "type": "INT"} for name in ("", "Port", "", "t")]
    table = RECORDS[0]["table"]
    table = {**table, "table_info": {**table["table_info"], "columns": columns}}
    folder = write_files(tmp_path, dev=[{**RECORDS[0], "table": table}])
    [entry], _ = read_entries(folder, "dev")
    [named] = with_named_columns(entry).tables
    assert [name for name, _ in named.columns] == ["column 1", "Port", "column 3", "t"]
    assert named.rows == entry.tables[0].rows


def test_the_oracle_gets_full_marks_and_the_spoilt_ones_none(benchmark):
    found = check_benchmark(benchmark, "dev")
    assert found.faults == () and found.checked == len(RECORDS)
    assert (found.oracle, found.dropped, found.wrong, found.nothing) == (1, 0, 0, 0)
    assert isinstance(benchmark.sandbox, MySqlSandbox)
    assert found.version.endswith(f"+{benchmark.sandbox.version}")


def test_texts_are_as_mysql_reads_them(benchmark):
    session = benchmark.start(benchmark.tasks("dev")[0])
    query = r"""SELECT Ship FROM `Ships at sea` WHERE Port = "arhus" AND '\'' = "'" """
    assert session.move(Call("execute_sql", {"query": query})).text == "[('Dora',)]"


def test_the_seven_actions(benchmark):
    domain = DbBenchDomain(benchmark, "dev")
    assert "server" in domain.preflight()
    workspace = domain.begin(benchmark.tasks("dev")[0], 0)
    workspace = domain.advance(workspace, ACTIONS.index("observe"), None)
    request = domain.request(workspace, Action.DRAFT)
    assert "one MySQL statement" in request.messages[0].content
    assert "Table `Ships at sea` with the" in request.messages[1].content
    drafted = Completion("SELECT Ship FROM `Ships at sea` WHERE Port = 'kiel'", "ok")
    workspace = domain.advance(workspace, Action.DRAFT, drafted)
    for name in ("call-tool", "check"):
        workspace = domain.advance(workspace, ACTIONS.index(name), None)
    assert workspace.support == 1 and workspace.findings == 0
    verdict = domain.verify(workspace.task, workspace.draft, workspace)
    assert verdict.success and {c.score for c in verdict.criteria} == {1}

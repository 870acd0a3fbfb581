"""The adapter on tables of our own, and on the official files where they are."""

import json
import os
from pathlib import Path

import pytest

from jerp.bridge.sql_sandbox import SqlSandbox
from jerp.domains.benchmark import Call, Say
from jerp.domains.conformance import check_benchmark
from jerp.domains.dbbench import DbBench
from jerp.domains.dbbench.entries import VARIABLE
from jerp.domains.dbbench.session import MOST_MOVES, MOST_SHOWN
from jerp.errors import (
    ConfigError,
    InputError,
    SandboxError,
    StorageError,
    UnknownNameError,
)
from tests.domains.dbbench.files import RECORDS, ROWS, published, record, write_files


@pytest.fixture(scope="module")
def sandbox():
    with SqlSandbox() as made:
        try:
            made.protections  # noqa: B018
        except SandboxError as error:
            pytest.skip(f"no sandbox on this system: {error}")
        yield made


@pytest.fixture(scope="module")
def benchmark(sandbox, tmp_path_factory):
    return DbBench(write_files(tmp_path_factory.mktemp("dbbench")), sandbox=sandbox)


def execute(query):
    return Call("execute_sql", {"query": query})


def answer(*answers):
    return Call("commit_final_answer", {"answers": list(answers)})


def played(benchmark, number, *moves):
    session = benchmark.start(benchmark.tasks("dev")[number])
    return [session.move(move) for move in moves], session.score()


def test_the_oracle_gets_full_marks_and_the_spoilt_ones_none(benchmark):
    for split in benchmark.splits:
        found = check_benchmark(benchmark, split)
        assert found.faults == () and found.checked == len(RECORDS)
        assert (found.oracle, found.dropped, found.wrong, found.nothing) == (1, 0, 0, 0)


def test_a_task_says_what_it_is(benchmark):
    tasks = benchmark.tasks("dev")
    assert [task.difficulty for task in tasks] == [0, 1, 2, 2, 2]
    assert [task.payload["kind"] for task in tasks[2:]] == [
        "INSERT",
        "UPDATE",
        "DELETE",
    ]
    assert tasks[0].key == "dbbench/dev/0"
    assert json.dumps(dict(tasks[0].payload))
    for text in ("Question: Which ships", "The table is Ships at sea."):
        assert text in tasks[0].prompt
    assert "Carla" not in "".join(task.prompt for task in tasks)


def test_a_question_is_answered_by_statements_and_a_label(benchmark):
    look = execute("SELECT Ship FROM `Ships at sea` WHERE Port = 'KIEL' ORDER BY Ship")
    replies, verdict = played(benchmark, 0, look, answer("Anna", "Carla"))
    assert replies[0].text == "[('Anna',), ('Carla',)]" and not replies[0].error
    assert replies[1].ended and verdict.success
    for wrong in (["Anna"], ["Anna", "Carla", "Dora"], []):
        assert not played(benchmark, 0, answer(*wrong))[1].success
    assert not played(benchmark, 0, look)[1].success


def test_any_statements_that_leave_the_right_table_are_right(benchmark):
    moves = (
        execute("DELETE FROM `Ships at sea` WHERE Ship = 'Berta'"),
        execute("INSERT INTO `Ships at sea` VALUES ('Berta', 'Bergen', 7, '800')"),
        execute("""INSERT INTO "Ships at sea" VALUES ('Emma', 'Turku', '4', 90)"""),
    )
    replies, verdict = played(benchmark, 2, *moves, answer("anything"))
    assert [reply.text for reply in replies[:3]] == ["1 rows changed"] * 3
    assert verdict.success
    assert not played(benchmark, 2, *moves[:2], answer())[1].success
    twice = played(benchmark, 2, moves[2], moves[2], answer())
    assert not twice[1].success
    gone = played(benchmark, 2, execute("DROP TABLE `Ships at sea`"), answer())
    assert not gone[1].success


def test_statements_are_sandboxed_and_fail_as_observations(benchmark, tmp_path):
    attack = execute(f"ATTACH '{tmp_path}/planted' AS other")
    replies, verdict = played(
        benchmark, 0, attack, execute("SELEC 1"), answer("Carla", "Anna")
    )
    assert replies[0].text.startswith("Error (denied): not allowed: ATTACH")
    assert replies[1].text.startswith("Error (syntax)") and replies[1].error
    assert verdict.success and list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "move",
    [
        Say("SELECT 1"),
        Call("execute_sql", {}),
        Call("execute_sql", {"query": 1}),
        Call("execute_sql", {"query": "SELECT 1", "more": 1}),
        Call("commit_final_answer", {"answers": 7}),
        Call("commit_final_answer", {"answer": []}),
        Call("drop", {}),
    ],
)
def test_malformed_moves_are_answered_and_cost_a_move(benchmark, move):
    replies, verdict = played(benchmark, 0, *[move] * MOST_MOVES, answer("Carla"))
    assert all(reply.error for reply in replies)
    assert [reply.ended for reply in replies[-3:]] == [False, True, True]
    assert not verdict.success


def test_an_answer_may_be_a_text(benchmark):
    for text in ('["Carla", "Anna"]', "59"):
        number = 1 if text == "59" else 0
        move = Call("commit_final_answer", {"answers": text})
        assert played(benchmark, number, move)[1].success
    broken = Call("commit_final_answer", {"answers": '["Carla", '})
    assert not played(benchmark, 0, broken)[1].success


def test_long_results_are_cut(benchmark):
    statement = (
        "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n LIMIT 900) "
    )
    replies, _ = played(benchmark, 0, execute(statement + "SELECT i FROM n"))
    assert len(replies[0].text) == MOST_SHOWN + len("... (cut)")


def test_several_tables_are_hashed_together(sandbox, tmp_path):
    first, other = (RECORDS[4]["table"], record("", "other", "", label=[])["table"])
    both = [first, {**other, "table_name": "Others"}]
    hashes = sorted(
        text.split("'")[1] for text in (RECORDS[4]["answer_md5"], published(ROWS))
    )
    task = {**RECORDS[4], "table": both, "answer_md5": f"[('{'_'.join(hashes)}',)]"}
    benchmark = DbBench(write_files(tmp_path, dev=[task]), sandbox=sandbox)
    moves = benchmark.oracle(benchmark.tasks("dev")[0])
    assert played(benchmark, 0, *moves)[1].success
    also = execute("DELETE FROM Others WHERE Ship = 'Anna'")
    assert not played(benchmark, 0, also, *moves)[1].success


def test_where_the_files_are_is_said_or_asked_for(monkeypatch, tmp_path, sandbox):
    monkeypatch.delenv(VARIABLE, raising=False)
    with pytest.raises(ConfigError, match=f"data: expected the folder.*{VARIABLE}"):
        DbBench()
    with pytest.raises(StorageError, match="expected the folder of DB-Bench, got"):
        DbBench(tmp_path / "missing")
    with pytest.raises(StorageError, match=r"dev\.jsonl: No such file"):
        DbBench(tmp_path)
    monkeypatch.setenv(VARIABLE, str(write_files(tmp_path)))
    benchmark = DbBench(sandbox=sandbox)
    assert len(benchmark.tasks("standard")) == len(RECORDS)
    with pytest.raises(UnknownNameError, match="unknown split 'test'"):
        benchmark.tasks("test")


@pytest.mark.parametrize(
    "damage",
    [
        lambda r: "not json",
        lambda r: json.dumps({**r, "table": {}}),
        lambda r: json.dumps({**r, "type": []}),
        lambda r: json.dumps({**r, "answer_md5": "x"}),
        lambda r: json.dumps({k: v for k, v in r.items() if k != "label"}),
    ],
)
def test_a_line_that_is_no_task_is_named(tmp_path, damage):
    folder = write_files(tmp_path)
    lines = [json.dumps(RECORDS[0]), damage(RECORDS[2])]
    (folder / "standard.jsonl").write_text("\n".join(lines))
    with pytest.raises(InputError, match=r"standard\.jsonl, line 2: expected a task"):
        DbBench(folder)


def test_a_foreign_task_is_refused(benchmark):
    task = benchmark.tasks("dev")[0]
    for payload in ({}, {"split": "dev", "index": 99}, {"split": "x", "index": 0}):
        foreign = type(task)("x/1", "x", 0, "", payload)
        with pytest.raises(UnknownNameError, match="unknown task 'x/1'"):
            benchmark.start(foreign)


def test_the_official_files():
    """Published hashes of at least 235 of 240 changes, labels of all questions."""
    folder = os.environ.get(VARIABLE)
    if not folder:
        pytest.skip(f"DB-Bench is not there: name its folder by {VARIABLE}")
    benchmark = DbBench(Path(folder))
    marks = {True: [], False: []}
    for split in benchmark.splits:
        for task in benchmark.tasks(split):
            session = benchmark.start(task)
            for move in benchmark.oracle(task):
                session.move(move)
            won = session.score().success
            marks[benchmark.entry(task).changes].append(won)
            assert won == (task.key not in benchmark.broken)
    benchmark.close()
    assert (len(marks[True]), len(marks[False])) == (240, 120)
    assert sum(marks[True]) >= 235 and all(marks[False])

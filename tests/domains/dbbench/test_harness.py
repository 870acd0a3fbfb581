"""What the seven actions do on DB-Bench, and what a submit is judged by."""

import numpy as np
import pytest

from jerp.bridge.executor import Completion
from jerp.bridge.scripted import ScriptedExecutor
from jerp.bridge.session import Session
from jerp.bridge.sql_sandbox import SqlSandbox
from jerp.domains.dbbench import DbBench, DbBenchDomain
from jerp.domains.dbbench.harness import statement_of
from jerp.errors import ConfigError, SandboxError
from jerp.harness.actions import ACTIONS, Action
from jerp.typing import Outcome
from tests.domains.dbbench.files import RECORDS, write_files

QUESTION, TOTAL, INSERT, UPDATE, DELETE = range(5)
RIGHT = "SELECT Ship FROM `Ships at sea` WHERE Port = 'kiel'"
WRONG = "SELECT Ship FROM `Ships at sea`"
EMPTY = "SELECT Ship FROM `Ships at sea` WHERE Port = 'Rome'"
BROKEN = "SELECT Ship FROM Ships at sea"


@pytest.fixture(scope="module")
def benchmark(tmp_path_factory):
    with SqlSandbox() as sandbox:
        try:
            sandbox.protections  # noqa: B018
        except SandboxError as error:
            pytest.skip(f"no sandbox on this system: {error}")
        yield DbBench(write_files(tmp_path_factory.mktemp("files")), sandbox=sandbox)


@pytest.fixture(scope="module")
def domain(benchmark):
    return DbBenchDomain(benchmark, "dev")


def run(domain, benchmark, *actions, number=QUESTION):
    """After actions by name; `"draft: TEXT"` also says what the executor answers."""
    workspace = domain.begin(benchmark.tasks("dev")[number], 0)
    for text in actions:
        name, _, answer = text.partition(":")
        action = ACTIONS.index(name)
        assert domain.legal(workspace)[action], text
        asks = domain.request(workspace, action) is not None
        completion = Completion(answer, "ok" if answer else "empty") if asks else None
        workspace = domain.advance(workspace, action, completion)
    return workspace


def prompt(domain, workspace, action=Action.DRAFT):
    return "\n".join(m.content for m in domain.request(workspace, action).messages)


def test_what_is_in_hand_is_in_the_prompt(domain, benchmark):
    bare = prompt(domain, run(domain, benchmark))
    assert "Which ships have their home in Kiel?" in bare and "Ships at sea" not in bare
    observed = prompt(domain, run(domain, benchmark, "observe"))
    assert '"Ships at sea" with the text columns "Ship", "Port", "Crew"' in observed
    assert "Anna" not in observed
    shown = run(domain, benchmark, "observe", "retrieve", "retrieve")
    first, nearest = shown.passages
    assert first.splitlines()[1:] == [
        "Anna | Kiel | 12 | 1,200",
        "Berta | Bergen | 7 | 800",
        "Carla | kiel | 9 | n/a",
    ]
    assert [line[:5] for line in nearest.splitlines()[1:]] == [
        "Anna ",
        "Carla",
        "Berta",
    ]
    assert all(passage in prompt(domain, shown) for passage in shown.passages)
    assert not domain.legal(shown)[Action.RETRIEVE]


def test_a_revision_sees_the_draft_and_what_came_of_it(domain, benchmark):
    workspace = run(domain, benchmark, "observe", f"draft:{BROKEN}", "call-tool")
    asked = prompt(domain, workspace, Action.REVISE)
    assert BROKEN in asked and 'Error (syntax): near "sea": syntax error' in asked
    asking = {a for a in Action if domain.request(workspace, a) is not None}
    assert asking == {Action.DRAFT, Action.REVISE}


@pytest.mark.parametrize(
    ("number", "draft", "text", "failed"),
    [
        (QUESTION, RIGHT, "[('Anna',), ('Carla',)]", False),
        (QUESTION, EMPTY, "[]", True),
        (QUESTION, BROKEN, "Error (syntax)", True),
        (QUESTION, "ATTACH 'x' AS y", "Error (denied)", True),
        (DELETE, RECORDS[DELETE]["label"][0], "1 rows changed", False),
        (DELETE, "DELETE FROM `Ships at sea` WHERE Ship = 'x'", "0 rows changed", True),
    ],
)
def test_the_tool_runs_the_draft_and_changes_nothing(
    domain, benchmark, number, draft, text, failed
):
    drafted = f"draft:```sql\n{draft}\n```"
    workspace = run(domain, benchmark, drafted, "call-tool", number=number)
    assert workspace.feedback.text.startswith(text)
    assert workspace.feedback.failed == failed
    assert workspace.support == 1 - failed
    assert domain.legal(workspace)[Action.REVISE] == failed
    task = benchmark.tasks("dev")[number]
    count = "SELECT count(*) FROM `Ships at sea`"
    assert benchmark.sandbox.run(benchmark.database(task), count).rows == ((4,),)


@pytest.mark.parametrize(
    ("draft", "missing"),
    [
        (RIGHT, ()),
        (BROKEN, ("compiles",)),
        ("SELECT 1", ("names-table",)),
        ("", ("compiles", "names-table")),
        (f"{RIGHT}; DROP TABLE `Ships at sea`", ("compiles",)),
    ],
)
def test_a_check_compiles_the_draft_and_looks_for_the_table(
    domain, benchmark, draft, missing
):
    workspace = run(domain, benchmark, f"draft:{draft}", "check")
    assert workspace.trace[-1].missing == missing
    assert workspace.coverage == 1 - len(missing) / 2
    assert domain.legal(workspace)[Action.REVISE] == bool(missing)
    run_before = run(domain, benchmark, f"draft:{EMPTY}", "call-tool", "check")
    assert run_before.trace[-1].missing == ("works",)


@pytest.mark.parametrize(
    ("number", "draft", "won"),
    [
        (QUESTION, RIGHT, True),
        (QUESTION, WRONG, False),
        (QUESTION, BROKEN, False),
        (TOTAL, "SELECT sum(Crew) FROM `Ships at sea`", True),
        (TOTAL, "SELECT 60", False),
        (INSERT, RECORDS[INSERT]["label"][0], True),
        (INSERT, "SELECT 1", False),
        (UPDATE, RECORDS[UPDATE]["label"][0], True),
        (UPDATE, "UPDATE `Ships at sea` SET Port = 'Lübeck'", False),
        (DELETE, "DELETE FROM `Ships at sea`", False),
        (DELETE, "DROP TABLE `Ships at sea`", False),
    ],
)
def test_a_submit_is_judged_officially(domain, benchmark, number, draft, won):
    workspace = run(domain, benchmark, f"draft:{draft}", "submit", number=number)
    assert workspace.terminated and workspace.verdict.success == won
    assert workspace.verdict.score == won


def test_no_rows_answer_that_there_are_none(benchmark, domain, tmp_path):
    records = [{**RECORDS[QUESTION], "label": ["none"]}]
    other = DbBench(write_files(tmp_path, dev=records), sandbox=benchmark.sandbox)
    ended = run(DbBenchDomain(other, "dev"), other, f"draft:{EMPTY}", "submit")
    assert ended.verdict is not None and ended.verdict.success


def test_tasks_come_in_turns_of_difficulty_by_the_seed(domain):
    tasks = domain.generate(0, domain.num_tasks)
    assert [task.difficulty for task in tasks] == [0, 1, 2, 2, 2]
    assert domain.generate(0, 3) == tasks[:3] and domain.generate(0, 5) == tasks
    orders = {tuple(t.key for t in domain.generate(seed, 5)) for seed in range(8)}
    assert len(orders) > 1
    with pytest.raises(ConfigError, match="num_tasks: expected 1 to 5"):
        domain.generate(0, 6)


def test_a_session_plays_it_around_an_executor(domain, benchmark):
    def answer(request):
        text = request.messages[-1].content
        return f"```sql\n{RIGHT}\n```" if "better" in text else BROKEN

    actions = ("observe", "draft", "call-tool", "revise", "submit")
    with Session(domain, ScriptedExecutor(answer)) as session:
        handle, _, legal = session.open([benchmark.tasks("dev")[QUESTION]] * 2, [0, 1])
        assert legal.any(axis=1).all()
        for name in actions:
            step = session.step(handle, np.full(2, ACTIONS.index(name)))
    assert step.outcome.tolist() == [Outcome.SUCCESS] * 2
    assert step.reward.tolist() == [1.0, 1.0]


@pytest.mark.parametrize(
    ("text", "statement"),
    [
        ("```sql\nSELECT 1\n```", "SELECT 1"),
        ("So:\n```SQL\nSELECT 1;\n", "SELECT 1;"),
        ("```\nSELECT 1\n``` or ```sql\nSELECT 2\n```", "SELECT 1"),
        ("  SELECT 1  ", "SELECT 1"),
        ("", ""),
    ],
)
def test_the_statement_is_found_in_the_answer(text, statement):
    assert statement_of(text) == statement

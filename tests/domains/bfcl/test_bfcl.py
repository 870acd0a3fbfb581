"""BFCL by its own reference calls and its own checker, on a few tasks of each split."""

import sys
from contextlib import closing

import pytest

from jerp.domains.benchmark import Call, Say
from jerp.domains.bfcl import Bfcl
from jerp.domains.conformance import check_benchmark, spoilt
from jerp.errors import MissingExtraError, StorageError, UnknownNameError
from tests.domains.installed import needs

COMMAND = "pip install 'jerp[benchmarks]' && pip install --no-deps bfcl-eval==2026.3.23"
needs("bfcl_eval", COMMAND)


@pytest.fixture(scope="module")
def bfcl():
    return Bfcl()


def task(bfcl, split, number):
    return bfcl.tasks(split)[number]


def play(bfcl, which, moves):
    with closing(bfcl.start(which)) as session:
        return [session.move(move) for move in moves], session.score()


@pytest.mark.parametrize("split", Bfcl.splits)
def test_references_get_full_marks_and_spoilt_ones_none(bfcl, split):
    found = check_benchmark(bfcl, split, limit=8)
    assert (found.tasks, found.checked, found.faults) == (200, 8, ())
    assert (found.oracle, found.dropped, found.wrong, found.nothing) == (1, 0, 0, 0)


@pytest.mark.slow
@pytest.mark.parametrize("split", Bfcl.splits)
def test_all_references_get_full_marks(bfcl, split):
    found = check_benchmark(bfcl, split)
    assert (found.checked, found.oracle, found.faults) == (200, 1, ())
    assert (found.dropped, found.nothing) == (0, 0)
    # Some arguments do not matter, such as `a=True` of an `ls` without hidden files.
    assert found.wrong is not None and 0 < found.wrong <= 0.02


def test_a_conversation_by_hand(bfcl):
    first = task(bfcl, "base", 0)
    with closing(bfcl.start(first)) as session:
        assert session.opening.startswith("Move 'final_report.pdf' within document")
        assert {"cd", "post_tweet"} <= {tool.name for tool in session.tools}
        reply = session.move(Call("cd", {"folder": "document"}))
        assert reply.text == '{"current_working_directory": "document"}'
        refused = session.move(Call("cd", {"folder": "no such"}))
        assert refused.error and "error" in refused.text
        reply = session.move(Say("done"))
        assert reply.text.startswith("Perform a detailed search") and not reply.ended
        # Nobody has moved the file: the checker looks after each turn.
        replies = [session.move(Say("")) for _ in range(3)]
        assert [r.ended for r in replies] == [False, False, True]
        assert session.move(Say("more")).error
        verdict = session.score()
        assert not verdict.success and "does not match" in verdict.criteria[0].detail


def test_what_is_done_besides_and_undone_does_no_harm(bfcl):
    first = task(bfcl, "base", 0)
    beside = Call("find", {"path": ".", "name": "nothing"})
    assert play(bfcl, first, (beside, *bfcl.oracle(first)))[1].success


def test_missing_functions_come_with_their_turn(bfcl):
    first = task(bfcl, "miss_func", 0)
    with closing(bfcl.start(first)) as session:
        offered = []
        for move in bfcl.oracle(first):
            offered.append("sort" in {tool.name for tool in session.tools})
            reply = session.move(move)
            if isinstance(move, Say) and offered[-1] is False:
                said = reply.text
    assert offered == sorted(offered) and {*offered} == {False, True}
    assert (
        said
        == "I have updated some more functions you can choose from. What about now?"
    )


def test_schemas_are_of_json(bfcl):
    types = set()
    for split in bfcl.splits:
        for entry in bfcl.tasks(split)[::20]:
            with closing(bfcl.start(entry)) as session:
                for tool in session.tools:
                    assert tool.parameters["type"] == "object"
                    types |= {p["type"] for p in tool.parameters["properties"].values()}
    assert types <= {"string", "integer", "number", "boolean", "array", "object"}


def test_broken_off_is_lost_and_scoring_leaves_nothing_behind(bfcl):
    first = task(bfcl, "base", 0)
    solution = bfcl.oracle(first)
    utils = sys.modules["bfcl_eval.eval_checker.multi_turn_eval.multi_turn_utils"]
    with closing(bfcl.start(first)) as session:
        for move in solution[:-2]:
            session.move(move)
        assert not session.score().success
        assert not session.score().success
        for move in solution[-2:]:
            session.move(move)
        assert session.score() == session.score() and session.score().success
        assert [key for key in vars(utils) if key.startswith("jerp_episode")]
    assert not [key for key in vars(utils) if key.startswith("jerp_episode")]
    broken_off = play(bfcl, first, solution[:4])[1]
    assert broken_off.criteria[0].detail == "broken off in turn 2 of 4"


def test_wrong_arguments_are_answered_by_the_services(bfcl):
    first = task(bfcl, "base", 0)
    wrong = spoilt(bfcl.oracle(first))["wrong"]
    replies, verdict = play(bfcl, first, wrong)
    assert not verdict.success and any(reply.error for reply in replies)


@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        ("power", {"base": 10, "exponent": 10**12}),
        ("power", {"base": 2**40, "exponent": 10**4}),
        ("square_root", {"number": 2, "precision": 10**9}),
        ("logarithm", {"value": 2, "base": 10, "precision": 1e300}),
    ],
)
def test_what_would_compute_for_ever_is_refused(bfcl, tool, arguments):
    some = next(
        t for t in bfcl.tasks("base") if "MathAPI" in t.payload["kind"].split("+")
    )
    with closing(bfcl.start(some)) as session:
        assert {tool} <= {spec.name for spec in session.tools}
        assert session.move(Call(tool, arguments)).error
        small = session.move(Call("power", {"base": 2, "exponent": 10}))
        assert not small.error and "1024" in small.text


def test_mistakes_are_named(bfcl, tmp_path, monkeypatch):
    with pytest.raises(UnknownNameError, match="did you mean 'base'"):
        bfcl.tasks("bas")
    with pytest.raises(StorageError, match="not a file of BFCL"):
        Bfcl(tmp_path).tasks("base")
    monkeypatch.setitem(sys.modules, "mpmath", None)
    with pytest.raises(MissingExtraError, match="--no-deps bfcl-eval=="):
        Bfcl()

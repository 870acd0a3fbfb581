"""Judging the lines of a run: each way to end, each way to garble them."""

import json

import pytest

from jerp.bridge.sandbox_report import (
    TestCase,
    judge_run,
    report_from_record,
    report_to_record,
)

TESTS = (TestCase("f(1)", "1"), TestCase("f(2)", "2"))


def lines(*pairs):
    return b"".join(json.dumps(pair).encode() + b"\n" for pair in pairs)


LOADED = ["loaded", ""]
COMPLETE = lines(LOADED, ["value", "1"], ["value", "3"])


def outcome(end, results):
    report = judge_run(TESTS, end, results, result_chars=400)
    return report.status, [result.passed for result in report.results]


@pytest.mark.parametrize(
    ("end", "status"),
    [
        ("exit", "ok"),
        ("time", "timeout"),
        ("signal", "killed"),
    ],
)
def test_how_it_ended_is_its_status_and_results_stand(end, status):
    assert outcome(end, COMPLETE) == (status, [True, False])


def test_a_run_that_wrote_too_much_has_no_results():
    assert outcome("output", COMPLETE) == ("output_limit", [False, False])


def test_memory_in_a_call_is_the_status_of_the_run():
    results = lines(LOADED, ["memory", "MemoryError: "], ["value", "2"])
    assert outcome("exit", results) == ("memory", [False, True])


@pytest.mark.parametrize("kind", ["syntax_error", "error", "memory"])
def test_what_does_not_load_fails_every_test_with_the_reason(kind):
    report = judge_run(TESTS, "exit", lines([kind, "why"]), result_chars=400)
    assert report.status == kind
    assert [r.error for r in report.results] == ["why", "why"]


@pytest.mark.parametrize(
    "results",
    [
        b"\n",
        b"null\n",
        b"{}\n",
        b"\xff\xfe\n",
        b'["loaded"]\n',
        b'["loaded", ""]\n["value", 1]\n["value", "2"]\n',
        b'["loaded", ""]\n["passed", "1"]\n["value", "2"]\n',
        b'["value", "1"]\n["value", "2"]\n["value", "3"]\n',
        b'["loaded", ""]\n["loaded", ""]\n["value", "2"]\n',
        COMPLETE + lines(["value", "1"]),
        lines(LOADED, ["value", "1" * 401], ["value", "2"]),
        lines(LOADED, ["error", "x" * 401], ["value", "2"]),
        b"[" * 100_000 + b"\n",
        b"9" * 5000 + b"\n",
    ],
)
def test_garbled_lines_fail_the_run(results):
    assert outcome("exit", results) == ("error", [False, False])
    report = judge_run(TESTS, "exit", results, result_chars=400)
    assert report.results[0].error == "garbled its results"


@pytest.mark.parametrize("cut", range(len(COMPLETE)))
def test_a_run_cut_anywhere_keeps_whole_lines_alone(cut):
    status, passed = outcome("exit", COMPLETE[:cut])
    assert status == "error"
    assert passed == [COMPLETE[:cut].count(b"\n") > 1, False]


def test_text_that_is_no_literal_does_not_pass():
    results = lines(LOADED, ["value", "f(1)"], ["value", ""])
    report = judge_run(TESTS, "exit", results, result_chars=400)
    assert [r.passed for r in report.results] == [False, False]
    assert "not a Python literal" in report.results[0].error


def test_the_longest_result_is_still_read():
    text = "'" + "x" * 398 + "'"
    tests = [TestCase("f()", text)]
    pairs = lines(LOADED, ["value", text])
    assert judge_run(tests, "exit", pairs, result_chars=400).results[0].passed
    assert judge_run(tests, "exit", pairs, result_chars=399).status == "error"


def test_lone_surrogates_do_not_reach_the_report():
    results = lines(LOADED, ["error", "\ud800"], ["value", "2"])
    report = judge_run(TESTS, "exit", results, result_chars=400)
    assert report.results[0].error == "\\ud800"


def test_a_record_gives_the_report_back():
    report = judge_run(TESTS, "exit", COMPLETE, result_chars=400)
    record = json.loads(json.dumps(report_to_record(report)))
    assert report_from_record(record, len(TESTS)) == report

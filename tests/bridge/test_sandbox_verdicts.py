"""Verdicts of the sandbox: their store, and what is not the code's failure."""

import os
import signal
import threading
import time

import pytest

from jerp.bridge.sandbox import (
    Limits,
    Sandbox,
    TestCase,
    verdict_key,
)
from jerp.errors import SandboxError, StorageError
from tests.bridge.sandbox_attacks import processes_in, sandbox_sessions

SQUARE = "def f(x):\n    return x * x\n"
TESTS = (TestCase("f(3)", "9"), TestCase("f(-2)", "4"), TestCase("f(2)", "5"))


class DictStore:
    def __init__(self):
        self.records = {}

    def get(self, kind, key):
        return self.records.get((kind, key))

    def put(self, kind, key, record):
        self.records[kind, key] = record


def test_verdicts_are_stored_and_replayed_without_a_sandbox(sandbox):
    store = DictStore()
    first = Sandbox(store=store)
    report = first.run_tests(SQUARE, TESTS)
    first.close()
    assert list(store.records) == [("verdict", verdict_key(SQUARE, TESTS, Limits()))]
    refuses = Sandbox(store=store, isolation="limits")
    assert refuses.run_tests(SQUARE, TESTS) == report
    with pytest.raises(SandboxError):
        refuses.run_tests(SQUARE, TESTS[:1])


def test_the_key_depends_on_all_that_a_verdict_does(monkeypatch):
    keys = {
        verdict_key(SQUARE, TESTS, Limits()),
        verdict_key(SQUARE + "\n", TESTS, Limits()),
        verdict_key(SQUARE, TESTS[:2], Limits()),
        verdict_key(SQUARE, TESTS[::-1], Limits()),
        verdict_key(SQUARE, (TESTS[0], TESTS[1], TestCase("f(2)", "6")), Limits()),
        verdict_key(SQUARE, TESTS, Limits(cpu_seconds=2)),
    }
    monkeypatch.setattr("jerp.bridge.sandbox.SANDBOX_VERSION", -1)
    keys.add(verdict_key(SQUARE, TESTS, Limits()))
    assert len(keys) == 7


def test_recheck_runs_again_and_stores_the_new_verdict(sandbox):
    store = DictStore()
    key = "verdict", verdict_key(SQUARE, TESTS[:1], Limits())
    wrong = {"passed": False, "got": "8", "error": ""}
    store.records[key] = {"status": "ok", "results": [wrong]}
    with Sandbox(store=store) as trusting:
        assert trusting.run_tests(SQUARE, TESTS[:1]).results[0].got == "8"
    with Sandbox(store=store, recheck=True) as checking:
        assert checking.run_tests(SQUARE, TESTS[:1]).results[0].got == "9"
    assert store.records[key]["results"][0]["passed"]


@pytest.mark.parametrize(
    "record",
    [
        {},
        {"status": "ok", "results": []},
        {
            "status": "infrastructure",
            "results": [{"passed": 1, "got": "", "error": ""}],
        },
        {"status": "ok", "results": [{"passed": True}]},
        {"status": "ok", "results": None},
    ],
)
def test_a_damaged_verdict_is_an_error(record):
    store = DictStore()
    store.records["verdict", verdict_key(SQUARE, TESTS[:1], Limits())] = record
    with pytest.raises(StorageError, match="stored verdict"):
        Sandbox(store=store).run_tests(SQUARE, TESTS[:1])


def test_a_run_killed_from_outside_is_not_the_codes_failure(sandbox):
    store = DictStore()
    with Sandbox(store=store) as victim:
        before = sandbox_sessions()
        victim.run_tests("", [])
        session = sandbox_sessions() - before
        idle = processes_in(session)

        def kill():
            while not (running := processes_in(session) - idle):
                time.sleep(0.01)
            time.sleep(0.2)
            for pid in running:
                os.kill(pid, signal.SIGKILL)

        killer = threading.Thread(target=kill)
        killer.start()
        with pytest.raises(SandboxError, match="killed from outside"):
            victim.run_tests("import time\ntime.sleep(9)", TESTS)
        killer.join()
        assert len(store.records) == 1
        assert victim.run_tests(SQUARE, TESTS[:1]).status == "ok"


def test_a_dead_worker_is_replaced(sandbox):
    before = sandbox_sessions()
    with Sandbox() as victim:
        assert victim.run_tests(SQUARE, TESTS[:1]).status == "ok"
        for pid in processes_in(sandbox_sessions() - before):
            os.kill(pid, signal.SIGKILL)
        deadline = time.monotonic() + 20
        while victim._pool._idle[0].alive and time.monotonic() < deadline:
            time.sleep(0.01)
        assert victim.run_tests(SQUARE, TESTS[:1]).status == "ok"


def test_a_sandbox_does_not_survive_a_fork(sandbox, monkeypatch):
    with Sandbox() as forked:
        monkeypatch.setattr(forked._pool, "_owner", -1)
        with pytest.raises(SandboxError, match="before a fork"):
            forked.run_tests(SQUARE, TESTS)

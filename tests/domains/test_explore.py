"""The walk reaches every request and every test run that any controller can ask for."""

import hashlib

import pytest

from jerp.bridge.executor import (
    Completion,
)
from jerp.bridge.request_records import (
    request_key,
)
from jerp.bridge.sandbox import TestReport, TestResult
from jerp.domains.controlled.coding import CodingDomain
from jerp.domains.explore import explore
from jerp.errors import ExecutorError
from tests.domains.cheats import at_random, play

TEXTS = (" n + 3", " len(s)", " sum(xs", "", " import os", " [x for x in xs]")
SAMPLES = (0, 1)


def drawn(request) -> str:
    return TEXTS[int(request_key("fake", request)[:8], 16) % len(TEXTS)]


class Executor:
    """Answers with a hash of the request; counts calls and remembers requests."""

    fingerprint = "fake"

    def __init__(self, status="ok"):
        self.status, self.calls, self.requests = status, 0, []

    async def complete(self, requests):
        self.calls += 1
        self.requests.extend(requests)
        return [Completion(drawn(r), self.status) for r in requests]


class Runner:
    """Passes tests by a hash of code and call; remembers what it ran."""

    def __init__(self):
        self.ran = set()

    def run_tests(self, code, tests):
        self.ran.add((code, tuple(tests)))
        results = []
        for case in tests:
            digest = hashlib.sha256(f"{code}{case.call}".encode()).digest()
            passed = digest[0] % 3 > 0
            results.append(TestResult(passed, case.expected if passed else "7", ""))
        return TestReport(tuple(results), "ok")


@pytest.fixture(scope="module")
def walk():
    executor, runner = Executor(), Runner()
    domain = CodingDomain(runner)
    tasks = domain.generate(0, 12)
    reach = explore(domain, tasks, SAMPLES, executor)
    return tasks, executor, runner, reach


def test_random_controllers_ask_and_run_nothing_unseen(walk):
    tasks, executor, runner, _ = walk
    seen, fresh = set(executor.requests), Runner()
    domain = CodingDomain(fresh)
    asked = []

    def answer(workspace, request, rng):
        asked.append(request)
        return drawn(request)

    for episode in range(200):
        task, sample = tasks[episode % len(tasks)], SAMPLES[episode % len(SAMPLES)]
        play(domain, task, answer, at_random, sample_index=sample, seed=episode)
    assert len(asked) >= 200 and set(asked) <= seen
    assert fresh.ran and fresh.ran <= runner.ran


def test_nothing_is_asked_twice_and_waves_are_few(walk):
    _, executor, _, reach = walk
    assert len(executor.requests) == len(set(executor.requests)) == reach.requests
    assert executor.calls == reach.waves <= 3 + 3 * 4


def test_counts_are_per_task_and_in_total(walk):
    tasks, executor, _, reach = walk
    assert [t.task for t in reach.tasks] == [t.key for t in tasks]
    assert reach.prompts == len({r.messages for r in executor.requests})
    for task in reach.tasks:
        assert 0 < task.prompts <= task.requests <= 7 * len(SAMPLES)
        assert task.states > task.requests


def test_walk_is_reproducible(walk):
    tasks, _, _, reach = walk
    again = explore(CodingDomain(Runner()), tasks, SAMPLES, Executor(), workers=1)
    assert again == reach


def test_unanswered_requests_end_the_walk():
    domain = CodingDomain(Runner())
    with pytest.raises(ExecutorError, match="3 of 3 requests"):
        tasks = domain.generate(0, 3)
        explore(domain, tasks, (0,), Executor(status="timeout"))

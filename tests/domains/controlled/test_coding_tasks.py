"""The generator: reproducible, varied, not answered by constants, and solvable."""

from collections import Counter
from functools import cache

import pytest

from jerp.bridge.sandbox import Sandbox, TestCase
from jerp.domains.controlled.coding import CodingDomain
from jerp.domains.controlled.coding_families import FAMILIES
from jerp.domains.controlled.coding_tasks import (
    NUM_HIDDEN,
    NUM_PUBLIC,
    generate_tasks,
)
from jerp.errors import ConfigError
from tests.domains.controlled.coding_solutions import SOLUTIONS, solution


@cache
def tasks():
    """When first asked for, as every worker imports every file."""
    return generate_tasks(0, 300)


def test_there_are_300_different_tasks_in_three_difficulties():
    statements = {(t.payload["name"], t.payload["statement"]) for t in tasks()}
    assert len(statements) == len({t.key for t in tasks()}) == 300
    assert Counter(t.difficulty for t in tasks()) == {0: 100, 1: 100, 2: 100}
    assert {t.payload["name"] for t in tasks()} == set(SOLUTIONS)
    assert len(SOLUTIONS) == len(FAMILIES)


def test_tasks_are_a_function_of_the_seed_and_shorter_lists_are_prefixes():
    assert generate_tasks(0, 300) == tasks()
    assert generate_tasks(0, 31) == tasks()[:31]
    other = generate_tasks(1, 31)
    assert [t.payload for t in other] != [t.payload for t in tasks()[:31]]


@pytest.mark.parametrize("num_tasks", [0, -1, 10_000])
def test_a_number_of_tasks_that_cannot_be_had_is_refused(num_tasks):
    with pytest.raises(
        ConfigError, match=f"num_tasks: expected 1 to .* got {num_tasks}"
    ):
        generate_tasks(0, num_tasks)


@pytest.mark.parametrize("index", range(0, 300, 7))
def test_hidden_tests_are_others_than_the_public_ones(index):
    task = tasks()[index]
    public = [call for call, _ in task.payload["public"]]
    hidden = [call for call, _ in task.payload["hidden"]]
    assert len(public) == NUM_PUBLIC and len(hidden) == NUM_HIDDEN
    assert len({*public, *hidden}) == NUM_PUBLIC + NUM_HIDDEN


def test_no_constant_answers_more_than_four_of_six_hidden_tests():
    most = [
        max(Counter(e for _, e in task.payload["hidden"]).values()) for task in tasks()
    ]
    assert max(most) <= 4
    assert sum(most) / len(most) < 2.5


def test_payload_and_prompt_do_not_hold_the_solution():
    for task in tasks()[::10]:
        assert solution(task) not in str(task)
        assert task.payload["statement"] not in task.prompt


def test_an_independent_solution_passes_every_test():
    sandbox = Sandbox()
    for task in tasks():
        tests = [*task.payload["public"], *task.payload["hidden"]]
        report = sandbox.run_tests(solution(task), [TestCase(*test) for test in tests])
        assert all(result.passed for result in report.results), (task, report)


def test_a_right_solution_gets_the_full_score():
    domain = CodingDomain(Sandbox())
    for task in tasks()[::10]:
        verdict = domain.verify(task, solution(task), domain.begin(task, 0))
        assert verdict.success and verdict.score == 1, (task, verdict)

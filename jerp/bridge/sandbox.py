"""Runs model-written Python against test cases, out of process and out of reach.

The untrusted code runs in a fork of a protected process: no network, no file but the
interpreter's libraries, no second process or thread, no signal to others, limits on
time, memory, files and output. It evaluates calls and sends back literals; expected
values never leave this process, which compares. A protection counts only if an attempt
against it, made at the start from where the code will run, was refused.

Isolation, best first: "namespaces" (Linux: own mounts, network, process ids and IPC,
and a system-call filter); "filter" (Linux without user namespaces: the filter, every
file read-only, Landlock where the kernel has it); "limits" (anywhere: protects little
but time and memory, needs `allow_weaker`). Root and ordinary users get the same.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, Protocol

from jerp.bridge.sandbox_pool import (
    REQUIRED_PROTECTIONS,
    Isolation,
    PooledSandbox,
    WorkerPool,
)
from jerp.bridge.sandbox_report import (
    RunStatus,
    TestCase,
    TestReport,
    TestResult,
    judge_run,
    report_from_record,
    report_to_record,
)
from jerp.errors import ConfigError

__all__ = [
    "REQUIRED_PROTECTIONS",
    "SANDBOX_VERSION",
    "Isolation",
    "Limits",
    "RunStatus",
    "Sandbox",
    "TestCase",
    "TestReport",
    "TestResult",
    "VerdictStore",
    "verdict_key",
]

SANDBOX_VERSION = 1
"""Part of a stored verdict's key; raised when a verdict could come out otherwise."""

_MOST_CODE_CHARS = 200_000


@dataclass(frozen=True)
class Limits:
    """What one run may use.

    Attributes:
      cpu_seconds: of processor time; what ends a loop, the same on a busy machine.
      wall_seconds: in all; what ends a sleep.
      memory_mib: of address space, the interpreter's own included.
      files_mib: of the throw-away folder.
      open_files: at a time.
      output_kib: printed; and again, for all results together.
      result_chars: of one result.
    """

    cpu_seconds: int = 1
    wall_seconds: float = 10.0
    memory_mib: int = 256
    files_mib: int = 16
    open_files: int = 32
    output_kib: int = 256
    result_chars: int = 4000

    def __post_init__(self):
        least = {"memory_mib": 64, "open_files": 8, "wall_seconds": 0.1}
        for name, value in asdict(self).items():
            if value < least.get(name, 1):
                raise ConfigError(
                    f"{name}: expected >= {least.get(name, 1)}, got {value}"
                )


class VerdictStore(Protocol):
    """Where verdicts are kept; `jerp.bridge.store.ResponseStore` is one."""

    def get(self, kind: str, key: str) -> dict[str, Any] | None:
        """The record under `key`, None where there is none."""
        ...

    def put(self, kind: str, key: str, record: dict[str, Any]) -> None:
        """Keeps a record."""
        ...


def verdict_key(code: str, tests: Sequence[TestCase], limits: Limits) -> str:
    """SHA-256, in hex, of all that a verdict depends on."""
    content = {
        "code": code,
        "tests": [[test.call, test.expected] for test in tests],
        "limits": asdict(limits),
        "sandbox": SANDBOX_VERSION,
    }
    text = json.dumps(content, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


class Sandbox(PooledSandbox):
    """Judges untrusted code by test cases. May be used from several threads at once.

    Processes start when first needed, one for each thread that runs at the same time,
    and are kept for the next run: replaying stored verdicts starts none.

    Args:
      limits: of each run.
      store: keeps verdicts under kind "verdict"; None keeps none.
      isolation: "auto" takes the best this system offers; another name that or none.
      allow_weaker: run even without `REQUIRED_PROTECTIONS`, where they cannot be had.
        Only for code that you would run by hand; say so in what you report.
      recheck: run again what the store has, and put the new verdict there.
    """

    def __init__(
        self,
        limits: Limits | None = None,
        *,
        store: VerdictStore | None = None,
        isolation: Isolation = "auto",
        allow_weaker: bool = False,
        recheck: bool = False,
    ):
        self.limits = limits or Limits()
        self._store, self._recheck = store, recheck
        super().__init__(
            WorkerPool(
                asdict(self.limits), isolation=isolation, allow_weaker=allow_weaker
            )
        )

    @property
    def protections(self) -> dict[str, str]:
        """Active protections and how each is made; what is not listed is not there.

        Raises:
          SandboxError: see `run_tests`.
        """
        limits = self.limits
        held = self._pool.protections
        return {
            "time": f"{limits.cpu_seconds} s of processor time, "
            f"{limits.wall_seconds:g} s by the clock",
            "output": f"{limits.output_kib} KiB",
            "environment": "bare interpreter, nothing inherited",
        } | held

    def run_tests(self, code: str, tests: Sequence[TestCase]) -> TestReport:
        """Loads `code`, evaluates the calls in order in one process, and compares.

        A call sees what earlier calls left. When one takes the process down, it and
        those after it fail; results before it stand. See `literals_match` for when a
        result is the expected one.

        Raises:
          SandboxError: the required protections are not to be had, or the sandbox
            itself failed. Never the code's fault: nothing is judged or stored.
        """
        key = verdict_key(code, tests, self.limits)
        if self._store is not None and not self._recheck:
            record = self._store.get("verdict", key)
            if record is not None:
                return report_from_record(record, len(tests))
        report = self._judge(code, tests)
        if self._store is not None:
            self._store.put("verdict", key, report_to_record(report))
        return report

    def _judge(self, code: str, tests: Sequence[TestCase]) -> TestReport:
        if len(code) > _MOST_CODE_CHARS:
            error = f"the code is longer than {_MOST_CODE_CHARS} characters"
            return TestReport((TestResult(False, "", error),) * len(tests), "error")
        request = {"code": code, "calls": [test.call for test in tests]}
        answer = self._pool.run(request)
        return judge_run(
            tests,
            answer["end"],
            answer["results"].encode("latin-1"),
            result_chars=self.limits.result_chars,
        )

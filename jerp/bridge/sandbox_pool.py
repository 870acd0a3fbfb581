"""Sandbox processes that are kept for the next run, and what protects them.

What runs Python (`jerp.bridge.sandbox`) and what runs SQL (`jerp.bridge.sql_sandbox`)
take their processes from here. A process without the required protections runs nothing.
"""

from __future__ import annotations

import contextlib
import os
import signal
import threading
import weakref
from collections.abc import Iterator, Mapping
from typing import Any, Literal, Self, get_args

from jerp.bridge.sandbox_worker import Worker
from jerp.errors import SandboxError, UnknownNameError

__all__ = ["REQUIRED_PROTECTIONS", "Isolation", "PooledSandbox", "WorkerPool"]

REQUIRED_PROTECTIONS = ("memory", "processes", "network", "signals", "writes")
"""Without all of these nothing runs, unless `allow_weaker`; "reads" is not required."""

Isolation = Literal["auto", "namespaces", "filter", "limits"]


def _close_all(workers: list[Worker]) -> None:
    while workers:
        workers.pop().close()


class WorkerPool:
    """Processes of one kind. May be used from several threads at once.

    They start when first needed, one for each thread that runs at the same time.

    Args:
      limits: of each run, by name, as `jerp.bridge.sandbox_worker.Worker` has them.
      isolation: "auto" takes the best this system offers; another name that or none.
      allow_weaker: run even without `REQUIRED_PROTECTIONS`.
      runs: what the requests hold.
    """

    def __init__(
        self,
        limits: Mapping[str, Any],
        *,
        isolation: Isolation,
        allow_weaker: bool,
        runs: Literal["python", "sql"] = "python",
    ):
        if isolation not in get_args(Isolation):
            raise UnknownNameError("isolation", isolation, get_args(Isolation))
        self._settings = {**limits, "runs": runs}
        self._wanted, self._allow_weaker = isolation, allow_weaker
        self._found: tuple[str, dict[str, str]] | None = None
        self._idle: list[Worker] = []
        self._lock = threading.Lock()
        self._owner = os.getpid()
        self._finalizer = weakref.finalize(self, _close_all, self._idle)

    @property
    def isolation(self) -> str:
        """The isolation in use. Starts a process where none has been.

        Raises:
          SandboxError: see `run`.
        """
        return self._in_use()[0]

    @property
    def protections(self) -> dict[str, str]:
        """Protections that held against an attempt, and how each is made.

        Raises:
          SandboxError: see `run`.
        """
        return self._in_use()[1]

    def run(self, request: dict[str, Any]) -> dict[str, Any]:
        """Has a process answer a request; see `jerp.bridge.sandbox_child`.

        Raises:
          SandboxError: the required protections are not to be had, or the sandbox
            itself failed. Never the fault of what was to run.
        """
        with self._borrowed() as worker:
            answer = worker.run(request)
            # Filtered code can send no signal: this one came from outside.
            strict = "signals" in worker.protections
            if strict and (answer["end"], answer["number"]) == (
                "signal",
                signal.SIGKILL,
            ):
                raise SandboxError(
                    "a sandboxed run was killed from outside; is the machine out of "
                    "memory? Its code is not judged: free some, and run again"
                )
        return answer

    def close(self) -> None:
        """Ends the idle processes; later use starts new ones."""
        with self._lock:
            idle = self._idle[:]
            self._idle.clear()
        _close_all(idle)

    def _in_use(self) -> tuple[str, dict[str, str]]:
        if self._found is None:
            with self._borrowed():
                pass
        assert self._found is not None
        return self._found

    @contextlib.contextmanager
    def _borrowed(self) -> Iterator[Worker]:
        worker = self._idle_worker() or self._new_worker()
        try:
            yield worker
        except BaseException:
            worker.close()
            raise
        with self._lock:
            self._idle.append(worker)

    def _idle_worker(self) -> Worker | None:
        if os.getpid() != self._owner:
            raise SandboxError(
                "this Sandbox was made before a fork, in another process; make a new "
                "one in each process"
            )
        while True:
            with self._lock:
                if not self._idle:
                    return None
                worker = self._idle.pop()
            if worker.alive:
                return worker
            worker.close()

    def _new_worker(self) -> Worker:
        reasons = []
        for isolation in self._candidates():
            try:
                worker = Worker(isolation, self._settings)
            except SandboxError as error:
                reasons.append(f"{isolation}: {error}")
                continue
            missing = set(REQUIRED_PROTECTIONS) - set(worker.protections)
            if not missing or self._allow_weaker:
                self._found = isolation, worker.protections
                return worker
            worker.close()
            reasons.append(
                f"{isolation}: no protection of {', '.join(sorted(missing))}"
            )
        raise SandboxError(
            f"untrusted code is not run here ({'; '.join(reasons)}). Use Linux on "
            "x86-64 or ARM64 with seccomp, and best with user namespaces; or pass "
            "allow_weaker=True for code that you would run by hand. Stored verdicts "
            "need no sandbox"
        )

    def _candidates(self) -> tuple[str, ...]:
        if self._found is not None:
            return (self._found[0],)
        if self._wanted != "auto":
            return (self._wanted,)
        return ("namespaces", "filter", *(("limits",) if self._allow_weaker else ()))


class PooledSandbox:
    """What sandboxes have in common, whatever their processes run.

    Args:
      pool: of processes.
    """

    def __init__(self, pool: WorkerPool):
        self._pool = pool

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def isolation(self) -> str:
        """The isolation in use. Starts a process where none has been.

        Raises:
          SandboxError: no process can be started with what is required.
        """
        return self._pool.isolation

    def close(self) -> None:
        """Ends the idle processes; later use starts new ones."""
        self._pool.close()

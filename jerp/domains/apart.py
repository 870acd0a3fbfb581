"""A program under another Python, asked over its standard input and output.

For packages whose needs are at odds with ours. Both sides write lines of JSON, nothing
else: the program one when it is ready, and one for each that it reads, either
`{"answer": …}` or `{"failed": "why"}`. It has to end when its input does, which is so
when this process is gone. What it writes to its standard error is kept for messages.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import subprocess
import tempfile
import threading
import time
from collections import deque
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from jerp.errors import ConfigError, InfrastructureError

__all__ = ["Apart", "named_python"]

LINES_KEPT = 30
LINES_SHOWN = 5
END_SECONDS = 5.0
CHUNK = 1 << 16
PASSED_ON = ("PATH", "HOME", "LANG", "TMPDIR", "SYSTEMROOT", "LD_LIBRARY_PATH")
"""Of our variables; keys of services and the like are none of its business."""


def named_python(named: Path | None, variable: str, install: str) -> Path:
    """The Python that somebody named: its program, or the folder of its environment.

    Args:
      named: by an argument; None takes what the variable names.
      variable: of the environment.
      install: a command that makes such a Python in the folder `tau2-env`, say.

    Raises:
      ConfigError: none is named, or there is none; the message has the command.
    """
    path = named or Path(os.environ.get(variable) or "")
    if path == Path():
        raise ConfigError(
            f"data: expected a Python that has the package (--data or the variable "
            f"{variable}: its program, or the folder of its environment), got none. "
            f"Make one: {install}"
        )
    program = path / "bin" / "python" if path.is_dir() else path
    if not os.access(program, os.X_OK) or program.is_dir():
        raise ConfigError(
            f"data: expected a Python's program, or the folder of its environment, got "
            f"{path}, where {program} is no program. Make one: {install}"
        )
    # Not resolved: an environment's program is a link, by whose place it is known.
    return program.absolute()


class Apart:
    """A program that answers requests, from any thread, one after another.

    It starts with the first request; one that died, or was ended because it gave no
    answer in time, is started again with the next.

    Args:
      command: program and arguments.
      seconds: in which it has to answer a request.
      start_seconds: in which it has to be ready.
      environment: its variables besides the plainest of ours.
    """

    def __init__(
        self,
        command: Sequence[str],
        *,
        seconds: float = 120.0,
        start_seconds: float = 300.0,
        environment: Mapping[str, str] | None = None,
    ):
        if not command or seconds <= 0 or start_seconds <= 0:
            raise ConfigError(
                f"expected a command and times above 0, got {[*command]}, {seconds} "
                f"and {start_seconds}"
            )
        self._command, self._seconds = tuple(command), seconds
        self._start_seconds = start_seconds
        self._environment = dict(environment or {})
        self._lock = threading.Lock()
        self._process: _Process | None = None
        self._ready: Any = None
        self._closed = False

    @property
    def running(self) -> bool:
        """Whether it runs now."""
        process = self._process
        return process is not None and process.alive

    def start(self) -> Any:
        """Starts it unless it runs; returns what it said when it was ready.

        Raises:
          InfrastructureError: see `ask`.
        """
        with self._lock:
            self._running()
            return self._ready

    def ask(self, request: Mapping[str, Any]) -> Any:
        """Its answer.

        Args:
          request: that JSON can say.

        Raises:
          InfrastructureError: it does not start, died, gave no answer in time, or says
            that it failed; or it is closed.
        """
        line = json.dumps(request, allow_nan=False)
        with self._lock:
            process = self._running()
            try:
                return process.ask(line, self._seconds)
            except _FailedError as error:
                raise InfrastructureError(str(error)) from None
            except BaseException:
                # Its answer would be taken for that to the next request.
                self._end()
                raise

    def close(self) -> None:
        """Ends it, and lets it start no more; a second time does nothing."""
        with self._lock:
            self._closed = True
            self._end()

    def _running(self) -> _Process:
        if self._closed:
            raise InfrastructureError(f"{self._command[0]} is closed")
        if self._process is not None and not self._process.alive:
            self._end()
        if self._process is None:
            self._process = _Process(self._command, self._environment)
            try:
                self._ready = self._process.answer(self._start_seconds)
            except BaseException as error:
                self._end()
                if isinstance(error, _FailedError):
                    raise InfrastructureError(str(error)) from None
                raise
        return self._process

    def _end(self) -> None:
        if self._process is not None:
            self._process.close()
        self._process = None


class _FailedError(Exception):
    """The program says that it failed; it goes on."""


class _Process:
    """One that runs."""

    def __init__(self, command: Sequence[str], environment: Mapping[str, str]):
        own = {name: os.environ[name] for name in PASSED_ON if name in os.environ}
        try:
            self._process = subprocess.Popen(
                [*command],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                cwd=tempfile.gettempdir(),
                env={**own, "PYTHONUTF8": "1", "PYTHONHASHSEED": "0", **environment},
                # So that Ctrl-C is ours to deal with.
                start_new_session=True,
            )
        except OSError as error:
            raise InfrastructureError(
                f"{command[0]} does not start: {error}"
            ) from error
        self._name = " ".join(command[:3])
        self._read = bytearray()
        self._told: deque[str] = deque(maxlen=LINES_KEPT)
        self._listener = threading.Thread(target=self._listen, daemon=True)
        self._listener.start()

    @property
    def alive(self) -> bool:
        """Whether it still runs."""
        return self._process.poll() is None

    def ask(self, line: str, seconds: float) -> Any:
        """Its answer to a line."""
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(line.encode() + b"\n")
            self._process.stdin.flush()
        except OSError as error:
            raise self._error("took no request") from error
        return self.answer(seconds)

    def answer(self, seconds: float) -> Any:
        """What it says next."""
        line = self._line(time.monotonic() + seconds, seconds)
        try:
            message = json.loads(line)
            if "failed" in message:
                raise _FailedError(f"{self._name}: {message['failed']}")
            return message["answer"]
        except (ValueError, TypeError, KeyError) as error:
            raise self._error(f"answered {line[:100]!r}") from error

    def close(self) -> None:
        """Ends it, at once if it is busy."""
        process = self._process
        assert process.stdin and process.stdout and process.stderr
        with contextlib.suppress(OSError):  # what was not yet written goes nowhere
            process.stdin.close()
        try:
            process.wait(END_SECONDS if self._listens else 0)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        self._listener.join(END_SECONDS)
        process.stdout.close()
        process.stderr.close()

    _listens = True

    def _line(self, deadline: float, seconds: float) -> bytes:
        assert self._process.stdout is not None
        handle = self._process.stdout.fileno()
        poller = select.poll()
        poller.register(handle, select.POLLIN)
        while b"\n" not in self._read:
            left = deadline - time.monotonic()
            if left <= 0 or not poller.poll(left * 1000):
                self._listens = False
                raise self._error(f"gave no answer in {seconds:g} s")
            chunk = os.read(handle, CHUNK)
            if not chunk:
                raise self._error(f"ended with {self._process.wait()}")
            self._read += chunk
        line, _, rest = self._read.partition(b"\n")
        self._read = bytearray(rest)
        return bytes(line)

    def _listen(self) -> None:
        """Keeps the last lines of its standard error, so that it never fills up."""
        assert self._process.stderr is not None
        for line in self._process.stderr:
            self._told.append(line.decode(errors="replace").rstrip())

    def _error(self, what: str) -> InfrastructureError:
        if self._listens:
            self._listener.join(0.2)  # what it told last may still be on its way
        told = " | ".join([*self._told][-LINES_SHOWN:])
        return InfrastructureError(
            f"{self._name} {what}" + (f"; it told: {told}" if told else "")
        )

"""The parent's handle on one sandbox process (see `jerp.bridge.sandbox_child`).

A worker serves one request at a time. It is started with a bare interpreter, a minimal
environment, no inherited descriptor and a session of its own; it ends when its standard
input closes, so also when this process is killed. Whatever goes wrong with a worker is
a `SandboxError`: the code it was given is not judged.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from jerp.errors import SandboxError

__all__ = ["Worker"]

_PROGRAM = Path(__file__).with_name("sandbox_child.py")
_FLAGS = ("-P", "-s", "-S", "-B", "-W", "ignore")
# A fixed hash seed: the order of a set must not differ from run to run.
_ENVIRONMENT = {"PYTHONHASHSEED": "0", "PYTHONUTF8": "1", "LC_ALL": "C.UTF-8"}
_START_SECONDS, _GRACE_SECONDS, _END_SECONDS = 60.0, 30.0, 5.0
_MOST_ANSWER_BYTES = 1 << 28


class Worker:
    """One protected process, ready for requests.

    Attributes:
      protections: how each protection that held against an attempt is made.

    Args:
      isolation: "namespaces", "filter" or "limits".
      limits: numbers by name, as `jerp.bridge.sandbox.Limits` has them.

    Raises:
      SandboxError: the system does not offer this isolation.
    """

    def __init__(self, isolation: str, limits: dict[str, Any]):
        self._wall_seconds = float(limits["wall_seconds"])
        try:
            self._root = tempfile.mkdtemp(prefix="jerp-sandbox-")
            self._process = self._start(isolation, limits)
        except OSError as error:
            raise SandboxError(f"no sandbox process starts: {error}") from error
        try:
            report = self._receive(_START_SECONDS)
            if "failed" in report:
                raise SandboxError(str(report["failed"]))
        except BaseException:
            self.close()
            raise
        self.protections: dict[str, str] = report["protections"]
        if isolation != "limits":
            shutil.rmtree(self._root, ignore_errors=True)

    def _start(self, isolation: str, limits: dict[str, Any]) -> subprocess.Popen[bytes]:
        folder, outside = Path(self._root, "folder"), Path(self._root, "outside")
        folder.mkdir()
        outside.touch()
        settings = limits | {
            "isolation": isolation,
            "folder": str(folder),
            "outside": str(outside),
            "parent": os.getpid(),
        }
        return subprocess.Popen(
            [sys.executable, *_FLAGS, str(_PROGRAM), json.dumps(settings)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            cwd=folder,
            env=_ENVIRONMENT,
            start_new_session=True,
        )

    @property
    def alive(self) -> bool:
        """Whether the process still runs."""
        return self._process.poll() is None

    def run(self, request: dict[str, Any]) -> dict[str, Any]:
        """Sends one request and waits for its answer.

        Raises:
          SandboxError: the worker broke; it must be closed.
        """
        body = json.dumps(request).encode()
        try:
            self._pipe("stdin").write(len(body).to_bytes(4, "big") + body)
            self._pipe("stdin").flush()
        except OSError as error:
            raise SandboxError(self._complaint("took no request")) from error
        answer = self._receive(self._wall_seconds + _GRACE_SECONDS)
        if answer.get("end") == "setup":
            raise SandboxError(self._complaint(f"protects no run: {answer['detail']}"))
        return answer

    def close(self) -> None:
        """Ends the process and all it started."""
        with contextlib.suppress(OSError):
            self._pipe("stdin").close()
        try:
            self._process.wait(_END_SECONDS)
        except subprocess.TimeoutExpired:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()
        self._pipe("stdout").close()
        self._pipe("stderr").close()
        shutil.rmtree(self._root, ignore_errors=True)

    def _pipe(self, name: str) -> Any:
        return getattr(self._process, name)

    def _receive(self, seconds: float) -> dict[str, Any]:
        deadline = time.monotonic() + seconds
        size = int.from_bytes(self._read(4, deadline), "big")
        if size > _MOST_ANSWER_BYTES:
            raise SandboxError(self._complaint(f"announced {size} bytes"))
        try:
            answer = json.loads(self._read(size, deadline))
        except ValueError as error:
            raise SandboxError(self._complaint("answered no JSON")) from error
        return answer

    def _read(self, size: int, deadline: float) -> bytes:
        handle, data = self._pipe("stdout").fileno(), bytearray()
        poller = select.poll()
        poller.register(handle, select.POLLIN)
        while len(data) < size:
            left = deadline - time.monotonic()
            if left <= 0 or not poller.poll(left * 1000):
                raise SandboxError(self._complaint("did not answer in time"))
            chunk = os.read(handle, size - len(data))
            if not chunk:
                raise SandboxError(self._complaint("ended without an answer"))
            data += chunk
        return bytes(data)

    def _complaint(self, what: str) -> str:
        """A message; with what the process last wrote to its standard error."""
        os.set_blocking(self._pipe("stderr").fileno(), False)
        last = (self._pipe("stderr").read() or b"").decode(errors="replace").strip()
        return f"the sandbox process {what}" + (f": {last[-500:]}" if last else "")

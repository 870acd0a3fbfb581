"""A run of all hostile programs: in this process or as another user.

Imports nothing but the sandbox and the standard library, so that a bare system
interpreter can run it for an ordinary user: `python -m tests.bridge.sandbox_attacks`.
Each `attack()` returns the names of what it managed to do: `[]` is the wanted answer.
"""

from __future__ import annotations

import json
import os
import socket
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from jerp.bridge.sandbox import Limits, Sandbox, TestCase
from tests.bridge.sandbox_attack import PRELUDE
from tests.bridge.sandbox_programs import ATTACKS

LIMITS = Limits(cpu_seconds=1, wall_seconds=8.0)


def _context(folder: Path, port: int) -> str:
    names = {
        "SECRET": str(folder / "secret"),
        "PORT": port,
        "PARENT": os.getpid(),
        "HOME": str(Path.home()),
        "REPOSITORY": str(Path(__file__).resolve().parents[2]),
    }
    return PRELUDE + "".join(f"{name} = {value!r}\n" for name, value in names.items())


def _processes() -> list[tuple[int, int, int, bytes]]:
    """Process id, parent, session and command line of all that runs, zombies too."""
    found = []
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            fields = (entry / "stat").read_text().rsplit(")", 1)[1].split()
            command = (entry / "cmdline").read_bytes()
        except OSError:
            continue
        found.append((int(entry.name), int(fields[1]), int(fields[3]), command))
    return found


def sandbox_sessions() -> set[int]:
    """Sessions of the sandboxes that this process has started and not ended."""
    mine = os.getpid()
    return {
        session
        for _, parent, session, command in _processes()
        if parent == mine and b"sandbox_child" in command
    }


def processes_in(sessions: set[int]) -> set[int]:
    """All processes of these sessions."""
    return {pid for pid, _, session, _ in _processes() if session in sessions}


def settled(sessions: set[int], count: int) -> int:
    """How many processes are in these sessions, once `count` are or 20 s are over."""
    deadline = time.monotonic() + 20
    while (now := len(processes_in(sessions))) != count and time.monotonic() < deadline:
        time.sleep(0.01)
    return now


def run_attacks(
    isolation: str, folder: Path, names=tuple(ATTACKS), *, at_a_time=3, **options
) -> dict:
    """Attacks a sandbox; returns what became of each attack and of the machine."""
    secret = folder / "secret"
    secret.write_text("do not tell")
    secret.chmod(0o640)
    os.environ["JERP_TEST_SECRET"] = "do not tell"
    before = secret.stat()
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.setblocking(False)
        context = _context(folder, server.getsockname()[1])
        tests = [TestCase("attack()", "[]")]
        with Sandbox(LIMITS, isolation=isolation, **options) as sandbox:  # pyright: ignore

            def run(name):
                report = sandbox.run_tests(context + ATTACKS[name].code, tests)
                result = report.results[0]
                return name, (report.status, result.passed, result.got, result.error)

            with ThreadPoolExecutor(at_a_time) as pool:
                outcomes = dict(pool.map(run, names))
            sessions = sandbox_sessions()
            expected = len(sessions) * (2 if isolation == "namespaces" else 1)
            while_idle = settled(sessions, expected) / len(sessions)
            protections = sandbox.protections
        try:
            server.accept()[0].close()
            reached = True
        except BlockingIOError:
            reached = False
    kept = secret.exists() and secret.read_text() == "do not tell"
    after = secret.stat() if kept else None
    return {
        "user": os.getuid(),
        "outcomes": outcomes,
        "protections": protections,
        "processes_a_worker": while_idle,
        "processes_after": settled(sessions, 0),
        "server_reached": reached,
        "secret_unchanged": after is not None
        and (before.st_mode, before.st_mtime) == (after.st_mode, after.st_mtime),
        "planted": [str(path) for path in folder.rglob("*") if path != secret],
    }


if __name__ == "__main__":
    print(json.dumps(run_attacks(sys.argv[1], Path(sys.argv[2]))))

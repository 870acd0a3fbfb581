"""Hostile programs, and a run of all of them: in this process or as another user.

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
from dataclasses import dataclass
from pathlib import Path

from jerp.bridge.sandbox import Limits, Sandbox, TestCase

PRELUDE = """
import os

def done(attempts):
    names = []
    for name, attempt in attempts.items():
        try:
            attempt()
        except (OSError, RuntimeError, ValueError):
            continue
        names.append(name)
    return names
"""

LIMITS = Limits(cpu_seconds=1, wall_seconds=8.0)


@dataclass(frozen=True)
class Attack:
    """A program, and how its run must end; `passes` if `attack()` must return `[]`."""

    code: str
    status: str = "ok"
    passes: bool = True


ATTACKS = {
    "loop": Attack(
        """
def attack():
    while True:
        pass
""",
        "timeout",
        False,
    ),
    "fork_bomb": Attack(
        """
def attack():
    import time
    while True:
        try:
            if os.fork() == 0:
                time.sleep(5)
                os._exit(0)
        except OSError:
            pass
""",
        "timeout",
        False,
    ),
    "processes": Attack(
        """
def fork():
    if os.fork() == 0:
        os._exit(0)
    os.wait()

def attack():
    import subprocess, threading, _posixsubprocess
    return done({
        "fork": fork,
        "vfork": lambda: subprocess.Popen(["/bin/true"]).wait(),
        "spawn": lambda: os.posix_spawn("/bin/true", ["true"], {}),
        "exec": lambda: os.execv("/bin/true", ["true"]),
        "thread": threading.Thread(target=int).start,
        "session": os.setsid,
    })
"""
    ),
    "memory_at_once": Attack(
        "def attack(): return len(bytearray(10 << 30))", "memory", False
    ),
    "memory_bit_by_bit": Attack(
        """
def attack():
    kept = []
    while True:
        kept.append(bytearray(1 << 20))
""",
        "memory",
        False,
    ),
    "memory_without_python": Attack(
        """
def attack():
    import ctypes, mmap
    return done({
        "mmap": lambda: mmap.mmap(-1, 10 << 30), "memfd": lambda: os.memfd_create("x")
    })
"""
    ),
    "sockets": Attack(
        """
def attack():
    import socket
    kinds = {"tcp": 1, "udp": 2, "raw": 3}
    attempts = {
        f"{name}{family}": lambda f=family, k=kind: socket.socket(f, k)
        for name, kind in kinds.items() for family in (1, 2, 10, 16, 17)
    }
    attempts["home"] = lambda: socket.create_connection(("127.0.0.1", PORT), 1)
    attempts["away"] = lambda: socket.create_connection(("192.0.2.1", 80), 1)
    attempts["pair"] = socket.socketpair
    return done(attempts)
"""
    ),
    "writes": Attack(
        """
def attack():
    def write(path):
        with open(path, "w") as file:
            file.write("x")
    here = os.path.dirname(SECRET)
    attempts = {path: lambda p=path: write(p) for path in (
        SECRET, here + "/planted", "../planted", "../../planted",
    )}
    attempts |= {path: lambda p=path: os.open(p, os.O_WRONLY) for path in (
        os.__file__, REPOSITORY + "/setup.py", "/etc/passwd", "/dev/null",
    )}
    return done(attempts | {
        "append": lambda: open(SECRET, "a"),
        "update": lambda: open(SECRET, "r+"),
        "truncate": lambda: os.truncate(SECRET, 0),
        "remove": lambda: os.unlink(SECRET),
        "rename": lambda: os.rename(SECRET, here + "/planted"),
        "link": lambda: os.link(SECRET, "linked"),
        "folder": lambda: os.mkdir(here + "/planted"),
        "mode": lambda: os.chmod(SECRET, 0o777),
        "mode by handle": lambda: os.fchmod(os.open(SECRET, os.O_RDONLY), 0o777),
        "times": lambda: os.utime(SECRET, (0, 0)),
    })
"""
    ),
    "reads": Attack(
        """
def attack():
    paths = (
        SECRET, REPOSITORY + "/setup.py", "/etc/passwd", "/proc/self/environ",
        f"/proc/{PARENT}/environ", "/usr/bin", "/sys/kernel", "/dev/tty",
    )

    def look_around(folder):
        if len(os.listdir(folder)) < 2:
            raise OSError("no more than the way to the interpreter")

    attempts = {path: lambda p=path: os.open(p, os.O_RDONLY) for path in paths}
    for folder in (HOME, REPOSITORY, os.path.dirname(SECRET)):
        attempts[folder] = lambda f=folder: look_around(f)
    found = done(attempts)
    known = {"PYTHONHASHSEED", "PYTHONUTF8", "LC_ALL"}
    return found + sorted(set(os.environ) - known)
"""
    ),
    "privileges": Attack(
        """
def attack():
    import ctypes, resource
    libc = ctypes.CDLL(None, use_errno=True)

    def call(name, *arguments):
        if getattr(libc, name)(*arguments) == -1:
            raise OSError(ctypes.get_errno(), name)

    limit = resource.RLIMIT_CPU
    attempts = {
        "uid": lambda: os.setuid(0),
        "uids": lambda: os.setresuid(0, 0, 0),
        "groups": lambda: os.setgroups([0]),
        "root": lambda: os.chroot("/"),
        "nice": lambda: os.nice(-1),
        "cpu down": lambda: resource.setrlimit(limit, (0, 0)),
        "cpu up": lambda: resource.setrlimit(limit, (9, 9)),
        "mount": lambda: call("mount", b"tmpfs", b"/", b"tmpfs", 0, None),
        "unshare": lambda: call("unshare", 0x10000000),
        "setns": lambda: call("setns", 0, 0),
        "ptrace": lambda: call("ptrace", 16, PARENT, 0, 0),
        "peek": lambda: call("process_vm_readv", PARENT, None, 0, None, 0, 0),
        "owner": lambda: call("fcntl", 1, 8, PARENT),
        "io_uring": lambda: call("syscall", 425, 1, ctypes.create_string_buffer(120)),
        "bpf": lambda: call("syscall", 321, 0, None, 0),
        "keys": lambda: call("syscall", 250, 0, -3, 1),
        "x32": lambda: call("syscall", 0x40000000 + 41, 2, 1, 0),
    }
    return done(attempts)
"""
    ),
    "signals": Attack(
        """
def attack():
    import signal
    return done({
        "parent": lambda: os.kill(PARENT, 9),
        "parent by question": lambda: os.kill(PARENT, 0),
        "worker": lambda: os.kill(os.getppid() or 1, 9),
        "group": lambda: os.killpg(os.getpgrp() or 1, 0),
        "itself": lambda: os.kill(os.getpid(), 9),
        "raised": lambda: signal.raise_signal(9),
        "handle": lambda: signal.pidfd_send_signal(os.pidfd_open(PARENT), 9),
    })
"""
    ),
    "prints_for_ever": Attack(
        """
def attack():
    while True:
        print("x" * 80)
""",
        "output_limit",
        False,
    ),
    "errors_for_ever": Attack(
        """
import sys
while True:
    sys.stderr.write("x" * 80)
""",
        "output_limit",
        False,
    ),
    "results_for_ever": Attack(
        """
while True:
    for handle in range(3, 64):
        try:
            os.write(handle, b"x" * 4096)
        except OSError:
            pass
""",
        "output_limit",
        False,
    ),
    "open_files": Attack(
        """
def attack():
    inherited = done({handle: lambda h=handle: os.fstat(h) for handle in range(3, 256)})
    if len(inherited) != 1:
        return inherited
    kept = []
    return done({"many": lambda: kept.extend(os.pipe() for _ in range(1000))})
"""
    ),
    "fills_the_folder": Attack(
        """
def attack():
    def fill(number):
        with open(f"file{number}", "wb") as file:
            for _ in range(12):
                file.write(bytes(1 << 20))
    return done({"three": lambda: [fill(n) for n in range(3)],
                 "names": lambda: [open(f"n{n}", "w").close() for n in range(5000)]})
"""
    ),
    "deep_recursion": Attack(
        """
def attack():
    return attack()
""",
        passes=False,
    ),
    "leaves_in_a_call": Attack("def attack(): raise SystemExit(0)", passes=False),
    "leaves_at_once_in_a_call": Attack("def attack(): os._exit(0)", "error", False),
    "leaves": Attack("raise SystemExit(0)", "error", False),
    "leaves_at_once": Attack("os._exit(0)", "error", False),
    "aborts": Attack("def attack(): os.abort()", "killed", False),
    "crashes": Attack(
        """
def attack():
    import ctypes
    ctypes.string_at(0)
""",
        "killed",
        False,
    ),
    "garbage": Attack(
        """
def attack():
    for handle in range(3, 64):
        try:
            os.write(handle, b'\\xff\\x00{"value": }\\n' + b"[" * 5000 + b"\\n")
        except OSError:
            pass
    return []
""",
        "error",
        False,
    ),
    "closes_everything": Attack(
        """
def attack():
    os.closerange(0, 64)
    return []
""",
        "error",
        False,
    ),
    "speaks_for_later_calls": Attack(
        """
for handle in range(3, 64):
    try:
        os.write(handle, b'["loaded", ""]\\n["value", "[]"]\\n["value", "[]"]\\n')
    except OSError:
        pass
""",
        "error",
        False,
    ),
}


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

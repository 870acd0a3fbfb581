"""Every attack, against every isolation, as root and as an ordinary user."""

import contextlib
import ctypes
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest

from jerp.bridge.sandbox import REQUIRED_PROTECTIONS, Limits, Sandbox, TestCase
from jerp.errors import SandboxError
from tests.bridge.sandbox_attacks import run_attacks, sandbox_sessions, settled
from tests.bridge.sandbox_programs import ATTACKS

REPOSITORY = Path(__file__).resolve().parents[2]
NOBODY = 65534
STRICT = ("namespaces", "filter")


def skip_without(isolation):
    try:
        with Sandbox(isolation=isolation) as sandbox:
            return sandbox.protections
    except SandboxError as error:
        pytest.skip(f"isolation {isolation!r} is not to be had here: {error}")


def test_every_linux_has_the_filter():
    """So that a broken filter fails here, and does not only skip the tests of it."""
    machine = os.uname().machine
    if sys.platform != "linux" or machine not in ("x86_64", "aarch64"):
        pytest.skip(f"no system-call filter for {sys.platform} on {machine}")
    if "\nSeccomp_filters:" not in Path("/proc/self/status").read_text():
        pytest.skip("this kernel has no seccomp filters")
    with Sandbox(isolation="filter") as sandbox:
        assert sandbox.isolation == "filter"


def test_namespaces_are_used_where_the_system_tool_can_use_them():
    mount = "mount -t tmpfs none /tmp && mount --bind /usr/lib /tmp"
    try:
        probe = ["unshare", "-Urmpn", "--fork", "sh", "-c", mount]
        works = subprocess.run(probe, capture_output=True, timeout=20).returncode == 0
    except FileNotFoundError:
        pytest.skip("no unshare program to compare with")
    release = tuple(int(n) for n in os.uname().release.split(".")[:2])
    if not works or release < (5, 12):
        pytest.skip("no user namespaces, or a kernel before 5.12")
    with Sandbox() as sandbox:
        assert sandbox.isolation == "namespaces"


def check(report, isolation):
    for name, attack in ATTACKS.items():
        status, passed, got, error = report["outcomes"][name]
        assert (status, passed) == (attack.status, attack.passes), (name, got, error)
    assert report["secret_unchanged"]
    assert report["planted"] == []
    assert not report["server_reached"]
    assert report["processes_a_worker"] == (2 if isolation == "namespaces" else 1)
    assert report["processes_after"] == 0


@pytest.mark.parametrize("isolation", STRICT)
def test_no_attack_succeeds(isolation, tmp_path):
    skip_without(isolation)
    check(run_attacks(isolation, tmp_path), isolation)


@pytest.fixture(scope="module")
def public_copy():
    """The sandbox and the attacks, where any user can read them."""
    folder = Path(tempfile.mkdtemp())
    sources = [
        *REPOSITORY.glob("jerp/bridge/sandbox*.py"),
        REPOSITORY / "jerp/bridge/python_source.py",
        *(REPOSITORY / name for name in ("jerp/__init__.py", "jerp/errors.py")),
        *(REPOSITORY / name for name in ("jerp/bridge/__init__.py", "setup.py")),
        *(REPOSITORY / "tests").glob("__init__.py"),
        *(REPOSITORY / "tests/bridge").glob("__init__.py"),
        *(REPOSITORY / "tests/bridge").glob("sandbox_*.py"),
    ]
    for source in sources:
        target = folder / source.relative_to(REPOSITORY)
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(source, target)
    for path in (folder, *folder.rglob("*")):
        path.chmod(0o755)
    yield folder
    shutil.rmtree(folder)


@pytest.fixture(scope="module")
def as_nobody(public_copy):
    """Runs the interpreter as an ordinary user in the public copy."""
    if os.getuid() != 0:
        pytest.skip("not root: the other tests have run as an ordinary user already")

    def run(executable, *arguments):
        return subprocess.run(
            [executable, *arguments],
            cwd=public_copy,
            env={
                "PATH": os.defpath,
                "HOME": str(public_copy),
                "PYTHONDONTWRITEBYTECODE": "1",
            },
            user=NOBODY,
            group=NOBODY,
            extra_groups=[],
            capture_output=True,
            text=True,
            timeout=120,
        )

    for executable in (sys.executable, "/usr/bin/python3"):
        with contextlib.suppress(OSError):
            if (
                run(executable, "-c", "import ctypes, typing; typing.Self").returncode
                == 0
            ):
                return lambda *arguments: run(executable, *arguments)
    pytest.skip("no interpreter >= 3.11 that an ordinary user may run")


@pytest.mark.parametrize("isolation", STRICT)
def test_no_attack_succeeds_as_an_ordinary_user(isolation, as_nobody):
    skip_without(isolation)
    folder = Path(tempfile.mkdtemp())
    os.chown(folder, NOBODY, NOBODY)
    done = as_nobody("-m", "tests.bridge.sandbox_attacks", isolation, str(folder))
    shutil.rmtree(folder)
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout)
    assert report["user"] == NOBODY
    check(report, isolation)


def test_the_attacks_do_harm_where_nothing_stops_them(tmp_path):
    names = ("sockets", "reads", "writes")
    others = ("symlinks", "devices", "terminal", "tracing", "kernel", "processes")
    report = run_attacks(
        "limits", tmp_path, names + others, at_a_time=1, allow_weaker=True
    )
    assert not any(report["outcomes"][name][1] for name in names + others)
    assert report["server_reached"]
    assert not report["secret_unchanged"]
    assert report["planted"]
    assert str(tmp_path / "secret") in report["outcomes"]["reads"][2]


def test_weak_isolation_is_refused_and_says_what_is_missing():
    with pytest.raises(SandboxError) as caught:
        Sandbox(isolation="limits").run_tests("x = 1", [])
    message = str(caught.value)
    for missing in ("network", "processes", "signals", "writes"):
        assert missing in message
    assert "allow_weaker=True" in message and "seccomp" in message


def test_weak_isolation_runs_where_the_caller_accepts_it():
    before = sandbox_sessions()
    limits = Limits(wall_seconds=1.0)
    with Sandbox(limits, isolation="limits", allow_weaker=True) as sandbox:
        assert "network" not in sandbox.protections and "time" in sandbox.protections
        code = "import os\nopen('here', 'w').close()\ndef f(): return os.listdir('.')"
        for _ in range(2):
            report = sandbox.run_tests(code, [TestCase("f()", "['here']")])
            assert report.results[0].passed
        code = "import os, time\nif os.fork() == 0: time.sleep(60)"
        assert sandbox.run_tests(code, []).status == "ok"
        assert settled(sandbox_sessions() - before, 1) == 1


def test_accepting_weaker_still_takes_the_best():
    best = skip_without("auto")
    with Sandbox(allow_weaker=True) as sandbox:
        assert sandbox.protections == best


@pytest.mark.parametrize("isolation", STRICT)
def test_protections_are_named_with_how_they_are_made(isolation):
    protections = skip_without(isolation)
    assert set(REQUIRED_PROTECTIONS) <= set(protections)
    assert {"time", "output", "environment"} <= set(protections)
    assert all(protections.values())
    assert ("namespace" in protections["network"]) == (isolation == "namespaces")


def test_without_user_namespaces_the_filter_takes_over():
    skip_without("namespaces")
    skip_without("filter")
    code = f"""
import ctypes, os
user, group = os.getuid(), os.getgid()
assert ctypes.CDLL(None).unshare(0x10000000) == 0
def write(path, text):
    with open(path, 'w') as file: file.write(text)
write('/proc/self/setgroups', 'deny')
write('/proc/self/uid_map', f'0 {{user}} 1')
write('/proc/self/gid_map', f'0 {{group}} 1')
write('/proc/sys/user/max_user_namespaces', '0')
import sys
sys.path.insert(0, {str(REPOSITORY)!r})
from jerp.bridge.sandbox import Sandbox
with Sandbox() as sandbox: print(sandbox.isolation)
try: Sandbox(isolation='namespaces').isolation
except Exception as error: print(type(error).__name__, error)
"""
    limit = Path("/proc/sys/user/max_user_namespaces").read_text()
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 0, done.stderr
    first, second = done.stdout.splitlines()
    assert first == "filter"
    assert second.startswith("SandboxError") and "unshare: No space left" in second
    assert Path("/proc/sys/user/max_user_namespaces").read_text() == limit


@pytest.mark.parametrize("isolation", STRICT)
def test_nothing_is_left_when_the_parent_is_killed(isolation):
    skip_without(isolation)
    code = f"""
import sys, threading, time
sys.path.insert(0, {str(REPOSITORY)!r})
from jerp.bridge.sandbox import Sandbox
from tests.bridge.sandbox_attacks import processes_in, sandbox_sessions
sandbox = Sandbox(isolation={isolation!r})
sandbox.isolation
sessions = sandbox_sessions()
idle = processes_in(sessions)
run = lambda: sandbox.run_tests("import time\\ntime.sleep(60)", [])
threading.Thread(target=run, daemon=True).start()
while processes_in(sessions) == idle: time.sleep(0.01)
print(*processes_in(sessions), flush=True)
time.sleep(60)
"""
    parent = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE)
    with parent:
        processes = [int(pid) for pid in parent.stdout.readline().split()]
        parent.send_signal(signal.SIGKILL)
    assert len(processes) == (3 if isolation == "namespaces" else 2)
    deadline = time.monotonic() + 20
    while (
        left := [p for p in processes if running(p)]
    ) and time.monotonic() < deadline:
        time.sleep(0.02)
    assert left == []


def running(pid):
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return False
    return stat.rsplit(")", 1)[1].split()[0] != "Z"


def test_no_folder_is_left(tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    for isolation in ("auto", "limits"):
        with Sandbox(isolation=isolation, allow_weaker=True) as sandbox:
            sandbox.run_tests("open('file', 'w').write('x')", [])
        assert list(tmp_path.iterdir()) == []


def test_a_machine_without_a_table_of_calls_is_refused(monkeypatch):
    from jerp.bridge import sandbox_syscalls

    monkeypatch.setattr(sandbox_syscalls, "_ARCHITECTURES", {})
    with pytest.raises(OSError, match="no system-call table for"):
        sandbox_syscalls.install_filter(ctypes.CDLL(None), writable=False)

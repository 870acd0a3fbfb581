"""Programs that reach for what is outside. Imports the standard library alone."""

from __future__ import annotations

from tests.bridge.sandbox_attack import Attack

__all__ = ["REACHING"]

REACHING = {
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
    "symlinks": Attack(
        """
def attack():
    def through(name, target, mode="r"):
        os.symlink(target, name)
        open(name, mode).close()

    return done({
        "read": lambda: through("a", SECRET),
        "upwards": lambda: through("b", "../../../../../../../.." + SECRET),
        "append": lambda: through("c", SECRET, "a"),
        "twice": lambda: through("d", "c"),
        "root": lambda: through("e", "/etc/passwd"),
        "folder": lambda: (os.symlink("/etc", "f"), os.listdir("f")),
        "over a library": lambda: through("g", os.__file__, "a"),
        "hard": lambda: os.link(os.__file__, "h"),
        "by process": lambda: os.open("/proc/self/root" + SECRET, os.O_RDONLY),
        "by parent": lambda: os.open(f"/proc/{PARENT}/root/etc", os.O_RDONLY),
    })
"""
    ),
    "devices": Attack(
        """
def attack():
    import pty, stat
    paths = ("/dev/mem", "/dev/kmsg", "/dev/zero", "/dev/shm", "/dev/ptmx", "/dev/fuse")
    attempts = {path: lambda p=path: os.open(p, os.O_RDONLY) for path in paths}
    null = os.makedev(1, 3)
    return done(attempts | {
        "character": lambda: os.mknod("null", 0o600 | stat.S_IFCHR, null),
        "block": lambda: os.mknod("disk", 0o600 | stat.S_IFBLK, os.makedev(8, 0)),
        "named pipe": lambda: os.mkfifo("pipe"),
        "terminal": pty.openpty,
    })
"""
    ),
    "terminal": Attack(
        """
def attack():
    import fcntl
    # Of a pipe the kernel would say that it is no terminal; the filter says EPERM.
    requests = {"type": 0x5412, "own": 0x540E, "paste": 0x541C, "hang up": 0x5437}
    return not_refused({
        name: lambda n=number: fcntl.ioctl(0, n, b"x")
        for name, number in requests.items()
    })
"""
    ),
    "tracing": Attack(
        """
def attack():
    import ctypes
    above = os.getppid() or 1
    return not_refused({
        "follow": lambda: call("ptrace", 0, 0, None, None),
        "ask": lambda: call("ptrace", 0x9999, above, None, None),
        "read": lambda: call("process_vm_readv", above, None, 0, None, 0, 0),
        "write": lambda: call("process_vm_writev", above, None, 0, None, 0, 0),
        "handle": lambda: os.pidfd_open(above),
        "personality": lambda: call("personality", 0x0040000),
    })
"""
    ),
    "shared_memory": Attack(
        """
def attack():
    return not_refused({
        "segment": lambda: call("shmget", 0, 4096, 0o1777),
        "semaphore": lambda: call("semget", 0, 1, 0o1777),
        "queue": lambda: call("msgget", 0, 0o1777),
        "named queue": lambda: call("mq_open", b"/jerp", 0o102, 0o600, None),
    })
"""
    ),
    "kernel": Attack(
        """
def attack():
    import time
    return not_refused({
        "clock": lambda: time.clock_settime(-99, 0.0),
        "name": lambda: call("sethostname", b"jerp", -1),
        "swap": lambda: call("swapon", b"swap", 0),
        "accounts": lambda: call("acct", b"accounts"),
        "module": lambda: call("init_module", b"", 0, b""),
        "log": lambda: call("klogctl", 10, None, 0),
        "unmount": lambda: call("umount2", b"/nowhere", 2),
        "watch": lambda: call("inotify_init1", 0),
        "watch all": lambda: call("fanotify_init", 0, 0),
        "lock memory": lambda: call("mlockall", 1),
        "processors": lambda: os.sched_setaffinity(0, {0}),
        "schedule": lambda: os.sched_setscheduler(0, os.SCHED_BATCH, os.sched_param(0)),
    })
"""
    ),
    "threads_without_python": Attack(
        """
def attack():
    import ctypes
    libc = ctypes.CDLL(None)
    handle, start = ctypes.c_ulong(), ctypes.CFUNCTYPE(None, ctypes.c_void_p)(print)
    failed = libc.pthread_create(ctypes.byref(handle), None, start, None)
    return [] if failed else ["thread"]
"""
    ),
    "imports_what_is_outside": Attack(
        """
def attack():
    import importlib, sys
    sys.path.append(REPOSITORY)
    found = []
    for name in ("jerp", "experiments", "numpy", "jax", "setup"):
        try:
            found.append(importlib.import_module(name).__name__)
        except ImportError:
            pass
    return found
"""
    ),
}

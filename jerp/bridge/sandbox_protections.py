"""Namespaces, private file view, Landlock and limits of sandboxed code (child side).

Runs in the sandbox's own process, before any untrusted code. Each function puts one
protection in place, for this process and what it forks, or raises OSError. Nothing here
needs root, and nothing relies on its absence: root without capabilities, in a user
namespace or under a filter, is bound like everyone else.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import resource
import signal
import struct

__all__ = [
    "LIBC",
    "die_with_parent",
    "drop_privileges",
    "enter_namespaces",
    "hide_files",
    "limit_resources",
    "mount_fresh_folder",
    "open_socket",
    "restrict_reading",
]

LIBC = ctypes.CDLL(None, use_errno=True)

_NEW_MOUNTS = 0x00020000
_NEW_NAMESPACES = 0x10000000 | _NEW_MOUNTS | 0x20000000 | 0x40000000 | 0x08000000
"""User, mount, process-id, network and System V IPC namespaces."""

_MS_NOSUID, _MS_NODEV, _MS_NOEXEC, _MS_BIND, _MS_REC = 2, 4, 8, 0x1000, 0x4000
_MS_PRIVATE, _DETACH = 1 << 18, 2
_READ_ONLY, _NOSUID, _NODEV = 1, 2, 4
_AT_RECURSIVE, _AT_CWD = 0x8000, -100
_PIVOT_ROOT = {"x86_64": 155, "aarch64": 41}
_CAPSET = {"x86_64": 126, "aarch64": 91}
_MOUNT_SETATTR, _LANDLOCK_CREATE, _LANDLOCK_ADD, _LANDLOCK_RESTRICT = 442, 444, 445, 446
_LANDLOCK_ALL, _LANDLOCK_READ = (1 << 13) - 1, 0b1100
_SET_PDEATHSIG, _SET_NO_NEW_PRIVILEGES = 1, 38
_CAPABILITY_VERSION = 0x20080522
_AF_INET, _SOCK_STREAM = 2, 1
_INNER_ID = 1000
_RUN_FOLDER, _OLD_ROOT = "/jerp-run", "/jerp-old"
_STACK_BYTES = 8 << 20


def _check(result: int, what: str) -> int:
    if result == -1:
        error = ctypes.get_errno()
        raise OSError(error, f"{what}: {os.strerror(error)}")
    return result


def _syscall(number: int, *arguments: int | bytes | None) -> int:
    wide = [ctypes.c_long(a) if isinstance(a, int) else a for a in arguments]
    return LIBC.syscall(ctypes.c_long(number), *wide)


def _mount(source: str | None, target: str, kind: str | None, flags: int, data=None):
    texts = [None if t is None else t.encode() for t in (source, target, kind, data)]
    result = LIBC.mount(*texts[:3], ctypes.c_ulong(flags), texts[3])
    _check(result, f"mount {target}")


def _write(path: str, text: str) -> None:
    with open(path, "w", encoding="ascii") as file:
        file.write(text)


def _library_folders() -> list[str]:
    """What the interpreter may still need to import: its and the system's libraries."""
    standard = os.path.dirname(os.path.realpath(os.__file__))
    system = ("/lib", "/lib64", "/usr/lib", "/usr/lib64")
    folders = (os.path.dirname(standard), *system)
    return [folder for folder in dict.fromkeys(folders) if os.path.isdir(folder)]


def enter_namespaces() -> None:
    """Leaves the machine's network, mounts, IPC and, for what it forks, process ids."""
    user, group = os.getuid(), os.getgid()
    _check(LIBC.unshare(_NEW_NAMESPACES), "unshare")
    _write("/proc/self/setgroups", "deny")
    _write("/proc/self/uid_map", f"{_INNER_ID} {user} 1")
    _write("/proc/self/gid_map", f"{_INNER_ID} {group} 1")


def hide_files(root: str) -> None:
    """Leaves the library folders, read-only, and an empty one as all there is to see.

    Args:
      root: an empty folder to build the view on.
    """
    _mount(None, "/", None, _MS_REC | _MS_PRIVATE)
    _mount("tmpfs", root, "tmpfs", _MS_NOSUID | _MS_NODEV, "size=1m,mode=755")
    for folder in _library_folders():
        inside = root + folder
        os.makedirs(inside, exist_ok=True)
        _mount(folder, inside, None, _MS_BIND | _MS_REC)
    for folder in (_RUN_FOLDER, _OLD_ROOT):
        os.mkdir(root + folder)
    pivot_root = _PIVOT_ROOT[os.uname().machine]
    result = _syscall(pivot_root, root.encode(), (root + _OLD_ROOT).encode())
    _check(result, "pivot_root")
    os.chdir("/")
    _check(LIBC.umount2(_OLD_ROOT.encode(), _DETACH), "umount of the old root")
    os.rmdir(_OLD_ROOT)
    attributes = struct.pack("QQQQ", _READ_ONLY | _NOSUID | _NODEV, 0, 0, 0)
    result = _syscall(
        _MOUNT_SETATTR, _AT_CWD, b"/", _AT_RECURSIVE, attributes, len(attributes)
    )
    _check(result, "mount_setattr")


def mount_fresh_folder(mebibytes: int) -> None:
    """Enters an empty folder of that size that no other process sees."""
    _check(LIBC.unshare(_NEW_MOUNTS), "unshare of mounts")
    flags = _MS_NOSUID | _MS_NODEV | _MS_NOEXEC
    _mount("tmpfs", _RUN_FOLDER, "tmpfs", flags, f"size={mebibytes}m,nr_inodes=1k")
    os.chdir(_RUN_FOLDER)


def restrict_reading() -> None:
    """Where the kernel has Landlock, no file outside the library folders opens."""
    rules = struct.pack("Q", _LANDLOCK_ALL)
    ruleset = _syscall(_LANDLOCK_CREATE, rules, len(rules), 0)
    if ruleset == -1:
        return
    for folder in _library_folders():
        handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
        rule = struct.pack("=Qi", _LANDLOCK_READ, handle)
        _check(_syscall(_LANDLOCK_ADD, ruleset, 1, rule, 0), "landlock_add_rule")
        os.close(handle)
    _forbid_new_privileges()
    _check(_syscall(_LANDLOCK_RESTRICT, ruleset, 0), "landlock_restrict_self")
    os.close(ruleset)


def _forbid_new_privileges() -> None:
    _check(LIBC.prctl(_SET_NO_NEW_PRIVILEGES, 1, 0, 0, 0), "no_new_privs")


def drop_privileges() -> None:
    """Gives up every capability, and ever gaining one."""
    _forbid_new_privileges()
    header = struct.pack("Ii", _CAPABILITY_VERSION, 0)
    _check(_syscall(_CAPSET[os.uname().machine], header, bytes(24)), "capset")


def die_with_parent() -> None:
    """The kernel kills this process when the one that forked it ends."""
    _check(LIBC.prctl(_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0), "pdeathsig")


def limit_resources(
    *, cpu_seconds: int, memory_mib: int, files_mib: int, open_files: int
) -> None:
    """Sets soft and hard limits; a system that lacks one leaves it as it was.

    The hard limit of processor time, which kills, is a second above the soft one.
    """
    wanted = {
        "RLIMIT_CORE": 0,
        "RLIMIT_STACK": _STACK_BYTES,
        "RLIMIT_FSIZE": files_mib << 20,
        "RLIMIT_NOFILE": open_files,
        "RLIMIT_CPU": cpu_seconds,
        "RLIMIT_AS": memory_mib << 20,
    }
    for name, value in wanted.items():
        with contextlib.suppress(ValueError, OSError):
            kind = getattr(resource, name)
            hard = resource.getrlimit(kind)[1]
            if hard != resource.RLIM_INFINITY:
                value = min(value, hard)
            resource.setrlimit(kind, (value, value + (name == "RLIMIT_CPU")))


def open_socket() -> None:
    """Opens an internet socket, as untrusted code might."""
    _check(LIBC.socket(_AF_INET, _SOCK_STREAM, 0), "socket")

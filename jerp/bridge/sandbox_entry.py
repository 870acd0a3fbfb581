"""Takes a process to where untrusted code can do no harm, and tries whether it holds.

Child side: the sandbox's own process enters once, each fork of it protects itself.
"""

from __future__ import annotations

import os
import sys

import sandbox_protections as protections
import sandbox_syscalls

__all__ = ["enter", "held", "protect"]


def enter(settings: dict, *, pipes: tuple[int, ...]) -> dict[str, str]:
    """Puts this process where it can do no harm; says how, by protection.

    With namespaces it returns in a fork, the first process of the new process-id
    namespace: when that one ends, the kernel ends all others in it.

    Args:
      settings: see `jerp.bridge.sandbox_worker`.
      pipes: to the parent, which the fork alone keeps.
    """
    how = {"memory": f"{settings['memory_mib']} MiB of address space"}
    if settings["isolation"] == "limits":
        return how
    if sys.platform != "linux":
        raise OSError("this isolation needs Linux")
    filtered = "system-call filter"
    how |= {"network": filtered, "processes": filtered, "signals": filtered}
    if settings["isolation"] == "filter":
        os.chdir("/")
        protections.restrict_reading()
        how["writes"] = f"{filtered}: every file is read-only"
        return how | {"reads": "Landlock: library folders alone"}
    protections.enter_namespaces()
    if inner := os.fork():
        for handle in pipes:
            os.close(handle)
        os.waitpid(inner, 0)
        os._exit(0)
    protections.die_with_parent()
    protections.hide_files(settings["folder"])
    how["network"] = "network namespace without interfaces, system-call filter"
    how["signals"] = "process-id namespace, system-call filter"
    how["writes"] = f"mount namespace, {filtered}: every file is read-only"
    if _may_write(settings):
        how["writes"] = f"mount namespace: one folder of {settings['files_mib']} MiB"
    return how | {"reads": "mount namespace: library folders alone"}


def _may_write(settings: dict) -> bool:
    """Whether a run gets a folder of its own; SQL needs none."""
    return settings["isolation"] == "namespaces" and settings["runs"] == "python"


def protect(settings: dict) -> None:
    """What a fork takes upon itself before it runs untrusted code."""
    isolation = settings["isolation"]
    if _may_write(settings):
        protections.mount_fresh_folder(settings["files_mib"])
    if isolation == "limits":
        os.setpgid(0, 0)
        os.mkdir(f"{settings['folder']}/run")
        os.chdir(f"{settings['folder']}/run")
    else:
        protections.drop_privileges()
        protections.die_with_parent()
    names = ("cpu_seconds", "memory_mib", "files_mib", "open_files")
    protections.limit_resources(**{name: settings[name] for name in names})
    if isolation != "limits":
        writable = _may_write(settings)
        sandbox_syscalls.install_filter(protections.LIBC, writable=writable)


def _fork_once() -> None:
    """Forks, as untrusted code might."""
    if os.fork() == 0:
        os._exit(0)
    os.wait()


def held(settings: dict) -> list[str]:
    """Protections that hold, each tried by what it is to prevent."""
    outside = settings["outside"]
    attempts = {
        "memory": lambda: bytearray(settings["memory_mib"] << 20),
        "processes": _fork_once,
        "network": protections.open_socket,
        "signals": lambda: os.kill(settings["parent"], 0),
        "writes": lambda: os.open(outside, os.O_WRONLY),
        "reads": lambda: os.open(outside, os.O_RDONLY),
    }
    names = []
    for name, attempt in attempts.items():
        try:
            attempt()
        except (OSError, MemoryError):
            names.append(name)
    return names

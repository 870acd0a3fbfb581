"""What a hostile program is and begins with. Imports the standard library alone."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["PRELUDE", "Attack"]

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

def call(name, *arguments):
    import ctypes
    libc = ctypes.CDLL(None, use_errno=True)
    if getattr(libc, name)(*arguments) == -1:
        raise OSError(ctypes.get_errno(), name)

def not_refused(attempts):
    '''Those that got past the filter, whose word is EPERM, succeed or not.

    So an attempt can have arguments that the kernel refuses, and do no harm.
    '''
    names = []
    for name, attempt in attempts.items():
        try:
            attempt()
        except PermissionError:
            continue
        except OSError as error:
            names.append(f"{name}: {error}")
            continue
        names.append(name)
    return names
"""


@dataclass(frozen=True)
class Attack:
    """A program, and how its run must end; `passes` if `attack()` must return `[]`."""

    code: str
    status: str = "ok"
    passes: bool = True

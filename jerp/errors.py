"""Every error jerp raises on purpose.

One root, `JerpError`; each error also is the standard exception a caller would
otherwise expect, so `except ValueError` keeps working. A message names the argument,
what was expected, what came, and what to do. To add one: subclass `JerpError` and the
standard exception, and say in its docstring who raises it.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable

__all__ = [
    "ConfigError",
    "EnvironmentCheckError",
    "ExecutorError",
    "InfrastructureError",
    "InputError",
    "JerpError",
    "MissingExtraError",
    "SandboxError",
    "ShapeError",
    "SkillError",
    "StorageError",
    "StoreMissError",
    "TrajectoryError",
    "UnknownNameError",
    "WeightsError",
]


class JerpError(Exception):
    """Root of all errors raised on purpose."""


class ConfigError(JerpError, ValueError):
    """A setting is out of range or contradicts another one."""


class InputError(JerpError, ValueError):
    """Data handed to a function, or read from a file, is not what the name promises."""


class ShapeError(InputError, AssertionError):
    """An array has other axes, or another type, than its name promises."""


class SkillError(InputError):
    """A text is no skill, or has something that none may (see `jerp.skills`)."""


class TrajectoryError(JerpError, ValueError):
    """A trajectory breaks its contract (see `jerp.trajectory.check_trajectory`)."""

    def __init__(self, field: str, expected: str, actual: str):
        self.field, self.expected, self.actual = field, expected, actual
        super().__init__(f"trajectory.{field}: expected {expected}, got {actual}")

    def __reduce__(self):
        return type(self), (self.field, self.expected, self.actual)


class EnvironmentCheckError(JerpError, ValueError):
    """A world breaks its contract (see `jerp.envs.checks.check_environment`)."""

    def __init__(self, method: str, expected: str, actual: str):
        self.method, self.expected, self.actual = method, expected, actual
        super().__init__(f"{method}: expected {expected}, got {actual}")

    def __reduce__(self):
        return type(self), (self.method, self.expected, self.actual)


class TrainingError(JerpError, ArithmeticError):
    """Training cannot go on, such as after a loss that is no number."""


class StorageError(JerpError, OSError):
    """A file of ours is missing, corrupt, of another version, or cannot be written."""


class StoreMissError(JerpError, KeyError):
    """A replay asked the response store for a request that was never recorded."""

    def __str__(self) -> str:
        return str(self.args[0]) if self.args else ""


class ExecutorError(JerpError, RuntimeError):
    """An executor is misconfigured or failed as a whole; one request never raises."""


class SandboxError(JerpError, RuntimeError):
    """Untrusted code cannot be run with the protections it needs."""


class InfrastructureError(SandboxError):
    """What an episode rests on failed, such as a process apart; nobody is judged."""


class WeightsError(JerpError, OSError):
    """Model weights are missing, incomplete, or of a format that is not supported."""


class MissingExtraError(JerpError, ImportError):
    """An optional dependency is needed; the message names the extra to install.

    `then` is a command that has to follow, for a package that no extra can hold.
    """

    def __init__(self, package: str, extra: str, then: str = ""):
        self.package, self.extra, self.then = package, extra, then
        command = f"pip install 'jerp[{extra}]'" + (f" && {then}" if then else "")
        super().__init__(f"this needs {package!r}, which is optional: {command}")

    def __reduce__(self):
        return type(self), (self.package, self.extra, self.then)


class UnknownNameError(JerpError, ValueError):
    """A name is not one of the known ones; the message offers the nearest."""

    def __init__(self, kind: str, name: str, known: Iterable[str]):
        self.kind, self.name, self.known = kind, name, tuple(known)
        near = difflib.get_close_matches(name, self.known, n=1, cutoff=0.0)
        hint = f"; did you mean {near[0]!r}?" if near else ""
        super().__init__(
            f"unknown {kind} {name!r}{hint} (known: {', '.join(self.known)})"
        )

    def __reduce__(self):
        return type(self), (self.kind, self.name, self.known)

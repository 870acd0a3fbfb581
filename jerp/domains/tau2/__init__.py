"""tau2-bench (retail, airline, telecom), in a Python of its own; see `docs/tau2.md`."""

from __future__ import annotations

from jerp.domains.tau2.benchmark import Tau2, Tau2Domain
from jerp.domains.tau2.session import EndedBy, Tau2Session
from jerp.domains.tau2.user import (
    ExecutorUser,
    Line,
    Scene,
    ScriptedUser,
    User,
    UserMove,
)

__all__ = [
    "EndedBy",
    "ExecutorUser",
    "Line",
    "Scene",
    "ScriptedUser",
    "Tau2",
    "Tau2Domain",
    "Tau2Session",
    "User",
    "UserMove",
]

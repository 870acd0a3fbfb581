"""tau2-bench's conversations under the harness's seven actions."""

from __future__ import annotations

from pathlib import Path
from typing import Any, ClassVar

from jerp.domains.tau2.benchmark import Tau2, Tau2Domain
from jerp.domains.tau2.user import User
from jerp.domains.tool_use import ToolUseDomain

__all__ = ["AirlineDomain", "RetailDomain", "TelecomDomain", "tau2_domain"]


class _Tau2ToolUse(ToolUseDomain):
    """Its policy is in the executor's system prompt; the user ends a conversation."""

    max_steps: ClassVar[int] = 80

    def __init__(self, benchmark: Tau2, split: str = "base", **settings: Any):
        super().__init__(benchmark, split, policy=benchmark.policy, **settings)


class RetailDomain(_Tau2ToolUse):
    """Customers of a shop."""

    name: ClassVar[str] = "tau2-retail"


class AirlineDomain(_Tau2ToolUse):
    """Customers of an airline."""

    name: ClassVar[str] = "tau2-airline"


class TelecomDomain(_Tau2ToolUse):
    """Customers of a telephone company, who have tools of their own."""

    name: ClassVar[str] = "tau2-telecom"


_DOMAINS = {"retail": RetailDomain, "airline": AirlineDomain, "telecom": TelecomDomain}


def tau2_domain(
    kind: Tau2Domain, python: Path | None, user: User | None, **settings: Any
) -> ToolUseDomain:
    """A domain of tau2-bench that the seven actions play; close it after use.

    Args:
      kind: of the three.
      python: see `Tau2`.
      user: whom the agent talks to; None is a script, with which scores are not
        comparable with published ones.
      settings: of `ToolUseDomain`.

    Raises:
      UnknownNameError, ConfigError, InfrastructureError: see `Tau2`.
    """
    benchmark = Tau2(kind, python, user=user)
    return _DOMAINS[kind](benchmark, **settings)

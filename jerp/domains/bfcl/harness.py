"""BFCL's conversations under the harness's seven actions."""

from __future__ import annotations

from typing import Any, ClassVar

from jerp.domains.benchmark import Benchmark
from jerp.domains.tool_use import ToolUseDomain

__all__ = ["BfclDomain"]


class BfclDomain(ToolUseDomain):
    """Conversations of several turns, judged by the official checker in the end.

    Args:
      benchmark: a `Bfcl`; closed with the domain.
      split: part of it.
      settings: of `ToolUseDomain`.
    """

    name: ClassVar[str] = "bfcl"
    max_steps: ClassVar[int] = 60

    def __init__(self, benchmark: Benchmark, split: str = "base", **settings: Any):
        super().__init__(benchmark, split, **settings)

"""BFCL v4, several turns: a user asks, tools of one to two services answer.

The tasks, the services and the checker are those of the package `bfcl-eval`.
"""

from __future__ import annotations

from jerp.domains.bfcl.benchmark import Bfcl
from jerp.domains.bfcl.harness import BfclDomain

__all__ = ["Bfcl", "BfclDomain"]

"""DB-Bench of AgentBench: questions about, and changes of, small tables.

The files are those of an AgentBench checkout, in a folder that its user names.
"""

from __future__ import annotations

from jerp.domains.dbbench.benchmark import DbBench
from jerp.domains.dbbench.harness import DbBenchDomain

__all__ = ["DbBench", "DbBenchDomain"]

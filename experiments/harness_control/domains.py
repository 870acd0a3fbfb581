"""The controlled domains and the benchmarks by name; each is imported where made."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from typing import TYPE_CHECKING, Any

from jerp.errors import UnknownNameError

if TYPE_CHECKING:
    from pathlib import Path

    from jerp.bridge.executor import Executor
    from jerp.bridge.store import ResponseStore
    from jerp.domains.base import ControlledDomain
    from jerp.domains.tool_use import Calling
    from jerp.records import Task

__all__ = [
    "BENCHMARKS",
    "DOMAINS",
    "NUM_TASKS",
    "TAU2",
    "data_versions",
    "make_domain",
    "make_tasks",
]

DOMAINS = (
    "knowledge-work",
    "coding",
    "research",
    "multi-tool",
    "long-memory",
    "planning",
)
TAU2 = ("tau2-retail", "tau2-airline", "tau2-telecom")
BENCHMARKS = ("dbbench", "bfcl", "humaneval", *TAU2)
"""Played by the same seven actions; nothing of them is recorded."""
NUM_TASKS = 300
"""Tasks that a generator makes of one seed; sizes take a stratified part."""


def make_domain(
    name: str,
    store: ResponseStore,
    data: Path | None = None,
    *,
    calling: Calling = "text",
    user: Executor | None = None,
) -> ControlledDomain:
    """The domain called `name`; verdicts of run code are kept in `store`.

    Args:
      name: in `DOMAINS` or `BENCHMARKS`.
      store: of the run.
      data: of a benchmark, see `jerp.domains.catalogue.make_benchmark`.
      calling: how a benchmark's tools are called.
      user: plays the user where a benchmark has one; None is a script.

    Raises:
      UnknownNameError: there is none of that name.
      ConfigError: a benchmark's files are needed, and no folder is named.
      MissingExtraError: a benchmark's package is not installed.
      StorageError: files cannot be read.
    """
    match name:
        case "coding":
            from jerp.bridge.sandbox import Sandbox
            from jerp.domains.controlled.coding import CodingDomain

            return CodingDomain(Sandbox(store=store))
        case "research":
            from jerp.domains.controlled.research import ResearchDomain

            return ResearchDomain()
        case "long-memory":
            from jerp.domains.controlled.long_memory import LongMemoryDomain

            return LongMemoryDomain()
        case "multi-tool":
            from jerp.domains.controlled.multi_tool import MultiToolDomain

            return MultiToolDomain()
        case "knowledge-work":
            from jerp.domains.controlled.knowledge_work import KnowledgeWorkDomain

            return KnowledgeWorkDomain()
        case "planning":
            from jerp.domains.controlled.planning import PlanningDomain

            return PlanningDomain()
        case "dbbench":
            from jerp.domains.dbbench import DbBench, DbBenchDomain

            return DbBenchDomain(DbBench(data))
        case "bfcl":
            from jerp.domains.bfcl import Bfcl, BfclDomain

            return BfclDomain(Bfcl(data), calling=calling)
        case "humaneval":
            from jerp.domains.humaneval import HumanEval, HumanEvalDomain

            return HumanEvalDomain(HumanEval(data))
        case "tau2-retail" | "tau2-airline" | "tau2-telecom":
            from jerp.domains.tau2 import ExecutorUser
            from jerp.domains.tau2.harness import tau2_domain

            who = None if user is None else ExecutorUser(user)
            kind: Any = name.removeprefix("tau2-")
            return tau2_domain(kind, data, who, calling=calling)
        case _:
            raise UnknownNameError("domain", name, (*DOMAINS, *BENCHMARKS))


def make_tasks(domain: ControlledDomain, seed: int) -> tuple[Task, ...]:
    """A domain's tasks: `NUM_TASKS`, or all that a benchmark has."""
    from jerp.domains.benchmark_domain import BenchmarkDomain

    if isinstance(domain, BenchmarkDomain):
        return domain.generate(seed, domain.num_tasks)
    return domain.generate(seed, NUM_TASKS)


def data_versions(names: Sequence[str], data: Path | None) -> dict[str, str]:
    """Which version the benchmarks among these domains have, for a run's manifest.

    Raises:
      ConfigError, MissingExtraError, StorageError: see `make_domain`.
    """
    from jerp.domains.catalogue import make_benchmark

    found = {}
    for name in names:
        if name in BENCHMARKS:
            with closing(make_benchmark(name, data)) as benchmark:
                found[name] = benchmark.version
    return found

"""A benchmark of tool calls as the place where skills are followed.

An episode is a whole conversation, judged by the benchmark's own evaluator. The tools
are observed at first, then drafts are carried out one after another.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager
from typing import Any

from experiments.wer.language_model_config import ReaderSizes
from experiments.wer.language_model_skills import TOOL_WORDS
from experiments.wer.setting import ENVS, TextSetting
from experiments.wer.text_place import Secret, TextPlace
from jerp.bridge.executor import Executor
from jerp.domains.benchmark import Benchmark, Call
from jerp.domains.bfcl import Bfcl, BfclDomain
from jerp.domains.tau2 import ExecutorUser
from jerp.domains.tau2.harness import tau2_domain
from jerp.domains.tool_use.prompt import described
from jerp.errors import UnknownNameError
from jerp.records import Task
from jerp.runs.skills.draft_prompt import left_out
from jerp.typing import Outcome

__all__ = ["benchmark_place", "open_benchmark", "reference_outcome", "secrets_of"]

LEAST = 4
"""Characters of a value that counts as one of a single task."""


@contextmanager
def benchmark_place(
    setting: TextSetting, sizes: ReaderSizes, executor: Executor
) -> Iterator[TextPlace]:
    """Opens a benchmark.

    Args:
      setting: which.
      sizes: the context of a task takes four times the room of a run.
      executor: who follows skills.
    """
    benchmark, domain = open_benchmark(setting, executor)

    def context(task: Task) -> str:
        with closing(benchmark.start(task)) as session:
            tools = "\n".join(map(described, session.tools))
            told = f"A user says: {session.opening}\nTools:\n{tools}"
        return left_out(told, 4 * sizes.evidence_chars)

    with closing(domain):
        yield TextPlace(
            domain,
            context=context,
            secrets=lambda task: secrets_of(benchmark, task),
            reference=lambda task: reference_outcome(benchmark, task),
            words=TOOL_WORDS,
        )


def open_benchmark(
    setting: TextSetting, executor: Executor | None = None
) -> tuple[Benchmark, Any]:
    """A benchmark, and the domain that plays it, which closes both.

    Args:
      setting: which.
      executor: who speaks for a user, where a benchmark has one.
    """
    match setting.env:
        case "bfcl":
            bfcl = Bfcl(setting.data)
            return bfcl, BfclDomain(bfcl, calling=setting.calling)
        case "tau2" | "tau2-retail" | "tau2-airline" | "tau2-telecom":
            kind: Any = setting.env.partition("-")[2] or "retail"
            scripted = executor is None or setting.user == "scripted"
            user = None if scripted else ExecutorUser(executor)  # pyright: ignore
            domain = tau2_domain(kind, setting.data, user, calling=setting.calling)
            return domain.benchmark, domain
        case _:
            raise UnknownNameError("env", setting.env, ENVS)


def secrets_of(benchmark: Benchmark, task: Task) -> list[Secret]:
    """Values that the reference solution calls tools with, the shortest left out."""
    found: dict[str, Secret] = {}
    for move in benchmark.oracle(task):
        for value in _values(move.arguments if isinstance(move, Call) else {}):
            if len(str(value)) >= LEAST:
                found.setdefault(str(value), value)
    return list(found.values())


def _values(value: Any) -> Iterator[Secret]:
    if isinstance(value, dict):
        for part in value.values():
            yield from _values(part)
    elif isinstance(value, list | tuple):
        for part in value:
            yield from _values(part)
    elif isinstance(value, str | int | float) and not isinstance(value, bool):
        yield value


def reference_outcome(benchmark: Benchmark, task: Task) -> Outcome:
    """What the benchmark says of its own solution."""
    with closing(benchmark.start(task)) as session:
        for move in benchmark.oracle(task):
            if session.move(move).ended:
                break
        won = session.score().success
    return Outcome.SUCCESS if won else Outcome.FAILURE

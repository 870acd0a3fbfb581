"""What a benchmark is: tasks, sessions in which tools are called, an official score.

Whoever plays a task makes moves: calls of the tools that the session offers, or words
to whoever gave the task. A world in text has one tool, whose argument is the command.
The score is that of the benchmark's own evaluator; the reference solution is the
benchmark's own as well.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from jerp.records import Task, Verdict

__all__ = ["Benchmark", "BenchmarkSession", "Call", "Move", "Reply", "Say", "ToolSpec"]


@dataclass(frozen=True)
class ToolSpec:
    """A tool that a session offers.

    Attributes:
      name: by which it is called.
      description: for whoever calls it.
      parameters: a JSON schema, `{"type": "object", "properties": …}`.
    """

    name: str
    description: str
    parameters: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Call:
    """A call of a tool.

    Attributes:
      tool: its name.
      arguments: by name, in the types of JSON.
    """

    tool: str
    arguments: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Say:
    """Words to whoever gave the task; where there is nobody they end a turn."""

    text: str


Move = Call | Say


@dataclass(frozen=True)
class Reply:
    """What a move brought.

    Attributes:
      text: as the benchmark says it.
      error: nothing was done, because the move was malformed, or the tool refused.
      ended: the episode is over; it can be scored.
    """

    text: str
    error: bool = False
    ended: bool = False


class BenchmarkSession(Protocol):
    """One episode of one task, apart from all others."""

    @property
    def opening(self) -> str:
        """What is said first: the task."""
        ...

    @property
    def tools(self) -> Sequence[ToolSpec]:
        """That may be called now."""
        ...

    def move(self, move: Move) -> Reply:
        """Makes a move; whatever it holds, it is answered and nothing is raised."""
        ...

    def score(self) -> Verdict:
        """The official judgement of the episode as it stands."""
        ...

    def close(self) -> None:
        """Frees what the episode holds; a second time does nothing."""
        ...


class Benchmark(Protocol):
    """A benchmark's tasks, behind one interface."""

    @property
    def name(self) -> str:
        """As users say it, such as `bfcl`."""
        ...

    @property
    def version(self) -> str:
        """Of the package or the data."""
        ...

    @property
    def splits(self) -> tuple[str, ...]:
        """Names of its parts."""
        ...

    @property
    def broken(self) -> Mapping[str, str]:
        """Keys of tasks whose reference gets no full marks, with the reason."""
        ...

    def tasks(self, split: str) -> tuple[Task, ...]:
        """Those of a split; `payload["kind"]` says of which kind a task is."""
        ...

    def start(self, task: Task, *, seed: int = 0) -> BenchmarkSession:
        """A fresh episode; equal seeds and moves bring equal replies."""
        ...

    def oracle(self, task: Task) -> tuple[Move, ...]:
        """The reference solution."""
        ...

    def close(self) -> None:
        """Ends processes that its episodes share; a second time does nothing."""
        ...

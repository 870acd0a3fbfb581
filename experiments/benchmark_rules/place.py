"""A benchmark in text with its tasks, and how a frozen model plays them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

import numpy as np

from experiments.benchmark_rules.sizes import BenchmarkSizes
from jerp.bridge.executor import Sampling
from jerp.bridge.prompting import Prompting
from jerp.domains.benchmark import Benchmark
from jerp.domains.catalogue import make_benchmark
from jerp.records import Task

__all__ = ["Place", "in_turns", "open_place", "promptings"]


@dataclass(frozen=True)
class Place:
    """What is played.

    Attributes:
      benchmark: whose sessions take commands.
      train: tasks that rules are learned from.
      held_out: tasks that no rule was learned from.
      kinds: of the training tasks; each has a pool of its own.
    """

    benchmark: Benchmark
    train: tuple[Task, ...]
    held_out: tuple[Task, ...]
    kinds: tuple[str, ...]

    def keys(self, tasks: Sequence[Task]) -> np.ndarray:
        """`[N]` int32, indices of `kinds`; -1 for a kind that was not trained on."""
        found = [_kind(task) for task in tasks]
        known = {kind: i for i, kind in enumerate(self.kinds)}
        return np.asarray([known.get(kind, -1) for kind in found], np.int32)


@contextmanager
def open_place(
    env: str, data: Path | None, sizes: BenchmarkSizes, seed: int
) -> Iterator[Place]:
    """Opens a benchmark: tasks of its first split to learn, of its last for the test.

    Args:
      env: its name.
      data: of it, see `make_benchmark`.
      sizes: how many tasks; all where it has fewer.
      seed: of their order.

    Raises:
      ConfigError, MissingExtraError, StorageError: see `make_benchmark`.
    """
    with closing(make_benchmark(env, data)) as benchmark:
        first, last = benchmark.splits[0], benchmark.splits[-1]
        train = in_turns(benchmark.tasks(first), sizes.train_tasks, seed)
        held_out = in_turns(benchmark.tasks(last), sizes.held_out, seed)
        kinds = tuple(sorted({_kind(task) for task in train}))
        yield Place(benchmark, train, held_out, kinds)


def in_turns(tasks: Sequence[Task], number: int, seed: int) -> tuple[Task, ...]:
    """So many tasks, in turns of their kinds, in an order by the seed."""
    shuffled = list(tasks)
    Random(seed).shuffle(shuffled)
    turns: dict[str, int] = {}
    placed = []
    for task in shuffled:
        kind = _kind(task)
        turn = turns[kind] = turns.get(kind, 0) + 1
        placed.append((turn, kind, task))
    placed.sort(key=lambda place: place[:2])
    return tuple(task for *_, task in placed[:number])


def promptings(sizes: BenchmarkSizes) -> dict[str, Prompting]:
    """By name: without thoughts, and with them."""
    short = Sampling(0.7, max_tokens=min(32, sizes.answer_tokens), stop=("\n",))
    long = Sampling(0.7, max_tokens=sizes.answer_tokens)
    return {
        "plain": Prompting("plain", short, sizes.history),
        "react": Prompting("react", long, sizes.history),
    }


def _kind(task: Task) -> str:
    kind: Any = task.payload["kind"]
    return " ".join(str(kind).split())

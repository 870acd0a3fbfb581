"""What domains whose tasks are a benchmark's share: which tasks, and in what order."""

from __future__ import annotations

from random import Random

from jerp.domains.base import ControlledDomain
from jerp.domains.benchmark import Benchmark
from jerp.errors import ConfigError
from jerp.records import Task

__all__ = ["BenchmarkDomain"]


class BenchmarkDomain(ControlledDomain):
    """Base of the benchmarks that are played by the seven actions.

    Args:
      benchmark: where tasks come from; closed with the domain.
      split: part of it.
    """

    def __init__(self, benchmark: Benchmark, split: str):
        self._source, self._split = benchmark, split

    @property
    def benchmark(self) -> Benchmark:
        """Where tasks come from."""
        return self._source

    @property
    def num_tasks(self) -> int:
        """Tasks of the split whose reference is not broken."""
        return len(self._usable())

    def generate(self, seed: int, num_tasks: int) -> tuple[Task, ...]:
        """Tasks of the split whose reference is not broken, in an order by the seed.

        In turns of difficulty as far as there are such; fewer are a prefix of more.

        Raises:
          ConfigError: the split has not so many.
        """
        tasks = self._usable()
        if not 1 <= num_tasks <= len(tasks):
            raise ConfigError(
                f"num_tasks: expected 1 to {len(tasks)}, which {self._source.name}/"
                f"{self._split} has, got {num_tasks}"
            )
        Random(seed).shuffle(tasks)
        turns: dict[int, int] = {}
        placed = []
        for task in tasks:
            turn = turns[task.difficulty] = turns.get(task.difficulty, 0) + 1
            placed.append((turn, task.difficulty, task))
        placed.sort(key=lambda place: place[:2])
        return tuple(task for *_, task in placed[:num_tasks])

    def close(self) -> None:
        """Ends the benchmark, and what episodes have left open."""
        self._source.close()

    def _usable(self) -> list[Task]:
        broken = self._source.broken
        return [t for t in self._source.tasks(self._split) if t.key not in broken]

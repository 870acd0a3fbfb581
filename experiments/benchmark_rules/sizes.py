"""How much of everything where rules are learned in a benchmark in text."""

from __future__ import annotations

from dataclasses import dataclass, replace

from jerp.errors import ConfigError
from jerp.ops.checks import check_count

__all__ = ["ENVS", "BenchmarkSizes", "benchmark_sizes"]

ENVS = ("alfworld", "scienceworld", "textworld", "textworld-express", "webshop")
"""Benchmarks whose worlds take commands."""


@dataclass(frozen=True)
class BenchmarkSizes:
    """Numbers of a run.

    Attributes:
      iterations: of learning.
      every: iterations between two checkpoints.
      num_groups: tasks an iteration.
      group_size: episodes of a task that are compared.
      num_steps: step budget of an episode.
      train_tasks: that rules are learned from.
      held_out: tasks of the last split, for the comparison.
      samples: episodes of each.
      num_rules: R, in a prompt.
      capacity: rules of a pool.
      reflection_chars: of a prompt of reflection.
      reflection_tokens: of an answer.
      answer_tokens: of a command with its thought.
      history: so many of the latest steps are in a prompt.
    """

    iterations: int = 6
    every: int = 1
    num_groups: int = 4
    group_size: int = 4
    num_steps: int = 15
    train_tasks: int = 24
    held_out: int = 24
    samples: int = 2
    num_rules: int = 6
    capacity: int = 20
    reflection_chars: int = 12_000
    reflection_tokens: int = 256
    answer_tokens: int = 96
    history: int = 20

    def __post_init__(self):
        for name in ("iterations", "every", "held_out", "samples", "num_steps"):
            check_count(name, getattr(self, name))
        if self.train_tasks < self.num_groups:
            raise ConfigError(
                f"train_tasks: expected at least {self.num_groups}, the groups of an "
                f"iteration, got {self.train_tasks}"
            )


DEFAULT = BenchmarkSizes()

SMOKE = replace(
    DEFAULT,
    iterations=1,
    num_groups=2,
    group_size=2,
    num_steps=4,
    train_tasks=4,
    held_out=2,
    samples=1,
    num_rules=2,
    reflection_chars=4000,
    reflection_tokens=48,
    answer_tokens=32,
    history=4,
)

PAPER = replace(
    DEFAULT,
    iterations=200,
    every=5,
    num_groups=16,
    group_size=8,
    num_steps=50,
    train_tasks=1_000_000,
    held_out=1_000_000,
    samples=3,
    num_rules=10,
)
"""Groups of 8, 16 of them an iteration, at most 50 steps (15 in WebShop), 200
iterations (300 in WebShop), all tasks, as arXiv 2606.27136 has them, or as they were
inferred from the code that it is built on: `experiments.joint_rules` says which."""

STEPS = {"webshop": 15}
"""Of an episode; of all others 50."""


def benchmark_sizes(env: str, scale: str) -> BenchmarkSizes:
    """Numbers of a run.

    Args:
      env: the benchmark.
      scale: `smoke`, `default`, or `full`, the paper's.
    """
    if scale == "smoke":
        return SMOKE
    sizes = PAPER if scale == "full" else DEFAULT
    if env == "webshop" and scale == "full":
        sizes = replace(sizes, iterations=300)
    return replace(sizes, num_steps=STEPS.get(env, 50))

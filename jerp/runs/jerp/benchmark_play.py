"""A frozen model in a benchmark in text, as what plays in a run of rules only."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import jax
import numpy as np

from jerp.bridge.executor import Executor
from jerp.bridge.prompting import Prompting
from jerp.bridge.world_episodes import texts_of_rules
from jerp.domains.benchmark import Benchmark
from jerp.domains.text_episodes import play_texts
from jerp.records import Task
from jerp.trajectory import Trajectory
from jerp.typing import Key

__all__ = ["BenchmarkPlay", "BenchmarkWorld", "task_rows"]

_SAMPLES = 2**30
"""So many that two iterations hardly draw numbers which overlap."""


@dataclass(frozen=True)
class BenchmarkWorld:
    """The `env` of a task that is no world of ours: what runs ask of it.

    Attributes:
      name: of the benchmark.
      version: of its package or data.
      num_actions: 1, since commands have no numbers.
    """

    name: str
    version: str
    num_actions: int = 1


def task_rows(number: int) -> dict[str, np.ndarray]:
    """`env_params` of as many tasks: their numbers."""
    return {"task": np.arange(number, dtype=np.int32)}


@dataclass(frozen=True)
class BenchmarkPlay:
    """`play` and `tell` of `train_jerp` for a benchmark, see `PromptedPlay`.

    The task's policy is None and its parameters are `{}`: nothing is trained, so
    `learn_policy` has to be False and `max_rounds` 1.

    Attributes:
      benchmark: whose sessions take commands.
      tasks: that numbers of `task_rows` mean.
      executor: the model.
      prompting: how it is asked.
    """

    benchmark: Benchmark = field(compare=False)
    tasks: tuple[Task, ...]
    executor: Executor
    prompting: Prompting
    _told: list[str] = field(default_factory=list, compare=False, repr=False)

    def __call__(
        self,
        key: Key,
        env: Any,
        env_params: Any,
        policy: None,
        params: Any,
        *,
        num_steps: int,
        batch_size: int,
        shared_start: bool = False,
        working_set: Any = None,
        rule_texts: Sequence[str] | None = None,
    ) -> Trajectory:
        """Episodes `b` of task `b % N`; how often one came before is its rollout."""
        del env, policy, params, shared_start
        number = np.asarray(env_params["task"])
        row = np.arange(batch_size, dtype=np.int32)
        task = row % len(number)
        first = int(jax.random.randint(key, (), 0, _SAMPLES))
        sets: Any = None if working_set is None else np.asarray(working_set)[task]
        found = play_texts(
            self.benchmark,
            [self.tasks[int(number[i])] for i in task],
            self.executor,
            self.prompting,
            num_steps=num_steps,
            sample_index=first + row // len(number),
            task_id=task,
            rules=() if sets is None else texts_of_rules(sets, rule_texts),
            working_set=sets,
        )
        self._told[:] = found.transcripts
        return found.trajectory

    def tell(self, data: Trajectory, env_params: Any) -> Sequence[str]:
        """The transcripts of the episodes that were played last, which `data` are."""
        del data, env_params
        return tuple(self._told)

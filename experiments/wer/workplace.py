"""Tools as a place where skills are drafted for and executed, for `jerp.train_skills`.

A task's key is its domain and number. Skills are documents, which the executor reads as
lines; evidence is the words of a run.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from functools import cached_property, lru_cache
from typing import Any

import jax
import numpy as np

from experiments.wer.executor import execute
from experiments.wer.optimizer_words import OptimizerWords
from experiments.wer.places import Place
from experiments.wer.skill_lines import lines_of, working_sets
from jerp.runs.skills.work import ReadDraft, RefinementState
from jerp.skills.document import parse_skill
from jerp.storage.skill_runs import SkillRun, Trial
from jerp.typing import Key, Outcome

__all__ = ["ToolsWorkplace"]


class ToolsWorkplace:
    """The frozen executor at its tasks.

    Args:
      key: of all runs; not consumed: all that is compared shares it.
      words: of the optimizer.
      executor: parameters of the executor.
      tasks: leaves `[N, ...]`.
      misled: share of states whose evidence is wrong: a run that failed is shown as one
        that succeeded, and the other way round. Which they are follows from the skill
        and its runs.
    """

    def __init__(
        self,
        key: Key,
        words: OptimizerWords,
        executor: Any,
        tasks: Any,
        *,
        misled: float = 0.0,
    ):
        self._key, self._words, self._executor = key, words, executor
        self._misled = misled
        self._tasks = jax.device_get(tasks)
        self._domain = words.place.domain_of(self._tasks)

    @property
    def tasks(self) -> tuple[str, ...]:
        """Keys of the tasks, such as "travel 0"."""
        names = self._words.place.domains
        return tuple(f"{names[d]} {i}" for i, d in enumerate(self._domain))

    @cached_property
    def fingerprint(self) -> str:
        """Tells it from one with another executor, other tasks or other luck."""
        digest = hashlib.sha256(repr(self._words.place.domains).encode())
        what = (jax.random.key_data(self._key), self._executor, self._tasks)
        for leaf in jax.tree.leaves(what):
            digest.update(np.ascontiguousarray(leaf).tobytes())
        misled = f" misled {self._misled:g}" if self._misled else ""
        return f"tools {digest.hexdigest()[:16]}{misled}"

    def domain_of(self, task: str) -> str:
        """The domain of a task."""
        return self._words.place.domains[self._domain[self._number[task]]]

    def prompts(self, states: Sequence[RefinementState]) -> np.ndarray:
        """`[S, P]` int32, see `OptimizerWords.prompt`."""
        rows = []
        for state in states:
            domain = int(self._domain[self._number[state.task]])
            shown = [
                None if run is None else run.content
                for run in (state.success, state.failure)
            ]
            if self._is_misled(state):
                shown.reverse()
            rows.append(self._words.prompt(domain, self._lines(state.skill), *shown))
        return np.stack(rows)

    def read(self, task: str, tokens: np.ndarray, mask: np.ndarray) -> ReadDraft:
        """See `OptimizerWords.read`."""
        return self._words.read(self.domain_of(task), tokens[mask].tolist())

    def execute(self, trials: Sequence[Trial]) -> list[SkillRun]:
        """A run a trial; runs of one sample index go together."""
        found: dict[int, SkillRun] = {}
        for sample in dict.fromkeys(trial.sample for trial in trials):
            rows = [i for i, trial in enumerate(trials) if trial.sample == sample]
            numbers = np.array([self._number[trials[i].task] for i in rows])
            runs = execute(
                self._key,
                self._words.place,
                self._executor,
                jax.tree.map(lambda x, rows=numbers: x[rows], self._tasks),
                working_sets(self._lines(trials[i].skill) for i in rows),
                num_runs=1,
                first_run=sample,
                task_id=numbers,
            )
            for place, row in enumerate(rows):
                found[row] = SkillRun(
                    Outcome(int(runs.outcome[place, 0])),
                    list(self._words.evidence(runs, place, 0)),
                    executor_calls=int(runs.mask[place].sum()),
                )
        return [found[i] for i in range(len(trials))]

    def _is_misled(self, state: RefinementState) -> bool:
        what = repr((state.task, state.skill, state.evidence)).encode()
        drawn = int.from_bytes(hashlib.sha256(what).digest()[:8]) / 2**64
        return drawn < self._misled

    @cached_property
    def _number(self) -> dict[str, int]:
        return {task: i for i, task in enumerate(self.tasks)}

    def _lines(self, skill: str | None) -> tuple[int, ...]:
        return () if skill is None else _read_lines(self._words.place, skill)


@lru_cache(maxsize=8192)
def _read_lines(place: Place, skill: str) -> tuple[int, ...]:
    return lines_of(place, parse_skill(skill))

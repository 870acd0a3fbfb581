"""What the skills of a seed are worth: every inference writes some, exams try them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jax
import numpy as np

from experiments.wer.ablations import PAIRED, Shown
from experiments.wer.base import words_of_place
from experiments.wer.config import DOMAINS, Sizes
from experiments.wer.exams import Exams
from experiments.wer.methods import (
    ACCEPTANCE,
    NONE,
    RIGHT,
    WER,
    Inference,
    cell_name,
    inferences,
)
from experiments.wer.optimizer import optimizer_policy
from experiments.wer.workplace import ToolsWorkplace
from jerp.runs.skills.depth import Depth
from jerp.runs.skills.refine import refine_skills
from jerp.typing import Key

__all__ = ["Evaluation"]

REFINE, LUCK, VALIDATE = range(3)
"""Streams of random keys of an evaluation."""


@dataclass(frozen=True, eq=False)
class Evaluation:
    """The evaluation of what was written for a seed's executor.

    Attributes:
      key: of the seed's evaluation; not consumed.
      test_key: of the test, the same for all seeds; not consumed.
      executor: parameters.
      train_tasks: leaves `[N, ...]`, that skills are written for.
      sizes: numbers of tasks and runs.
    """

    key: Key
    test_key: Key
    executor: Any
    train_tasks: Any
    sizes: Sizes

    def of_seed(
        self, where: Path, params_of: Callable[[int], Any]
    ) -> tuple[dict[str, Any], dict[str, Any]]:
        """Writes, merges, chooses and tries the skills of all methods.

        Args:
          where: folder of the job; what is killed goes on.
          params_of: the optimizer's parameters after a phase.

        Returns:
          Arrays: by cell, success on the test `[N, n]`, domain after domain; `by_task`,
          success of each refinement task with its own skill. A document: by cell, its
          skills, what validation said of them, and what it cost.
        """
        exams = self._exams()
        cells, tried, by_task = {}, {}, {}
        for one in inferences(self.sizes):
            depths = self._refined(where / one.name, one, params_of(one.phase), PAIRED)
            # But for those of the table of depths all rounds alone are shown.
            first = 0 if one.rounds == self.sizes.depths else one.rounds
            for number in range(first, len(depths)):
                name = cell_name(one.name, number)
                cells[name], tried[name] = exams.cell(depths[: number + 1])
                success = depths[number].success
                by_task[name] = np.array([*success.values()], np.float32)
        right = [exams.exam.place.right_lines(name) for name in DOMAINS]
        tried[NONE] = exams.exam.of_all([()] * len(DOMAINS))
        tried[RIGHT] = exams.exam.of_all(right)
        arrays = {"test": tried, "by_task": by_task, **exams.about_tasks}
        return arrays, {"cells": cells}

    def of_ablation(
        self, where: Path, params: Any, shown: Shown
    ) -> tuple[dict[str, Any], dict[str, Any]]:
        """The same of an optimizer that was trained with other evidence.

        Args:
          where: folder of the job.
          params: of the optimizer.
          shown: what its revisions are written from.
        """
        rounds, exams = self.sizes.rounds, self._exams()
        one = Inference(WER, self.sizes.phases, rounds, 1, self.sizes.num_runs)
        name = cell_name(WER, rounds)
        cell, tried = exams.cell(self._refined(where / WER, one, params, shown))
        return {"test": {name: tried}, **exams.about_tasks}, {"cells": {name: cell}}

    def _exams(self) -> Exams:
        keys = [jax.random.fold_in(self.key, i) for i in (VALIDATE, LUCK)]
        return Exams.of_seed(keys, self.test_key, self.executor, self.sizes)

    def _refined(
        self, where: Path, one: Inference, params: Any, shown: Shown
    ) -> tuple[Depth, ...]:
        words, key = words_of_place(), jax.random.fold_in(self.key, REFINE)
        luck, write = jax.random.split(key)
        number = self.sizes.train_tasks if one.every_task else self.sizes.refinement
        tasks = jax.tree.map(lambda x: x[:number], self.train_tasks)
        place = ToolsWorkplace(luck, words, self.executor, tasks, misled=shown.misled)
        return refine_skills(
            *(where, write, place, optimizer_policy(words), params, place.tasks),
            rounds=one.rounds,
            num_drafts=one.num_drafts,
            num_runs=one.num_runs,
            evidence=shown.evidence,
            acceptance=ACCEPTANCE if one.tested else None,
            execute_at_once=4096,
        ).depths

"""What was answered in the jobs of seeds, as numbers with intervals."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import jax
import numpy as np

from experiments.jobs.job import Job
from experiments.jobs.job_files import read_job_tree
from experiments.wer.config import DOMAINS, WerConfig
from experiments.wer.jobs import WORLD
from jerp.estimators.intervals import bootstrap_interval, paired_difference
from jerp.runs.cells import plain_interval
from jerp.skills.document import parse_skill
from jerp.typing import ArrayLike, Key

__all__ = ["Answers", "Numbers", "seed_folders", "shares", "streams"]

COST = ("calls", "validation_calls", "draft_tokens", "seconds", "tests", "accepted")
"""Of a cell."""

Numbers = dict[str, Any]


def seed_folders(config: WerConfig, phase: str) -> list[Path]:
    """Of the jobs of all seeds."""
    return [
        Job(WORLD, phase, seed).folder(config.folder)
        for seed in range(config.num_seeds)
    ]


def streams(key: Key) -> Iterator[Key]:
    """Keys, one after another; `key` is not consumed."""
    number = 0
    while True:
        yield jax.random.fold_in(key, number)
        number += 1


def shares(
    keys: Iterator[Key],
    rate: np.ndarray,
    domain: np.ndarray,
    cluster: ArrayLike | None = None,
) -> Numbers:
    """Means with intervals: of `all`, domains as strata, and of each domain."""
    rate = rate.astype(np.float32)
    found = bootstrap_interval(next(keys), rate, cluster=cluster, strata=domain)
    numbers: Numbers = {"all": plain_interval(found)}
    for d, name in enumerate(DOMAINS):
        rows = domain == d
        own = None if cluster is None else np.asarray(cluster)[rows]
        one = bootstrap_interval(next(keys), rate[rows], cluster=own)
        numbers[name] = plain_interval(one)
    return numbers


class Answers(NamedTuple):
    """What the evaluations of some seeds hold.

    Attributes:
      arrays: of each seed.
      cells: of each seed, documents by cell.
    """

    arrays: list[dict[str, Any]]
    cells: list[dict[str, Any]]

    @classmethod
    def read(cls, folders: Iterable[Path]) -> Answers:
        """Of jobs that are done."""
        read = [read_job_tree(path, "evaluation.safetensors") for path in folders]
        return cls([one[0] for one in read], [one[1]["cells"] for one in read])

    def first(self, number: int) -> Answers:
        """Of the first seeds."""
        return Answers(self.arrays[:number], self.cells[:number])

    def rates(self, cell: str) -> np.ndarray:
        """`[seeds * N]` float32, of every task of the test."""
        found = [one["test"][cell].mean(axis=1) for one in self.arrays]
        return np.concatenate(found).astype(np.float32)

    def of_all(self, name: str) -> np.ndarray:
        """`[seeds * N]`, likewise of what is known of tasks."""
        return np.concatenate([one[name] for one in self.arrays])

    def success(self, keys: Iterator[Key], cell: str) -> Numbers:
        """Of a cell, see `shares`; the same task of several seeds is one cluster."""
        domain, task = self.of_all("domain"), self.of_all("task")
        return shares(keys, self.rates(cell), domain, task)

    def difference(
        self,
        keys: Iterator[Key],
        one: str,
        other: str,
        *,
        of: Answers | None = None,
    ) -> Numbers:
        """Of two cells on the same tasks, in all and by seed.

        Args:
          keys: of which one is taken.
          one: a cell.
          other: which is subtracted.
          of: what `other` is a cell of, with the same seeds; None is this.
        """
        rates = self.rates(one), (of or self).rates(other)
        found = paired_difference(
            *(next(keys), *rates),
            cluster=self.of_all("task"),
            strata=self.of_all("domain"),
        )
        each = (rates[0] - rates[1]).reshape(len(self.arrays), -1).mean(axis=1)
        return {**plain_interval(found), "by_seed": each.tolist()}

    def by_seed(self, cell: str) -> list[float]:
        """Success of each seed."""
        return self.rates(cell).reshape(len(self.arrays), -1).mean(axis=1).tolist()

    def own(self, keys: Iterator[Key], cell: str) -> Numbers:
        """Success of refinement tasks, each with the skill that was written for it."""
        rate = np.concatenate([one["by_task"][cell] for one in self.arrays])
        # Tasks of each domain in turn, as the place draws them.
        return shares(keys, rate, np.arange(len(rate)) % len(DOMAINS))

    def cost(self, cell: str) -> Numbers | None:
        """What it took to write a cell's skills, mean over seeds; None if nothing."""
        found = [one[cell] for one in self.cells if cell in one]
        if not found:
            return None
        return {name: float(np.mean([one[name] for one in found])) for name in COST}

    def best_seed(self, cell: str) -> int:
        """Whose skills of a cell did best in validation."""
        shares = [sum(one[cell]["validation"].values()) for one in self.cells]
        return int(np.argmax(shares))

    def steps(self, cell: str) -> list[list[int]] | None:
        """By seed and domain, how many steps the chosen skill has."""
        if cell not in self.cells[0]:
            return None
        return [
            [_num_steps(one[cell]["skills"][name]) for name in DOMAINS]
            for one in self.cells
        ]


def _num_steps(skill: str | None) -> int:
    return 0 if skill is None else len(parse_skill(skill).workflow)

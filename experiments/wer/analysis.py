"""Numbers of the experiment, from the files of its jobs alone."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import jax
import numpy as np

from experiments.jobs.job import Job
from experiments.jobs.job_files import read_job_tree
from experiments.wer.config import DOMAINS, WerConfig
from experiments.wer.jobs import CURVES, WORLD
from experiments.wer.methods import NONE, WER, cell_name, method_cells
from experiments.wer.training import phase_file
from jerp.estimators.intervals import bootstrap_interval, paired_difference
from jerp.runs.cells import plain_interval
from jerp.skills.document import parse_skill
from jerp.typing import ArrayLike, Key

__all__ = ["analyse", "seed_folders", "shares", "streams"]

COST = ("calls", "validation_calls", "draft_tokens", "seconds")
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


def analyse(key: Key, config: WerConfig) -> Numbers:
    """All numbers of `results.json` but sizes, versions and the base's.

    Args:
      key: consumed.
      config: of a run whose jobs are done.
    """
    keys, tests = streams(key), Tests.read(config)
    sizes = config.sizes
    methods = method_cells(sizes)
    along = {p: cell_name(f"phase-{p}", sizes.rounds) for p in range(1, sizes.phases)}
    phases = {0: methods["untrained"], **along, sizes.phases: methods[WER]}
    return {
        "domains": list(DOMAINS),
        "methods": {
            name: {
                **tests.success(keys, cell),
                "above_none": tests.difference(keys, cell, NONE),
                "wer_above": tests.difference(keys, methods[WER], cell),
                "by_seed": tests.by_seed(cell),
                "cost": tests.cost(cell),
                "steps": tests.steps(cell),
            }
            for name, cell in methods.items()
        },
        "phases": {str(p): tests.success(keys, cell) for p, cell in phases.items()},
        "depths": {
            name: [
                {
                    "merged": tests.success(keys, cell),
                    "own": tests.own(keys, cell),
                    "cost": tests.cost(cell),
                }
                for cell in (cell_name(name, d) for d in range(sizes.depths + 1))
            ]
            for name in ("untrained", WER)
        },
        "training": _training(config),
        "chosen": _chosen(keys, tests, methods),
        "tree_seed": tests.best_seed(methods[WER]),
    }


class Tests(NamedTuple):
    """What the evaluations of all seeds hold.

    Attributes:
      arrays: of each seed.
      cells: of each seed, documents by cell.
    """

    arrays: list[dict[str, Any]]
    cells: list[dict[str, Any]]

    @classmethod
    def read(cls, config: WerConfig) -> Tests:
        """Of a run whose jobs are done."""
        folders = seed_folders(config, "evaluation")
        read = [read_job_tree(path, "evaluation.safetensors") for path in folders]
        return cls([one[0] for one in read], [one[1]["cells"] for one in read])

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

    def difference(self, keys: Iterator[Key], one: str, other: str) -> Numbers:
        """Of two cells on the same tasks, in all and by seed."""
        rates = self.rates(one), self.rates(other)
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


def _training(config: WerConfig) -> Numbers:
    """How it went, mean over seeds, what it took, and what it warned of."""
    folders = seed_folders(config, "train")
    read = [read_job_tree(path, "evaluation.safetensors") for path in folders]
    phases = [
        [read_job_tree(path, phase_file(p))[1] for p in _phases(config)]
        for path in folders
    ]
    seconds = [sum(phase["seconds"] for phase in one) for one in phases]
    return {
        "curves": {
            name: np.mean([one[0][name] for one in read], axis=0).tolist()
            for name in CURVES
        },
        "cost": {
            "calls": float(np.mean([one[1]["calls"] for one in read])),
            "draft_tokens": float(np.mean([one[1]["draft_tokens"] for one in read])),
            "seconds": float(np.mean(seconds)),
        },
        "warnings": [
            f"seed {seed}: {text}"
            for seed, one in enumerate(phases)
            for text in one[-1]["warnings"]
        ],
    }


def _phases(config: WerConfig) -> range:
    return range(1, config.sizes.phases + 1)


def _chosen(keys: Iterator[Key], tests: Tests, methods: Mapping[str, str]) -> Numbers:
    """By domain the skill of all methods and seeds that did best in validation."""
    found = {}
    for d, domain in enumerate(DOMAINS):
        candidates = [
            (one[cell]["validation"][domain], -seed, name)
            for seed, one in enumerate(tests.cells)
            for name, cell in methods.items()
            if cell in one and one[cell]["skills"][domain] is not None
        ]
        if not candidates:
            continue
        share, seed, name = max(candidates, key=lambda c: c[:2])
        arrays, cell = tests.arrays[-seed], methods[name]
        rows = arrays["domain"] == d
        rates = (arrays["test"][c][rows].mean(axis=1) for c in (cell, NONE))
        effect = paired_difference(
            next(keys),
            *(rate.astype(np.float32) for rate in rates),
            cluster=arrays["task"][rows],
        )
        found[domain] = {
            "method": name,
            "seed": -seed,
            "validation": share,
            "effect": plain_interval(effect),
            "tasks": int(rows.sum()),
            "skill": tests.cells[-seed][cell]["skills"][domain],
        }
    return found

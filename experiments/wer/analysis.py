"""Numbers of the experiment, from the files of its jobs alone."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jax
import numpy as np

from experiments.jobs.job import Job
from experiments.jobs.job_files import read_job_tree
from experiments.wer.base import TOLD
from experiments.wer.config import DOMAINS, WerConfig
from experiments.wer.jobs import CURVES, WORLD
from experiments.wer.training import phase_file
from jerp.estimators.intervals import bootstrap_interval
from jerp.runs.cells import plain_interval
from jerp.typing import ArrayLike, Key

__all__ = ["analyse", "base_standing", "seed_folders", "shares", "streams"]

FEW, MANY = 0.2, 0.6
"""Outside of them too few drafts of the clone both succeed and fail, or so many that
two runs say little of a draft."""

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


def base_standing(key: Key, config: WerConfig) -> Numbers:
    """Where the clones stand: whether skills matter, and what drafts are worth.

    Args:
      key: consumed.
      config: of a run whose base jobs are done.

    Returns:
      `success` by what was told, in all and by domain; `parsed` and `mixed`, shares of
      the drafts that have a skill and that succeeded once in two runs; `warnings`.
    """
    folders, keys = seed_folders(config, "base"), streams(key)
    read = [read_job_tree(path, "evaluation.safetensors")[0] for path in folders]
    domain = np.concatenate([one["domain"] for one in read])
    answered = {
        told: np.concatenate([one[told] for one in read]).mean(axis=1) for told in TOLD
    }
    mixed = [one["success"].sum(axis=1) == 1 for one in read]
    by_seed = [float(one.mean()) for one in mixed]
    return {
        "success": {t: shares(keys, rate, domain) for t, rate in answered.items()},
        "parsed": [float(one["parsed"].mean()) for one in read],
        "mixed": by_seed,
        "mixed_by_domain": {
            name: float(
                np.concatenate(
                    [
                        m[one["draft_domain"] == d]
                        for m, one in zip(mixed, read, strict=True)
                    ]
                ).mean()
            )
            for d, name in enumerate(DOMAINS)
        },
        "warnings": [
            f"seed {seed}: {share:.0%} of the clone's seed drafts both succeeded and "
            f"failed in two runs, expected from {FEW:.0%} to {MANY:.0%}: few of them "
            "are kept to be revised"
            for seed, share in enumerate(by_seed)
            if not FEW <= share <= MANY
        ],
    }


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
    del key
    return {"training": _training(config)}


def _training(config: WerConfig) -> Numbers:
    """How it went, mean over seeds, and what it warned of."""
    folders = seed_folders(config, "train")
    read = [read_job_tree(path, "evaluation.safetensors")[0] for path in folders]
    last = [read_job_tree(path, phase_file(config.sizes.phases))[1] for path in folders]
    return {
        "curves": {
            name: np.mean([one[name] for one in read], axis=0).tolist()
            for name in CURVES
        },
        "warnings": [
            f"seed {seed}: {text}"
            for seed, one in enumerate(last)
            for text in one["warnings"]
        ],
    }

"""Numbers of the comparison, from the files of its jobs alone."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from experiments.gigpo_vs_grpo.config import GigpoConfig
from experiments.gigpo_vs_grpo.jobs import SPLITS
from experiments.gigpo_vs_grpo.worlds import WORLDS
from experiments.jobs.job import Job
from experiments.jobs.job_files import (
    read_job_json,
    read_job_metrics,
    read_job_tree,
)
from jerp.estimators.clusters import resampling_clusters
from jerp.estimators.intervals import bootstrap_interval, paired_difference
from jerp.estimators.quantiles import quantile
from jerp.estimators.resampling import replicates, weighted_mean
from jerp.estimators.significance import sign_test
from jerp.estimators.surface import pass_at_k_t
from jerp.runs.cells import plain_interval
from jerp.typing import Array, Key, Outcome

__all__ = ["analyse", "control_share", "curves"]

LAST = 20
"""Iterations at the end whose training success a table gives."""

RESAMPLES = 2000
"""Of the tasks, for the control's share."""

TAIL = 0.025
"""What an interval of 95% has on either side."""

PROCESS = ("peak_memory_bytes", "compilations", "compile_seconds")
"""What a job notes of its process."""

Rates = dict[str, dict[str, np.ndarray]]
"""By arm and split the share of successes `[seeds, tasks]`."""


def analyse(key: Key, config: GigpoConfig) -> dict[str, Any]:
    """All numbers of `results.json` but sizes and versions, by world.

    Args:
      key: consumed.
      config: of a run whose jobs are done.
    """
    worlds = config.sizes.worlds
    # The first world's numbers do not depend on whether there are others.
    keys = [key, *(jax.random.fold_in(key, i) for i in range(1, len(worlds)))]
    return {
        "worlds": {
            world: _analyse_world(stream, config, world)
            for stream, world in zip(keys, worlds, strict=True)
        }
    }


def curves(config: GigpoConfig, world: str) -> dict[str, np.ndarray]:
    """Training success `[seeds, iterations]` by arm."""
    return {
        arm: np.asarray(
            [[row["success"] for row in rows] for rows in _metrics(config, world, arm)]
        )
        for arm in config.sizes.arms
    }


def _analyse_world(key: Key, config: GigpoConfig, world: str) -> dict[str, Any]:
    played = {
        arm: [
            # By split `outcome` and `steps` `[N, M]`.
            read_job_tree(path, "evaluation.safetensors")[0]
            for path in _folders(config, world, arm)
        ]
        for arm in ("base", *config.sizes.arms)
    }
    rates: Rates = {
        arm: {
            split: np.stack(
                [(e[split]["outcome"] == Outcome.SUCCESS).mean(axis=1) for e in found]
            )
            for split in SPLITS
        }
        for arm, found in played.items()
    }
    streams = iter(jax.random.split(key, 4 * len(SPLITS) * len(rates)))
    return {
        "arms": {
            arm: {
                "splits": {s: _split(streams, rates, arm, s) for s in SPLITS},
                "surface": _surface(played[arm], WORLDS[world]),
                **_process(config, world, arm),
            }
            for arm in rates
        },
        "control_share": {s: _share_of(next(streams), rates, s) for s in SPLITS},
    }


def _folders(config: GigpoConfig, world: str, arm: str) -> list[Path]:
    """Of the jobs of all seeds."""
    return [
        Job(world, arm, seed).folder(config.folder) for seed in range(config.num_seeds)
    ]


def _metrics(config: GigpoConfig, world: str, arm: str) -> list[list[dict[str, Any]]]:
    """Rows by seed."""
    return [
        read_job_metrics(path, config.sizes.iterations)
        for path in _folders(config, world, arm)
    ]


def _split(streams: Any, rates: Rates, arm: str, split: str) -> dict[str, Any]:
    """Success on held-out tasks, and what it is above GRPO's on the same ones."""
    rate = rates[arm][split]
    numbers: dict[str, Any] = {
        "success": plain_interval(bootstrap_interval(next(streams), _rows(rate))),
        "by_seed": rate.mean(axis=1).tolist(),
    }
    if arm in ("base", "grpo"):
        return numbers
    against = rates["grpo"][split]
    difference = paired_difference(next(streams), _rows(rate), _rows(against))
    test = sign_test(np.float32((rate - against).mean(axis=1)))
    return numbers | {
        "difference": plain_interval(difference),
        "seeds_above": int(test.positive),
        "seeds_below": int(test.negative),
        "seeds_p": float(test.p_value),
    }


def _share_of(key: Key, rates: Rates, split: str) -> dict[str, float]:
    columns = [_rows(rates[arm][split]) for arm in ("grpo", "one-anchor", "gigpo")]
    found = control_share(key, np.stack(columns, axis=1))
    return {name: float(value) for name, value in found.items()}


@jax.jit
def control_share(key: Key, success: Array) -> dict[str, Array]:
    """How much of GiGPO's gain over GRPO its control has.

        (control - GRPO) / (GiGPO - GRPO)

    A resample of the tasks in which GiGPO gains nothing has no such share. Those are
    counted, and where they are more than a tail of the interval there is none: what is
    left over would say that the share is known better than it is.

    Args:
      key: consumed.
      success: `[N, 3]` float32, of GRPO, control and GiGPO on the same tasks.

    Returns:
      `point`, `low` and `high`, NaN where not defined, and `without_gain`, the share of
      resamples that have no share.
    """
    number = success.shape[0]
    clusters = resampling_clusters(jnp.arange(number), jnp.ones(number, bool))
    drawn = replicates(key, success, clusters, _share, num_resamples=RESAMPLES)
    without = jnp.mean(jnp.isnan(drawn).astype(jnp.float32))
    low, high = (
        jnp.where(without > TAIL, jnp.nan, quantile(drawn, jnp.float32(level)))
        for level in (TAIL, 1 - TAIL)
    )
    point = _share(success, jnp.ones(number))
    return {"point": point, "low": low, "high": high, "without_gain": without}


def _share(values: Array, weight: Array) -> Array:
    grpo, control, gigpo = weighted_mean(values, weight)
    gain = gigpo - grpo
    return jnp.where(gain > 0, (control - grpo) / jnp.where(gain > 0, gain, 1), jnp.nan)


def _surface(found: list[dict[str, Any]], horizons: tuple[int, ...]) -> dict[str, Any]:
    """Mean PASS@(k, T) over the seen tasks of all seeds."""
    outcome = np.concatenate([e["seen"]["outcome"] for e in found])
    steps = np.concatenate([e["seen"]["steps"] for e in found]).astype(np.float32)
    ks = tuple(k for k in (1, 2, 4, 8, 16) if k <= outcome.shape[1])
    surface = pass_at_k_t(steps, outcome, ks=ks, horizons=horizons, announced=False)
    return {
        "ks": list(ks),
        "horizons": list(horizons),
        "estimate": np.asarray(surface.estimate).mean(axis=0).tolist(),
    }


def _process(config: GigpoConfig, world: str, arm: str) -> dict[str, Any]:
    """What it took, and what its metrics say of the end of training."""
    folders = _folders(config, world, arm)
    notes = [read_job_json(path, "process.json", PROCESS) for path in folders]
    numbers: dict[str, Any] = {
        "peak_memory_bytes": max(note["peak_memory_bytes"] for note in notes),
        "compilations": sum(note["compilations"] for note in notes),
        "compile_seconds": sum(note["compile_seconds"] for note in notes),
    }
    if arm == "base":
        losses = [
            read_job_tree(path, "params.safetensors")[1]["loss"] for path in folders
        ]
        return numbers | {"cloning_loss": float(np.mean(losses))}
    by_seed = _metrics(config, world, arm)
    last = [row for rows in by_seed for row in rows[-LAST:]]
    return numbers | {
        "sampler_gap": max(row["sampler_gap"] for rows in by_seed for row in rows),
        "at_the_end": {
            name: float(np.mean([row[name] for row in last]))
            for name in ("success", "entropy", "dead_share", "anchor_size_mean")
            if last[0].get(name) is not None
        },
        "warnings": [
            f"seed {seed}: {sentence}"
            for seed, path in enumerate(folders)
            for sentence in _warnings(path)
        ],
    }


def _warnings(folder: Path) -> list[str]:
    return read_job_json(folder, "warnings.json", ["warnings"])["warnings"]


def _rows(rate: np.ndarray) -> np.ndarray:
    """A row a task of a seed: tasks are drawn anew for every seed."""
    return rate.reshape(-1).astype(np.float32)

"""Numbers of the experiment, from the files of its jobs alone: success."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jax
import numpy as np

from experiments.jobs.job import Job
from experiments.jobs.job_files import read_job_json, read_job_metrics, read_job_tree
from experiments.joint_rules.as_good import as_good_moves
from experiments.joint_rules.config import ARMS, JerpConfig
from experiments.joint_rules.final import SPLITS
from experiments.joint_rules.oracle import OracleMoves
from experiments.joint_rules.places import Place, place_named
from experiments.joint_rules.pools import Yardstick, rules_of_arm
from experiments.joint_rules.training import along_path
from jerp.estimators.intervals import bootstrap_interval, paired_difference
from jerp.runs.cells import plain_interval
from jerp.typing import Key

__all__ = ["analyse"]

PROCESS = ("peak_memory_bytes", "compilations", "compile_seconds")
"""What a job notes of its process."""

AS_GOOD = 1_000_000
"""Stream of random keys of a world; those below are dealt out one by one."""

TRIED_SHARE = 4
"""One in so many of the oracle's tasks is one in which every move is tried."""

Numbers = dict[str, Any]
Played = list[dict[str, Any]]
"""Of each seed, what `evaluation.safetensors` holds."""


def analyse(key: Key, config: JerpConfig) -> dict[str, Any]:
    """All numbers of `results.json` but sizes and versions, by world.

    Args:
      key: consumed.
      config: of a run whose jobs are done.
    """
    worlds = config.sizes.worlds
    return {
        "worlds": {
            world: _analyse_world(jax.random.fold_in(key, i), config, world)
            for i, world in enumerate(worlds)
        }
    }


def folders(config: JerpConfig, world: str, arm: str) -> list[Path]:
    """Of the jobs of all seeds."""
    return [
        Job(world, arm, seed).folder(config.folder) for seed in range(config.num_seeds)
    ]


def _analyse_world(key: Key, config: JerpConfig, world: str) -> Numbers:
    place, streams = place_named(world), _streams(key)
    base = _played(config, world, "base")
    arms = {arm: _played(config, world, arm) for arm in config.sizes.arms}
    number = config.sizes.oracle_tasks // TRIED_SHARE
    as_good = as_good_moves(jax.random.fold_in(key, AS_GOOD), place, number)
    yardstick = Yardstick(_oracle(base), as_good)
    return {
        "types": list(place.types),
        "held": [place.types[kind] for kind in place.held],
        "base": {
            split: {
                told: _success(streams, place, base, split, told)
                for told in ("without", "right", "wrong")
            }
            for split in SPLITS
        },
        "arms": {
            arm: _arm(streams, config, place, arm, arms, yardstick) for arm in arms
        },
    }


def _streams(key: Key) -> Iterator[Key]:
    number = 0
    while True:
        yield jax.random.fold_in(key, number)
        number += 1


def _played(config: JerpConfig, world: str, arm: str) -> Played:
    return [
        read_job_tree(path, "evaluation.safetensors")[0]
        for path in folders(config, world, arm)
    ]


def _arm(
    streams: Iterator[Key],
    config: JerpConfig,
    place: Place,
    arm: str,
    arms: dict[str, Played],
    yardstick: Yardstick,
) -> Numbers:
    found, varied = arms[arm], arms.get(ARMS[arm].varies)
    splits = (*SPLITS, "train") if config.by == "instance" else SPLITS
    numbers: Numbers = {"label": ARMS[arm].label, "splits": {}}
    for split in splits:
        part: Numbers = {
            told: _success(streams, place, found, split, told)
            for told in ("with", "without")
        }
        part["score"] = _interval(next(streams), found, split, "with", "score")
        part["rules_add"] = _difference(
            streams, (found, split, "with"), (found, split, "without")
        )
        mine = (found, split, "with")
        if "grpo" in arms and arm != "grpo":
            theirs = (arms["grpo"], split, "with")
            part["above_grpo"] = _difference(streams, mine, theirs)
        if varied is not None:
            theirs = (varied, split, "with")
            part["above_varied"] = _difference(streams, mine, theirs)
        part["leaked_rules"] = int(sum(int(e[split]["leaked"]) for e in found))
        numbers["splits"][split] = part
    paths = folders(config, place.name, arm)
    numbers |= _process(paths, config.sizes.iterations)
    numbers["along"] = _along(config, paths)
    if ARMS[arm].rules:
        untaught = folders(config, place.name, "grpo") if "grpo" in arms else []
        numbers["rules"] = rules_of_arm(
            *(streams, config, place, paths, found, yardstick, untaught)
        )
    return numbers


def _oracle(base: Played) -> OracleMoves:
    """What it did in tasks of all seeds."""
    made, possible = (
        np.sum([e["oracle"][name] for e in base], axis=0)
        for name in OracleMoves._fields
    )
    return OracleMoves(made, possible)


def _success(
    streams: Iterator[Key], place: Place, found: Played, split: str, told: str
) -> Numbers:
    """Of all types together, of each, and of each seed."""
    rates = [e[split][told]["success"].mean(axis=1) for e in found]
    return {
        "all": _interval(next(streams), found, split, told),
        "types": [
            _interval(next(streams), found, split, told, kind=kind)
            for kind in range(len(place.types))
        ],
        "by_seed": [float(rate.mean()) for rate in rates],
    }


def _interval(
    key: Key,
    found: Played,
    split: str,
    told: str,
    name: str = "success",
    *,
    kind: int | None = None,
) -> dict[str, float]:
    """Of means over a task's episodes; tasks are resampled."""
    rate = _rates(found, split, told, name)
    kinds = np.concatenate([e[split]["kind"] for e in found])
    mask = None if kind is None else kinds == kind
    cluster = _clusters(found, split)
    return plain_interval(bootstrap_interval(key, rate, cluster=cluster, mask=mask))


def _clusters(found: Played, split: str) -> np.ndarray:
    """`[seeds * N]` int32, tasks: each seed drew its own, some of them twice."""
    number = len(found[0][split]["task"])
    parts = [e[split]["task"] + i * number for i, e in enumerate(found)]
    return np.concatenate(parts).astype(np.int32)


def _rates(found: Played, split: str, told: str, name: str = "success") -> np.ndarray:
    """`[seeds * N]` float32, of every task."""
    parts = [e[split][told][name].mean(axis=1) for e in found]
    return np.concatenate(parts).astype(np.float32)


def _difference(
    streams: Iterator[Key],
    one: tuple[Played, str, str],
    other: tuple[Played, str, str],
) -> Numbers:
    """Of success on the same tasks, in all and by seed."""
    rates = (_rates(*one), _rates(*other))
    cluster = _clusters(one[0], one[1])
    found = paired_difference(next(streams), *rates, cluster=cluster)
    by_seed = np.reshape(rates[0] - rates[1], (len(one[0]), -1)).mean(axis=1)
    return {**plain_interval(found), "by_seed": by_seed.tolist()}


def _along(config: JerpConfig, paths: list[Path]) -> dict[str, list[float]]:
    """Success on seen tasks while training, mean over seeds; with rules, without."""
    sizes = config.sizes
    steps = [*range(0, sizes.iterations + 1, sizes.every)]
    rows: dict[str, list[float]] = {"iterations": [float(n) for n in steps]}
    for told in ("with", "without"):
        rows[told] = [
            float(
                np.mean(
                    [
                        read_job_tree(path, along_path(path, n).name)[0][told].mean()
                        for path in paths
                    ]
                )
            )
            for n in steps
        ]
    return rows


def _process(paths: list[Path], iterations: int) -> Numbers:
    noted = [read_job_json(path, "process.json", PROCESS) for path in paths]
    told = [read_job_json(path, "warnings.json", ("warnings",)) for path in paths]
    numbers: Numbers = {name: max(n[name] for n in noted) for name in PROCESS}
    numbers["warnings"] = [
        f"seed {i}: {text}" for i, one in enumerate(told) for text in one["warnings"]
    ]
    rows = [read_job_metrics(path, iterations, ("success",)) for path in paths]
    gaps = [row["sampler_gap"] for one in rows for row in one if "sampler_gap" in row]
    if gaps:
        numbers["sampler_gap"] = max(gaps)
    return numbers

"""What one process does: clone a base, train an arm from it, evaluate either.

    <run>/house/seed-0/base/   params.safetensors, evaluation.safetensors, evaluated.txt
    <run>/house/seed-0/jerp/   metrics.jsonl, rules.jsonl, pool.json, checkpoints/,
                               along-<n>.safetensors, evaluation.safetensors,
                               evaluated.txt

    python -m experiments.joint_rules.jobs RUN-FOLDER INDEX/COUNT CONFIG-AS-JSON PHASE

A job whose evaluation is there is done; one that was interrupted resumes.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp

from experiments.jobs.job import Job, part_of
from experiments.jobs.job_files import read_job_tree
from experiments.jobs.process_notes import ProcessNotes
from experiments.jobs.program import run_program
from experiments.joint_rules.base import cloned_base
from experiments.joint_rules.config import ARMS, SIZES, Arm, By, Sizes
from experiments.joint_rules.evaluation import (
    Held,
    draw_held,
    following_log_prob,
    played,
)
from experiments.joint_rules.final import evaluate_arm, evaluate_base, tried_on
from experiments.joint_rules.oracle import OracleMoves
from experiments.joint_rules.places import Place, place_named
from experiments.joint_rules.training import Stage, along_path, train_arm, wrong_rules
from jerp.runs.rule_pools import EVALUATED
from jerp.storage.documents import write_json
from jerp.storage.locks import lock_folder
from jerp.storage.rule_documents import PoolDocument
from jerp.storage.rule_files import read_pool
from jerp.storage.rule_leaks import task_digests, write_digests
from jerp.storage.tensors import save_tree
from jerp.typing import Key

__all__ = ["PHASES", "Work", "jobs_of", "run_jobs"]

PHASES = ("base", "arms")
TASKS, CLONE, TRAIN, EVALUATE, CURVE = range(5)
"""Streams of random keys of a seed."""


@dataclass(frozen=True)
class Work:
    """What all jobs of a run share.

    Attributes:
      sizes: numbers of tasks, episodes and iterations.
      seed: root of all random keys.
      num_seeds: of training.
      by: what has a pool of its own.
      rules: file of the rules to begin with, or None.
    """

    sizes: Sizes
    seed: int
    num_seeds: int
    by: By = "type"
    rules: str | None = None


def jobs_of(phase: str, work: Work) -> list[Job]:
    """A phase's jobs; seeds of an arm share a compilation and a process."""
    arms = ("base",) if phase == "base" else work.sizes.arms
    seeds = range(work.num_seeds)
    return [Job(*job) for job in product(work.sizes.worlds, arms, seeds)]


def run_jobs(folder: Path, phase: str, part: tuple[int, int], work: Work) -> None:
    """Does the part `(index, count)` of a phase's jobs, neighbours together."""
    jobs = jobs_of(phase, work)
    notes = ProcessNotes()
    for job in part_of(jobs, part):
        if job.is_done(folder):
            continue
        where = job.folder(folder)
        where.mkdir(parents=True, exist_ok=True)
        # Not even a process whose parent was killed may write here at the same time.
        with lock_folder(where):
            make = _base if job.arm == "base" else _arm
            found = make(where, _key(work, job), place_named(job.world), job, work)
            write_json(where / "process.json", notes.taken())
            # Last, because it marks the job as done.
            save_tree(where / "evaluation.safetensors", found, {})


def _key(work: Work, job: Job) -> Key:
    return jax.random.fold_in(jax.random.key(work.seed), job.seed)


def _base(where: Path, key: Key, place: Place, job: Job, work: Work) -> dict[str, Any]:
    """A policy that follows rules, kept for all arms of the seed."""
    sizes, stream = work.sizes, jax.random.fold_in(key, EVALUATE)
    splits = tried_on(stream, place, sizes)
    _note_evaluated(where, splits.values())
    params, notes = cloned_base(jax.random.fold_in(key, CLONE), place, sizes)
    save_tree(where / "params.safetensors", params, notes)
    return evaluate_base(stream, place, splits, params, sizes)


def _arm(where: Path, key: Key, place: Place, job: Job, work: Work) -> dict[str, Any]:
    base, _ = read_job_tree(where.parent / "base", "params.safetensors")
    base = jax.tree.map(jnp.asarray, base)
    tasks = place.tasks(jax.random.fold_in(key, TASKS), work.sizes.train_tasks, "train")
    stream = jax.random.fold_in(key, EVALUATE)
    trained = tasks if work.by == "instance" else None
    splits = tried_on(stream, place, work.sizes, trained=trained)
    looks = _looks(jax.random.fold_in(key, CURVE), place, work.sizes)
    _note_evaluated(where, (*splits.values(), *looks))
    stages = train_arm(
        where,
        jax.random.fold_in(key, TRAIN),
        place,
        tasks,
        base,
        arm=ARMS[job.arm],
        sizes=work.sizes,
        by=work.by,
        start=_start(where, place, ARMS[job.arm], work),
    )
    last = Stage(0, base, None)
    _along(where, place, looks, work.by, last)
    for last in stages:
        _along(where, place, looks, work.by, last)
    return evaluate_arm(stream, place, splits, last, work.sizes, work.by)


def _start(where: Path, place: Place, arm: Arm, work: Work) -> PoolDocument | None:
    """The rules that an arm begins with."""
    start = None if work.rules is None else read_pool(work.rules)
    if not arm.misled or work.by == "instance":
        return start
    found, _ = read_job_tree(where.parent / "base", "evaluation.safetensors")
    return wrong_rules(place, arm, OracleMoves(**found["oracle"]), start)


def _looks(key: Key, place: Place, sizes: Sizes) -> tuple[Held, Held]:
    """Tasks of the curves, and those of the oracle's steps."""
    numbers = (sizes.curve_tasks, sizes.probe_tasks)
    held, probes = (
        draw_held(jax.random.fold_in(key, i), place, number, "seen")
        for i, number in enumerate(numbers)
    )
    return held, probes


def _note_evaluated(where: Path, held: Iterable[Held]) -> None:
    """Names the tasks from which no rule should have been learned."""
    found = (digest for one in held for digest in task_digests(one.tasks))
    write_digests(where / EVALUATED, found)


def _along(
    where: Path, place: Place, looks: tuple[Held, Held], by: By, stage: Stage
) -> None:
    """Keeps what a policy can do by now, with its rules and without."""
    path = along_path(where, stage.iterations)
    if path.exists():
        return
    held, probes = looks
    play = partial(played, place, held, stage.params, stage.rules(place), samples=1)
    keys = held.kinds if by == "type" else None
    found = {
        "kind": held.kinds,
        "with": play(stage.working_set(keys))["success"],
        "without": play(None)["success"],
        "following": following_log_prob(place, probes, stage.params),
    }
    save_tree(path, found, {})


def main(words: list[str]) -> int:
    """See the module's first lines."""
    folder, part, config, phase = words
    settings = json.loads(config)
    work = Work(**{**settings, "sizes": SIZES[settings["sizes"]]})
    index, count = part.split("/")
    run_jobs(Path(folder), phase, (int(index), int(count)), work)
    return 0


if __name__ == "__main__":
    run_program(main)

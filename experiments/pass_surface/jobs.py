"""What one process does: clone a base, train an arm from it, ask either, read arms.

    <run>/lookup/seed-0/base/       params.safetensors, evaluation.safetensors,
                                    elsewhere.safetensors
    <run>/lookup/seed-0/grpo/       the same, and metrics.jsonl, checkpoints/,
                                    training.json
    <run>/lookup/seed-0/mechanism/  evaluation.safetensors

    python -m experiments.pass_surface.jobs RUN-FOLDER INDEX/COUNT CONFIG-AS-JSON PHASE

A job whose evaluation is there is done; one that was interrupted resumes.
"""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from experiments.jobs.job import Job, part_of
from experiments.jobs.job_files import read_job_tree
from experiments.jobs.process_notes import ProcessNotes
from experiments.pass_surface.arms import (
    train_by_cloning,
    train_by_reward,
    training_questions,
)
from experiments.pass_surface.base import cloned_base
from experiments.pass_surface.config import SIZES, Sizes
from experiments.pass_surface.evaluation import evaluate
from experiments.pass_surface.forgetting import play_elsewhere
from experiments.pass_surface.mechanism import measure_mechanism
from experiments.pass_surface.places import Place, place_named
from jerp.errors import JerpError
from jerp.storage.documents import write_json
from jerp.storage.locks import lock_folder
from jerp.storage.tensors import save_tree
from jerp.typing import Key

__all__ = [
    "ELSEWHERE",
    "PARAMS",
    "PHASES",
    "WORLD",
    "Work",
    "evaluation_key",
    "jobs_of",
    "run_jobs",
]

WORLD = "lookup"
MECHANISM = "mechanism"
PARAMS, ELSEWHERE = "params.safetensors", "elsewhere.safetensors"

PHASES = ("base", "arms", MECHANISM)
QUESTIONS, CLONE, TRAIN, EVALUATE = range(4)
"""Streams of random keys of a seed."""


@dataclass(frozen=True)
class Work:
    """What all jobs of a run share.

    Attributes:
      sizes: numbers of questions, episodes and iterations.
      arms: that are trained from the base.
      seed: root of all random keys.
      num_seeds: of training.
    """

    sizes: Sizes
    arms: tuple[str, ...]
    seed: int
    num_seeds: int


def jobs_of(phase: str, work: Work) -> list[Job]:
    """A phase's jobs; seeds of an arm share a compilation and a process."""
    arms = work.arms if phase == "arms" else (phase,)
    return [Job(WORLD, arm, seed) for arm in arms for seed in range(work.num_seeds)]


def evaluation_key(work: Work, seed: int) -> Key:
    """Of the evaluation of a training seed, the same for all its policies."""
    return jax.random.fold_in(_key(work, seed), EVALUATE)


def _key(work: Work, seed: int) -> Key:
    return jax.random.fold_in(jax.random.key(work.seed), seed)


def run_jobs(folder: Path, phase: str, part: tuple[int, int], work: Work) -> None:
    """Does the part `(index, count)` of a phase's jobs, neighbours together."""
    notes = ProcessNotes()
    for job in part_of(jobs_of(phase, work), part):
        if job.is_done(folder):
            continue
        where = job.folder(folder)
        where.mkdir(parents=True, exist_ok=True)
        # Not even a process whose parent was killed may write here at the same time.
        with lock_folder(where):
            make = _read if phase == MECHANISM else _asked
            found = make(where, place_named(WORLD), job, work)
            write_json(where / "process.json", notes.taken())
            # Last, because it marks the job as done.
            save_tree(where / "evaluation.safetensors", found, {})


def _asked(where: Path, place: Place, job: Job, work: Work) -> dict[str, Any]:
    """Makes a policy, and asks it all test questions."""
    if (where / PARAMS).exists():
        params = _params(where)
    else:
        make = _base if job.arm == "base" else _arm
        params, notes = make(where, place, job, work)
        save_tree(where / PARAMS, jax.device_get(params), notes)
    key = evaluation_key(work, job.seed)
    elsewhere = play_elsewhere(key, params, work.sizes)
    save_tree(where / ELSEWHERE, jax.device_get(elsewhere), {})
    return evaluate(key, place, params, work.sizes)


def _base(
    where: Path, place: Place, job: Job, work: Work
) -> tuple[Any, dict[str, Any]]:
    del where, place
    key = jax.random.fold_in(_key(work, job.seed), CLONE)
    return cloned_base(key, work.sizes)


def _arm(where: Path, place: Place, job: Job, work: Work) -> tuple[Any, dict[str, Any]]:
    key, sizes = _key(work, job.seed), work.sizes
    asked = training_questions(jax.random.fold_in(key, QUESTIONS), place, sizes)
    train = (
        train_by_cloning if job.arm == "sft" else partial(train_by_reward, arm=job.arm)
    )
    stream = jax.random.fold_in(key, TRAIN)
    return train(where, stream, place, asked, _params(where.parent / "base"), sizes), {}


def _params(where: Path) -> Any:
    return jax.tree.map(jnp.asarray, read_job_tree(where, PARAMS)[0])


def _read(where: Path, place: Place, job: Job, work: Work) -> dict[str, Any]:
    """What the policies of a seed read of each other's runs."""
    params = {arm: _params(where.parent / arm) for arm in ("base", *work.arms)}
    found = measure_mechanism(evaluation_key(work, job.seed), place, params, work.sizes)
    return jax.tree.map(np.asarray, found)


def main(words: list[str]) -> int:
    """See the module's first lines."""
    folder, part, config, phase = words
    settings = json.loads(config)
    work = Work(
        sizes=SIZES[settings["sizes"]],
        arms=tuple(settings["arms"]),
        seed=settings["seed"],
        num_seeds=settings["num_seeds"],
    )
    index, count = part.split("/")
    run_jobs(Path(folder), phase, (int(index), int(count)), work)
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except JerpError as error:
        print(f"error: {error}", file=sys.stderr)
        sys.exit(2)

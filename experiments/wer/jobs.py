"""What one process does: clone executor and optimizer, train the latter, evaluate it.

    <run>/tools/seed-0/base/        params.safetensors, evaluation.safetensors
    <run>/tools/seed-0/train/       metrics.jsonl, tree.jsonl, runs.jsonl, checkpoints/,
                                    phase-<p>.safetensors, evaluation.safetensors
    <run>/tools/seed-0/evaluation/  a folder an inference, evaluation.safetensors
    <run>/tools/seed-0/ablation-<name>/  what train/ and evaluation/ have

    python -m experiments.wer.jobs RUN-FOLDER INDEX/COUNT CONFIG-AS-JSON PHASE

A job whose evaluation is there is done; one that was interrupted resumes.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import jax
import numpy as np

from experiments.jobs.job import Job, part_of
from experiments.jobs.job_files import read_job_metrics, read_job_tree
from experiments.jobs.process_notes import ProcessNotes
from experiments.jobs.program import run_program
from experiments.wer.ablations import (
    ABLATION_SEEDS,
    PAIRED,
    SHOWN,
    Ablation,
    Shown,
    ablation_folder,
)
from experiments.wer.base import cloned_base, measured_base, words_of_place
from experiments.wer.config import SIZES, Sizes
from experiments.wer.evaluation import Evaluation
from experiments.wer.training import phase_file, phase_params, train_optimizer
from jerp.storage.documents import write_json
from jerp.storage.locks import lock_folder
from jerp.storage.skill_tree import read_tree
from jerp.storage.tensors import save_tree
from jerp.typing import Key

__all__ = ["CURVES", "PARAMS", "PHASES", "WORLD", "Work", "jobs_of", "run_jobs"]

WORLD = "tools"
PARAMS = "params.safetensors"
PHASES = ("base", "train", "evaluation", "ablations")

CURVES = ("success", "parsed", "mixed")
"""Metrics of every batch that are kept as a training's evaluation."""

COSTS = ("executor_calls", "draft_tokens")
"""Of a batch."""

CLONE, STAND, TASKS, TRAIN, EVALUATE = range(5)
"""Streams of random keys of a seed."""

TEST = 2_000_000
"""The stream of the test's tasks; those below belong to seeds."""

Made = tuple[dict[str, Any], dict[str, Any]]
"""Arrays and a document."""


@dataclass(frozen=True)
class Work:
    """What all jobs of a run share.

    Attributes:
      sizes: numbers of tasks, drafts and batches.
      ablations: other things that revisions are written from.
      seed: root of all random keys.
      num_seeds: of training.
    """

    sizes: Sizes
    ablations: tuple[Ablation, ...]
    seed: int
    num_seeds: int


def jobs_of(phase: str, work: Work) -> list[Job]:
    """A phase's jobs; there may be no ablations."""
    if phase == "ablations":
        return [
            Job(WORLD, ablation_folder(name), seed)
            for seed in range(min(work.num_seeds, ABLATION_SEEDS))
            for name in work.ablations
        ]
    return [Job(WORLD, phase, seed) for seed in range(work.num_seeds)]


def run_jobs(folder: Path, phase: str, part: tuple[int, int], work: Work) -> None:
    """Does the part `(index, count)` of a phase's jobs."""
    notes = ProcessNotes()
    for job in part_of(jobs_of(phase, work), part):
        if job.is_done(folder):
            continue
        where = job.folder(folder)
        where.mkdir(parents=True, exist_ok=True)
        # Not even a process whose parent was killed may write here at the same time.
        with lock_folder(where):
            found, document = _MAKE[phase](where, _key(work, job), work)
            write_json(where / "process.json", notes.taken())
            # Last, because it marks the job as done.
            save_tree(where / "evaluation.safetensors", found, document)


def _key(work: Work, job: Job) -> Key:
    return jax.random.fold_in(jax.random.key(work.seed), job.seed)


def _base(where: Path, key: Key, work: Work) -> Made:
    clone, stand = (jax.random.fold_in(key, i) for i in (CLONE, STAND))
    if (where / PARAMS).exists():
        params = read_job_tree(where, PARAMS)[0]
    else:
        params, notes = cloned_base(clone, work.sizes)
        save_tree(where / PARAMS, params, notes)
    return measured_base(stand, params, work.sizes)._asdict(), {}


def _train(where: Path, key: Key, work: Work) -> Made:
    return _trained(where, key, work, PAIRED)


def _trained(where: Path, key: Key, work: Work, shown: Shown) -> Made:
    base = read_job_tree(where.parent / "base", PARAMS)[0]
    train_optimizer(
        *(where, jax.random.fold_in(key, TRAIN), base, _train_tasks(key, work)),
        sizes=work.sizes,
        shown=shown,
    )
    rows = read_job_metrics(where, work.sizes.total, (*CURVES, *COSTS))
    # Of a batch of which nobody's draft was answered there is no mean.
    curves = {name: [_number(row[name]) for row in rows] for name in CURVES}
    seeds = [node for node in read_tree(where / "tree.jsonl").nodes if not node.phase]
    return (
        {name: np.asarray(curve, np.float32) for name, curve in curves.items()},
        {
            "calls": sum(row["executor_calls"] for row in rows)
            + sum(node.executor_calls for node in seeds),
            "draft_tokens": sum(row["draft_tokens"] for row in rows)
            + sum(node.tokens for node in seeds),
        },
    )


def _evaluation(where: Path, key: Key, work: Work) -> Made:
    params_of = partial(phase_params, where.parent)
    return _evaluation_of(where, key, work).of_seed(where, params_of)


def _ablation(where: Path, key: Key, work: Work) -> Made:
    name = where.name.removeprefix(ablation_folder(""))
    shown = SHOWN[name]  # pyright: ignore[reportArgumentType]
    curves, training = _trained(where, key, work, shown)
    params = read_job_tree(where, phase_file(work.sizes.phases))[0]
    found = _evaluation_of(where, key, work).of_ablation(where, params, shown)
    return {**curves, **found[0]}, {"training": training, **found[1]}


def _evaluation_of(where: Path, key: Key, work: Work) -> Evaluation:
    return Evaluation(
        jax.random.fold_in(key, EVALUATE),
        jax.random.fold_in(jax.random.key(work.seed), TEST),
        read_job_tree(where.parent / "base", PARAMS)[0]["executor"],
        _train_tasks(key, work),
        work.sizes,
    )


def _number(value: float | None) -> float:
    return np.nan if value is None else value


def _train_tasks(key: Key, work: Work) -> Any:
    """Tasks of a seed that its optimizer is trained with."""
    stream = jax.random.fold_in(key, TASKS)
    return words_of_place().place.tasks(stream, work.sizes.train_tasks, "train")


_MAKE = {
    "base": _base,
    "train": _train,
    "evaluation": _evaluation,
    "ablations": _ablation,
}


def main(words: list[str]) -> int:
    """See the module's first lines."""
    folder, part, config, phase = words
    settings = json.loads(config)
    settings["ablations"] = tuple(settings["ablations"])
    work = Work(**{**settings, "sizes": SIZES[settings["sizes"]]})
    index, count = part.split("/")
    run_jobs(Path(folder), phase, (int(index), int(count)), work)
    return 0


if __name__ == "__main__":
    run_program(main)

"""What one process does: clone a base, train an arm from it, evaluate either.

    <run>/house/seed-0/base/   params.safetensors, evaluation.safetensors
    <run>/house/seed-0/grpo/   metrics.jsonl, checkpoints/, evaluation.safetensors

    python -m experiments.gigpo_vs_grpo.jobs RUN-FOLDER INDEX/COUNT CONFIG-AS-JSON PHASE

A job whose evaluation is there is done; one that was interrupted resumes.
"""

from __future__ import annotations

import json
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp

from experiments.gigpo_vs_grpo.config import SIZES, Sizes, arm_algorithm
from experiments.gigpo_vs_grpo.worlds import Place, place_named
from experiments.jobs.job import Job, part_of
from experiments.jobs.job_files import read_job_tree
from experiments.jobs.process_notes import ProcessNotes
from experiments.jobs.program import run_program
from jerp.envs.base import World
from jerp.models.step_policy import StepPolicy
from jerp.models.value_head import init_value_head
from jerp.rollout.demonstrations import demonstrations
from jerp.rollout.scan import rollout
from jerp.runs.policy.groups import PolicyTask
from jerp.runs.policy.training import train_policy
from jerp.storage.documents import write_json
from jerp.storage.locks import lock_folder
from jerp.storage.tensors import save_tree
from jerp.training.cloning import clone_policy
from jerp.typing import Key

__all__ = ["PHASES", "SPLITS", "jobs_of", "run_jobs"]

PHASES = ("base", "arms")
SPLITS = ("seen", "unseen")
TASKS, DEMONSTRATE, INITIALISE, CLONE, TRAIN, EVALUATE = range(6)
"""Streams of random keys of a seed."""


def jobs_of(phase: str, sizes: Sizes, num_seeds: int) -> list[Job]:
    """A phase's jobs; seeds of an arm share a compilation and a process."""
    arms = ("base",) if phase == "base" else sizes.arms
    return [Job(*job) for job in product(sizes.worlds, arms, range(num_seeds))]


def run_jobs(
    folder: Path,
    phase: str,
    part: tuple[int, int],
    *,
    sizes: Sizes,
    seed: int,
    num_seeds: int,
) -> None:
    """Does the part `(index, count)` of a phase's jobs, neighbours together."""
    jobs = jobs_of(phase, sizes, num_seeds)
    notes = ProcessNotes()
    for job in part_of(jobs, part):
        if job.is_done(folder):
            continue
        job.folder(folder).mkdir(parents=True, exist_ok=True)
        # Not even a process whose parent was killed may write here at the same time.
        with lock_folder(job.folder(folder)):
            _run_job(folder, job, sizes, seed, notes)


def _run_job(
    folder: Path, job: Job, sizes: Sizes, seed: int, notes: ProcessNotes
) -> None:
    where = job.folder(folder)
    key = jax.random.fold_in(jax.random.key(seed), job.seed)
    make = _base if job.arm == "base" else partial(_arm, job.arm)
    params = make(where, key, sizes, job.world)
    found = _evaluate(key, sizes, job, params)
    write_json(where / "process.json", notes.taken())
    # Last, because it marks the job as done.
    save_tree(where / "evaluation.safetensors", found, {})


def _tasks(key: Key, place: Place, number: int, split: str) -> Any:
    """Tasks of a seed; the splits have streams of their own."""
    stream = jax.random.fold_in(key, TASKS)
    stream = jax.random.fold_in(stream, ("train", *SPLITS).index(split))
    return place.tasks(stream, number, split)


def _base(where: Path, key: Key, sizes: Sizes, world: str) -> Any:
    """A policy cloned from a noisy oracle, kept for all arms of the seed."""
    place = place_named(world)
    policy = place.policy()
    show = partial(
        demonstrations,
        env=place.env,
        num_steps=policy.config.context_length,
        batch_size=sizes.demonstrations,
        noise=sizes.noise,
    )
    tasks = _tasks(key, place, sizes.train_tasks, "train")
    data = jax.jit(show)(jax.random.fold_in(key, DEMONSTRATE), env_params=tasks)
    clone = partial(clone_policy, policy=policy, epochs=sizes.epochs, batch_size=32)
    params, loss = jax.jit(clone)(
        jax.random.fold_in(key, CLONE),
        params=policy.init(jax.random.fold_in(key, INITIALISE)),
        data=data,
    )
    save_tree(where / "params.safetensors", params, {"loss": float(loss[-1])})
    return params


def _arm(arm: str, where: Path, key: Key, sizes: Sizes, world: str) -> Any:
    place = place_named(world)
    policy = place.policy(value=_has_value(arm))
    base, _ = read_job_tree(where.parent / "base", "params.safetensors")
    base = jax.tree.map(jnp.asarray, base)
    if policy.value:
        base["value"] = init_value_head(policy.config.hidden_size)
    config, hyper = arm_algorithm(arm, sizes.num_groups)
    steps = policy.config.context_length
    state, warnings = train_policy(
        where,
        jax.random.fold_in(key, TRAIN),
        PolicyTask(place.env, policy, config, sizes.group_size, steps),
        hyper,
        _tasks(key, place, sizes.train_tasks, "train"),
        base,
        iterations=sizes.iterations,
    )
    write_json(where / "warnings.json", {"warnings": warnings})
    return state.params


def _has_value(arm: str) -> bool:
    return arm == "ppo"


def _evaluate(key: Key, sizes: Sizes, job: Job, params: Any) -> dict[str, Any]:
    """Plays held-out tasks, the same for all arms of a seed, with the same keys."""
    place, found = place_named(job.world), {}
    policy = place.policy(value=_has_value(job.arm))
    for number, split in enumerate(SPLITS):
        stream = jax.random.fold_in(jax.random.fold_in(key, EVALUATE), number)
        tasks = _tasks(key, place, sizes.held_out, split)
        data = _played(
            stream, place.env, tasks, policy, params, sizes.held_out * sizes.samples
        )
        steps = jnp.sum(data.mask, axis=1, dtype=jnp.int32)
        # Episode b plays task b % N.
        shape = (sizes.samples, sizes.held_out)
        found[split] = {
            "outcome": data.outcome.reshape(shape).T,
            "steps": steps.reshape(shape).T,
        }
    return jax.device_get(found)


@partial(jax.jit, static_argnames=("env", "policy", "batch_size"))
def _played(
    key: Key, env: World, tasks: Any, policy: StepPolicy, params: Any, batch_size: int
) -> Any:
    steps = policy.config.context_length
    return rollout(
        key, env, tasks, policy, params, num_steps=steps, batch_size=batch_size
    )


def main(words: list[str]) -> int:
    """See the module's first lines."""
    folder, part, config, phase = words
    settings = json.loads(config)
    index, count = part.split("/")
    run_jobs(
        Path(folder),
        phase,
        (int(index), int(count)),
        sizes=SIZES[settings["scale"]],
        seed=settings["seed"],
        num_seeds=settings["num_seeds"],
    )
    return 0


if __name__ == "__main__":
    run_program(main)

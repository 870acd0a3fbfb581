"""What one process does: clone a base, train an arm from it, evaluate either.

    <run>/seed-0/base/   params.safetensors, evaluation.safetensors
    <run>/seed-0/grpo/   metrics.jsonl, checkpoints/, evaluation.safetensors

    python -m experiments.gigpo_vs_grpo.jobs RUN-FOLDER INDEX/COUNT CONFIG-AS-JSON PHASE

A job whose evaluation is there is done; one that was interrupted resumes.
"""

from __future__ import annotations

import json
import sys
from functools import partial
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp

from experiments.gigpo_vs_grpo.config import ARMS, SIZES, Sizes, arm_algorithm
from experiments.gigpo_vs_grpo.process_notes import ProcessNotes
from jerp.envs.house import House, house_small
from jerp.envs.house_tasks import house_tasks
from jerp.errors import JerpError
from jerp.models.step_policy import StepPolicy, step_policy
from jerp.rollout.demonstrations import demonstrations
from jerp.rollout.scan import rollout
from jerp.runs.policy.groups import PolicyTask
from jerp.runs.policy.training import train_policy
from jerp.storage.documents import write_json
from jerp.storage.tensors import load_tree, save_tree
from jerp.training.cloning import clone_policy
from jerp.typing import Key

__all__ = ["PHASES", "SPLITS", "is_done", "jobs_of", "read_evaluation", "run_jobs"]

PHASES = ("base", "arms")
SPLITS = ("seen", "unseen")
TASKS, DEMONSTRATE, INITIALISE, CLONE, TRAIN, EVALUATE = range(6)
"""Streams of random keys of a seed."""


def jobs_of(phase: str, num_seeds: int) -> list[tuple[int, str]]:
    """Seeds and arms of a phase; seeds of an arm share a compilation and a process."""
    arms = ("base",) if phase == "base" else tuple(ARMS)
    return [(seed, arm) for arm in arms for seed in range(num_seeds)]


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
    jobs = jobs_of(phase, num_seeds)
    index, count = part
    first, last = (len(jobs) * i // count for i in (index, index + 1))
    notes = ProcessNotes()
    for number, arm in jobs[first:last]:
        if is_done(folder, number, arm):
            continue
        where = folder / f"seed-{number}" / arm
        where.mkdir(parents=True, exist_ok=True)
        key = jax.random.fold_in(jax.random.key(seed), number)
        params = (
            _base(where, key, sizes) if arm == "base" else _arm(where, key, sizes, arm)
        )
        found = _evaluate(key, sizes, params)
        write_json(where / "process.json", notes.taken())
        # Last, because it marks the job as done.
        save_tree(where / "evaluation.safetensors", found, {})


def is_done(folder: Path, seed: int, arm: str) -> bool:
    """Whether a job's results are all there."""
    return (folder / f"seed-{seed}" / arm / "evaluation.safetensors").exists()


def read_evaluation(folder: Path) -> dict[str, Any]:
    """By split `outcome` and `steps` `[N, M]`."""
    return load_tree(folder / "evaluation.safetensors")[0]


def _world() -> tuple[House, StepPolicy]:
    env = house_small()
    return env, step_policy(env.field_sizes, env.num_actions, num_steps=env.horizon)


def _tasks(key: Key, number: int, split: str) -> Any:
    """Tasks of a seed; the splits have streams of their own."""
    stream = jax.random.fold_in(key, TASKS)
    stream = jax.random.fold_in(stream, ("train", *SPLITS).index(split))
    return house_tasks(stream, number, size=house_small().size, split=split)  # pyright: ignore


def _base(where: Path, key: Key, sizes: Sizes) -> Any:
    """A policy cloned from a noisy oracle, kept for all arms of the seed."""
    env, policy = _world()
    show = partial(
        demonstrations,
        env=env,
        num_steps=env.horizon,
        batch_size=sizes.demonstrations,
        noise=sizes.noise,
    )
    tasks = _tasks(key, sizes.train_tasks, "train")
    data = jax.jit(show)(jax.random.fold_in(key, DEMONSTRATE), env_params=tasks)
    clone = partial(clone_policy, policy=policy, epochs=sizes.epochs, batch_size=32)
    params, loss = jax.jit(clone)(
        jax.random.fold_in(key, CLONE),
        params=policy.init(jax.random.fold_in(key, INITIALISE)),
        data=data,
    )
    save_tree(where / "params.safetensors", params, {"loss": float(loss[-1])})
    return params


def _arm(where: Path, key: Key, sizes: Sizes, arm: str) -> Any:
    env, policy = _world()
    base, _ = load_tree(where.parent / "base" / "params.safetensors")
    config, hyper = arm_algorithm(arm, sizes.num_groups)
    state, warnings = train_policy(
        where,
        jax.random.fold_in(key, TRAIN),
        PolicyTask(env, policy, config, sizes.group_size, env.horizon),
        hyper,
        _tasks(key, sizes.train_tasks, "train"),
        jax.tree.map(jnp.asarray, base),
        iterations=sizes.iterations,
    )
    write_json(where / "warnings.json", {"warnings": warnings})
    return state.params


def _evaluate(key: Key, sizes: Sizes, params: Any) -> dict[str, Any]:
    """Plays held-out tasks, the same for all arms of a seed, with the same keys."""
    found = {}
    for number, split in enumerate(SPLITS):
        stream = jax.random.fold_in(jax.random.fold_in(key, EVALUATE), number)
        tasks = _tasks(key, sizes.held_out, split)
        data = _played(stream, tasks, params, sizes.held_out * sizes.samples)
        steps = jnp.sum(data.mask, axis=1, dtype=jnp.int32)
        # Episode b plays task b % N.
        shape = (sizes.samples, sizes.held_out)
        found[split] = {
            "outcome": data.outcome.reshape(shape).T,
            "steps": steps.reshape(shape).T,
        }
    return jax.device_get(found)


@partial(jax.jit, static_argnums=3)
def _played(key: Key, tasks: Any, params: Any, batch_size: int) -> Any:
    env, policy = _world()
    return rollout(
        key, env, tasks, policy, params, num_steps=env.horizon, batch_size=batch_size
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
    try:
        sys.exit(main(sys.argv[1:]))
    except JerpError as error:
        print(f"error: {error}", file=sys.stderr)
        sys.exit(2)

"""The harness-control loop of one domain: buffer, controllers, evaluation, numbers.

    <out>/<domain>/buffer/       behaviour episodes on the training tasks
    <out>/<domain>/base-train/   the base sequence on the same tasks
    <out>/<domain>/<arm>/        evaluation episodes on the held-out tasks
    <out>/<domain>/controllers/  <arm>-<seed>.safetensors

Controllers learn from the buffer alone. Every arm asks the executor with the same
sample indices, so that arms differ by their decisions and not by sampling luck.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import jax
import numpy as np
from rich.progress import Progress

from jerp.bridge.session import Session
from jerp.domains.base import ControlledDomain
from jerp.errors import ConfigError
from jerp.harness import baselines
from jerp.models.controller import controller_policy
from jerp.records import Task
from jerp.runs.collection import (
    EpisodePlan,
    HarnessSizes,
    collect,
    evaluation_plan,
    split_tasks,
    training_plan,
)
from jerp.runs.comparison import (
    EpisodeTable,
    arm_summary,
    buffer_support,
    detectable_q,
    mix_summary,
    read_episodes,
)
from jerp.storage.controllers import save_controller
from jerp.storage.trajectories import TrajectoryFolder
from jerp.training.awr import AwrConfig, hyper_grid, make_awr
from jerp.trajectory import Trajectory
from jerp.typing import PolicyFn

__all__ = ["LEARNED", "Arm", "DomainRun", "run_domain"]

LEARNED: Mapping[Literal["trajectory", "step"], Mapping[str, float]] = {
    "trajectory": {"bc": math.inf, "awr": 0.2},
    "step": {"awr-step": 0.2},
}
"""Learned arms by kind of advantage, with their temperature (infinite: cloning)."""


@dataclass(frozen=True)
class Arm:
    """A policy and its parameters, one entry a training seed."""

    name: str
    policy_fn: PolicyFn
    params: Sequence[Any]


@dataclass(frozen=True)
class DomainRun:
    """What one domain's run needs besides its tasks.

    Attributes:
      domain: gives actions their meaning.
      session: steps its episodes with the executor.
      folder: `<out>/<domain>`.
      sizes: how much of everything.
      seeds: training seeds.
      seed: root of all keys.
      progress: where bars are shown.
    """

    domain: ControlledDomain
    session: Session
    folder: Path
    sizes: HarnessSizes
    seeds: int
    seed: int
    progress: Progress

    def episodes(
        self, role: str, policy_fn: PolicyFn, params: Sequence[Any], plan: EpisodePlan
    ) -> TrajectoryFolder:
        """Collects into `<out>/<domain>/<role>` with a progress bar."""
        bar = self.progress.add_task(
            f"{self.domain.name}: {role}", total=len(params) * len(plan.tasks)
        )
        return collect(
            self.folder / role,
            self.domain,
            self.session,
            policy_fn,
            params,
            plan,
            role=f"{self.domain.name}/{role}",
            seed=self.seed,
            chunk=self.sizes.chunk,
            meta={"arm": role},
            on_progress=lambda count: self.progress.advance(bar, count),
        )


def run_domain(run: DomainRun, tasks: Sequence[Task]) -> dict[str, Any]:
    """Collects, trains, evaluates; returns the domain's part of `results.json`."""
    sizes, domain = run.sizes, run.domain
    train_index, test_index = split_tasks(
        tasks, num_tasks=sizes.num_tasks, held_out=sizes.held_out
    )
    sequence = baselines.BASE_SEQUENCES[domain.name]
    base_fn = baselines.base_policy(sequence)
    buffer = run.episodes(
        "buffer",
        baselines.perturbed_policy(sequence, epsilon=sizes.epsilon),
        [()],
        training_plan(tasks, train_index, sizes),
    )
    base_train = run.episodes(
        "base-train", base_fn, [()], evaluation_plan(tasks, train_index, sizes)
    )
    data = buffer.load()
    trained, weight = train_controllers(run, data)
    buffer.annotate({"weight": weight.round(4).tolist()})
    plan = evaluation_plan(tasks, test_index, sizes)
    tables = {}
    for arm in (*scripted_arms(domain.name, run.seeds), *trained):
        folder = run.episodes(arm.name, arm.policy_fn, arm.params, plan)
        tables[arm.name] = read_episodes(folder, domain)
    base_table = read_episodes(base_train, domain)
    return {
        "base_sequence": baselines.describe(sequence),
        "tasks": {
            "train": len(train_index),
            "held_out": len(test_index),
            "samples": sizes.eval_samples or sizes.samples,
        },
        "mix": mix_summary([base_table, tables["base"]]),
        "buffer": buffer_support(read_episodes(buffer, domain), weight, base_table),
        "arms": _summaries(run.seed, tables),
        "detectable_q": detectable_q(tables["awr"], tables["base"]),
    }


def scripted_arms(name: str, seeds: int) -> tuple[Arm, ...]:
    """Arms that learn nothing; a random one runs once a seed, the others once."""
    sequence = baselines.BASE_SEQUENCES[name]
    return (
        Arm("random", baselines.uniform_policy(), [()] * seeds),
        Arm("base", baselines.base_policy(sequence), [()]),
        Arm("forced-check", baselines.forced_check_policy(sequence), [()]),
        Arm("conditional", baselines.conditional_policy(sequence), [()]),
    )


def train_controllers(run: DomainRun, data: Trajectory) -> tuple[list[Arm], np.ndarray]:
    """Trains every learned arm; arms of one kind and all seeds in one compiled call.

    Returns:
      The arms, and the `[E]` weights that trajectory-weighted AWR gave the episodes.

    Raises:
      ConfigError: the buffer has no valid episode.
    """
    if not np.asarray(data.mask).any():
        raise ConfigError(
            f"{run.domain.name}: the buffer holds no step to learn from; look at the "
            "invalid episodes of its buffer folder"
        )
    bar = run.progress.add_task(f"{run.domain.name}: training", total=len(LEARNED))
    keys = jax.random.split(jax.random.key(run.seed), run.seeds)
    arms, weight = [], np.ones(len(data.outcome), np.float32)
    for advantage, temperatures in LEARNED.items():
        train = make_awr(AwrConfig(advantage=advantage, epochs=run.sizes.epochs))
        over_seeds = jax.vmap(train, in_axes=(0, None, None))
        over_arms = jax.jit(jax.vmap(over_seeds, in_axes=(None, 0, None)))
        hyper = hyper_grid(temperature=list(temperatures.values()))
        state, metrics = jax.device_get(over_arms(keys, hyper, data))
        for row, (name, temperature) in enumerate(temperatures.items()):
            params = [
                jax.tree.map(lambda x, i=(row, seed): x[i], state.params)
                for seed in range(run.seeds)
            ]
            _save(run.folder / "controllers", name, params, advantage, temperature)
            arms.append(Arm(name, controller_policy, params))
            if name == "awr":
                weight = metrics["weight"][row, 0]
        run.progress.advance(bar)
    return arms, weight


def _save(
    folder: Path, name: str, params: list[Any], advantage: str, temperature: float
) -> None:
    for seed, seed_params in enumerate(params):
        save_controller(
            folder / f"{name}-{seed}.safetensors",
            seed_params,
            hyper={
                "advantage": advantage,
                "temperature": str(temperature),
                "seed": seed,
            },
        )


def _summaries(seed: int, tables: dict[str, EpisodeTable]) -> dict[str, Any]:
    key = jax.random.fold_in(jax.random.key(seed), 1)
    return {
        name: arm_summary(key, table, None if name == "base" else tables["base"])
        for name, table in tables.items()
    }

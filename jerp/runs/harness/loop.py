"""The harness-control loop of one domain: buffer, controllers, evaluation, numbers.

    <out>/<domain>/buffer/       behaviour episodes on the training tasks
    <out>/<domain>/base-train/   the base sequence on the same tasks
    <out>/<domain>/<arm>/        evaluation episodes on the held-out tasks
    <out>/<domain>/controllers/  <arm>-<seed>/, folders of `load_controller`

Controllers learn from the buffer alone. Every arm asks the executor with the same
sample indices, so that arms differ by their decisions and not by sampling luck.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import jax
import numpy as np
from rich.progress import Progress

import jerp
from jerp.bridge.session import Session
from jerp.domains.base import ControlledDomain
from jerp.errors import ConfigError
from jerp.harness import baselines
from jerp.harness.actions import ACTIONS, Action
from jerp.harness.state import FEATURE_VERSION, FEATURES
from jerp.models.acting import HarnessController
from jerp.models.controller import controller_policy
from jerp.records import Task
from jerp.runs.harness.collection import (
    EpisodePlan,
    HarnessSizes,
    collect,
    evaluation_plan,
    split_tasks,
    training_plan,
)
from jerp.runs.harness.comparison import (
    EpisodeTable,
    arm_summary,
    buffer_support,
    contrast,
    detectable_q,
    mix_summary,
    read_episodes,
)
from jerp.storage.controllers import load_controller, save_controller
from jerp.storage.trajectories import TrajectoryFolder
from jerp.training.awr import AwrConfig, hyper_grid, make_awr
from jerp.training.support import trajectory_support
from jerp.trajectory import Trajectory, valid_episodes
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
        total = len(params) * len(plan.tasks)
        bar = self.progress.add_task(f"{self.domain.name}: {role}", total=total)
        folder = collect(
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
        self.log(f"{role}: {total} episodes")
        return folder

    def log(self, text: str) -> None:
        """A line a phase where no bar is drawn, at once: in a redirected log."""
        console = self.progress.console
        if not console.is_terminal:
            console.print(f"{self.domain.name}: {text}")
            console.file.flush()


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
    trained = train_controllers(run, buffer)
    plan = evaluation_plan(tasks, test_index, sizes)
    tables = {}
    for arm in (*scripted_arms(sequence, base_fn, run.seeds), *trained):
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
        "buffer": buffer_support(
            read_episodes(buffer, domain),
            np.asarray(buffer.annotations()["weight"], np.float32),
            base_table,
        ),
        "arms": _summaries(run.seed, tables),
        "contrasts": {
            f"{name} - bc": contrast(
                jax.random.fold_in(jax.random.key(run.seed), number),
                tables[name],
                tables["bc"],
            )
            for number, name in enumerate(("awr", "awr-step"), start=100)
        },
        "detectable_q": detectable_q(tables["awr"], tables["base"]),
    }


def scripted_arms(
    sequence: Sequence[Action], base_fn: PolicyFn, seeds: int
) -> tuple[Arm, ...]:
    """Arms that learn nothing; a random one runs once a seed, the others once."""
    return (
        Arm("random", baselines.uniform_policy(), [()] * seeds),
        Arm("base", base_fn, [()]),
        Arm("forced-check", baselines.forced_check_policy(sequence), [()]),
        Arm("conditional", baselines.conditional_policy(sequence), [()]),
    )


def train_controllers(run: DomainRun, buffer: TrajectoryFolder) -> list[Arm]:
    """Trains every learned arm, or loads what an earlier session trained.

    The weights that trajectory-weighted AWR gave the episodes are annotated beside the
    buffer, last, so that their presence says that all controllers are saved.

    Raises:
      ConfigError: the buffer has no valid episode.
    """
    folder = run.folder / "controllers"
    if "weight" not in buffer.annotations():
        data = buffer.load()
        if not np.asarray(data.mask & valid_episodes(data)[:, None]).any():
            raise ConfigError(
                f"{run.domain.name}: the buffer holds no valid step to learn from; "
                f"`jerp trajectories show {buffer.folder}` says how its episodes ended"
            )
        bar = run.progress.add_task(f"{run.domain.name}: training", total=len(LEARNED))
        for kind, (advantage, temperatures) in enumerate(LEARNED.items()):
            key = jax.random.fold_in(jax.random.key(run.seed), kind)
            train = _trainer(AwrConfig(advantage=advantage, epochs=run.sizes.epochs))
            hyper = hyper_grid(temperature=list(temperatures.values()))
            keys = jax.random.split(key, run.seeds)
            state, metrics = jax.device_get(train(keys, hyper, data))
            for row, (name, temperature) in enumerate(temperatures.items()):
                params = jax.tree.map(lambda x, row=row: x[row], state.params)
                _save(
                    folder / name,
                    params,
                    data,
                    metrics["weight"][row],
                    {"advantage": advantage, "temperature": str(temperature)},
                )
                if name == "awr":
                    weight = metrics["weight"][row, 0]
            run.progress.advance(bar)
        buffer.annotate({"weight": weight.round(4).tolist()})
        run.log("controllers trained")
    return [
        Arm(
            name,
            controller_policy,
            [
                load_controller(
                    folder / f"{name}-{seed}",
                    feature_names=FEATURES,
                    feature_version=FEATURE_VERSION,
                    action_names=ACTIONS,
                ).params
                for seed in range(run.seeds)
            ],
        )
        for temperatures in LEARNED.values()
        for name in temperatures
    ]


@functools.cache
def _trainer(config: AwrConfig) -> Callable[..., Any]:
    """Training over hyper-parameters and seeds; domains of one size share it."""
    over_seeds = jax.vmap(make_awr(config), in_axes=(0, None, None))
    return jax.jit(jax.vmap(over_seeds, in_axes=(None, 0, None)))


def _save(
    arm: Path,
    params: Any,
    data: Trajectory,
    weight: np.ndarray,
    training: Mapping[str, Any],
) -> None:
    """Saves `<arm>-<seed>/`; `params` and `weight` have seeds in front."""
    for seed in range(len(weight)):
        controller = HarnessController(
            jax.tree.map(lambda x, seed=seed: x[seed], params),
            FEATURES,
            ACTIONS,
            FEATURE_VERSION,
            training={"jerp": jerp.__version__, "method": "awr", "seed": seed}
            | dict(training),
            support=trajectory_support(data, weight[seed]),
        )
        save_controller(arm.with_name(f"{arm.name}-{seed}"), controller)


def _summaries(seed: int, tables: dict[str, EpisodeTable]) -> dict[str, Any]:
    """Numbers of every arm; each interval has its own stream of resamples."""
    root = jax.random.fold_in(jax.random.key(seed), len(LEARNED))
    return {
        name: arm_summary(
            jax.random.fold_in(root, number),
            table,
            None if name == "base" else tables["base"],
        )
        for number, (name, table) in enumerate(tables.items())
    }

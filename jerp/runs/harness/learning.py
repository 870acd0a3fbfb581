"""Controllers learned from one domain's buffer, saved and loaded back.

Seeds and temperatures train side by side in one compiled program; domains whose buffers
have one size share it.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

import jax
import numpy as np

import jerp
from jerp.errors import ConfigError
from jerp.harness.actions import ACTIONS
from jerp.harness.state import FEATURE_VERSION, FEATURES
from jerp.models.acting import HarnessController
from jerp.models.controller import controller_policy
from jerp.runs.harness.arms import LEARNED, LEARNED_ARMS, Arm
from jerp.runs.harness.domain_run import DomainRun
from jerp.runs.train_harness.buffer import source_of
from jerp.storage.controllers import load_controller, save_controller
from jerp.storage.trajectories import TrajectoryFolder
from jerp.training.awr import AwrConfig, hyper_grid, make_awr
from jerp.training.support import trajectory_support
from jerp.trajectory import Trajectory, valid_episodes

__all__ = ["train_controllers"]


def train_controllers(run: DomainRun, buffer: TrajectoryFolder) -> tuple[Arm, ...]:
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
        # `jerp ope` then knows its own episodes again.
        learned_from = {"data": [asdict(source_of(buffer, data))]}
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
                    {"advantage": advantage, "temperature": str(temperature)}
                    | learned_from,
                )
                if name == "awr":
                    weight = metrics["weight"][row, 0]
            run.progress.advance(bar)
        buffer.annotate({"weight": weight.round(4).tolist()})
        run.log("controllers trained")
    return tuple(
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
        for name in LEARNED_ARMS
    )


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

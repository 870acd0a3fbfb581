"""Training a controller on logged episodes and keeping it, with all that made it.

The folder is written once, at the end: an interrupt leaves what was there before. The
same command on the same episodes finds its controller and trains nothing.
"""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import jax
import numpy as np

import jerp
from jerp.errors import ConfigError
from jerp.models.acting import HarnessController
from jerp.runs.train_harness.buffer import Buffer, read_buffer
from jerp.runs.train_harness.notes import notes
from jerp.runs.train_harness.settings import (
    TrainSettings,
    check_settings,
    command,
    recorded_settings,
)
from jerp.storage.controllers import load_controller, save_controller
from jerp.storage.documents import difference
from jerp.training.awr import AwrConfig, AwrHyper, make_awr
from jerp.training.support import trajectory_support
from jerp.trajectory import Trajectory, valid_episodes

__all__ = ["Trained", "train_harness"]

CURVES = ("policy_loss", "negative_log_likelihood", "entropy", "value_loss")
SHARES = ("weight_mean", "share_at_min", "share_at_max")


@dataclass(frozen=True)
class Trained:
    """A controller and where it is; `is_new` unless it had been trained before."""

    controller: HarnessController
    folder: Path
    is_new: bool


def train_harness(
    settings: TrainSettings, *, on_stage: Callable[[str], None] = lambda _: None
) -> Trained:
    """Trains on the episodes of `settings.trajectories`, saves to `settings.out`.

    Args:
      settings: checked first.
      on_stage: is told what is being done.

    Raises:
      ConfigError: settings or layouts contradict each other, `out` holds something
        else, or training diverged.
      InputError, TrajectoryError, StorageError: see `read_buffer`.
    """
    check_settings(settings)
    on_stage("reading episodes")
    buffer = read_buffer(settings.trajectories)
    asked = {
        "method": "awr",
        "settings": recorded_settings(settings),
        "data": [asdict(source) for source in buffer.sources],
    }
    found = _already_there(settings.out, asked)
    if found is not None:
        return Trained(found, settings.out, is_new=False)
    on_stage("training")
    controller = _fit(settings, buffer, asked)
    save_controller(settings.out, controller)
    return Trained(controller, settings.out, is_new=True)


def _already_there(folder: Path, asked: dict[str, Any]) -> HarnessController | None:
    """The controller that `folder` holds, if it is the one asked for; None if empty."""
    if not folder.exists() or (folder.is_dir() and not any(folder.iterdir())):
        return None
    if not (folder / "controller.json").exists():
        raise ConfigError(
            f"--out {folder}: expected a new folder, or this command's, got something "
            "else; name another folder"
        )
    controller = load_controller(folder)
    other = difference(_compared(controller.training), _compared(asked))
    if other:
        raise ConfigError(
            f"--out {folder} holds another controller: {other}. Controllers are not "
            "overwritten: name another folder, or remove this one"
        )
    return controller


def _compared(training: Mapping[str, Any]) -> dict[str, Any]:
    """What tells one controller from another, wherever its episodes lie."""
    return {
        "method": training.get("method"),
        "settings": training.get("settings"),
        "episodes": [source["fingerprint"] for source in training.get("data", ())],
    }


def _fit(
    settings: TrainSettings, buffer: Buffer, asked: dict[str, Any]
) -> HarnessController:
    """Trains, and measures what was learned from."""
    data = buffer.data
    mean, scale = _normalisation(data) if settings.normalize else (None, None)
    config, hyper = _awr(settings)
    with warnings.catch_warnings():
        # The notes say it in the table.
        warnings.filterwarnings("ignore", message="trajectory.log_prob is None")
        state, metrics = jax.device_get(
            _trainer(config)(
                jax.random.key(settings.seed), hyper, _seen(data, mean, scale)
            )
        )
    if not all(np.isfinite(x).all() for x in jax.tree.leaves(state.params)):
        raise ConfigError(
            "training diverged: the parameters are not finite; try a smaller "
            "--learning-rate, or --normalize for features of very different sizes"
        )
    support = trajectory_support(data, metrics["weight"], discount=settings.discount)
    ends = {name: float(metrics[name][-1]) for name in CURVES if name in metrics}
    return HarnessController(
        state.params,
        buffer.meta.feature_names,
        buffer.meta.action_names,
        buffer.meta.feature_version,
        mean=mean,
        scale=scale,
        training={
            "jerp": jerp.__version__,
            "command": command(settings),
            **asked,
            "seed": settings.seed,
            "results": ends | {name: float(metrics[name]) for name in SHARES},
            "notes": notes(settings, buffer, support),
        },
        support=support,
    )


def _awr(settings: TrainSettings) -> tuple[AwrConfig, AwrHyper]:
    config = AwrConfig(
        advantage=settings.advantage,
        epochs=settings.epochs,
        batch_size=settings.batch_size,
        hidden_size=settings.hidden_size,
        standardize=settings.standardize,
        leave_one_out=settings.leave_one_out,
        value_epochs=settings.value_epochs,
    )
    hyper = AwrHyper(
        temperature=settings.temperature,
        min_weight=settings.min_weight,
        max_weight=settings.max_weight,
        entropy_weight=settings.entropy_weight,
        learning_rate=settings.learning_rate,
        discount=settings.discount,
        lambda_=settings.lambda_,
        value_learning_rate=settings.value_learning_rate,
    )
    return config, hyper


@functools.cache
def _trainer(config: AwrConfig) -> Callable[..., Any]:
    """One compilation for all calls of a process that differ in numbers alone."""
    return jax.jit(make_awr(config))


def _normalisation(data: Trajectory) -> tuple[np.ndarray, np.ndarray]:
    """`[F]` mean and standard deviation over the valid steps.

    A feature that never varies is centred alone.
    """
    valid = np.asarray(valid_episodes(data))
    steps = np.asarray(data.observation, np.float64)[valid]
    steps = steps[np.asarray(data.mask)[valid]]
    scale = steps.std(axis=0)
    scale = np.where(scale > 0, scale, 1)
    return steps.mean(axis=0).astype(np.float32), scale.astype(np.float32)


def _seen(
    data: Trajectory, mean: np.ndarray | None, scale: np.ndarray | None
) -> Trajectory:
    """`data` as the network sees it; what training never looks at is left out."""
    data = data.replace(log_prob=None)
    if mean is None or scale is None:
        return data
    observation, final = data.observation, data.final_observation
    return data.replace(
        observation=((np.asarray(observation) - mean) / scale).astype(np.float32),
        final_observation=((np.asarray(final) - mean) / scale).astype(np.float32),
    )

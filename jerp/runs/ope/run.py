"""The whole of `jerp ope`: reads episodes and a controller, estimates, writes."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
import numpy as np

from jerp.errors import ConfigError, InputError
from jerp.estimators.ope_methods import METHODS, NON_NEGATIVE
from jerp.models.acting import HarnessController
from jerp.runs.ope.notes import notes
from jerp.runs.ope.predict import predict
from jerp.runs.ope.report import markdown
from jerp.runs.ope.settings import OpeSettings, check_settings
from jerp.runs.train_harness.buffer import read_buffer
from jerp.storage.atomic import write_bytes
from jerp.storage.controllers import load_controller
from jerp.storage.documents import write_json
from jerp.storage.folders import replaced_folder
from jerp.trajectory import Trajectory, valid_episodes

__all__ = ["evaluate_controller"]

FORMAT = "jerp ope"
OURS = {"results.json", "report.md"}


def evaluate_controller(
    settings: OpeSettings, *, on_stage: Callable[[str], None] = lambda _: None
) -> dict[str, Any]:
    """Estimates, and writes `results.json` and `report.md` if there is an `out`.

    Args:
      settings: checked first.
      on_stage: is told what is being done.

    Returns:
      What `results.json` holds: see `jerp.runs.ope.predict.predict`, and beside it
      `format`, `controller`, `data`, `notes`.

    Raises:
      ConfigError: a setting is wrong, the controller is of another layout, or `out`
        holds something else.
      InputError: the log has no behaviour probabilities.
      TrajectoryError, StorageError: see `jerp.runs.train_harness.buffer.read_buffer`
        and `jerp.load_controller`.
    """
    check_settings(settings)
    _check_out(settings.out)
    on_stage("reading")
    buffer = read_buffer(settings.trajectories)
    for source in buffer.sources:
        if not source.probabilities:
            raise InputError(
                f"{source.folder}: log_prob: expected the behaviour's probabilities of "
                "the actions it took, got none; a controller cannot be evaluated on "
                "episodes without them. Log them, as jerp.EpisodeLog does"
            )
    controller = load_controller(
        settings.controller,
        feature_names=buffer.meta.feature_names,
        feature_version=buffer.meta.feature_version,
        action_names=buffer.meta.action_names,
    )
    on_stage("estimating")
    is_bernstein = settings.lower_bound == "bernstein"
    (found,) = predict(
        jax.random.key(settings.seed),
        buffer.data,
        _log_probs(controller, buffer.data)[None],
        methods=NON_NEGATIVE if is_bernstein else METHODS,
        discount=settings.discount,
        min_effective=settings.min_effective,
        min_support=settings.min_support,
        level=settings.level,
        lower_bound=settings.lower_bound,
        num_resamples=settings.resamples,
    )
    results = {
        "format": FORMAT,
        "controller": str(settings.controller),
        "data": [
            {"folder": s.folder, "fingerprint": s.fingerprint} for s in buffer.sources
        ],
        "level": settings.level,
        "notes": notes(buffer, controller.training),
        **found,
    }
    if settings.out is not None:
        with replaced_folder(settings.out) as fresh:
            write_json(fresh / "results.json", results)
            write_bytes(fresh / "report.md", markdown(results).encode())
    return results


def _log_probs(controller: HarnessController, data: Trajectory) -> np.ndarray:
    """`[B, T, A]` float32, 0 in padding."""
    mask = np.asarray(data.mask) & np.asarray(valid_episodes(data))[:, None]
    legal = np.asarray(data.legal)
    found = np.zeros(legal.shape, np.float32)
    found[mask] = controller.log_probs(np.asarray(data.observation)[mask], legal[mask])
    return found


def _check_out(out: Path | None) -> None:
    """Refuses a folder that holds more than earlier results."""
    if out is None or not out.exists():
        return
    others = {out.name} if out.is_file() else {p.name for p in out.iterdir()} - OURS
    if others or Path.cwd().is_relative_to(out.resolve()):
        raise ConfigError(
            f"--out: {out} holds {min(others, default='the current folder')!r}, which "
            "jerp ope did not write; name another folder"
        )

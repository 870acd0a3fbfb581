"""A host's loop stops where a loss is no number, and keeps what made it so."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from jerp.errors import TrainingError
from jerp.runs.policy.iterations import is_sound
from jerp.storage.tensors import save_tree
from jerp.trajectory import Trajectory

__all__ = ["check_sound"]


def check_sound(
    folder: Path, number: int, metrics: Mapping[str, float], data: Trajectory
) -> None:
    """Stops where a loss or gradient is no number, and keeps the episodes of it.

    Args:
      folder: of the run; the episodes go to `nan-batch.safetensors` in it.
      number: of the iteration.
      metrics: its `loss` and `grad_norm` among them.
      data: its episodes.

    Raises:
      TrainingError: one of the two is not finite.
    """
    if is_sound(metrics):
        return
    path = folder / "nan-batch.safetensors"
    tree: dict[str, Any] = dict(vars(data))
    save_tree(path, tree, {"iteration": number})
    raise TrainingError(
        f"iteration {number}: the loss is {metrics['loss']}, the norm of its "
        f"gradient {metrics['grad_norm']}; its episodes are in {path}, the state "
        "before is in the last checkpoint; a smaller learning rate or "
        "max_grad_norm may help"
    )

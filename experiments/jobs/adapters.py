"""Adapters of a language model: cloned, kept by a part of a run, written for others."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from experiments.jobs.job_files import read_job_tree
from jerp.models.policy import SequencePolicy
from jerp.storage.adapters import save_adapters
from jerp.training.cloning import clone_policy
from jerp.trajectory import Trajectory
from jerp.typing import ArrayTree, Key

__all__ = ["ADAPTERS", "clone_adapters", "export_adapters"]
__all__ += ["longest_episode", "read_adapters"]

ADAPTERS = "adapters.safetensors"
"""In which a part keeps its own."""


def clone_adapters(
    key: Key,
    policy: SequencePolicy,
    decoder: ArrayTree,
    adapters: ArrayTree,
    data: Trajectory,
    **settings: Any,
) -> tuple[Any, list[float]]:
    """Adapters that do as was shown, and the loss by epoch.

    Args:
      key: consumed.
      policy: whose adapters.
      decoder: the model's own matrices, which stay as they are.
      adapters: to begin with.
      data: demonstrations.
      **settings: of `jerp.training.cloning.clone_policy`.
    """
    clone = partial(clone_policy, policy=policy, **settings)
    params, loss = jax.jit(clone)(
        key, params={"adapters": adapters}, data=data, frozen={"decoder": decoder}
    )
    return params["adapters"], np.asarray(loss).tolist()


def longest_episode(data: Trajectory) -> int:
    """Tokens read and written in the longest episode, up to a round number."""
    seen: Any = data.observation
    count = np.sum(seen["tokens"] != 0, axis=(1, 2))
    count = count + np.sum(np.asarray(data.token_mask), axis=(1, 2))
    return -64 * (-int(count.max()) // 64)


def read_adapters(where: Path) -> Any:
    """Those that a part keeps."""
    return jax.tree.map(jnp.asarray, read_job_tree(where, ADAPTERS)[0])


def export_adapters(where: Path, policy: Any, base_model: str, adapters: Any) -> None:
    """Writes `adapter/`, as PEFT reads it."""
    assert policy.lora is not None  # who exports has adapters
    save_adapters(where / "adapter", adapters, policy.lora, base_model=base_model)

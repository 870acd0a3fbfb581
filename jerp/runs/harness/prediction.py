"""What the buffer alone says of learned controllers, before any is evaluated.

The controllers were trained on the same episodes, which flatters them: how much is seen
when prediction and outcome are compared.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jerp.estimators.overlap import explain_refusal
from jerp.estimators.policy_value import METHODS, evaluate_policies
from jerp.models.controller import log_probs
from jerp.runs.harness.arms import Arm
from jerp.trajectory import Trajectory, valid_episodes
from jerp.typing import Key

__all__ = ["predict_arms"]


def predict_arms(
    key: Key, buffer: Trajectory, arms: Sequence[Arm]
) -> dict[str, list[dict[str, Any]]]:
    """Off-policy evaluation of every controller on the buffer.

    Args:
      key: consumed.
      buffer: behaviour episodes, the ones the controllers learned from.
      arms: learned ones, their parameters one entry a training seed.

    Returns:
      By arm one prediction a training seed: `effective_sample_size`, `refusal` in words
      (empty for none) and `methods`, by method `point`, `low`, `high` and `lower_bound`
      of the value, NaN where refused.
    """
    # Those trained with values have layers besides, which no probability needs.
    policies = [
        {layer: params[layer] for layer in ("hidden", "logits")}
        for arm in arms
        for params in arm.params
    ]
    stacked = jax.tree.map(lambda *leaves: jnp.stack(leaves), *policies)
    tasks, task_id = np.unique(np.asarray(buffer.task_id), return_inverse=True)
    features = jnp.asarray(buffer.observation)
    found = evaluate_policies(
        key,
        jnp.concatenate([features, jnp.ones((*features.shape[:2], 1))], axis=-1),
        buffer.action,
        buffer.reward,
        buffer.log_prob,
        _log_probs(stacked, features, jnp.asarray(buffer.legal)),
        buffer.mask & valid_episodes(buffer)[:, None],
        task_id.astype(np.int32),
        num_tasks=len(tasks),
    )
    found = jax.device_get(found)
    rows = iter(range(len(policies)))
    return {arm.name: [_row(found, next(rows)) for _ in arm.params] for arm in arms}


_log_probs = jax.jit(jax.vmap(log_probs, in_axes=(0, None, None)))


def _row(found: Any, row: int) -> dict[str, Any]:
    """The numbers of one controller."""
    overlap = jax.tree.map(lambda leaf: leaf[row], found.overlap)
    methods = {
        method: {
            name: float(getattr(found.estimates[method], name)[row])
            for name in ("point", "low", "high", "lower_bound")
        }
        for method in METHODS
    }
    reason = int(found.estimates[METHODS[0]].reason[row])
    return {
        "effective_sample_size": float(overlap.effective_sample_size),
        "refusal": explain_refusal(reason, overlap),
        "methods": methods,
    }

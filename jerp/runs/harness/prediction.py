"""What the buffer alone says of learned controllers, before any is evaluated.

The controllers were trained on the same episodes, which flatters them: how much is seen
when prediction and outcome are compared.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp

from jerp.models.controller import log_probs
from jerp.runs.harness.arms import Arm
from jerp.runs.ope.predict import predict
from jerp.trajectory import Trajectory
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
      By arm one prediction a training seed, as `jerp.runs.ope.predict.predict` makes
      them: what `jerp ope` says of the controller, with other random numbers.

    Raises:
      InputError: see `jerp.runs.ope.predict.predict`.
    """
    # Those trained with values have layers besides, which no probability needs.
    policies = [
        {layer: params[layer] for layer in ("hidden", "logits")}
        for arm in arms
        for params in arm.params
    ]
    stacked = jax.tree.map(lambda *leaves: jnp.stack(leaves), *policies)
    features, legal = jnp.asarray(buffer.observation), jnp.asarray(buffer.legal)
    rows = iter(predict(key, buffer, _log_probs(stacked, features, legal)))
    return {arm.name: [next(rows) for _ in arm.params] for arm in arms}


_log_probs = jax.jit(jax.vmap(log_probs, in_axes=(0, None, None)))

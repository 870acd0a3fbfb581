"""What a harness controller sees: 18 features, one layout for all domains.

Ten numbers in [-1, 1] and the one-hot of the last action (or none). The released code
of arXiv 2607.05458 has two domain-specific numbers; here they are one pair for all
domains: `support`, the share of the current draft that evidence or tests were last
found to support (-1: never measured), and `findings`, facts gathered or failures
seen, over ten.
"""

from __future__ import annotations

from types import ModuleType
from typing import Any

import chex
import jax.numpy as jnp

from jerp.harness.actions import ACTIONS, NUM_ACTIONS

__all__ = [
    "FEATURES",
    "FEATURE_VERSION",
    "NO_ACTION",
    "NUM_FEATURES",
    "NUM_STATUS",
    "encode_features",
]

FEATURE_VERSION = 1
NO_ACTION = NUM_ACTIONS
"""The last action before the first step."""

STATUS = (
    "progress",
    "has_draft",
    "draft_length",
    "coverage",
    "missing_share",
    "error_share",
    "cost_share",
    "remaining",
    "support",
    "findings",
)
NUM_STATUS = len(STATUS)
FEATURES = STATUS + tuple(f"last:{a}" for a in ACTIONS) + ("last:none",)
NUM_FEATURES = len(FEATURES)


def encode_features(status: Any, last_action: Any, *, xp: ModuleType = jnp) -> Any:
    """Features of harness states.

        x = clip(status, -1, 1) ++ onehot(last_action)

    Args:
      status: `[..., 10]` float32 in the order of `STATUS`.
      last_action: `[...]` int32, an action or `NO_ACTION`.
      xp: array module; `numpy` gives the same numbers on the host.

    Returns:
      `[..., 18]` float32.

    Example:
      >>> import numpy as np
      >>> x = encode_features(np.zeros(10, np.float32), np.int32(6), xp=np)
      >>> x.shape, int(x[16])
      ((18,), 1)
    """
    chex.assert_axis_dimension(status, -1, NUM_STATUS)
    last = xp.asarray(last_action)[..., None]
    one_hot = last == xp.arange(NUM_ACTIONS + 1).reshape((1,) * (last.ndim - 1) + (-1,))
    return xp.concatenate(
        [
            xp.clip(xp.asarray(status, dtype="float32"), -1.0, 1.0),
            one_hot.astype("float32"),
        ],
        axis=-1,
    )

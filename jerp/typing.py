"""Array aliases, axis letters and outcome classes shared by every layer.

Axis letters: `B` episodes, `T` steps (padded), `A` actions, `N` tasks, `M` samples a
task, `U` usage kinds. Arrays are batch-major; time-major only inside `scan`.
Masks are bool (True = real), ids int32, everything else float32.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import IntEnum
from typing import Any

import chex
import jax
from jax.typing import ArrayLike

Array = jax.Array
Key = jax.Array
ArrayTree = chex.ArrayTree

PolicyFn = Callable[[Any, Key, Array, Array], tuple[Array, Array]]
"""`(params, key, observation [F], legal [A] bool) -> (action int32 [], log_prob [])`.

Unbatched and jittable; loops vmap it over episodes. `log_prob` is under the
distribution that was really sampled from.
"""

__all__ = [
    "USAGE_KINDS",
    "Array",
    "ArrayLike",
    "ArrayTree",
    "Key",
    "Outcome",
    "PolicyFn",
]

USAGE_KINDS = ("executor_calls", "tokens_in", "tokens_out", "seconds", "dollars")
"""What the last axis of `Trajectory.usage` counts, in order."""


class Outcome(IntEnum):
    """How an episode ended.

    Only `INFRASTRUCTURE` makes an episode invalid: it enters no mean, no group and no
    gradient, and is counted. A failed executor is never an answer and never reward 0.
    """

    FAILURE = 0
    SUCCESS = 1
    TRUNCATED = 2
    MALFORMED = 3
    INFRASTRUCTURE = 4

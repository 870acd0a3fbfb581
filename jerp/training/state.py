"""What a learner carries from update to update."""

from __future__ import annotations

import optax
from flax import struct

from jerp.typing import Array, ArrayTree, Key

__all__ = ["TrainState"]


class TrainState(struct.PyTreeNode):
    """Parameters and all else that an update needs.

    Attributes:
      params: what is learned.
      opt_state: of the optimiser.
      step: `[]` int32, updates done.
      key: for what comes next; never used by the updates before.
    """

    params: ArrayTree
    opt_state: optax.OptState
    step: Array
    key: Key

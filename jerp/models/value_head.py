"""A linear value of a decoder's states, which policies may have beside their logits.

It begins at 0: before anything is learned, every state is worth nothing.
"""

from __future__ import annotations

from collections.abc import Mapping

import jax.numpy as jnp

from jerp.typing import Array

__all__ = ["init_value_head", "state_values"]


def init_value_head(hidden_size: int) -> dict[str, Array]:
    """Parameters of a head that says 0 everywhere."""
    return {"kernel": jnp.zeros(hidden_size), "bias": jnp.zeros(())}


def state_values(head: Mapping[str, Array], hidden: Array) -> Array:
    """`[...]` float32 values of states `[..., F]`.

    V = h . kernel + bias

    Example:
      >>> head = {"kernel": jnp.array([1.0, 2.0]), "bias": jnp.float32(0.5)}
      >>> float(state_values(head, jnp.array([3.0, 1.0])))
      5.5
    """
    return hidden @ head["kernel"] + head["bias"]

"""Small sets as the bits of one integer, so that worlds step in a few fused loops."""

from __future__ import annotations

from jerp.typing import Array

__all__ = ["has_bit"]


def has_bit(bits: Array | int, index: Array) -> Array:
    """Whether each `index` is in the set, bool.

    Example:
      >>> import jax.numpy as jnp
      >>> has_bit(0b101, jnp.arange(3)).tolist()
      [True, False, True]
    """
    return ((bits >> index) & 1).astype(bool)

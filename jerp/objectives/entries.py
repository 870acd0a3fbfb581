"""What every loss does first with the arrays it is given, and last with its metrics.

An entry is one token, step or state, real where `mask` is True.
"""

from __future__ import annotations

from functools import reduce

import jax.numpy as jnp

from jerp.errors import ShapeError
from jerp.ops.checks import check_finite
from jerp.ops.masked import masked_sum
from jerp.records import WeightedMean
from jerp.typing import Array

__all__ = ["entry_mean", "real_entries"]


def real_entries(mask: Array, **arrays: Array) -> tuple[dict[str, Array], Array]:
    """Arrays in float32, 0 in padding, NaN where one of them is no number.

    Padding is replaced before any arithmetic, so that it reaches neither values nor
    gradients. An infinity in a real entry often leaves a loss finite, with a gradient
    that means nothing (a token of probability 0 has ratio 0): it is made a NaN in all
    arrays, so that nobody trains on it unawares.

    Args:
      mask: any shape, bool, True for real entries.
      **arrays: same shape, any float type.

    Returns:
      The arrays under their names, and `invalid`, bool: real entries with a NaN or an
      infinity.

    Raises:
      InputError: an invalid entry that Python can see; names the array.

    Example:
      >>> mask = jnp.array([True, False])
      >>> arrays, invalid = real_entries(mask, target=jnp.array([1.0, jnp.nan]))
      >>> arrays["target"].tolist(), invalid.tolist()
      ([1.0, 0.0], [False, False])
    """
    for name, x in arrays.items():
        if jnp.shape(x) != jnp.shape(mask):
            raise ShapeError(
                f"{name}: expected the axes of mask, {list(jnp.shape(mask))}, got "
                f"{list(jnp.shape(x))}"
            )
        check_finite(name, x, mask)
    real = {
        name: jnp.where(mask, jnp.asarray(x, jnp.float32), 0)
        for name, x in arrays.items()
    }
    invalid = ~reduce(jnp.logical_and, map(jnp.isfinite, real.values()))
    poison = jnp.where(invalid, jnp.nan, 0)
    return {name: x + poison for name, x in real.items()}, invalid


def entry_mean(x: Array, mask: Array) -> WeightedMean:
    """Mean over the real entries that still adds across microbatches.

    Args:
      x: any shape, float; or bool, whose mean is a share and whose total a count.
      mask: same shape, bool.

    Returns:
      `WeightedMean`, float32, its weight the number of real entries.

    Example:
      >>> mask = jnp.array([True, True, False])
      >>> share = entry_mean(jnp.array([True, False, True]), mask)
      >>> float(share.value()), float(share.total)
      (0.5, 1.0)
    """
    return WeightedMean(
        total=masked_sum(jnp.asarray(x, jnp.float32), mask),
        weight=jnp.sum(mask, dtype=jnp.float32),
    )

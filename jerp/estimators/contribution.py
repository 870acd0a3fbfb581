"""What each of two parts of an agent contributes to a gain, when they can be swapped.

An agent that searches and then answers has two parts, and so has another. All four
pairings are tried: whose searches, whose answer. Symbols: `N` tasks; `v_xy` is the
value with the first part of agent x and the second of agent y, 0 for the base and 1
for the trained one.
"""

from __future__ import annotations

from typing import NamedTuple

import jax.numpy as jnp

from jerp.errors import ShapeError
from jerp.typing import Array, ArrayLike

__all__ = ["Contributions", "swap_contributions"]


class Contributions(NamedTuple):
    """How a gain splits; leaves `[...]` float32, and first + second = total.

    Attributes:
      first: of the first part.
      second: of the second part.
      total: the whole gain, `v_11 - v_00`.
      interaction: what both parts together bring beyond what each does alone; half of
        it is in `first` and half in `second`.
    """

    first: Array
    second: Array
    total: Array
    interaction: Array


def swap_contributions(value: ArrayLike) -> Contributions:
    """Shapley values of the two parts of an agent.

        first       = ((v_10 - v_00) + (v_11 - v_01)) / 2
        second      = ((v_01 - v_00) + (v_11 - v_10)) / 2
        interaction = v_11 - v_10 - v_01 + v_00

    the mean, over the two orders in which parts can be exchanged, of what exchanging
    one brings. Linear, so that the mean over tasks of contributions is the contribution
    to the mean: give `bootstrap_interval` the values of tasks.

    Args:
      value: `[..., 2, 2]` float32, `v_xy`: whose first part, whose second.

    Returns:
      `Contributions`; NaN where a value is.

    Raises:
      ShapeError: other axes.

    Deviations: arXiv:2604.14877 swaps retrieval and reasoning and reports that each
      contributes about half; the formula is not in what could be read of it.

    Reference: Shapley, "A value for n-person games" (1953), for n = 2.

    Example:
      >>> v = jnp.array([[0.25, 0.375], [0.5, 0.875]])
      >>> [float(x) for x in swap_contributions(v)]
      [0.375, 0.25, 0.625, 0.25]
    """
    value = jnp.asarray(value, jnp.float32)
    if value.shape[-2:] != (2, 2):
        raise ShapeError(
            f"value: expected axes [..., 2, 2], whose first part and whose second, got "
            f"{list(value.shape)}"
        )
    base, second = value[..., 0, 0], value[..., 0, 1]
    first, both = value[..., 1, 0], value[..., 1, 1]
    return Contributions(
        first=0.5 * ((first - base) + (both - second)),
        second=0.5 * ((second - base) + (both - first)),
        total=both - base,
        interaction=both - first - second + base,
    )

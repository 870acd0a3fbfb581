"""What more samples or a longer horizon buy on a pass surface.

Symbols: `K` sample budgets k, `H` horizons T. The last two axes are `[K, H]`: a mean
surface, or one surface a task `[N, K, H]`, which goes on into an interval or a band.
A cell without an estimate is NaN and makes NaN what rests on it.
"""

from __future__ import annotations

from collections.abc import Sequence

import jax.numpy as jnp
import numpy as np

from jerp.errors import InputError, ShapeError
from jerp.ops.checks import check_values
from jerp.typing import Array, ArrayLike

__all__ = ["check_grid", "marginal_horizon", "marginal_k", "saturation_horizon"]


def marginal_k(estimate: ArrayLike, ks: Sequence[int]) -> Array:
    """Gain from twice the samples.

        Delta_k(k, T) = Pass@(2k, T) - Pass@(k, T)

    Args:
      estimate: `[..., K, H]` float32.
      ks: the K budgets, each twice the one before.

    Returns:
      `[..., K - 1, H]` float32; entry i is the step from `ks[i]` to `ks[i + 1]`.

    Reference: arXiv:2604.14877 has marginal values; this form of them is ours.

    Example:
      >>> marginal_k(jnp.array([[0.25], [0.5], [0.625]]), [1, 2, 4]).tolist()
      [[0.25], [0.125]]
    """
    estimate = _surface(estimate, "ks", ks, axis=-2)
    ratio = np.asarray(ks)[1:] / np.asarray(ks)[:-1]
    if (ratio != 2).any():
        raise InputError(
            f"ks: expected a doubling grid such as 1, 2, 4, got {tuple(ks)}"
        )
    return jnp.diff(estimate, axis=-2)


def marginal_horizon(estimate: ArrayLike) -> Array:
    """Gain from the next longer horizon.

        Delta_T(k, T) = Pass@(k, T') - Pass@(k, T),   T' the next T of the grid

    Args:
      estimate: `[..., K, H]` float32.

    Returns:
      `[..., K, H - 1]` float32. Never negative under the nested protocol; with a rerun
      for each T it may be.

    Example:
      >>> marginal_horizon(jnp.array([[0.25, 0.5, 0.5]])).tolist()
      [[0.25, 0.0]]
    """
    return jnp.diff(jnp.asarray(estimate, jnp.float32), axis=-1)


def saturation_horizon(
    estimate: ArrayLike, horizons: Sequence[float], *, tolerance: ArrayLike
) -> Array:
    """The horizon from which a longer one buys no more.

        T* = min {T : |Pass@(k_max, T') - Pass@(k_max, T_max)| <= tolerance,
                      all T' >= T}

    A curve that comes close and leaves again is not saturated where it was close first.

    Args:
      estimate: `[..., K, H]` float32, of which the last k is read.
      horizons: the H values of T, increasing.
      tolerance: at least 0, in units of the estimate. One below the width of the
        estimate's interval finds noise.

    Returns:
      `[...]` float32, in units of the horizons; NaN where the last T has no estimate.

    Reference: arXiv:2604.14877 reports T* = 2 of T up to 5; it does not say with which
      tolerance.

    Example:
      >>> surface = jnp.array([[0.25, 0.375, 0.375], [0.5, 0.75, 0.8125]])
      >>> float(saturation_horizon(surface, [1, 2, 4], tolerance=0.1))
      2.0
    """
    check_values("tolerance", tolerance, lambda x: x >= 0, ">= 0")
    estimate = _surface(estimate, "horizons", horizons, axis=-1)
    curve = estimate[..., -1, :]
    # Two estimates a rounding apart are equal at tolerance 0 and a step of 1 / N wide.
    limit = jnp.asarray(tolerance, jnp.float32) + jnp.float32(1e-6)
    near = jnp.abs(curve - curve[..., -1:]) <= limit
    stays = jnp.flip(jnp.cumprod(jnp.flip(near, -1), axis=-1), -1)
    first = jnp.asarray(horizons, jnp.float32)[jnp.argmax(stays, axis=-1)]
    return jnp.where(near[..., -1], first, jnp.nan)


def check_grid(name: str, grid: Sequence[float], *, size: int) -> None:
    """Raises `InputError` unless a grid has `size` increasing values from 0 up.

    Example:
      >>> check_grid("ks", [1, 2, 4], size=3)
    """
    values = np.asarray(grid)
    if values.shape != (size,):
        raise InputError(
            f"{name}: expected {size} values, one for each entry of the estimate's "
            f"axis, got {tuple(grid)}"
        )
    if not ((np.diff(values) > 0).all() and (values[:1] >= 0).all()):
        raise InputError(
            f"{name}: expected increasing values from 0 up, got {tuple(grid)}"
        )


def _surface(
    estimate: ArrayLike, name: str, grid: Sequence[float], *, axis: int
) -> Array:
    estimate = jnp.asarray(estimate, jnp.float32)
    if estimate.ndim < 2:
        raise ShapeError(
            f"estimate: expected a surface [..., K, H], got {list(estimate.shape)}"
        )
    check_grid(name, grid, size=estimate.shape[axis])
    return estimate

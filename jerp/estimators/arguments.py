"""What a caller of an estimator gives, refused by name before it is cut or traced.

Rows `[N, ...]` with their clusters, counts that int32 holds, and the settings of a
bootstrap. JAX keeps the low 32 bits of an integer without a word: here they are seen.
"""

from __future__ import annotations

import operator
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jerp.errors import InputError, ShapeError
from jerp.estimators.clusters import check_strata
from jerp.estimators.resampling import Statistic
from jerp.ops.checks import check_axes, check_int32, check_values
from jerp.typing import Array, ArrayLike, Key

__all__ = [
    "MOST",
    "as_array",
    "broadcast_counts",
    "check_broadcast",
    "check_level",
    "check_resampling",
    "check_rows",
    "row_axes",
]

MOST = 2**31 - 1
"""Of what int32 holds. JAX would keep the low 32 bits of a larger count."""


def check_rows(
    values: Any,
    cluster: ArrayLike | None,
    mask: ArrayLike | None,
    strata: ArrayLike | None = None,
    *,
    name: str = "values",
) -> tuple[Any, Any, Any, Any]:
    """What a caller gave as arrays, refused by name where it is not of N rows.

    Args:
      values: tree of `[N, ...]` arrays; a NaN is no value, an infinite one is refused.
      cluster: `[N]` int, or None.
      mask: `[N]` bool, or None.
      strata: `[N]` int, or None; a cluster has to be in one.
      name: of the values; empty where the keys of a dict name them.

    Returns:
      The four, as arrays where they are not None.

    Example:
      >>> check_rows(np.zeros(3), np.array([0, 1]), None)
      Traceback (most recent call last):
      ...
      jerp.errors.ShapeError: cluster: expected axes [N] = [3], got [2]
    """
    cluster, mask, strata = map(as_array, (cluster, mask, strata))
    _check_lengths(values)
    first = jax.tree.leaves(values)[0]
    given = {"cluster": (cluster, int), "mask": (mask, bool), "strata": (strata, int)}
    rows = {name: (x, "N", kind) for name, (x, kind) in given.items() if x is not None}
    check_axes(values=(first, row_axes(first)), **rows)

    def leaf(path: Any, x: ArrayLike) -> Array:
        where = jax.tree_util.keystr(path, simple=not name)
        if jnp.issubdtype(jnp.result_type(x), jnp.integer):
            check_int32(name + where, x)
        x = jnp.asarray(x)
        kept = None if mask is None else jnp.reshape(mask, (-1, *[1] * (x.ndim - 1)))
        expected = "finite numbers, or NaN for none"
        check_values(name + where, x, lambda v: ~np.isinf(v), expected, mask=kept)
        return x

    values = jax.tree_util.tree_map_with_path(leaf, values)
    check_strata(strata, cluster, mask)
    return values, cluster, mask, strata


def row_axes(x: ArrayLike) -> str:
    """Names of the axes of an array of rows, for `check_axes`.

    Example:
      >>> row_axes(np.zeros((3, 2)))
      'N K'
    """
    number = np.ndim(x)
    return " ".join(("N", "K", "H", *map(str, range(3, number)))[:number])


def broadcast_counts(**counts: ArrayLike) -> list[Array]:
    """Counts as arrays of one shape, refused by name unless they are counts.

    Args:
      **counts: `[...]` of an integer type, in [0, 2^31); they broadcast.

    Returns:
      The counts, as int32 where they were wider.

    Raises:
      InputError: a count that is seen to be negative or beyond int32. `ShapeError`, one
        of them: another type, or shapes that do not broadcast.

    Example:
      >>> [x.tolist() for x in broadcast_counts(c=np.array([1, 2]), n=10)]
      [[1, 2], [10, 10]]
    """
    check_broadcast(**counts)
    arrays = []
    for name, count in counts.items():
        count = as_array(count)
        if jnp.issubdtype(count.dtype, jnp.integer):
            check_values(name, count, lambda v: v >= 0, ">= 0")
            check_values(name, count, lambda v: v <= MOST, "at most 2^31 - 1")
        check_axes(**{name: (count, row_axes(count), int)})
        arrays.append(jnp.asarray(count))
    return jnp.broadcast_arrays(*arrays)


def check_broadcast(**counts: ArrayLike) -> None:
    """Raises `ShapeError` unless the shapes broadcast against each other.

    Example:
      >>> check_broadcast(num_samples=np.zeros(3), num_correct=0)
    """
    shapes = [np.shape(count) for count in counts.values()]
    try:
        np.broadcast_shapes(*shapes)
    except ValueError as error:
        raise ShapeError(
            f"{', '.join(counts)}: expected shapes that broadcast against each other, "
            f"got {' and '.join(str(list(shape)) for shape in shapes)}"
        ) from error


def check_resampling(
    key: Key, statistic: Statistic, *, num_resamples: int, level: float
) -> None:
    """Raises `InputError` unless there are resamples and a level to read them at.

    Example:
      >>> from jerp.estimators.resampling import weighted_mean
      >>> check_resampling(
      ...     jax.random.key(0), weighted_mean, num_resamples=2000, level=0.95
      ... )
    """
    dtype, shape = getattr(key, "dtype", None), np.shape(key)
    typed = dtype is not None and jnp.issubdtype(dtype, jax.dtypes.prng_key)
    raw = dtype == np.uint32
    if not ((typed and shape == ()) or (raw and len(shape) == 1)):
        got = repr(key) if dtype is None else f"{dtype} {list(shape)}"
        raise InputError(f"key: expected one key, as jax.random.key(0) is, got {got}")
    if not callable(statistic):
        raise InputError(
            f"statistic: expected a function of values and weight, got "
            f"{type(statistic).__name__}. Name what follows: cluster=, mask="
        )
    try:
        number = operator.index(num_resamples)
    except TypeError:
        number = 0
    if number < 1:
        raise InputError(
            f"num_resamples: expected a whole number >= 1, got {num_resamples!r}"
        )
    check_level(level)


def check_level(level: float) -> None:
    """Raises `InputError` unless `level` is a probability.

    Example:
      >>> check_level(0.95)
    """
    if not 0 < level < 1:
        raise InputError(f"level: expected in (0, 1), got {level}")


def as_array(x: Any) -> Any:
    """A list becomes an array that still has all of its bits; None is left alone.

    Example:
      >>> as_array([2**40]).dtype
      dtype('int64')
    """
    return x if x is None or isinstance(x, jax.Array) else np.asarray(x)


def _check_lengths(values: Any) -> None:
    """Raises `ShapeError` unless a tree holds arrays of one length, and no others."""
    leaves = jax.tree_util.tree_leaves_with_path(values)
    shapes = [np.shape(leaf) for _, leaf in leaves]
    for (path, _), shape in zip(leaves, shapes, strict=True):
        if shape[:1] != shapes[0][:1] or not shape:
            advice = ""
            if isinstance(values, list | tuple):
                advice = ". A list is a tree of arrays: make it one by np.asarray"
            elif hasattr(values, "estimate"):
                advice = ". Of a surface, pass its estimate: surface.estimate"
            raise ShapeError(
                f"values{jax.tree_util.keystr(path)}: expected axes [N, ...], N the "
                f"same in all arrays, got {list(shape)}{advice}"
            )
    if not leaves:
        raise ShapeError(f"values: expected an array [N, ...], got {values!r}")

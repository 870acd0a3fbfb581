"""What a controller on the host refuses, by the argument's name.

NumPy alone, unlike `jerp.ops.checks`: whoever acts need not load JAX.
"""

from __future__ import annotations

import reprlib
from collections.abc import Iterable, Mapping, Sequence, Set
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from jerp.errors import ConfigError, InputError, ShapeError
from jerp.models.support import BufferSupport

__all__ = [
    "check_features",
    "check_greedy",
    "check_legal",
    "check_params",
    "check_seeds",
    "check_support",
    "check_vector",
    "layout_names",
]


def check_features(
    features: ArrayLike, names: Sequence[str], *, ndim: int | None = None
) -> np.ndarray:
    """`features` as float32, `[..., F]`, of `ndim` axes where that is given.

    Raises:
      ShapeError: no numbers, or other axes.
      InputError: a NaN or infinite number; the feature is named.
    """
    given = _array("features", features)
    if not _holds_numbers(given):
        raise ShapeError(f"features: expected numbers, got type {given.dtype}")
    with np.errstate(over="ignore"):
        x = given.astype(np.float32)
    if (
        x.ndim == 0
        or x.shape[-1] != len(names)
        or (ndim is not None and x.ndim != ndim)
    ):
        axes = {1: "F", 2: "B, F"}.get(ndim or 0, "..., F")
        raise ShapeError(
            f"features: expected axes [{axes}] with F={len(names)}, got {list(x.shape)}"
        )
    if not np.isfinite(x).all():
        *row, column = np.argwhere(~np.isfinite(x))[0].tolist()
        where = f" in row {row}" if row else ""
        found = given[*row, column]
        why = ", which overflows float32" if np.isfinite(found) else ""
        raise InputError(
            f"features: expected finite float32 numbers, got {found} for "
            f"{names[column]!r} (index {column}){where}{why}"
        )
    return x


def check_legal(
    legal: ArrayLike, names: Sequence[str], *, rows: tuple[int, ...]
) -> np.ndarray:
    """`legal` as an array, `[*rows, A]` bool.

    Raises:
      ShapeError: other axes or another type.
      InputError: a row in which nothing is legal.
    """
    allowed = _array("legal", legal)
    if allowed.dtype != np.bool_:
        raise ShapeError(
            f"legal: expected type bool, one for each action, got {allowed.dtype}"
        )
    if allowed.shape != (*rows, len(names)):
        leading = "the leading axes of features and " if rows else ""
        raise ShapeError(
            f"legal: expected {leading}A={len(names)}, {[*rows, len(names)]}, got "
            f"{list(allowed.shape)}"
        )
    possible = allowed.any(axis=-1)
    if not possible.all():
        row = np.argwhere(~possible)[0].tolist()
        where = f" in row {row}" if row else ""
        raise InputError(
            f"legal: expected at least one legal action of {tuple(names)}, got none"
            f"{where}"
        )
    return allowed


def check_seeds(seeds: Iterable[Any] | None, rows: int) -> Sequence[Any]:
    """The seeds of `rows` decisions, in order; None for each where there are none.

    Raises:
      ShapeError: no sequence of `rows` of them.
    """
    if seeds is None:
        return [None] * rows
    try:
        # Neither has an order of its own.
        found = None if isinstance(seeds, Mapping | Set) else list(seeds)
    except TypeError:
        found = None
    if found is None:
        raise ShapeError(
            f"seeds: expected B={rows} integers, one a row and in order, got "
            f"{reprlib.repr(seeds)}"
        )
    if len(found) != rows:
        raise ShapeError(f"seeds: expected B={rows}, got {len(found)}")
    return found


def check_greedy(greedy: bool) -> None:
    """Raises `InputError` unless it is True or False; a text would count as True."""
    if not isinstance(greedy, bool | np.bool_):
        raise InputError(f"greedy: expected True or False, got {greedy!r}")


def layout_names(name: str, given: Sequence[str]) -> tuple[str, ...]:
    """The names as a tuple; raises `ConfigError` unless they are different texts."""
    names = tuple(given)
    texts = all(isinstance(text, str) for text in names) and not isinstance(given, str)
    if not names or not texts or len(set(names)) != len(names):
        raise ConfigError(f"{name}: expected different texts, got {given!r}")
    return names


def check_params(
    params: Mapping[str, Mapping[str, Any]], num_features: int, num_actions: int
) -> dict[str, dict[str, np.ndarray]]:
    """The parameters as NumPy arrays.

    Raises:
      ConfigError: they are no finite policy of that layout.
    """
    whole = isinstance(params, Mapping)
    if not whole or not all(isinstance(part, Mapping) for part in params.values()):
        raise ConfigError("params: expected layers of arrays, as {'hidden': {...}}")
    try:
        params = {
            layer: {
                name: _array(f"params.{layer}.{name}", x) for name, x in part.items()
            }
            for layer, part in params.items()
        }
    except ShapeError as error:
        raise ConfigError(str(error)) from error
    missing = [
        f"{layer}.{name}"
        for layer in ("hidden", "logits")
        for name in ("kernel", "bias")
        if name not in params.get(layer, {})
    ]
    if missing:
        raise ConfigError(
            f"params: expected a controller's layers, got none of {missing}"
        )
    hidden_size = params["hidden"]["bias"].size
    expected = {
        "hidden": ((num_features, hidden_size), (hidden_size,)),
        "logits": ((hidden_size, num_actions), (num_actions,)),
    }
    for layer, shapes in expected.items():
        for name, shape in zip(("kernel", "bias"), shapes, strict=True):
            found = params[layer][name].shape
            if found != shape:
                raise ConfigError(
                    f"params.{layer}.{name}: expected shape {list(shape)} for "
                    f"{num_features} features and {num_actions} actions, got "
                    f"{list(found)}"
                )
    for layer, leaves in params.items():
        for name, x in leaves.items():
            if x.dtype.kind != "f" or not np.isfinite(x).all():
                raise ConfigError(
                    f"params.{layer}.{name}: expected finite numbers, got "
                    + ("NaN or infinity" if x.dtype.kind == "f" else str(x.dtype))
                )
    return params


def check_vector(
    name: str, given: ArrayLike, size: int, *, positive: bool = False
) -> np.ndarray:
    """What there is of every feature or action, such as a mean, as `[size]` float32.

    Raises:
      ConfigError: it is not `size` finite numbers, or not all are above 0.
    """
    try:
        x = _array(name, given)
    except ShapeError as error:
        raise ConfigError(str(error)) from error
    is_vector = _holds_numbers(x) and x.shape == (size,)
    with np.errstate(over="ignore"):
        x = x.astype(np.float32) if is_vector else x
    if not is_vector or not np.isfinite(x).all():
        found = reprlib.repr(given)
        raise ConfigError(f"{name}: expected {size} finite numbers, got {found}")
    if positive and not (x > 0).all():
        raise ConfigError(f"{name}: expected numbers above 0, got {x.min()}")
    return x


def check_support(
    support: BufferSupport | None, num_features: int, num_actions: int
) -> None:
    """Raises `ConfigError` unless every statistic is finite and of its length."""
    sizes: dict[str, int] = {"action_counts": num_actions}
    sizes |= {f"feature_{kind}": num_features for kind in ("min", "max", "mean")}
    for name, value in vars(support).items() if support else ():
        if name in sizes:
            check_vector(f"support.{name}", value, sizes[name])
        else:
            check_vector(f"support.{name}", [value], 1)


def _array(name: str, given: ArrayLike) -> np.ndarray:
    """`given` as NumPy has it; raises `ShapeError` where that would lose something."""
    if isinstance(given, np.ma.MaskedArray):
        raise ShapeError(
            f"{name}: expected an array without a mask, got a masked one; decide what "
            "stands for what is masked, as its `filled` does"
        )
    try:
        return np.asarray(given)
    except (TypeError, ValueError) as error:
        raise ShapeError(
            f"{name}: expected an array, or lists of one length, got a ragged or "
            f"unreadable {type(given).__name__}"
        ) from error


def _holds_numbers(x: np.ndarray) -> bool:
    """Of NumPy's own types or of JAX's, such as bfloat16, which NumPy calls void."""
    return x.dtype.kind in "fiu" or (
        x.dtype.kind == "V" and np.can_cast(x.dtype, np.float32)
    )

"""What a controller on the host refuses, by the argument's name.

NumPy alone, unlike `jerp.ops.checks`: whoever acts need not load JAX.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import ArrayLike

from jerp.errors import ConfigError, InputError, ShapeError

__all__ = ["check_features", "check_legal", "check_params", "layout_names"]


def check_features(
    features: ArrayLike, names: Sequence[str], *, ndim: int | None = None
) -> np.ndarray:
    """`features` as float32, `[..., F]`, of `ndim` axes where that is given.

    Raises:
      ShapeError: no numbers, or other axes.
      InputError: a NaN or infinite number; the feature is named.
    """
    x = np.asarray(features)
    if x.dtype.kind not in "fiu":
        raise ShapeError(f"features: expected numbers, got type {x.dtype}")
    if (
        x.ndim == 0
        or x.shape[-1] != len(names)
        or (ndim is not None and x.ndim != ndim)
    ):
        axes = {1: "F", 2: "B, F"}.get(ndim or 0, "..., F")
        raise ShapeError(
            f"features: expected axes [{axes}] with F={len(names)}, got {list(x.shape)}"
        )
    with np.errstate(over="ignore"):
        x = x.astype(np.float32)
    if not np.isfinite(x).all():
        *row, column = np.argwhere(~np.isfinite(x))[0].tolist()
        where = f" in row {row}" if row else ""
        raise InputError(
            f"features: expected finite float32 numbers, got {x[*row, column]} for "
            f"{names[column]!r} (index {column}){where}"
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
    allowed = np.asarray(legal)
    if allowed.dtype != np.bool_:
        raise ShapeError(
            f"legal: expected type bool, one for each action, got {allowed.dtype}"
        )
    if allowed.shape != (*rows, len(names)):
        raise ShapeError(
            f"legal: expected the leading axes of features and A={len(names)}, "
            f"{[*rows, len(names)]}, got {list(allowed.shape)}"
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


def layout_names(name: str, given: Sequence[str]) -> tuple[str, ...]:
    """The names as a tuple; raises `ConfigError` unless they are different texts."""
    names = tuple(given)
    texts = all(isinstance(text, str) for text in names) and not isinstance(given, str)
    if not names or not texts or len(set(names)) != len(names):
        raise ConfigError(f"{name}: expected different texts, got {given!r}")
    return names


def check_params(
    params: Mapping[str, Mapping[str, np.ndarray]], num_features: int, num_actions: int
) -> None:
    """Raises `ConfigError` unless these are a finite policy of that layout."""
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

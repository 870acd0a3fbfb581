"""What a controller on the host refuses, by the argument's name.

NumPy alone, unlike `jerp.ops.checks`: whoever acts need not load JAX.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from jerp.errors import ConfigError, ShapeError

__all__ = ["check_axes", "check_params", "layout_names"]


def check_axes(
    name: str, x: np.ndarray, size: int, letter: str, ndim: int | None
) -> None:
    """Raises `ShapeError` unless the last axis is `size`, and the axes are `ndim`."""
    if x.ndim == 0 or x.shape[-1] != size or (ndim is not None and x.ndim != ndim):
        axes = {1: letter, 2: f"B, {letter}"}.get(ndim or 0, f"..., {letter}")
        raise ShapeError(
            f"{name}: expected axes [{axes}] with {letter}={size}, got {list(x.shape)}"
        )


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

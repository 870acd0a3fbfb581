"""The matrices of a decoder's layers that adapters stand beside, and which fit them.

Query, key and value share one matrix, as do gate and up; an adapter is of a projection.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import jax.numpy as jnp

from jerp.errors import ConfigError
from jerp.models.decoder import DecoderConfig

__all__ = ["JOINED", "PROJECTIONS", "check_adapters", "projection_sizes"]

PROJECTIONS = ("q", "k", "v", "o", "gate", "up", "down")
"""Projections of a layer, in order."""

JOINED = {
    "qkv": ("q", "k", "v"),
    "out": ("o",),
    "gate_up": ("gate", "up"),
    "down": ("down",),
}
"""The matrices of a layer, and the projections in each."""


def projection_sizes(config: DecoderConfig) -> dict[str, tuple[int, int]]:
    """`(in, out)` of each of `PROJECTIONS`.

    Example:
      >>> from jerp.models.presets import tiny_decoder
      >>> projection_sizes(tiny_decoder(100))["down"]
      (256, 64)
    """
    hidden, wide = config.hidden_size, config.intermediate_size
    widths = config.qkv_widths
    return {
        **{name: (hidden, width) for name, width in widths.items()},
        "o": (widths["q"], hidden),
        "gate": (hidden, wide),
        "up": (hidden, wide),
        "down": (wide, hidden),
    }


def check_adapters(
    base: Mapping[str, Any], adapters: Mapping[str, Any], rank: int
) -> None:
    """Raises `ConfigError` for adapters of another decoder, or of another rank.

    Of another rank they would be scaled wrongly and never be noticed. How a joint
    matrix is split is not known here: its adapters must not be wider than it.

    Example:
      >>> base = {"layer_0": {"out": jnp.zeros((4, 6))}}
      >>> pair = {"a": jnp.zeros((4, 2)), "b": jnp.zeros((2, 6))}
      >>> check_adapters(base, {"layer_0": {"o": pair}}, 2)
    """
    layers = sorted(name for name in base if name.startswith("layer_"))
    matrix_of = {name: joint for joint, names in JOINED.items() for name in names}
    for layer, pairs in adapters.items():
        if layer not in layers:
            raise ConfigError(
                f"adapters: expected layers of the decoder, which has {len(layers)}, "
                f"got {layer!r}; they are another decoder's"
            )
        for name, pair in pairs.items():
            if name not in PROJECTIONS:
                raise ConfigError(
                    f"adapters: {layer}: expected names of {', '.join(PROJECTIONS)}, "
                    f"got {name!r}"
                )
            rows, columns = jnp.shape(base[layer][matrix_of[name]])
            _check_pair(f"{layer}/{name}", pair, rank, rows, columns)


def _check_pair(
    path: str, pair: Mapping[str, Any], rank: int, rows: int, columns: int
) -> None:
    joint = path.rpartition("/")[2] not in ("o", "down")
    a, b = (tuple(jnp.shape(pair[name])) for name in ("a", "b"))
    wide = len(b) == 2 and (b[1] < columns if joint else b[1] == columns)
    if a != (rows, rank) or not wide or b[0] != rank:
        width = f"less than {columns}" if joint else columns
        raise ConfigError(
            f"adapters: {path}: expected a [{rows}, {rank}] and b [{rank}, {width}], "
            f"of the decoder's sizes and the config's rank, got {list(a)} and {list(b)}"
        )

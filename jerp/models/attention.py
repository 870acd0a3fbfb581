"""Rotary positions and attention whose query heads share key/value heads.

Axes: `B` sequences, `T` tokens, `S` cached positions, `H` query heads, `G` key/value
heads, `D` features of a head. Everything is float32; a mask says what a token sees.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

import chex
import jax
import jax.numpy as jnp

from jerp.errors import ConfigError, UnknownNameError
from jerp.typing import Array

__all__ = ["RopeScaling", "apply_rotary", "grouped_attention", "rotary_angles"]
__all__ += ["scaled_frequencies"]

ROPE_KINDS = ("linear", "llama3")


@dataclass(frozen=True)
class RopeScaling:
    """How rotary frequencies are slowed down for contexts longer than trained on.

    Attributes:
      kind: `linear` divides every frequency by `factor`; `llama3` leaves the fast ones
        and divides the slow ones.
      factor: at least 1.
      low_frequency_factor: `llama3` alone: waves longer than the original context over
        this are divided by `factor`.
      high_frequency_factor: `llama3` alone: waves shorter than the original context
        over this stay.
      original_context_length: `llama3` alone: of the first training.

    Raises:
      ConfigError: an unknown kind, or numbers that cannot be meant.
    """

    kind: Literal["linear", "llama3"]
    factor: float
    low_frequency_factor: float = 1.0
    high_frequency_factor: float = 4.0
    original_context_length: int = 8192

    def __post_init__(self):
        if self.kind not in ROPE_KINDS:
            raise UnknownNameError("rotary scaling", self.kind, ROPE_KINDS)
        if not self.factor >= 1.0:
            raise ConfigError(f"factor: expected at least 1, got {self.factor}")
        low, high = self.low_frequency_factor, self.high_frequency_factor
        if not 0.0 < low < high:
            raise ConfigError(
                "low_frequency_factor, high_frequency_factor: expected 0 < low < high, "
                f"got {low} and {high}"
            )
        if self.original_context_length < 1:
            raise ConfigError(
                "original_context_length: expected at least 1, got "
                f"{self.original_context_length}"
            )


def scaled_frequencies(frequency: Array, scaling: RopeScaling | None) -> Array:
    """Rotary frequencies of a longer context.

        linear:  f / s
        llama3:  (1 - m) f / s + m f,   m = clip((C f / 2 pi - l) / (h - l), 0, 1)

    with `s` the factor, `C` the original context, `l` and `h` the low and high factor.
    `C f / 2 pi` is how many waves fit into the original context.

    Args:
      frequency: `[D / 2]` float32, radians a position.
      scaling: None returns `frequency` itself.

    Returns:
      `[D / 2]` float32.

    Example:
      >>> scaled_frequencies(jnp.array([1.0, 0.5]), RopeScaling("linear", 2.0)).tolist()
      [0.5, 0.25]

    Reference: Chen et al., arXiv:2306.15595 (linear); "The Llama 3 Herd of Models",
    arXiv:2407.21783, released as Llama 3.1 (llama3).
    """
    if scaling is None:
        return frequency
    slow = frequency / scaling.factor
    if scaling.kind == "linear":
        return slow
    low, high = scaling.low_frequency_factor, scaling.high_frequency_factor
    waves = scaling.original_context_length * frequency / (2.0 * math.pi)
    kept = jnp.clip((waves - low) / (high - low), 0.0, 1.0)
    return (1.0 - kept) * slow + kept * frequency


def rotary_angles(
    positions: Array,
    *,
    head_dim: int,
    base: float,
    scaling: RopeScaling | None = None,
) -> Array:
    """Rotation angles `position / base^(2 i / head_dim)`.

    Args:
      positions: `[B, T]` int32.
      head_dim: even; there are `head_dim / 2` angles.
      base: the longest wavelength is about `2 pi base`.
      scaling: of the frequencies, see `scaled_frequencies`.

    Returns:
      `[B, T, head_dim / 2]` float32.

    Example:
      >>> rotary_angles(jnp.array([[3]]), head_dim=2, base=10.0).tolist()
      [[[3.0]]]
    """
    exponent = jnp.arange(0, head_dim, 2, dtype=jnp.float32) / head_dim
    inverse = scaled_frequencies(1.0 / base**exponent, scaling)
    return positions.astype(jnp.float32)[:, :, None] * inverse[None, None, :]


def apply_rotary(x: Array, angles: Array) -> Array:
    """Rotates pair `(i, i + D/2)` of every head by angle `i`.

        y[i]       = x[i] cos a_i - x[i + D/2] sin a_i
        y[i + D/2] = x[i + D/2] cos a_i + x[i] sin a_i

    Args:
      x: `[B, T, heads, D]` float32.
      angles: `[B, T, D / 2]` float32.

    Returns:
      `[B, T, heads, D]` float32.

    Deviations: the paper pairs neighbours `(2i, 2i + 1)`, as llama.cpp does; weights
    of Hugging Face layout pair halves, and so does this function.
    Reference: Su et al., arXiv:2104.09864, eq. 34.
    """
    chex.assert_rank([x, angles], [4, 3])
    cos, sin = jnp.cos(angles)[:, :, None, :], jnp.sin(angles)[:, :, None, :]
    low, high = jnp.split(x, 2, axis=-1)
    return jnp.concatenate([low * cos - high * sin, high * cos + low * sin], axis=-1)


def grouped_attention(query: Array, key: Array, value: Array, mask: Array) -> Array:
    """Softmax attention in which `H / G` query heads share one key/value head.

        out_t = sum_s softmax_s(q_t . k_s / sqrt(D)) v_s     over s with mask[t, s]

    Args:
      query: `[B, T, H, D]` float32; head `h` reads key/value head `h // (H / G)`.
      key: `[B, G, D, S]` float32; transposed, which halves the time of a decoding step
        on a CPU.
      value: `[B, G, S, D]` float32. Masked positions may hold anything finite.
      mask: `[B, T, S]` bool; every row must allow something.

    Returns:
      `[B, T, H, D]` float32.

    Reference: Ainslie et al., arXiv:2305.13245.
    """
    chex.assert_rank([query, key, value, mask], [4, 4, 4, 3])
    batch, length, heads, dim = query.shape
    groups = key.shape[1]
    query = query.reshape(batch, length, groups, heads // groups, dim) * dim**-0.5
    query = jnp.moveaxis(query, 1, 2).reshape(batch, groups, -1, dim)
    scores = _batched_product(query, key)
    scores = scores.reshape(batch, groups, length, heads // groups, -1)
    scores = jnp.where(mask[:, None, :, None, :], scores, -jnp.inf)
    weights = jax.nn.softmax(scores, axis=-1)
    weights = weights.reshape(batch, groups, -1, key.shape[3])
    mixed = _batched_product(weights, value)
    mixed = mixed.reshape(batch, groups, length, heads // groups, dim)
    return jnp.moveaxis(mixed, 2, 1).reshape(batch, length, heads, dim)


def _batched_product(left: Array, right: Array) -> Array:
    return jax.lax.dot_general(left, right, (((3,), (2,)), ((0, 1), (0, 1))))

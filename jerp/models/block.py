"""Sizes of a decoder, and one of its layers.

The variations that the families need are switches of the sizes: biases of the
query/key/value projections (Qwen2), norms of each query and key head (Qwen3), heads
whose width is not `hidden_size / num_heads`, scaled rotary positions (Llama 3).

Low-rank adapters (`jerp.models.lora`) come in a variable collection of their own,
`adapters`, beside the parameters: a layer adds `(x a) b` to the columns of the
projection that an adapter is for, and computes nothing where there is none.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import chex
import jax
import jax.numpy as jnp
from flax import linen as nn

from jerp.errors import ConfigError
from jerp.models.attention import RopeScaling, apply_rotary
from jerp.typing import Array

__all__ = ["Block", "DecoderConfig", "Mixer", "rms_norm"]

Mixer = Callable[[Array, Array, Array, Any], tuple[Array, Any]]
"""`(query [B,T,H,D], key [B,T,G,D], value [B,T,G,D], cache of this layer) ->
(mixed [B,T,H,D], new cache)`; query and key are rotated already."""


@dataclass(frozen=True)
class DecoderConfig:
    """Sizes of a decoder, under the names this library uses.

    Attributes:
      head_dim: of a query, key or value head; `num_heads * head_dim` may differ from
        `hidden_size`.
      tied_embeddings: the output matrix is the embedding.
      qkv_bias: queries, keys and values have a bias (Qwen2).
      qk_norm: every query and key head is normalised before its rotation (Qwen3).
      rope_scaling: of the rotary frequencies (Llama 3); None for none.
      remat: a gradient computes what is inside a layer a second time instead of keeping
        it: memory for one layer at a time, for a third more work. Same numbers.
    """

    vocab_size: int
    hidden_size: int
    intermediate_size: int
    num_layers: int
    num_heads: int
    num_kv_heads: int
    head_dim: int
    context_length: int
    rope_base: float = 10_000.0
    rms_epsilon: float = 1e-5
    tied_embeddings: bool = True
    qkv_bias: bool = False
    qk_norm: bool = False
    rope_scaling: RopeScaling | None = None
    remat: bool = False

    def __post_init__(self):
        if self.num_heads % self.num_kv_heads:
            raise ConfigError(
                f"num_heads: expected a multiple of num_kv_heads={self.num_kv_heads}, "
                f"got {self.num_heads}"
            )
        if self.head_dim % 2:
            raise ConfigError(f"head_dim: expected an even number, got {self.head_dim}")

    @property
    def qkv_size(self) -> int:
        """Width of the joint query/key/value projection."""
        return sum(self.qkv_widths.values())

    @property
    def qkv_widths(self) -> dict[str, int]:
        """Columns of the joint projection that are queries, keys and values."""
        shared = self.num_kv_heads * self.head_dim
        return {"q": self.num_heads * self.head_dim, "k": shared, "v": shared}


def rms_norm(x: Array, scale: Array, *, epsilon: float) -> Array:
    """Root-mean-square normalisation over the last axis.

        y = x / sqrt(mean(x^2) + epsilon) * scale

    Args:
      x: `[..., F]` float32.
      scale: `[F]` float32.
      epsilon: added under the root.

    Returns:
      `[..., F]` float32.

    Example:
      >>> rms_norm(jnp.array([3.0, 3.0]), jnp.ones(2), epsilon=0.0).tolist()
      [1.0, 1.0]

    Reference: Zhang and Sennrich, arXiv:1910.07467, eq. 4.
    """
    chex.assert_type(x, jnp.float32)
    scale = jnp.reshape(scale, (1,) * (x.ndim - 1) + scale.shape)
    return x * jax.lax.rsqrt(jnp.mean(x * x, -1, keepdims=True) + epsilon) * scale


def _product(x: Array, kernel: Array) -> Array:
    return jax.lax.dot_general(
        x.astype(kernel.dtype),
        kernel,
        (((x.ndim - 1,), (0,)), ((), ())),
        preferred_element_type=jnp.float32,
    )


def _low_rank(x: Array, adapter: Mapping[str, Array]) -> Array:
    """`(x a) b`, with elements of `x` dropped where the adapter carries a key."""
    if "key" in adapter:
        keep = adapter["keep"]
        kept = jax.random.bernoulli(adapter["key"], keep, x.shape)
        x = jnp.where(kept, x / keep, 0.0)
    return _product(_product(x, adapter["a"]), adapter["b"])


class Block(nn.Module):
    """One layer: attention and a gated feed-forward, each on a normalised residual."""

    config: DecoderConfig

    @nn.compact
    def __call__(
        self, x: Array, angles: Array, cache: Any, mixer: Mixer
    ) -> tuple[Array, Any]:
        """Returns the residual stream `[B, T, F]` after the layer, and its cache."""
        c = self.config
        query, key, value = self._heads(self._norm("attention_norm", x))
        mixed, cache = mixer(
            apply_rotary(query, angles), apply_rotary(key, angles), value, cache
        )
        mixed = mixed.reshape(*mixed.shape[:2], c.num_heads * c.head_dim)
        x = x + self._project("out", mixed, {"o": c.hidden_size})
        y = self._norm("mlp_norm", x)
        width = c.intermediate_size
        gate_up = self._project("gate_up", y, {"gate": width, "up": width})
        gate, up = jnp.split(gate_up, 2, axis=-1)
        y = self._project("down", nn.silu(gate) * up, {"down": c.hidden_size})
        return x + y, cache

    def _heads(self, x: Array) -> tuple[Array, Array, Array]:
        """Queries `[B, T, H, D]`, keys and values `[B, T, G, D]`, not yet rotated."""
        c = self.config
        qkv = self._project("qkv", x, c.qkv_widths)
        if c.qkv_bias:
            bias = self.param("qkv_bias", nn.initializers.zeros, (c.qkv_size,))
            qkv = qkv + bias[None, None]
        heads = qkv.reshape(*qkv.shape[:2], -1, c.head_dim)
        query, key, value = jnp.split(
            heads, [c.num_heads, c.num_heads + c.num_kv_heads], axis=2
        )
        if c.qk_norm:
            query = self._norm("query_norm", query)
            key = self._norm("key_norm", key)
        return query, key, value

    def _norm(self, name: str, x: Array) -> Array:
        scale = self.param(name, nn.initializers.ones, (x.shape[-1],))
        return rms_norm(x, scale, epsilon=self.config.rms_epsilon)

    def _project(self, name: str, x: Array, widths: Mapping[str, int]) -> Array:
        """`x W`, plus what adapters add to the projections that `W` joins."""
        shape = (x.shape[-1], sum(widths.values()))
        y = _product(x, self.param(name, nn.initializers.normal(0.02), shape))
        adapters = {part: self.get_variable("adapters", part) for part in widths}
        if not any(adapters.values()):
            return y
        parts = [
            _low_rank(x, adapters[part])
            if adapters[part]
            else jnp.zeros((*x.shape[:-1], width))
            for part, width in widths.items()
        ]
        return y + jnp.concatenate(parts, axis=-1)

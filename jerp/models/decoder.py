"""A Llama-family decoder: RMSNorm, rotary positions, grouped-query attention, SwiGLU.

One module serves a full forward pass, a prefill and a decoding step: what attention
reads and writes is a `Mixer`, a plain function handed to the module. Projections that
share an input are one matrix (query/key/value, gate/up): fewer and wider products.
Matrices are stored as `[in, out]`; their dtype is the dtype of the products, everything
between them is float32.

Axes: `B` sequences, `T` tokens, `S` cached positions, `H` query heads, `G` key/value
heads, `D` features of a head. Sharding and training with dropout are refused.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, cast

import chex
import jax
import jax.numpy as jnp
from flax import linen as nn
from flax.traverse_util import flatten_dict, unflatten_dict
from jax.typing import DTypeLike

from jerp.errors import ConfigError
from jerp.models.attention import apply_rotary, grouped_attention, rotary_angles
from jerp.typing import Array, ArrayTree

__all__ = [
    "Decoder",
    "DecoderConfig",
    "Mixer",
    "cast_products",
    "causal_mixer",
    "hidden_states",
    "output_logits",
    "rms_norm",
]

Mixer = Callable[[Array, Array, Array, Any], tuple[Array, Any]]
"""`(query [B,T,H,D], key [B,T,G,D], value [B,T,G,D], cache of this layer) ->
(mixed [B,T,H,D], new cache)`; query and key are rotated already."""


@dataclass(frozen=True)
class DecoderConfig:
    """Sizes of a decoder, under the names this library uses.

    Attributes:
      tied_embeddings: the output matrix is the embedding.
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
        return (self.num_heads + 2 * self.num_kv_heads) * self.head_dim


def rms_norm(x: Array, scale: Array, *, epsilon: float) -> Array:
    """Root-mean-square normalisation over the last axis.

        y = x / sqrt(mean(x^2) + epsilon) * scale

    Args:
      x: `[..., F]` float32.
      scale: `[F]` float32.
      epsilon: added under the root.

    Returns:
      `[..., F]` float32.

    Reference: Zhang and Sennrich, arXiv:1910.07467, eq. 4.
    """
    chex.assert_type(x, jnp.float32)
    scale = jnp.reshape(scale, (1,) * (x.ndim - 1) + scale.shape)
    return x * jax.lax.rsqrt(jnp.mean(x * x, -1, keepdims=True) + epsilon) * scale


def causal_mixer(query: Array, key: Array, value: Array, cache: Any):
    """The `Mixer` of a full forward pass: a token sees itself and all before it.

    The new cache of a layer is its keys `[B, G, D, T]` and values `[B, G, T, D]`.
    """
    del cache
    batch, length = query.shape[:2]
    key, value = jnp.moveaxis(key, 1, 3), jnp.moveaxis(value, 1, 2)
    mask = jnp.tril(jnp.ones((length, length), bool))
    mask = jnp.broadcast_to(mask[None], (batch, length, length))
    return grouped_attention(query, key, value, mask), (key, value)


def _product(x: Array, kernel: Array) -> Array:
    return jax.lax.dot_general(
        x.astype(kernel.dtype),
        kernel,
        (((x.ndim - 1,), (0,)), ((), ())),
        preferred_element_type=jnp.float32,
    )


class Block(nn.Module):
    """One layer: attention and a gated feed-forward, each on a normalised residual."""

    config: DecoderConfig

    @nn.compact
    def __call__(
        self, x: Array, angles: Array, cache: Any, mixer: Mixer
    ) -> tuple[Array, Any]:
        """Returns the residual stream `[B, T, F]` after the layer, and its cache."""
        c = self.config
        init, ones = nn.initializers.normal(0.02), nn.initializers.ones
        width = c.num_heads * c.head_dim
        y = rms_norm(
            x,
            self.param("attention_norm", ones, (c.hidden_size,)),
            epsilon=c.rms_epsilon,
        )
        qkv = _product(y, self.param("qkv", init, (c.hidden_size, c.qkv_size)))
        heads = qkv.reshape(*qkv.shape[:2], -1, c.head_dim)
        query, key, value = jnp.split(
            heads, [c.num_heads, c.num_heads + c.num_kv_heads], axis=2
        )
        mixed, cache = mixer(
            apply_rotary(query, angles), apply_rotary(key, angles), value, cache
        )
        mixed = mixed.reshape(*mixed.shape[:2], width)
        x = x + _product(mixed, self.param("out", init, (width, c.hidden_size)))
        y = rms_norm(
            x, self.param("mlp_norm", ones, (c.hidden_size,)), epsilon=c.rms_epsilon
        )
        kernel = self.param("gate_up", init, (c.hidden_size, 2 * c.intermediate_size))
        gate, up = jnp.split(_product(y, kernel), 2, axis=-1)
        down = self.param("down", init, (c.intermediate_size, c.hidden_size))
        return x + _product(nn.silu(gate) * up, down), cache


class Decoder(nn.Module):
    """Token ids to hidden states, and hidden states to logits.

    `init` gives float32 parameters; `num_layers` sub-trees `layer_0`, `layer_1`, ...
    """

    config: DecoderConfig

    def setup(self):  # noqa: D102 (flax's own hook)
        c = self.config
        init = nn.initializers.normal(0.02)
        self.embedding = self.param("embedding", init, (c.vocab_size, c.hidden_size))
        self.layers = [Block(c, name=f"layer_{i}") for i in range(c.num_layers)]
        self.final_norm = self.param(
            "final_norm", nn.initializers.ones, (c.hidden_size,)
        )
        if not c.tied_embeddings:
            self.unembedding = self.param(
                "unembedding", init, (c.vocab_size, c.hidden_size)
            )

    def hidden(
        self,
        tokens: Array,
        positions: Array,
        cache: tuple[Any, ...] | None = None,
        mixer: Mixer = causal_mixer,
    ) -> tuple[Array, tuple[Any, ...]]:
        """Normalised final states `[B, T, F]` float32, and the new cache by layer."""
        chex.assert_rank([tokens, positions], [2, 2])
        x = self.embedding[tokens].astype(jnp.float32)
        return self.states(x, positions, cache, mixer)

    def states(
        self,
        x: Array,
        positions: Array,
        cache: tuple[Any, ...] | None = None,
        mixer: Mixer = causal_mixer,
    ) -> tuple[Array, tuple[Any, ...]]:
        """As `hidden`, of inputs `[B, T, F]` that are no embedded tokens."""
        c = self.config
        angles = rotary_angles(positions, head_dim=c.head_dim, base=c.rope_base)
        before = cache if cache is not None else (None,) * c.num_layers
        after = []
        for layer, layer_cache in zip(self.layers, before, strict=True):
            x, layer_cache = layer(x, angles, layer_cache, mixer)
            after.append(layer_cache)
        return rms_norm(x, self.final_norm, epsilon=c.rms_epsilon), tuple(after)

    def logits(self, hidden: Array) -> Array:
        """`[..., V]` float32 logits of hidden states `[..., F]`."""
        kernel = self.embedding if self.config.tied_embeddings else self.unembedding
        return jax.lax.dot_general(
            hidden.astype(kernel.dtype),
            kernel,
            (((hidden.ndim - 1,), (1,)), ((), ())),
            preferred_element_type=jnp.float32,
        )

    def __call__(self, tokens: Array) -> Array:
        """Logits `[B, T, V]` of whole sequences `[B, T]`, causal, without a cache."""
        positions = jnp.broadcast_to(
            jnp.arange(tokens.shape[1], dtype=jnp.int32)[None], tokens.shape
        )
        return self.logits(self.hidden(tokens, positions)[0])


def cast_products(
    config: DecoderConfig, params: ArrayTree, dtype: DTypeLike
) -> tuple[DecoderConfig, ArrayTree]:
    """A decoder whose matrices are rounded to `dtype` and multiply in it.

    Sums, norms and attention stay float32. The embedding is rounded too, but kept as
    float32, and a tied output matrix becomes one of its own: to look up a token in a
    half-precision table, XLA's CPU backend would widen the whole table in every call.

    Args:
      config: of the decoder.
      params: its variables, float32.
      dtype: of all matrices but the embedding.

    Returns:
      Config and variables of the rounded decoder.
    """
    flat: dict[str, Any] = flatten_dict(cast(Any, params)["params"], sep="/")
    flat = {"unembedding": flat["embedding"], **flat}
    flat = {n: x.astype(dtype) if x.ndim == 2 else x for n, x in flat.items()}
    flat["embedding"] = flat["embedding"].astype(jnp.float32)
    variables = {"params": unflatten_dict(flat, sep="/")}
    return replace(config, tied_embeddings=False), variables


def hidden_states(
    decoder: Decoder,
    params: ArrayTree,
    tokens: Array,
    positions: Array,
    cache: tuple[Any, ...] | None = None,
    mixer: Mixer = causal_mixer,
) -> tuple[Array, tuple[Any, ...]]:
    """`Decoder.hidden` with explicit parameters."""
    return cast(Any, decoder.apply)(
        params, tokens, positions, cache, mixer, method="hidden"
    )


def output_logits(decoder: Decoder, params: ArrayTree, hidden: Array) -> Array:
    """`Decoder.logits` with explicit parameters."""
    return cast(Any, decoder.apply)(params, hidden, method="logits")

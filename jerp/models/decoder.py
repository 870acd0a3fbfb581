"""Decoders of the Llama and Qwen families: token ids to states, states to logits.

Layers are in `jerp.models.block`. One module serves a full forward pass, a prefill and
a decoding step: what attention reads and writes is a `Mixer`, a plain function handed
to the module. Projections that share an input are one matrix (query/key/value,
gate/up): fewer and wider products. Matrices are stored as `[in, out]`; their dtype is
the dtype of the products, everything between them is float32.

Axes: `B` sequences, `T` tokens, `S` cached positions, `H` query heads, `G` key/value
heads, `D` features of a head. Nothing here knows of devices: parameters are laid out on
a mesh by their names (`jerp.training.sharding`), and XLA cuts these programs up.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, cast

import chex
import jax
import jax.numpy as jnp
from flax import linen as nn
from flax.traverse_util import flatten_dict, unflatten_dict
from jax.typing import DTypeLike

from jerp.models.attention import grouped_attention, rotary_angles
from jerp.models.block import Block, DecoderConfig, Mixer, rms_norm
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


class Decoder(nn.Module):
    """Token ids to hidden states, and hidden states to logits.

    `init` gives float32 parameters; `num_layers` sub-trees `layer_0`, `layer_1`, ...
    """

    config: DecoderConfig

    def setup(self):  # noqa: D102 (flax's own hook)
        c = self.config
        init = nn.initializers.normal(0.02)
        self.embedding = self.param("embedding", init, (c.vocab_size, c.hidden_size))
        # Argument 4, the mixer, is a function and no array.
        block = nn.remat(Block, static_argnums=4) if c.remat else Block
        self.layers = [block(c, name=f"layer_{i}") for i in range(c.num_layers)]
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
        angles = rotary_angles(
            positions,
            head_dim=c.head_dim,
            base=c.rope_base,
            scaling=c.rope_scaling,
        )
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
    # Adapters beside the parameters stay as they are.
    variables = {**cast(Any, params), "params": unflatten_dict(flat, sep="/")}
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

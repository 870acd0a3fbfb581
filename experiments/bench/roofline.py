"""What a decoder's work needs at least, and what the machine at hand can do.

The share of the roofline is the time that the slower of arithmetic and memory would
take at the speeds that this machine shows in the same run, over the time measured:

    share = max(FLOPs / (FLOP/s), bytes / (bytes/s)) / seconds

A weight of a matrix costs 2 FLOPs a token; so do an adapter's weights and, for tokens
whose logits are made, those of the output matrix. Attention costs 4 FLOPs for each of
`num_heads * head_dim` features, each layer and each token seen:

    forward        = tokens (2 W + 2 R + 4 n q S) + 2 logits d V
    backward, all  = twice the forward pass
    backward, LoRA = tokens (2 W + 4 R + 8 n q S) + 2 logits d V

with W weights in the layers, R in adapters, n layers, q features of all query heads, S
tokens seen on average, d features of a state and V rows of the output matrix. Frozen
weights need no gradient, which is half of their backward pass. Bytes are those of
weights, read once a pass, and of the cache that a pass reads; states are not counted.
Where memory bounds weights that fit into the device's own caches, a share can pass 1.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax

from jerp.models.decoder import DecoderConfig
from jerp.models.lora import projection_sizes

__all__ = ["Peaks", "Tokens", "Work", "bound_and_share", "gradient", "measured_peaks"]

CHAIN = 8
"""Products in one call, so that starting it costs little beside them."""


@dataclass(frozen=True)
class Work:
    """What a call needs at least."""

    flops: float
    bytes: float


@dataclass(frozen=True)
class Peaks:
    """What the machine does.

    Attributes:
      flops: FLOP/s by the type of products.
      bytes: bytes/s, read and written.
    """

    flops: dict[str, float]
    bytes: float


@dataclass(frozen=True)
class Tokens:
    """What passes through a decoder in one call.

    Attributes:
      config: of the decoder.
      count: tokens.
      context: tokens that each sees, on average.
      logits: tokens whose logits are made.
      rows: of the output matrix.
      adapters: weights of adapters; 0 for none.
      product_bytes: of a weight in a product.
    """

    config: DecoderConfig
    count: float
    context: float
    logits: float
    rows: int
    adapters: int = 0
    product_bytes: int = 4

    def flops(self, *, frozen: float = 1.0, attention: float = 1.0) -> float:
        """Of a forward pass: the products with frozen weights and attention so often.

        Adapters go with attention: what is said twice for one is so for the other.
        """
        c = self.config
        layers = 2.0 * c.num_layers * _layer_weights(c) * self.count
        output = 2.0 * self.logits * c.hidden_size * self.rows
        width = c.num_heads * c.head_dim
        mixed = 4.0 * c.num_layers * width * self.context + 2.0 * self.adapters
        return frozen * (layers + output) + attention * mixed * self.count

    @property
    def weight_bytes(self) -> float:
        """Of all matrices that a pass reads."""
        c = self.config
        weights = c.num_layers * _layer_weights(c) + c.hidden_size * self.rows
        return float(self.product_bytes * weights + 4 * self.adapters)

    def generation(self, *, passes: int, batch_size: int) -> Work:
        """What playing needs: `passes` passes with a float32 cache, one after another.

        Each reads all weights, and of each of `batch_size` rows the keys and values of
        `context` tokens.
        """
        c = self.config
        each = 4.0 * 2 * c.num_layers * c.num_kv_heads * c.head_dim * self.context
        return Work(self.flops(), passes * (self.weight_bytes + batch_size * each))


def gradient(tokens: Tokens, *, parts: int, lora: bool) -> Work:
    """What a gradient needs, made in `parts` parts, of adapters alone if `lora`."""
    backward = tokens.flops(frozen=1.0 if lora else 2.0, attention=2.0)
    return Work(tokens.flops() + backward, 2.0 * parts * tokens.weight_bytes)


def bound_and_share(
    work: Work, peaks: Peaks, product: str, seconds: float
) -> tuple[str, float]:
    """What bounds a call, "arithmetic" or "memory", and its share of the roofline."""
    times = {
        "arithmetic": work.flops / peaks.flops[product],
        "memory": work.bytes / peaks.bytes,
    }
    bound = max(times, key=lambda name: times[name])
    return bound, times[bound] / seconds


def measured_peaks(size: int, *, rounds: int = 5) -> Peaks:
    """Speeds of products of `[size, size]` matrices and of a copy of 4 of them.

    Products in float32 are those that JAX makes by default, which on some devices are
    not in full precision.
    """
    flops = {}
    for dtype in (jnp.float32, jnp.bfloat16):
        matrix = jnp.full((size, size), 1 / size, dtype)
        seconds = _fastest(_products, (matrix, matrix), rounds)
        flops[jnp.dtype(dtype).name] = CHAIN * 2.0 * size**3 / seconds
    array = jnp.zeros((4, size, size))
    copied = 2.0 * array.nbytes / _fastest(_copy, (array,), rounds)
    return Peaks(flops, copied)


@jax.jit
def _products(x: jax.Array, matrix: jax.Array) -> jax.Array:
    return lax.fori_loop(0, CHAIN, lambda _, x: x @ matrix, x)


@jax.jit
def _copy(x: jax.Array) -> jax.Array:
    return x + 1.0


def _fastest(
    call: Callable[..., Any], arguments: tuple[Any, ...], rounds: int
) -> float:
    jax.block_until_ready(call(*arguments))
    found = []
    for _ in range(rounds):
        start = time.perf_counter()
        jax.block_until_ready(call(*arguments))
        found.append(time.perf_counter() - start)
    return min(found)


def _layer_weights(config: DecoderConfig) -> int:
    return sum(math.prod(size) for size in projection_sizes(config).values())

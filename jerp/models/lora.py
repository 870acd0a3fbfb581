"""Low-rank adapters: small trainable matrices beside a decoder's frozen ones.

    y = x W + (alpha / r) (x A) B,    A [in, r],  B [r, out]

Adapters are a pytree of their own, `{"layer_0": {"q": {"a": A, "b": B}, ...}, ...}`:
what an optimizer is given, what is vmapped over, what is saved. Query, key and value
share one matrix here, as do gate and up; adapters are for each projection, as in PEFT.
A projection's path is `layer_<i>/<name>`, with a name of `PROJECTIONS`.

`with_adapters` puts them beside the frozen parameters: what it returns goes wherever
variables of a `Decoder` do, generation and paging included. Norms, biases and
embeddings have no adapters.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, cast

import jax
import jax.numpy as jnp

from jerp.errors import ConfigError
from jerp.models.decoder import DecoderConfig
from jerp.models.projections import (
    JOINED,
    PROJECTIONS,
    check_adapters,
    projection_sizes,
)
from jerp.typing import Array, ArrayTree, Key

__all__ = [
    "ATTENTION",
    "PROJECTIONS",
    "LoraConfig",
    "init_adapters",
    "merge_adapters",
    "projection_sizes",
    "with_adapters",
]

ATTENTION = r"layer_\d+/(q|k|v|o)"
"""All projections of attention."""


@dataclass(frozen=True)
class LoraConfig:
    """Which projections get adapters, and of what kind.

    Attributes:
      rank: `r`, at least 1.
      alpha: the adapters' product is multiplied by `alpha / rank`.
      dropout: probability with which an element of an adapter's input is dropped while
        training; the rest is scaled up. The frozen product sees the whole input.
      targets: a regular expression that the whole path of a projection must match.

    Raises:
      ConfigError: a number out of range, or no regular expression.
    """

    rank: int
    alpha: float
    dropout: float = 0.0
    targets: str = ATTENTION

    def __post_init__(self):
        if self.rank < 1:
            raise ConfigError(f"rank: expected at least 1, got {self.rank}")
        if not (math.isfinite(self.alpha) and self.alpha > 0):
            raise ConfigError(f"alpha: expected a positive number, got {self.alpha}")
        if not 0.0 <= self.dropout < 1.0:
            raise ConfigError(f"dropout: expected 0 <= p < 1, got {self.dropout}")
        try:
            re.compile(self.targets)
        except re.error as error:
            raise ConfigError(
                f"targets: expected a regular expression such as {ATTENTION!r}, got "
                f"{self.targets!r} ({error})"
            ) from error

    @property
    def scale(self) -> float:
        """`alpha / r`."""
        return self.alpha / self.rank


def init_adapters(
    key: Key, config: DecoderConfig, lora: LoraConfig
) -> dict[str, dict[str, dict[str, Array]]]:
    """Fresh adapters, which change nothing yet: `B = 0`.

        A ~ Uniform(-1 / sqrt(in), 1 / sqrt(in)),    B = 0

    Args:
      key: consumed. A projection's draw does not depend on the other targets.
      config: of the decoder.
      lora: of the adapters.

    Returns:
      `{"layer_<i>": {projection: {"a": [in, r], "b": [r, out]}}}`, float32.

    Raises:
      ConfigError: no projection matches `lora.targets`.

    Example:
      >>> from jerp.models.presets import tiny_decoder
      >>> lora = LoraConfig(rank=4, alpha=8.0, targets="layer_1/gate")
      >>> adapters = init_adapters(jax.random.key(0), tiny_decoder(100), lora)
      >>> jax.tree.map(jnp.shape, adapters)
      {'layer_1': {'gate': {'a': (64, 4), 'b': (4, 256)}}}

    Reference: Hu et al., "LoRA", arXiv:2106.09685, eq. 3. Deviations: the paper draws
    `A` from a Gaussian; PEFT draws it as here.
    """
    sizes = projection_sizes(config)
    adapters: dict[str, dict[str, dict[str, Array]]] = {}
    for number, layer, name in _targets(config, lora):
        rows, columns = sizes[name]
        drawn = jax.random.uniform(
            jax.random.fold_in(key, number), (rows, lora.rank), minval=-1.0
        )
        adapters.setdefault(layer, {})[name] = {
            "a": drawn / math.sqrt(rows),
            "b": jnp.zeros((lora.rank, columns)),
        }
    return adapters


def _targets(config: DecoderConfig, lora: LoraConfig) -> list[tuple[int, str, str]]:
    """Number, layer and name of each projection that gets an adapter."""
    pattern = re.compile(lora.targets)
    paths = [(f"layer_{i}", n) for i in range(config.num_layers) for n in PROJECTIONS]
    found = [
        (number, layer, name)
        for number, (layer, name) in enumerate(paths)
        if pattern.fullmatch(f"{layer}/{name}")
    ]
    if not found:
        raise ConfigError(
            f"targets: expected a pattern that matches paths layer_<i>/<name>, i < "
            f"{config.num_layers} and name one of {', '.join(PROJECTIONS)}; got "
            f"{lora.targets!r}, which matches none"
        )
    return found


def with_adapters(
    params: ArrayTree,
    adapters: Mapping[str, Any],
    lora: LoraConfig,
    *,
    dropout_key: Key | None = None,
) -> dict[str, Any]:
    """Variables of a `Decoder` that computes with adapters, without merging them.

        y = x W + (alpha / r) (x A) B

    Differentiate a loss with respect to `adapters` alone, with this call inside it; the
    gradients of the frozen matrices are then never computed. `vmap` over `adapters`
    alone runs many over one base.

    Args:
      params: variables of the decoder; shared, not copied. Products may be in another
        type (`cast_products`).
      adapters: of `init_adapters`.
      lora: of the adapters.
      dropout_key: consumed; drops elements of adapters' inputs, for training. None
        drops nothing, for generation.

    Returns:
      The variables.

    Raises:
      ConfigError: adapters of layers, projections or sizes that the decoder does not
        have, or of another rank.

    Example:
      >>> params = {"params": {"layer_0": {"qkv": jnp.ones((2, 6))}}}
      >>> adapters = {"layer_0": {"q": {"a": jnp.ones((2, 1)), "b": jnp.ones((1, 2))}}}
      >>> variables = with_adapters(params, adapters, LoraConfig(rank=1, alpha=3.0))
      >>> sorted(variables), variables["adapters"]["layer_0"]["q"]["b"].tolist()
      (['adapters', 'params'], [[3.0, 3.0]])

    Reference: Hu et al., "LoRA", arXiv:2106.09685, eq. 3.
    """
    check_adapters(cast(Any, params)["params"], adapters, lora.rank)
    beside: dict[str, dict[str, dict[str, Any]]] = {}
    for layer, pairs in adapters.items():
        beside[layer] = {}
        for name, pair in pairs.items():
            # The factor goes into B: a product of r x out, not one of B x T x out.
            entry: dict[str, Any] = {"a": pair["a"], "b": lora.scale * pair["b"]}
            if dropout_key is not None and lora.dropout > 0:
                index = int(layer.removeprefix("layer_")) * len(PROJECTIONS)
                number = index + PROJECTIONS.index(name)
                entry["key"] = jax.random.fold_in(dropout_key, number)
                entry["keep"] = jnp.float32(1.0 - lora.dropout)
            beside[layer][name] = entry
    return {**cast(Any, params), "adapters": beside}


def merge_adapters(
    config: DecoderConfig,
    params: ArrayTree,
    adapters: Mapping[str, Any],
    lora: LoraConfig,
) -> dict[str, Any]:
    """Variables of a plain `Decoder` that computes what base and adapters do.

        W' = W + (alpha / r) A B

    Args:
      config: of the decoder.
      params: its variables, of which a copy is changed.
      adapters: of `init_adapters`.
      lora: of the adapters.

    Returns:
      Variables without adapters; matrices keep their type.

    Raises:
      ConfigError: adapters of layers, projections or sizes that the decoder does not
        have, or of another rank.

    Example:
      >>> from jerp.models.presets import tiny_decoder
      >>> params = {"params": {"layer_0": {"out": jnp.ones((64, 64))}}}
      >>> pair = {"a": jnp.ones((64, 1)), "b": jnp.zeros((1, 64)).at[0, 1].set(2.0)}
      >>> adapters, lora = {"layer_0": {"o": pair}}, LoraConfig(rank=1, alpha=3.0)
      >>> merged = merge_adapters(tiny_decoder(100), params, adapters, lora)
      >>> merged["params"]["layer_0"]["out"][5, :3].tolist()
      [1.0, 7.0, 1.0]

    Reference: Hu et al., "LoRA", arXiv:2106.09685, section 4.1.
    """
    sizes, base = projection_sizes(config), cast(Any, params)["params"]
    check_adapters(base, adapters, lora.rank)
    merged = dict(base)
    for layer, pairs in adapters.items():
        merged[layer] = dict(base[layer])
        for matrix, names in JOINED.items():
            if not any(name in pairs for name in names):
                continue
            kernel = base[layer][matrix]
            parts = [
                lora.scale * (pairs[n]["a"] @ pairs[n]["b"])
                if n in pairs
                else jnp.zeros(sizes[n])
                for n in names
            ]
            change = jnp.concatenate(parts, axis=1)
            merged[layer][matrix] = (kernel + change).astype(kernel.dtype)
    return {"params": merged}

"""What every weight format is read into, and the parameter names of the decoder."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import flax.traverse_util
import jax
import jax.numpy as jnp
import numpy as np
from tokenizers import Tokenizer

from jerp.errors import WeightsError
from jerp.models.decoder import Decoder, DecoderConfig

__all__ = ["LAYER_MATRICES", "RawModel", "check_vocabulary", "decoder_arrays"]
__all__ += ["parameter_shapes", "split_layer"]

LAYER_MATRICES = ("q", "k", "v", "o", "gate", "up", "down")
"""Matrices of a layer that files store one by one."""


@dataclass(frozen=True)
class RawModel:
    """A model as read from disk; `arrays` are float32, by flat parameter name."""

    config: DecoderConfig
    arrays: dict[str, np.ndarray]
    tokenizer: Tokenizer
    chat_template: str
    stop_tokens: tuple[int, ...]
    quantisation: str
    template_variables: Mapping[str, str] = field(default_factory=dict)


def decoder_arrays(
    config: DecoderConfig,
    read: Callable[[str], np.ndarray],
    read_layer: Callable[[int, str], np.ndarray],
) -> dict[str, np.ndarray]:
    """Parameters of `jerp.models.decoder.Decoder` from the matrices of a file.

    Args:
      config: sizes.
      read: `embedding`, `final_norm` or `unembedding`.
      read_layer: of a layer, one of `LAYER_MATRICES` as `[out, in]`; `attention_norm`
        or `mlp_norm`; where the decoder has them `q_bias`, `k_bias` and `v_bias`, or
        `query_norm` and `key_norm`.

    Returns:
      Arrays by flat name; projections of one input are joined, all are `[in, out]`.
    """
    names = ["embedding", "final_norm"]
    names += [] if config.tied_embeddings else ["unembedding"]
    arrays = {name: read(name) for name in names}
    for i in range(config.num_layers):
        m = {name: read_layer(i, name) for name in LAYER_MATRICES}
        layer = {
            "attention_norm": read_layer(i, "attention_norm"),
            "qkv": np.concatenate([m["q"], m["k"], m["v"]]).T,
            "out": m["o"].T,
            "mlp_norm": read_layer(i, "mlp_norm"),
            "gate_up": np.concatenate([m["gate"], m["up"]]).T,
            "down": m["down"].T,
        }
        if config.qkv_bias:
            biases = [read_layer(i, f"{name}_bias") for name in "qkv"]
            layer["qkv_bias"] = np.concatenate(biases)
        if config.qk_norm:
            layer |= {n: read_layer(i, n) for n in ("query_norm", "key_norm")}
        arrays |= {f"layer_{i}/{name}": value for name, value in layer.items()}
    return arrays


def split_layer(
    config: DecoderConfig, arrays: Mapping[str, np.ndarray], index: int
) -> dict[str, np.ndarray]:
    """What `decoder_arrays` reads of a layer, from the parameters it makes of it."""
    layer = {
        name.removeprefix(f"layer_{index}/"): value
        for name, value in arrays.items()
        if name.startswith(f"layer_{index}/")
    }
    widths = config.qkv_widths
    cuts = [widths["q"], widths["q"] + widths["k"]]
    parts = dict(zip("qkv", np.split(layer.pop("qkv").T, cuts), strict=True))
    parts["o"] = layer.pop("out").T
    parts["gate"], parts["up"] = np.split(layer.pop("gate_up").T, 2)
    parts["down"] = layer.pop("down").T
    if config.qkv_bias:
        biases = np.split(layer.pop("qkv_bias"), cuts)
        parts |= {f"{n}_bias": bias for n, bias in zip("qkv", biases, strict=True)}
    return parts | layer


def parameter_shapes(config: DecoderConfig) -> dict[str, tuple[int, ...]]:
    """Shapes of the decoder's parameters, by flat name."""
    decoder, tokens = Decoder(config), jnp.zeros((1, 1), jnp.int32)
    expected = jax.eval_shape(decoder.init, jax.random.key(0), tokens)
    flat: dict[str, Any] = flax.traverse_util.flatten_dict(expected["params"], sep="/")
    return {name: tuple(leaf.shape) for name, leaf in flat.items()}


def check_vocabulary(path: Path, config: DecoderConfig, tokenizer: Tokenizer) -> None:
    """Raises `WeightsError` unless tokenizer and embedding fit together.

    Released models pad their embedding to a round number of rows, Qwen's by 0.3 %; up
    to 1 % of them may have no token.
    """
    size = 1 + max(tokenizer.get_vocab(with_added_tokens=True).values(), default=-1)
    if not config.vocab_size * 0.99 <= size <= config.vocab_size:
        raise WeightsError(
            f"{path}: the tokenizer has {size} tokens, expected vocab_size="
            f"{config.vocab_size}, or up to 1 % fewer; this is another model's "
            "tokenizer"
        )

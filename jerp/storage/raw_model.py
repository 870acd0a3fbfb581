"""What every weight format is read into, and the parameter names of the decoder."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import numpy as np
from tokenizers import Tokenizer

from jerp.models.decoder import DecoderConfig

__all__ = ["LAYER_MATRICES", "RawModel", "decoder_arrays"]

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
      read_layer: of a layer, one of `LAYER_MATRICES` as `[out, in]`, or
        `attention_norm` or `mlp_norm`.

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
        arrays |= {f"layer_{i}/{name}": value for name, value in layer.items()}
    return arrays

"""Reads a Llama-family decoder and its tokenizer from one GGUF file, without torch.

GGUF stores matrices as `[out, in]` blocks in one of several quantisations; they are
dequantised to float32. llama.cpp rotates neighbouring pairs where this library rotates
halves, so query and key rows come back permuted: `unpermute_rotary` undoes it. Other
architectures, scaled rotary positions and unknown pre-tokenizers are refused by name.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import gguf
import numpy as np
from gguf.quants import dequantize
from tokenizers import Tokenizer

from jerp.errors import WeightsError
from jerp.models.decoder import DecoderConfig
from jerp.storage.raw_model import RawModel, decoder_arrays
from jerp.storage.tokenizer import byte_level_tokenizer

__all__ = ["read_gguf", "unpermute_rotary"]

END_TOKENS = ("<|im_end|>", "<|endoftext|>", "<|eot_id|>", "</s>")
"""Control tokens after which no chat model continues."""

_NAMES = {
    "embedding": "token_embd",
    "final_norm": "output_norm",
    "unembedding": "output",
}
_LAYER_NAMES = {
    "q": "attn_q",
    "k": "attn_k",
    "v": "attn_v",
    "o": "attn_output",
    "gate": "ffn_gate",
    "up": "ffn_up",
    "down": "ffn_down",
    "attention_norm": "attn_norm",
    "mlp_norm": "ffn_norm",
}
_CONTROL = 3
_BROKEN = (ValueError, IndexError, KeyError, OverflowError, UnicodeDecodeError)


def unpermute_rotary(matrix: np.ndarray, *, num_heads: int) -> np.ndarray:
    """Rows of a query or key projection from neighbouring pairs to halves.

    Row `2 i + j` of a head becomes row `j D/2 + i`, with `j` in {0, 1}.

    Args:
      matrix: `[heads * D, in]`.
      num_heads: query heads, or key/value heads for a key projection.

    Returns:
      `[heads * D, in]`.
    """
    half = matrix.shape[0] // num_heads // 2
    pairs = matrix.reshape(num_heads, half, 2, -1)
    return pairs.swapaxes(1, 2).reshape(matrix.shape)


class _Metadata:
    """Typed access to the key-value part; a missing key is a `WeightsError`."""

    def __init__(self, path: Path, reader: gguf.GGUFReader):
        self._path, self._fields = path, reader.fields

    def get(self, key: str, default: Any = None) -> Any:
        field = self._fields.get(key)
        return default if field is None else field.contents()

    def need(self, key: str) -> Any:
        value = self.get(key)
        if value is None:
            raise WeightsError(f"{self._path}: the GGUF metadata has no {key!r}")
        return value


def read_gguf(path: Path) -> RawModel:
    """Reads and dequantises `path`; raises `WeightsError` for anything unreadable."""
    try:
        reader = gguf.GGUFReader(path)
        metadata = _Metadata(path, reader)
        config = _config(path, metadata, reader)
        tensors = {t.name: t for t in reader.tensors}
        arrays = _arrays(path, config, tensors)
        tokenizer, stop_tokens = _tokenizer(path, metadata)
    except WeightsError:
        raise
    except _BROKEN as error:
        raise WeightsError(
            f"{path}: not a complete GGUF file ({error}); delete it and fetch it again "
            "(jerp models pull)"
        ) from error
    quantised = {t.tensor_type.name for t in reader.tensors} - {"F32"}
    return RawModel(
        config=config,
        arrays=arrays,
        tokenizer=tokenizer,
        chat_template=metadata.get("tokenizer.chat_template", ""),
        stop_tokens=stop_tokens,
        quantisation="+".join(sorted(quantised)) or "F32",
        template_variables=_variables(metadata),
    )


def _variables(metadata: _Metadata) -> dict[str, str]:
    tokens = metadata.need("tokenizer.ggml.tokens")
    ids = {n: metadata.get(f"tokenizer.ggml.{n}_token_id") for n in ("bos", "eos")}
    return {f"{n}_token": tokens[i] for n, i in ids.items() if i is not None}


def _config(path: Path, metadata: _Metadata, reader: gguf.GGUFReader) -> DecoderConfig:
    architecture = metadata.need("general.architecture")
    names = {t.name for t in reader.tensors}
    if architecture != "llama" or "rope_freqs.weight" in names:
        raise WeightsError(
            f"{path}: expected architecture 'llama' without scaled rotary positions, "
            f"got {architecture!r}; use another file or a Hugging Face folder"
        )
    heads = int(metadata.need("llama.attention.head_count"))
    hidden = int(metadata.need("llama.embedding_length"))
    return DecoderConfig(
        vocab_size=len(metadata.need("tokenizer.ggml.tokens")),
        hidden_size=hidden,
        intermediate_size=int(metadata.need("llama.feed_forward_length")),
        num_layers=int(metadata.need("llama.block_count")),
        num_heads=heads,
        num_kv_heads=int(metadata.get("llama.attention.head_count_kv", heads)),
        head_dim=int(metadata.get("llama.rope.dimension_count", hidden // heads)),
        context_length=int(metadata.need("llama.context_length")),
        rope_base=float(metadata.get("llama.rope.freq_base", 10_000.0)),
        rms_epsilon=float(metadata.need("llama.attention.layer_norm_rms_epsilon")),
        tied_embeddings="output.weight" not in names,
    )


def _arrays(
    path: Path, config: DecoderConfig, tensors: dict[str, Any]
) -> dict[str, np.ndarray]:
    def read(name: str) -> np.ndarray:
        stored = _NAMES.get(name, name) + ".weight"
        if stored not in tensors:
            raise WeightsError(f"{path}: the GGUF file has no tensor {stored!r}")
        tensor = tensors[stored]
        return dequantize(tensor.data, tensor.tensor_type).astype(np.float32)

    def read_layer(index: int, name: str) -> np.ndarray:
        matrix = read(f"blk.{index}.{_LAYER_NAMES[name]}")
        heads = {"q": config.num_heads, "k": config.num_kv_heads}
        if name in heads:
            return unpermute_rotary(matrix, num_heads=heads[name])
        return matrix

    return decoder_arrays(config, read, read_layer)


def _tokenizer(path: Path, metadata: _Metadata) -> tuple[Tokenizer, tuple[int, ...]]:
    model = metadata.need("tokenizer.ggml.model")
    pre = metadata.get("tokenizer.ggml.pre", "gpt-2")
    if model != "gpt2" or pre not in ("gpt-2", "smollm"):
        raise WeightsError(
            f"{path}: expected a byte-level tokenizer with pre-tokenizer 'gpt-2' or "
            f"'smollm', got {model!r}/{pre!r}; use a Hugging Face folder, which brings "
            "its tokenizer.json"
        )
    tokens = metadata.need("tokenizer.ggml.tokens")
    kinds = metadata.get("tokenizer.ggml.token_type", [1] * len(tokens))
    control = [t for t, kind in zip(tokens, kinds, strict=True) if kind == _CONTROL]
    tokenizer = byte_level_tokenizer(
        tokens,
        metadata.need("tokenizer.ggml.merges"),
        special=control,
        split_digits=pre == "smollm",
    )
    stops = {metadata.get("tokenizer.ggml.eos_token_id")}
    stops |= {tokenizer.token_to_id(t) for t in END_TOKENS if t in control}
    return tokenizer, tuple(sorted(int(s) for s in stops if s is not None))

"""Reads a Llama- or Qwen-family decoder and its tokenizer from one GGUF file.

GGUF stores matrices as `[out, in]` blocks in one of several quantisations; they are
dequantised to float32, without torch. For the architecture `llama`, llama.cpp rotates
neighbouring pairs where this library rotates halves, so query and key rows come back
permuted: `unpermute_rotary` undoes it; for `qwen2` and `qwen3` it rotates halves too.
Other architectures, quantisations, scalings of rotary positions, pre-tokenizers and
tensors that nothing reads are refused by name.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import gguf
import jax.numpy as jnp
import numpy as np
from gguf.quants import dequantize
from tokenizers import Tokenizer

from jerp.errors import ConfigError, WeightsError
from jerp.models.attention import RopeScaling, scaled_frequencies
from jerp.models.decoder import DecoderConfig
from jerp.storage.raw_model import RawModel, check_vocabulary, decoder_arrays
from jerp.storage.tokenizer import Split, byte_level_tokenizer

__all__ = ["ARCHITECTURES", "QUANTISATIONS", "read_gguf", "unpermute_rotary"]

ARCHITECTURES = ("llama", "qwen2", "qwen3")
"""Supported architectures; SmolLM2 and Llama 3 are `llama`."""

QUANTISATIONS = ("F32", "F16", "BF16", "Q8_0", "Q4_0", "Q4_1", "Q5_0", "Q5_1")
QUANTISATIONS += ("Q4_K", "Q5_K", "Q6_K")
"""Supported kinds of tensors; a file mixes several."""

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
    "query_norm": "attn_q_norm",
    "key_norm": "attn_k_norm",
}
_ROPE_FACTORS = "rope_freqs.weight"
_PRE_TOKENIZERS: dict[str, Split] = {
    "gpt-2": "gpt2",
    "smollm": "gpt2_digits",
    "llama-bpe": "llama3",
    "qwen2": "qwen2",
}
_CONTROL, _USER_DEFINED = 3, 4
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
        tensors = {t.name: t for t in reader.tensors}
        config = _config(path, metadata, tensors)
        arrays = _arrays(path, config, metadata, tensors)
        tokenizer, stop_tokens = _tokenizer(path, metadata)
        check_vocabulary(path, config, tokenizer)
    except WeightsError:
        raise
    except ConfigError as error:
        raise WeightsError(f"{path}: {error}") from error
    except _BROKEN as error:
        if gguf.GGMLQuantizationType.__name__ in str(error):
            found = f"one that gguf does not know ({error})"
            raise _unknown_quantisation(path, found) from error
        raise WeightsError(
            f"{path}: not a complete GGUF file ({error}); name one, or a Hugging Face "
            "folder, and fetch again what was fetched in part (jerp models pull)"
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


def _unknown_quantisation(path: Path, found: str) -> WeightsError:
    return WeightsError(
        f"{path}: expected tensors quantised as one of {', '.join(QUANTISATIONS)}, got "
        f"{found}; take a file of another quantisation"
    )


def _config(path: Path, metadata: _Metadata, tensors: dict[str, Any]) -> DecoderConfig:
    family = metadata.need("general.architecture")
    if family not in ARCHITECTURES:
        raise WeightsError(
            f"{path}: expected an architecture of {', '.join(ARCHITECTURES)}, got "
            f"{family!r}; no other is supported"
        )
    if metadata.get("split.count", 0) > 1:
        raise WeightsError(
            f"{path}: one of {metadata.get('split.count')} parts of a model, expected "
            "one file; join them with llama.cpp's gguf-split, or use a folder"
        )

    def need(key: str) -> Any:
        return metadata.need(f"{family}.{key}")

    def get(key: str, default: Any) -> Any:
        return metadata.get(f"{family}.{key}", default)

    heads, hidden = int(need("attention.head_count")), int(need("embedding_length"))
    dim = int(get("attention.key_length", hidden // heads))
    for key in ("attention.value_length", "rope.dimension_count"):
        if int(get(key, dim)) != dim:
            raise WeightsError(
                f"{path}: {family}.{key}: expected the {dim} features of a head, got "
                f"{get(key, dim)}; no other is supported"
            )
    base = float(get("rope.freq_base", 10_000.0))
    return DecoderConfig(
        # GGUF names the axes of a tensor from the last one to the first.
        vocab_size=int(_tensor(path, tensors, "token_embd.weight").shape[1]),
        hidden_size=hidden,
        intermediate_size=int(need("feed_forward_length")),
        num_layers=int(need("block_count")),
        num_heads=heads,
        num_kv_heads=int(get("attention.head_count_kv", heads)),
        head_dim=dim,
        context_length=int(need("context_length")),
        rope_base=base,
        rms_epsilon=float(need("attention.layer_norm_rms_epsilon")),
        tied_embeddings="output.weight" not in tensors,
        qkv_bias=family == "qwen2",
        qk_norm=family == "qwen3",
        rope_scaling=_rope_scaling(path, get, tensors, base=base, dim=dim),
    )


def _rope_scaling(
    path: Path,
    get: Callable[..., Any],
    tensors: dict[str, Any],
    *,
    base: float,
    dim: int,
) -> RopeScaling | None:
    """What the metadata says, or what the divisors of the frequencies come from."""
    kind = get("rope.scaling.type", "none")
    if kind not in ("none", "linear"):
        raise WeightsError(
            f"{path}: rope.scaling.type: expected none or linear, got {kind!r}; no "
            "other scaling of rotary positions is supported"
        )
    if _ROPE_FACTORS not in tensors:
        factor = float(get("rope.scaling.factor", 1.0))
        return RopeScaling("linear", factor) if kind == "linear" else None
    divisors = _dequantised(path, tensors[_ROPE_FACTORS])
    # The file has no more than these; Llama's releases differ in the factor alone.
    guess = RopeScaling("llama3", max(1.0, float(divisors.max())))
    plain = 1.0 / base ** (jnp.arange(0, dim, 2, dtype=jnp.float32) / dim)
    expected = np.asarray(plain / scaled_frequencies(plain, guess))
    if divisors.shape != expected.shape or not np.allclose(
        divisors, expected, rtol=1e-4
    ):
        raise WeightsError(
            f"{path}: {_ROPE_FACTORS}: expected Llama 3's scaling of rotary positions "
            f"with factors {guess.low_frequency_factor} and "
            f"{guess.high_frequency_factor} of {guess.original_context_length}, got "
            "another; use a Hugging Face folder"
        )
    return guess


def _tensor(path: Path, tensors: dict[str, Any], stored: str) -> Any:
    if stored not in tensors:
        raise WeightsError(f"{path}: the GGUF file has no tensor {stored!r}")
    return tensors[stored]


def _dequantised(path: Path, tensor: Any) -> np.ndarray:
    if tensor.tensor_type.name not in QUANTISATIONS:
        raise _unknown_quantisation(path, f"{tensor.tensor_type.name} ({tensor.name})")
    return dequantize(tensor.data, tensor.tensor_type).astype(np.float32)


def _arrays(
    path: Path, config: DecoderConfig, metadata: _Metadata, tensors: dict[str, Any]
) -> dict[str, np.ndarray]:
    unread = set(tensors) - {_ROPE_FACTORS}
    permuted = metadata.need("general.architecture") == "llama"
    heads = {"q": config.num_heads, "k": config.num_kv_heads}

    def read(stored: str) -> np.ndarray:
        unread.discard(stored)
        return _dequantised(path, _tensor(path, tensors, stored))

    def read_layer(index: int, name: str) -> np.ndarray:
        if name.endswith("_bias"):
            part = _LAYER_NAMES[name.removesuffix("_bias")]
            return read(f"blk.{index}.{part}.bias")
        matrix = read(f"blk.{index}.{_LAYER_NAMES[name]}.weight")
        if permuted and name in heads:
            return unpermute_rotary(matrix, num_heads=heads[name])
        return matrix

    arrays = decoder_arrays(config, lambda n: read(f"{_NAMES[n]}.weight"), read_layer)
    if unread:
        raise WeightsError(
            f"{path}: {min(unread)!r} and {len(unread) - 1} more tensors have no place "
            f"in a {metadata.need('general.architecture')} decoder; it would answer "
            "without them"
        )
    return arrays


def _tokenizer(path: Path, metadata: _Metadata) -> tuple[Tokenizer, tuple[int, ...]]:
    model = metadata.need("tokenizer.ggml.model")
    pre = metadata.get("tokenizer.ggml.pre", "gpt-2")
    if model != "gpt2" or pre not in _PRE_TOKENIZERS:
        raise WeightsError(
            f"{path}: expected a byte-level tokenizer with pre-tokenizer "
            f"{', '.join(_PRE_TOKENIZERS)}, got {model!r}/{pre!r}; use a Hugging Face "
            "folder, which brings its tokenizer.json"
        )
    tokens = metadata.need("tokenizer.ggml.tokens")
    kinds = metadata.get("tokenizer.ggml.token_type", [1] * len(tokens))
    by_kind = {kind: [] for kind in (_CONTROL, _USER_DEFINED)}
    for token, kind in zip(tokens, kinds, strict=True):
        by_kind.get(kind, []).append(token)
    control = by_kind[_CONTROL]
    tokenizer = byte_level_tokenizer(
        tokens,
        metadata.need("tokenizer.ggml.merges"),
        special=control,
        added=by_kind[_USER_DEFINED],
        split=_PRE_TOKENIZERS[pre],
    )
    stops = {metadata.get("tokenizer.ggml.eos_token_id")}
    stops |= {tokenizer.token_to_id(t) for t in END_TOKENS if t in control}
    return tokenizer, tuple(sorted(int(s) for s in stops if s is not None))

"""What Hugging Face folders call sizes and matrices, in both directions.

Three architectures: `llama` (SmolLM2, Llama 2 and 3), `qwen2` (Qwen2 and 2.5: biases of
query, key and value) and `qwen3` (norms of query and key heads). Whatever else a
config.json asks for is refused by name rather than read wrongly.
"""

from __future__ import annotations

import copy
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from jerp.errors import ConfigError, WeightsError
from jerp.models.attention import RopeScaling
from jerp.models.decoder import DecoderConfig
from jerp.storage.raw_model import split_layer

__all__ = ["ARCHITECTURES", "LAYER_NAMES", "NAMES", "decoder_config"]
__all__ += ["hub_config", "hub_tensors"]

ARCHITECTURES = {
    "llama": "LlamaForCausalLM",
    "qwen2": "Qwen2ForCausalLM",
    "qwen3": "Qwen3ForCausalLM",
}
"""Supported `model_type`s, and the class that each names."""

NAMES = {
    "embedding": "model.embed_tokens.weight",
    "final_norm": "model.norm.weight",
    "unembedding": "lm_head.weight",
}
LAYER_NAMES = {
    "q": "self_attn.q_proj.weight",
    "k": "self_attn.k_proj.weight",
    "v": "self_attn.v_proj.weight",
    "o": "self_attn.o_proj.weight",
    "gate": "mlp.gate_proj.weight",
    "up": "mlp.up_proj.weight",
    "down": "mlp.down_proj.weight",
    "attention_norm": "input_layernorm.weight",
    "mlp_norm": "post_attention_layernorm.weight",
    "q_bias": "self_attn.q_proj.bias",
    "k_bias": "self_attn.k_proj.bias",
    "v_bias": "self_attn.v_proj.bias",
    "query_norm": "self_attn.q_norm.weight",
    "key_norm": "self_attn.k_norm.weight",
}
_NEEDED = ("vocab_size", "hidden_size", "intermediate_size", "num_hidden_layers")
_NEEDED += ("num_attention_heads", "max_position_embeddings", "rms_norm_eps")
_LLAMA3 = {
    "factor": "factor",
    "low_frequency_factor": "low_freq_factor",
    "high_frequency_factor": "high_freq_factor",
    "original_context_length": "original_max_position_embeddings",
}


def decoder_config(path: Path, raw: Mapping[str, Any]) -> DecoderConfig:
    """Sizes from a config.json, by transformers' own reading of it.

    Args:
      path: of the file.
      raw: what it holds. A size that it does not name is an error, though transformers
        has a default for each: that of another model.

    Returns:
      The sizes.

    Raises:
      WeightsError: another architecture, or a setting that the decoder does not have.
    """
    family = raw.get("model_type")
    if family not in ARCHITECTURES:
        raise WeightsError(
            f"{path}: model_type: expected one of {', '.join(ARCHITECTURES)}, got "
            f"{family!r}; no other architecture is supported"
        )
    for name in _NEEDED:
        if name not in raw:
            raise WeightsError(f"{path} has no {name!r}")
    parsed = _parse(path, raw)
    rope = parsed.rope_parameters
    _check_settings(path, parsed, rope)
    try:
        return DecoderConfig(
            vocab_size=parsed.vocab_size,
            hidden_size=parsed.hidden_size,
            intermediate_size=parsed.intermediate_size,
            num_layers=parsed.num_hidden_layers,
            num_heads=parsed.num_attention_heads,
            num_kv_heads=parsed.num_key_value_heads or parsed.num_attention_heads,
            head_dim=getattr(parsed, "head_dim", None)
            or parsed.hidden_size // parsed.num_attention_heads,
            context_length=parsed.max_position_embeddings,
            rope_base=rope["rope_theta"],
            rms_epsilon=parsed.rms_norm_eps,
            tied_embeddings=parsed.tie_word_embeddings,
            qkv_bias=family == "qwen2",
            qk_norm=family == "qwen3",
            rope_scaling=_scaling(path, rope),
        )
    except ConfigError as error:
        raise WeightsError(f"{path}: {error}") from error


def _parse(path: Path, raw: Mapping[str, Any]) -> Any:
    # A copy, because transformers writes into nested settings.
    settings = {k: v for k, v in copy.deepcopy(dict(raw)).items() if k != "model_type"}
    # Without it, Qwen2 and Llama 2 have as many key/value heads as their largest model.
    settings.setdefault("num_key_value_heads", raw["num_attention_heads"])
    try:
        return _auto_config().for_model(raw["model_type"], **settings)
    except Exception as error:  # its checks raise several kinds
        raise WeightsError(f"{path}: transformers refuses it: {error}") from error


def _auto_config() -> Any:
    """The class of transformers: half a second to import; GGUF files do without."""
    quiet = "TRANSFORMERS_NO_ADVISORY_WARNINGS"
    before = os.environ.get(quiet)
    # Else it tells whoever lacks torch that models will not be available.
    os.environ[quiet] = "1"
    try:
        from transformers import AutoConfig
    finally:
        if before is None:
            del os.environ[quiet]
        else:
            os.environ[quiet] = before
    return AutoConfig


def _check_settings(path: Path, parsed: Any, rope: Mapping[str, Any]) -> None:
    layers = set(getattr(parsed, "layer_types", None) or ["full_attention"])
    expected = {
        "hidden_act": (parsed.hidden_act, "silu"),
        "attention_bias": (bool(getattr(parsed, "attention_bias", False)), False),
        "mlp_bias": (bool(getattr(parsed, "mlp_bias", False)), False),
        "layer_types": ("+".join(sorted(layers)), "full_attention"),
        "partial_rotary_factor": (rope.get("partial_rotary_factor") or 1.0, 1.0),
    }
    for name, (actual, wanted) in expected.items():
        if actual != wanted:
            raise WeightsError(
                f"{path}: {name}: expected {wanted!r}, got {actual!r}; no other is "
                "supported"
            )


def _scaling(path: Path, rope: Mapping[str, Any]) -> RopeScaling | None:
    kind = rope.get("rope_type", "default")
    if kind == "default":
        return None
    if kind not in ("linear", "llama3"):
        raise WeightsError(
            f"{path}: rope_type: expected one of default, linear, llama3, got "
            f"{kind!r}; no other scaling of rotary positions is supported"
        )
    names = _LLAMA3 if kind == "llama3" else {"factor": "factor"}
    for name in names.values():
        if rope.get(name) is None:
            raise WeightsError(f"{path}: rope_type {kind!r} needs {name!r}")
    return RopeScaling(kind, **{ours: rope[theirs] for ours, theirs in names.items()})


def hub_config(config: DecoderConfig) -> dict[str, Any]:
    """The config.json of a decoder with float32 weights.

    Raises:
      ConfigError: no architecture has these switches.
    """
    if config.qkv_bias and config.qk_norm:
        raise ConfigError(
            "config: expected qkv_bias (qwen2), qk_norm (qwen3) or neither (llama), "
            "got both; no architecture has both"
        )
    family = "qwen2" if config.qkv_bias else "qwen3" if config.qk_norm else "llama"
    scaling, rope = config.rope_scaling, None
    if scaling is not None:
        names = _LLAMA3 if scaling.kind == "llama3" else {"factor": "factor"}
        rope = {"rope_type": scaling.kind}
        rope |= {theirs: getattr(scaling, ours) for ours, theirs in names.items()}
    return {
        "architectures": [ARCHITECTURES[family]],
        "model_type": family,
        "vocab_size": config.vocab_size,
        "hidden_size": config.hidden_size,
        "intermediate_size": config.intermediate_size,
        "num_hidden_layers": config.num_layers,
        "num_attention_heads": config.num_heads,
        "num_key_value_heads": config.num_kv_heads,
        "head_dim": config.head_dim,
        "max_position_embeddings": config.context_length,
        "rope_theta": config.rope_base,
        "rope_scaling": rope,
        "rms_norm_eps": config.rms_epsilon,
        "tie_word_embeddings": config.tied_embeddings,
        "hidden_act": "silu",
        "dtype": "float32",
    }


def hub_tensors(
    config: DecoderConfig, arrays: Mapping[str, np.ndarray]
) -> Iterator[tuple[str, np.ndarray]]:
    """Tensors of a folder by name, one after the other; matrices are `[out, in]`.

    Args:
      config: sizes.
      arrays: by flat parameter name, as in `RawModel`.
    """
    for name, stored in NAMES.items():
        if name in arrays:
            yield stored, arrays[name]
    for i in range(config.num_layers):
        for name, value in split_layer(config, arrays, i).items():
            yield f"model.layers.{i}.{LAYER_NAMES[name]}", value

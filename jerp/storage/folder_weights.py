"""Reads a Llama-family decoder from a Hugging Face folder, without torch.

The folder holds config.json, tokenizer.json and safetensors files (with or without an
index). Matrices of any float type become float32. Biases, scaled rotary positions and
other activations than SiLU are refused by name rather than read wrongly.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jax.numpy as jnp
import numpy as np
from safetensors import SafetensorError, safe_open
from tokenizers import Tokenizer

from jerp.errors import WeightsError
from jerp.models.decoder import DecoderConfig
from jerp.storage.raw_model import RawModel, decoder_arrays

__all__ = ["folder_files", "read_folder"]

_NAMES = {
    "embedding": "model.embed_tokens",
    "final_norm": "model.norm",
    "unembedding": "lm_head",
}
_LAYER_NAMES = {
    "q": "self_attn.q_proj",
    "k": "self_attn.k_proj",
    "v": "self_attn.v_proj",
    "o": "self_attn.o_proj",
    "gate": "mlp.gate_proj",
    "up": "mlp.up_proj",
    "down": "mlp.down_proj",
    "attention_norm": "input_layernorm",
    "mlp_norm": "post_attention_layernorm",
}


def folder_files(folder: Path) -> list[Path]:
    """The files that decide what the model says, in a fixed order."""
    names = ("config.json", "tokenizer.json")
    files = [folder / name for name in names] + sorted(folder.glob("*.safetensors"))
    for file in files:
        if not file.is_file():
            raise WeightsError(f"{folder}: the model folder has no {file.name}")
    if len(files) == len(names):
        raise WeightsError(f"{folder}: the model folder has no .safetensors file")
    return files


def read_folder(folder: Path) -> RawModel:
    """Reads `folder`; raises `WeightsError` for anything unreadable."""
    _, tokenizer_file, *shards = folder_files(folder)
    raw = _json(folder / "config.json")
    config = _config(folder, raw)
    arrays = _arrays(folder, config, _tensors(shards))
    try:
        tokenizer = Tokenizer.from_file(str(tokenizer_file))
    except Exception as error:  # the package raises bare Exception
        raise WeightsError(f"{tokenizer_file}: not a tokenizer: {error}") from error
    settings = _optional_json(folder / "tokenizer_config.json")
    return RawModel(
        config=config,
        arrays=arrays,
        tokenizer=tokenizer,
        chat_template=_template(folder, settings),
        stop_tokens=_stop_tokens(folder, raw, settings, tokenizer),
        quantisation="none",
        template_variables=_variables(settings),
    )


def _json(path: Path) -> dict[str, Any]:
    try:
        value = json.loads(path.read_text(encoding="utf-8"))
    except (ValueError, OSError) as error:
        raise WeightsError(f"{path}: cannot be read as JSON: {error}") from error
    if not isinstance(value, dict):
        raise WeightsError(f"{path}: expected a JSON object, got {type(value)}")
    return value


def _config(folder: Path, raw: dict[str, Any]) -> DecoderConfig:
    rope = raw.get("rope_parameters") or {}
    scaling = raw.get("rope_scaling") or {}
    kind = scaling.get("rope_type") or rope.get("rope_type", "default")
    expected = {
        "model_type": (raw.get("model_type"), "llama"),
        "hidden_act": (raw.get("hidden_act", "silu"), "silu"),
        "attention_bias": (bool(raw.get("attention_bias")), False),
        "mlp_bias": (bool(raw.get("mlp_bias")), False),
        "rope_type": (kind, "default"),
    }
    for name, (actual, wanted) in expected.items():
        if actual != wanted:
            raise WeightsError(
                f"{folder}/config.json: {name}: expected {wanted!r}, got {actual!r}"
            )
    try:
        heads, hidden = raw["num_attention_heads"], raw["hidden_size"]
        return DecoderConfig(
            vocab_size=raw["vocab_size"],
            hidden_size=hidden,
            intermediate_size=raw["intermediate_size"],
            num_layers=raw["num_hidden_layers"],
            num_heads=heads,
            num_kv_heads=raw.get("num_key_value_heads") or heads,
            head_dim=raw.get("head_dim") or hidden // heads,
            context_length=raw["max_position_embeddings"],
            rope_base=raw.get("rope_theta") or rope.get("rope_theta", 10_000.0),
            rms_epsilon=raw["rms_norm_eps"],
            tied_embeddings=raw.get("tie_word_embeddings", False),
        )
    except KeyError as error:
        raise WeightsError(f"{folder}/config.json has no {error}") from error


def _tensors(shards: list[Path]) -> dict[str, np.ndarray]:
    tensors: dict[str, np.ndarray] = {}
    for shard in shards:
        try:
            # numpy has no bfloat16, so the tensors go through jax
            with safe_open(shard, framework="flax") as file:
                for name in file.keys():  # noqa: SIM118 (not a mapping)
                    value = jnp.asarray(file.get_tensor(name), jnp.float32)
                    tensors[name] = np.asarray(value)
        except (SafetensorError, OSError) as error:
            raise WeightsError(
                f"{shard}: not a complete safetensors file ({error}); delete it and "
                "fetch it again (jerp models pull)"
            ) from error
    return tensors


def _arrays(
    folder: Path, config: DecoderConfig, tensors: dict[str, np.ndarray]
) -> dict[str, np.ndarray]:
    def read(name: str) -> np.ndarray:
        stored = _NAMES.get(name, name) + ".weight"
        if stored not in tensors:
            raise WeightsError(f"{folder}: the safetensors files have no {stored!r}")
        return tensors[stored]

    def read_layer(index: int, name: str) -> np.ndarray:
        return read(f"model.layers.{index}.{_LAYER_NAMES[name]}")

    return decoder_arrays(config, read, read_layer)


def _optional_json(path: Path) -> dict[str, Any]:
    return _json(path) if path.is_file() else {}


def _template(folder: Path, settings: dict[str, Any]) -> str:
    file = folder / "chat_template.jinja"
    if file.is_file():
        return file.read_text(encoding="utf-8")
    return settings.get("chat_template") or ""


def _variables(settings: dict[str, Any]) -> dict[str, str]:
    found = {}
    for name in ("bos_token", "eos_token"):
        value = settings.get(name)
        value = value.get("content") if isinstance(value, dict) else value
        if value:
            found[name] = value
    return found


def _stop_tokens(
    folder: Path, raw: dict[str, Any], settings: dict[str, Any], tokenizer: Tokenizer
) -> tuple[int, ...]:
    generation = _optional_json(folder / "generation_config.json")
    stops = generation.get("eos_token_id", raw.get("eos_token_id"))
    found = set(stops if isinstance(stops, list) else [stops])
    end = _variables(settings).get("eos_token")
    found.add(tokenizer.token_to_id(end) if end else None)
    return tuple(sorted(int(s) for s in found if s is not None))

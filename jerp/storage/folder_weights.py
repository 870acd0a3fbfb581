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

__all__ = ["folder_files", "read_folder"]


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


def read_folder(
    folder: Path,
) -> tuple[DecoderConfig, dict[str, np.ndarray], Tokenizer, str, tuple[int, ...]]:
    """Config, parameters, tokenizer, chat template and stop tokens of `folder`."""
    _, tokenizer_file, *shards = folder_files(folder)
    raw = _json(folder / "config.json")
    config = _config(folder, raw)
    arrays = _arrays(folder, config, _tensors(shards))
    try:
        tokenizer = Tokenizer.from_file(str(tokenizer_file))
    except Exception as error:  # the package raises bare Exception
        raise WeightsError(f"{tokenizer_file}: not a tokenizer: {error}") from error
    return config, arrays, tokenizer, *_chat(folder, raw, tokenizer)


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
        if name not in tensors:
            raise WeightsError(f"{folder}: the safetensors files have no {name!r}")
        return tensors[name]

    arrays = {
        "embedding": read("model.embed_tokens.weight"),
        "final_norm": read("model.norm.weight"),
    }
    if not config.tied_embeddings:
        arrays["unembedding"] = read("lm_head.weight")
    for i in range(config.num_layers):
        at, mlp = f"model.layers.{i}.self_attn.", f"model.layers.{i}.mlp."
        qkv = [read(f"{at}{name}_proj.weight") for name in "qkv"]
        gate_up = [read(f"{mlp}{name}_proj.weight") for name in ("gate", "up")]
        layer = {
            "attention_norm": read(f"model.layers.{i}.input_layernorm.weight"),
            "qkv": np.concatenate(qkv).T,
            "out": read(f"{at}o_proj.weight").T,
            "mlp_norm": read(f"model.layers.{i}.post_attention_layernorm.weight"),
            "gate_up": np.concatenate(gate_up).T,
            "down": read(f"{mlp}down_proj.weight").T,
        }
        arrays |= {f"layer_{i}/{name}": value for name, value in layer.items()}
    return arrays


def _chat(
    folder: Path, raw: dict[str, Any], tokenizer: Tokenizer
) -> tuple[str, tuple[int, ...]]:
    settings = {}
    if (folder / "tokenizer_config.json").is_file():
        settings = _json(folder / "tokenizer_config.json")
    template = settings.get("chat_template") or ""
    if (folder / "chat_template.jinja").is_file():
        template = (folder / "chat_template.jinja").read_text(encoding="utf-8")
    stops = raw.get("eos_token_id")
    if (folder / "generation_config.json").is_file():
        stops = _json(folder / "generation_config.json").get("eos_token_id", stops)
    found = set(stops if isinstance(stops, list) else [stops])
    end = settings.get("eos_token")
    end = end.get("content") if isinstance(end, dict) else end
    found.add(tokenizer.token_to_id(end) if end else None)
    return template, tuple(sorted(int(s) for s in found if s is not None))

"""Low-rank adapters in PEFT's layout: what it saves loads here, and the other way.

    <folder>/adapter_config.json          rank, alpha, dropout, targets
    <folder>/adapter_model.safetensors    lora_A [r, in] and lora_B [out, r], float32

The folder is complete or absent. Variants of LoRA that compute something else (DoRA,
rank-stabilised scaling, ranks by layer, biases, whole modules) are refused by name.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import jax.numpy as jnp
import numpy as np
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save

from jerp.errors import ConfigError, WeightsError
from jerp.models.decoder import DecoderConfig
from jerp.models.lora import PROJECTIONS, LoraConfig, projection_sizes
from jerp.storage.atomic import write_bytes
from jerp.storage.documents import write_json
from jerp.storage.folders import replaced_folder
from jerp.storage.hub_layout import LAYER_NAMES

__all__ = ["load_adapters", "save_adapters"]

_CONFIG, _TENSORS = "adapter_config.json", "adapter_model.safetensors"
_MODULES = {name: LAYER_NAMES[name].removesuffix(".weight") for name in PROJECTIONS}
_PREFIX = "base_model.model."
_TENSOR = re.compile(
    re.escape(_PREFIX)
    + rf"model\.layers\.(\d+)\.({'|'.join(map(re.escape, _MODULES.values()))})"
    + r"\.lora_([AB])\.weight"
)
_PLAIN: dict[str, tuple[Any, ...]] = {
    "peft_type": ("LORA",),
    "bias": ("none",),
    "fan_in_fan_out": (False,),
    "lora_bias": (False,),
    "use_dora": (False,),
    "use_rslora": (False,),
    "use_qalora": (False,),
    "alora_invocation_tokens": (None,),
    "layer_replication": (None,),
    "modules_to_save": (None, []),
    "rank_pattern": (None, {}),
    "alpha_pattern": (None, {}),
    "trainable_token_indices": (None,),
    "target_parameters": (None, []),
}
"""Settings of PEFT that change what is computed, and what they have to be."""

_Adapters = dict[str, dict[str, dict[str, Any]]]


def save_adapters(
    folder: Path | str,
    adapters: Mapping[str, Any],
    lora: LoraConfig,
    *,
    base_model: str | None = None,
) -> Path:
    """Writes adapters; the folder is complete or absent.

    Args:
      folder: absent, or an earlier adapter's, which is replaced as a whole.
      adapters: of `jerp.models.lora.init_adapters`.
      lora: of the adapters.
      base_model: name or folder of the frozen model, for PEFT's own loading.

    Returns:
      `folder`.

    Raises:
      ConfigError: `folder` holds something else.
      StorageError: the disk refuses.

    Example:
      >>> import jax, tempfile
      >>> from jerp.models.lora import init_adapters
      >>> from jerp.models.presets import tiny_decoder
      >>> config, lora = tiny_decoder(100), LoraConfig(rank=4, alpha=8.0)
      >>> adapters = init_adapters(jax.random.key(0), config, lora)
      >>> with tempfile.TemporaryDirectory() as place:
      ...     folder = save_adapters(f"{place}/adapter", adapters, lora)
      ...     _, again = load_adapters(folder, config)
      >>> jax.tree.all(jax.tree.map(lambda x, y: bool((x == y).all()), adapters, again))
      True
    """
    folder = Path(folder)
    held = {path.name for path in folder.iterdir()} if folder.is_dir() else set()
    others = held - {_CONFIG, _TENSORS, "README.md"}
    if others or (held and _CONFIG not in held):
        raise ConfigError(
            f"{folder}: expected no folder yet, or an adapter's, got one that holds "
            f"{min(others or held)!r}; name another folder"
        )
    tensors: dict[str, np.ndarray] = {}
    for layer, pairs in adapters.items():
        index = layer.removeprefix("layer_")
        for name, pair in pairs.items():
            stem = f"{_PREFIX}model.layers.{index}.{_MODULES[name]}"
            for letter, half in (("A", "a"), ("B", "b")):
                matrix = np.asarray(pair[half], np.float32).T
                key = f"{stem}.lora_{letter}.weight"
                tensors[key] = np.ascontiguousarray(matrix)
    with replaced_folder(folder) as fresh:
        write_json(fresh / _CONFIG, _describe(adapters, lora, base_model))
        write_bytes(fresh / _TENSORS, save(tensors, metadata={"format": "pt"}))
    return folder


def _describe(
    adapters: Mapping[str, Any], lora: LoraConfig, base_model: str | None
) -> dict[str, Any]:
    modules = [
        f"model.layers.{layer.removeprefix('layer_')}.{_MODULES[name]}"
        for layer, pairs in adapters.items()
        for name in pairs
    ]
    return {
        "peft_type": "LORA",
        "task_type": "CAUSAL_LM",
        "base_model_name_or_path": base_model,
        "r": lora.rank,
        "lora_alpha": lora.alpha,
        "lora_dropout": lora.dropout,
        # Whole names: PEFT then adapts these in the same layers, and no others.
        "target_modules": sorted(modules),
        "bias": "none",
        "fan_in_fan_out": False,
        "use_rslora": False,
        "use_dora": False,
        "inference_mode": True,
        "init_lora_weights": True,
    }


def load_adapters(
    folder: Path | str, config: DecoderConfig
) -> tuple[LoraConfig, _Adapters]:
    """Reads adapters that `save_adapters` or PEFT wrote.

    Args:
      folder: of the adapters.
      config: of the decoder they are for; every shape is checked.

    Returns:
      `(lora, adapters)`; `lora.targets` matches exactly the projections in the file.

    Raises:
      WeightsError: a file is missing or broken, a variant that is not supported, or
        adapters of another model.

    Example:
      >>> from jerp.models.presets import tiny_decoder
      >>> load_adapters("no-such-folder", tiny_decoder(100))
      Traceback (most recent call last):
      ...
      jerp.errors.WeightsError: no-such-folder has no adapter_config.json; name a \
folder that save_adapters or PEFT wrote
    """
    folder = Path(folder)
    raw = _settings(folder)
    adapters = _parse(folder, _read(folder))
    try:
        lora = LoraConfig(
            rank=int(raw["r"]),
            alpha=float(raw["lora_alpha"]),
            dropout=float(raw.get("lora_dropout", 0.0)),
            targets=_targets(config, adapters),
        )
    except (TypeError, ValueError) as error:  # ConfigError is one of these
        raise WeightsError(f"{folder / _CONFIG}: {error}") from error
    _check_shapes(folder, config, adapters, lora.rank)
    return lora, adapters


def _settings(folder: Path) -> dict[str, Any]:
    path = folder / _CONFIG
    if not path.is_file():
        raise WeightsError(
            f"{folder} has no {_CONFIG}; name a folder that save_adapters or PEFT wrote"
        )
    try:
        raw = json.loads(path.read_text(encoding="utf-8"))
    except (ValueError, OSError) as error:
        raise WeightsError(f"{path}: cannot be read as JSON: {error}") from error
    if not isinstance(raw, dict):
        raise WeightsError(f"{path}: expected a JSON object, got {type(raw)}")
    for name in ("peft_type", "r", "lora_alpha"):
        if name not in raw:
            raise WeightsError(f"{path} has no {name!r}")
    for name, allowed in _PLAIN.items():
        if name in raw and raw[name] not in allowed:
            raise WeightsError(
                f"{path}: {name}: expected {allowed[0]!r}, got {raw[name]!r}; this "
                "variant is not supported"
            )
    return raw


def _read(folder: Path) -> dict[str, Any]:
    path = folder / _TENSORS
    try:
        # NumPy has no bfloat16, so the tensors go through JAX.
        with safe_open(path, framework="flax") as file:
            names = list(file.keys())
            return {n: jnp.asarray(file.get_tensor(n), jnp.float32) for n in names}
    except (SafetensorError, OSError) as error:
        raise WeightsError(
            f"{path}: not a complete safetensors file ({error}); save it again"
        ) from error


def _parse(folder: Path, tensors: Mapping[str, Any]) -> _Adapters:
    names = {module: name for name, module in _MODULES.items()}
    found: dict[tuple[int, int], dict[str, Any]] = {}
    for stored, tensor in tensors.items():
        match = _TENSOR.fullmatch(stored)
        if match is None:
            raise WeightsError(
                f"{folder / _TENSORS}: {stored!r}: expected lora_A and lora_B of "
                f"{', '.join(_MODULES.values())} of a layer; nothing else is supported"
            )
        place = int(match[1]), PROJECTIONS.index(names[match[2]])
        found.setdefault(place, {})[match[3].lower()] = tensor.T
    adapters: _Adapters = {}
    for (layer, place), pair in sorted(found.items()):
        name = PROJECTIONS[place]
        if len(pair) != 2:
            missing = "A" if "b" in pair else "B"
            raise WeightsError(
                f"{folder / _TENSORS}: layer {layer} has no lora_{missing} of "
                f"{_MODULES[name]}"
            )
        adapters.setdefault(f"layer_{layer}", {})[name] = pair
    return adapters


def _check_shapes(
    folder: Path, config: DecoderConfig, adapters: _Adapters, rank: int
) -> None:
    sizes = projection_sizes(config)
    if not adapters:
        raise WeightsError(f"{folder / _TENSORS}: expected adapters, got none")
    for layer, pairs in adapters.items():
        if int(layer.removeprefix("layer_")) >= config.num_layers:
            raise WeightsError(
                f"{folder}: adapters of {layer}, expected layers below "
                f"{config.num_layers}; they are another model's"
            )
        for name, pair in pairs.items():
            rows, columns = sizes[name]
            for half, expected in (("a", (rows, rank)), ("b", (rank, columns))):
                if pair[half].shape != expected:
                    raise WeightsError(
                        f"{folder}: {layer}/{name}/{half}: expected shape {expected}, "
                        f"got {pair[half].shape}; they are another model's"
                    )


def _targets(config: DecoderConfig, adapters: _Adapters) -> str:
    """A pattern that matches the paths of `adapters` and no others of the decoder."""
    kinds = {tuple(pairs) for pairs in adapters.values()}
    if len(adapters) == config.num_layers and len(kinds) == 1:
        return rf"layer_\d+/({'|'.join(kinds.pop())})"
    return "|".join(f"{layer}/{n}" for layer, pairs in adapters.items() for n in pairs)

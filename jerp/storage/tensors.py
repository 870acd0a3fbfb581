"""Trees of arrays and a JSON document in one safetensors file, with a checksum.

The tree's leaves are the file's tensors, named by their path (`observation/tokens`).
Its structure and the document are JSON in the file's metadata, beside a SHA-256 of
both and of the tensors. Dicts, lists, tuples and None keep their kind; nothing in the
file is code, and nothing in it belongs to a device or to a version of JAX.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save

from jerp.errors import StorageError
from jerp.storage.atomic import write_bytes

__all__ = ["load_tree", "save_tree"]

DTYPES = ("bool", "int8", "uint8", "int16", "uint16", "int32", "uint32", "int64")
DTYPES += ("uint64", "float16", "float32", "float64")


def save_tree(path: Path, tree: Any, document: Mapping[str, Any]) -> None:
    """Writes `tree` and `document` to `path`; the file is complete or absent.

    Args:
      path: of the file; its folder exists.
      tree: dicts with string keys, lists, tuples, None and arrays.
      document: JSON-able.

    Raises:
      StorageError: the tree or the document cannot be stored, or the disk refuses.
    """
    tensors: dict[str, np.ndarray] = {}
    structure = _flatten(path, "", tree, tensors)
    try:
        header = json.dumps([structure, document], allow_nan=False)
    except (TypeError, ValueError) as error:
        raise StorageError(f"{path}: the document is not JSON-able: {error}") from error
    metadata = {"jerp": header, "sha256": _digest(header, tensors)}
    write_bytes(path, save(tensors, metadata))


def load_tree(path: Path) -> tuple[Any, dict[str, Any]]:
    """The tree, with numpy leaves, and the document that `save_tree` wrote.

    Raises:
      StorageError: the file is missing, truncated, altered or not one of ours.
    """
    try:
        with safe_open(path, framework="np") as file:
            metadata = file.metadata() or {}
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    except FileNotFoundError as error:
        raise StorageError(f"{path}: there is no such file; check the path") from error
    except (SafetensorError, KeyError, ValueError, OSError) as error:
        raise StorageError(
            f"{path}: truncated or not a safetensors file ({error})"
        ) from error
    if not {"jerp", "sha256"} <= metadata.keys():
        raise StorageError(f"{path}: a safetensors file, but not written by jerp")
    if metadata["sha256"] != _digest(metadata["jerp"], tensors):
        raise StorageError(f"{path}: altered since it was written (checksum differs)")
    structure, document = json.loads(metadata["jerp"])
    return _restore(structure, tensors), document


def _flatten(path: Path, name: str, tree: Any, tensors: dict[str, np.ndarray]) -> Any:
    """Collects the leaves of `tree` in `tensors`; returns the structure as JSON."""
    if tree is None:
        return None
    if type(tree) in (list, tuple):
        kind = type(tree).__name__
        parts = [
            _flatten(path, f"{name}/{i}", part, tensors) for i, part in enumerate(tree)
        ]
        return {kind: parts}
    if type(tree) is dict:
        for key in tree:
            if not isinstance(key, str) or "/" in key:
                raise StorageError(
                    f"{path}: keys of {name or 'the tree'}: expected text without '/', "
                    f"got {key!r}"
                )
        return {
            "dict": {
                key: _flatten(path, f"{name}/{key}", part, tensors)
                for key, part in tree.items()
            }
        }
    dtype = getattr(tree, "dtype", None)
    if str(dtype) not in DTYPES:
        raise StorageError(
            f"{path}: {name.lstrip('/') or 'the tree'}: expected an array of a plain "
            f"dtype, a dict, list or tuple, got {dtype or type(tree).__name__}"
        )
    leaf = name.lstrip("/") or "array"
    tensors[leaf] = np.asarray(tree, order="C")
    return leaf


def _restore(structure: Any, tensors: Mapping[str, np.ndarray]) -> Any:
    if structure is None:
        return None
    if isinstance(structure, str):
        return tensors[structure]
    ((kind, parts),) = structure.items()
    if kind == "dict":
        return {key: _restore(part, tensors) for key, part in parts.items()}
    sequence = [_restore(part, tensors) for part in parts]
    return tuple(sequence) if kind == "tuple" else sequence


def _digest(header: str, tensors: Mapping[str, np.ndarray]) -> str:
    digest = hashlib.sha256(header.encode())
    for name, tensor in sorted(tensors.items()):
        digest.update(f"{name} {tensor.dtype.name} {tensor.shape}\n".encode())
        digest.update(np.ascontiguousarray(tensor).tobytes())
    return digest.hexdigest()

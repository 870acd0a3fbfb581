"""Trained controllers as folders: parameters in safetensors, their meaning in JSON.

    <folder>/controller.json         layout, normalisation, training, support
    <folder>/controller.safetensors  the parameters

The folder is complete or absent, and read as one even while it is being replaced. It
belongs to no device and to no version of JAX, holds no code, and names the features and
actions that the controller was trained on, so that it is never run on another layout by
mistake. `docs/controllers.md` has every field.
"""

from __future__ import annotations

import hashlib
import json
import reprlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any

from jerp.errors import ConfigError, StorageError
from jerp.models.acting import HarnessController
from jerp.models.support import BufferSupport
from jerp.storage.atomic import read_bytes
from jerp.storage.documents import difference, plain, write_json
from jerp.storage.folders import replaced_folder
from jerp.storage.tensors import load_tree, save_tree

__all__ = ["SCHEMA_VERSION", "load_controller", "save_controller"]

SCHEMA_VERSION = 1
_FORMAT = "jerp controller"
_DOCUMENT, _TENSORS = "controller.json", "controller.safetensors"
_TRIES = 3
_FIELDS: dict[str, tuple[tuple[type, ...], str]] = {
    "feature_names": ((list,), "a list of texts"),
    "feature_version": ((int,), "a whole number"),
    "action_names": ((list,), "a list of texts"),
    "normalization": ((dict,), "an object"),
    "training": ((dict,), "an object"),
    "support": ((dict, type(None)), "an object or null"),
}


def save_controller(folder: Path | str, controller: HarnessController) -> Path:
    """Writes a controller; the folder is complete or absent.

    Args:
      folder: absent, or an earlier controller's, which is replaced as a whole.
      controller: checked when it was made.

    Returns:
      `folder`.

    Raises:
      ConfigError: `folder` is no path, or holds something else.
      StorageError: `training` cannot be stored, or the disk refuses.
    """
    folder = _path(folder)
    others = set() if not folder.is_dir() else {p.name for p in folder.iterdir()}
    if others - {_DOCUMENT, _TENSORS}:
        raise ConfigError(
            f"{folder}: expected no folder yet, or a controller's, got one that holds "
            f"{min(others - {_DOCUMENT, _TENSORS})!r}; name another folder"
        )
    document = _describe(controller)
    with replaced_folder(folder) as fresh:
        write_json(fresh / _DOCUMENT, document)
        digest = hashlib.sha256(read_bytes(fresh / _DOCUMENT)).hexdigest()
        header = {
            "format": _FORMAT,
            "schema_version": SCHEMA_VERSION,
            "document_sha256": digest,
        }
        save_tree(fresh / _TENSORS, controller.params, header)
    return folder


def load_controller(
    folder: Path | str,
    *,
    feature_names: Sequence[str] | None = None,
    feature_version: int | None = None,
    action_names: Sequence[str] | None = None,
) -> HarnessController:
    """Reads a controller; with a layout given, only one that was trained on it.

    Args:
      folder: as `save_controller` and `jerp train harness` write it.
      feature_names: what the caller will show it, in order; None: not compared.
      feature_version: of that layout; None: not compared.
      action_names: what the caller lets it choose among, in order; None: not compared.

    Raises:
      ConfigError: `folder` is no path, or the controller was trained on another layout;
        the difference is named.
      StorageError: files are missing, corrupt, of a newer jerp, or no controller's.
    """
    folder = _path(folder)
    document, params = _read(folder)
    _check_fields(folder, document)
    layout = {
        "feature_names": feature_names,
        "feature_version": feature_version,
        "action_names": action_names,
    }
    asked = plain({key: value for key, value in layout.items() if value is not None})
    found = difference({key: document[key] for key in asked}, asked)
    if found:
        raise ConfigError(
            f"{folder} was trained on another layout: {found}. Train a controller on "
            "this layout, or load this one with the layout it names"
        )
    return _parse(folder, document, params)


def _path(folder: Path | str) -> Path:
    try:
        return Path(folder)
    except TypeError as error:
        raise ConfigError(
            f"folder: expected a path, as text or Path, got {folder!r}"
        ) from error


def _describe(controller: HarnessController) -> dict[str, Any]:
    """What `controller.json` holds."""
    mean, scale, support = controller.mean, controller.scale, controller.support
    normalization = {}
    if mean is not None and scale is not None:
        normalization = {"mean": mean.tolist(), "scale": scale.tolist()}
    return plain(
        {
            "format": _FORMAT,
            "schema_version": SCHEMA_VERSION,
            "feature_names": controller.feature_names,
            "feature_version": controller.feature_version,
            "action_names": controller.action_names,
            "normalization": normalization,
            "training": controller.training,
            "support": None if support is None else asdict(support),
        }
    )


def _read(folder: Path) -> tuple[dict[str, Any], dict[str, Any]]:
    """Document and parameters that were saved together, each file read once.

    A folder that is replaced between the two is read again.
    """
    data = _document_bytes(folder)
    for _ in range(_TRIES):
        document = _checked_document(folder / _DOCUMENT, data)
        params, header = load_tree(folder / _TENSORS)
        if header.get("document_sha256") == hashlib.sha256(data).hexdigest():
            return document, params
        before, data = data, _document_bytes(folder)
        if data == before:
            break
    raise StorageError(
        f"{folder / _DOCUMENT}: altered since it was written (checksum differs); "
        "unless something is replacing it right now, take the folder from where it "
        "was trained, or train again"
    )


def _document_bytes(folder: Path) -> bytes:
    path = folder / _DOCUMENT
    if not path.exists():
        raise StorageError(
            f"{folder}: not a controller's folder (it has no {_DOCUMENT}); name one "
            "that `jerp train harness` made, such as RUN/DOMAIN/controllers/awr-0"
        )
    return read_bytes(path)


def _checked_document(path: Path, data: bytes) -> dict[str, Any]:
    """What `data` says, once its format and version are known to be ours."""
    try:
        document = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise StorageError(
            f"{path}: truncated or altered, not valid JSON ({error})"
        ) from error
    is_ours = isinstance(document, dict) and document.get("format") == _FORMAT
    version = document.get("schema_version") if is_ours else None
    # True is an int to Python, and no version.
    if type(version) is not int:
        raise StorageError(f"{path}: not a controller's document")
    if version < 1:
        raise StorageError(
            f"{path}: expected schema version {SCHEMA_VERSION}, got {version}, which "
            "no jerp writes; train again"
        )
    if version > SCHEMA_VERSION:
        raise StorageError(
            f"{path}: of a newer jerp: expected schema version {SCHEMA_VERSION}, got "
            f"{version}; upgrade jerp to load it"
        )
    return document


def _check_fields(folder: Path, document: Mapping[str, Any]) -> None:
    """Raises `StorageError` naming the field that is missing or of another kind."""
    fault = next(_faults(document), None)
    if fault is not None:
        raise StorageError(
            f"{folder}: not a controller that jerp wrote: {fault}; train again"
        )


def _faults(document: Mapping[str, Any]) -> Iterator[str]:
    for name, (kinds, expected) in _FIELDS.items():
        if name not in document:
            yield f"missing field {name}"
        elif type(document[name]) not in kinds:
            found = "null" if document[name] is None else reprlib.repr(document[name])
            yield f"field {name}: expected {expected}, got {found}"
    parts = {"normalization": {"mean", "scale"} if document["normalization"] else set()}
    if document["support"] is not None:
        parts["support"] = {field.name for field in fields(BufferSupport)}
    for name, expected in parts.items():
        for part in sorted(expected ^ {*document[name]}):
            yield f"{'missing' if part in expected else 'unknown'} field {name}.{part}"


def _parse(
    folder: Path, document: Mapping[str, Any], params: Mapping[str, Any]
) -> HarnessController:
    """The controller; what it refuses is the fault of the files."""
    support = document["support"]
    if support is not None:
        lists = {k: tuple(v) for k, v in support.items() if isinstance(v, list)}
        support = BufferSupport(**{**support, **lists})
    try:
        return HarnessController(
            params,
            document["feature_names"],
            document["action_names"],
            document["feature_version"],
            training=document["training"],
            support=support,
            **document["normalization"],
        )
    except ConfigError as error:
        raise StorageError(
            f"{folder}: not a controller that jerp wrote: {error}; train again"
        ) from error

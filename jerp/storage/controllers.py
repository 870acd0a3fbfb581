"""Trained controllers as plain files: parameters in safetensors, their meaning in JSON.

One file holds both, belongs to no device, and names the features and actions that the
controller was trained on, so that it is never run on another layout by mistake.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from jerp.errors import ConfigError, StorageError
from jerp.harness.actions import ACTIONS
from jerp.harness.state import FEATURE_VERSION, FEATURES
from jerp.storage.atomic import make_folder
from jerp.storage.documents import difference, plain
from jerp.storage.tensors import load_tree, save_tree
from jerp.typing import ArrayTree

__all__ = ["StoredController", "load_controller", "save_controller"]

_FORMAT = {"format": "jerp controller", "schema_version": 1}


@dataclass(frozen=True)
class StoredController:
    """A controller as it was saved.

    Attributes:
      params: tree of numpy arrays, bitwise what was saved.
      hyper: hyper-parameters and whatever else was saved beside them.
    """

    params: ArrayTree
    hyper: Mapping[str, Any] = field(default_factory=dict)


def save_controller(
    path: Path | str,
    params: ArrayTree,
    hyper: Mapping[str, Any],
    *,
    feature_names: Sequence[str] = FEATURES,
    feature_version: int = FEATURE_VERSION,
    action_names: Sequence[str] = ACTIONS,
) -> Path:
    """Writes a controller; the file is complete or absent.

    Args:
      path: of the file, usually ending in `.safetensors`; its folder is made.
      params: dicts, lists and tuples of arrays.
      hyper: JSON-able.
      feature_names: what the controller sees, in order.
      feature_version: of that layout.
      action_names: what it chooses among, in order.

    Returns:
      `path`.

    Raises:
      StorageError: something cannot be stored, or the disk refuses.
    """
    path = Path(path)
    make_folder(path.parent)
    layout = _layout(feature_names, feature_version, action_names)
    save_tree(path, params, {**_FORMAT, "layout": layout, "hyper": plain(hyper)})
    return path


def load_controller(
    path: Path | str,
    *,
    feature_names: Sequence[str] = FEATURES,
    feature_version: int = FEATURE_VERSION,
    action_names: Sequence[str] = ACTIONS,
) -> StoredController:
    """Reads a controller for the given layout of features and actions.

    Raises:
      ConfigError: it was trained on another layout; the difference is named.
      StorageError: the file is missing, corrupt, or no controller of this version.
    """
    path = Path(path)
    params, document = load_tree(path)
    found = difference({k: document.get(k) for k in _FORMAT}, _FORMAT)
    if found:
        raise StorageError(f"{path}: not a controller of this version: {found}")
    layout = _layout(feature_names, feature_version, action_names)
    found = difference(document["layout"], layout)
    if found:
        raise ConfigError(
            f"{path} was trained on another layout: {found}. Train a controller on "
            "this layout, or load this one with the layout it names"
        )
    return StoredController(params, document["hyper"])


def _layout(
    feature_names: Sequence[str], feature_version: int, action_names: Sequence[str]
) -> dict[str, Any]:
    return {
        "feature_version": feature_version,
        "features": list(feature_names),
        "actions": list(action_names),
    }

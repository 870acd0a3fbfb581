"""JSON documents on disk: written whole, read with clear errors, compared by field."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from jerp.errors import StorageError
from jerp.storage.atomic import read_bytes, write_bytes

__all__ = ["defined", "difference", "plain", "read_json", "write_json"]


def defined(value: Any) -> Any:
    """`value` with None for NaN and infinities: JSON has none that are no numbers."""
    if isinstance(value, Mapping):
        return {key: defined(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [defined(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def plain(document: Mapping[str, Any]) -> dict[str, Any]:
    """`document` as it comes back from a file: tuples are lists, keys are text.

    Raises:
      StorageError: it holds something that JSON cannot, such as NaN or an array.
    """
    try:
        return json.loads(json.dumps(dict(document), allow_nan=False))
    except (TypeError, ValueError) as error:
        raise StorageError(
            f"expected plain numbers, texts, lists and dicts: {error}"
        ) from error


def write_json(path: Path, document: Mapping[str, Any]) -> None:
    """Writes `document` to `path`, indented, complete or not at all."""
    write_bytes(path, json.dumps(plain(document), indent=1).encode() + b"\n")


def read_json(path: Path) -> dict[str, Any]:
    """The document at `path`.

    Raises:
      StorageError: it is missing, or does not hold a JSON object.
    """
    try:
        document = json.loads(read_bytes(path))
    except ValueError as error:
        raise StorageError(
            f"{path}: truncated or altered, not valid JSON ({error})"
        ) from error
    if not isinstance(document, dict):
        raise StorageError(f"{path}: expected a JSON object, got another JSON value")
    return document


def difference(kept: Any, given: Any, name: str = "") -> str | None:
    """Where two documents first differ, as `seeds: 3 there, 5 here`; None if nowhere.

    Both are as `plain` or `read_json` return them.
    """
    if kept == given:
        return None
    if isinstance(kept, dict) and isinstance(given, dict):
        for key in sorted({*kept, *given}):
            path = f"{name}.{key}" if name else key
            if key not in given:
                return f"{path}: {_short(kept[key])} there, absent here"
            if key not in kept:
                return f"{path}: absent there, {_short(given[key])} here"
            if kept[key] != given[key]:
                return difference(kept[key], given[key], path)
    if isinstance(kept, list) and isinstance(given, list):
        for index, (one, other) in enumerate(zip(kept, given, strict=False)):
            if one != other:
                return difference(one, other, f"{name}[{index}]")
        return f"{name}: {len(kept)} entries there, {len(given)} here"
    return f"{name}: {_short(kept)} there, {_short(given)} here"


def _short(value: Any) -> str:
    text = json.dumps(value)
    return text if len(text) <= 60 else text[:57] + "..."

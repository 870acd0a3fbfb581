"""The files of inspect_ai: `.eval`, a zip file of JSON, and `.json`.

Samples come one at a time: memory is that of the largest.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from jerp.errors import StorageError
from jerp.readers.json_parts import json_elements, json_rest
from jerp.readers.log_fields import listed_names
from jerp.readers.zip_members import ZipMembers

__all__ = ["inspect_file"]

_SAMPLE = re.compile(r"samples/.+_epoch_\d+\.json")
_CHUNKED = re.compile(r"samples/.+_epoch_\d+/sample\.json")


def inspect_file(path: Path) -> tuple[dict[str, Any], Iterator[Any]]:
    """What a log says of itself, and its samples.

    Raises:
      StorageError: it is not whole, or is something else.
      MissingExtraError: Zstandard compressed it, and zstandard is not installed.
    """
    if path.suffix.lower() == ".json":
        return json_rest(path, "samples"), json_elements(path, "samples")
    with ZipMembers(path) as members:
        header = _header(members)
    return header, _zipped_samples(path)


def _header(members: ZipMembers) -> dict[str, Any]:
    # A log whose run was killed has but the journal.
    for name in ("header.json", "_journal/start.json"):
        if name in members.names:
            return _member(members, name)
    raise StorageError(
        f"{members.path}: expected header.json or _journal/start.json in it, got "
        f"{listed_names(members.names)}; it is no log of inspect_ai"
    )


def _member(members: ZipMembers, name: str) -> dict[str, Any]:
    try:
        value = json.loads(members.read(name))
    except (ValueError, RecursionError) as error:
        raise StorageError(f"{members.path}, {name}: not JSON ({error})") from error
    if not isinstance(value, dict):
        raise StorageError(f"{members.path}, {name}: expected a JSON object")
    return value


def _zipped_samples(path: Path) -> Iterator[dict[str, Any]]:
    with ZipMembers(path) as members:
        if chunked := [name for name in members.names if _CHUNKED.fullmatch(name)]:
            raise StorageError(
                f"{path}, {chunked[0]}: its samples are in chunks, which are not read; "
                "write the log as .json with `inspect log dump`"
            )
        for name in members.names:
            if _SAMPLE.fullmatch(name):
                yield _member(members, name)

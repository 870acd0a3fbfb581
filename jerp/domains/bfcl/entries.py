"""BFCL's files: tasks, reference calls and what its tools are said to do."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from jerp.domains.benchmark import ToolSpec
from jerp.errors import StorageError

__all__ = ["Entry", "read_entries", "read_tools"]

PREFIX = "BFCL_v4_multi_turn_"


@dataclass(frozen=True)
class Entry:
    """One task.

    Attributes:
      record: as the official checker takes it.
      truth: reference calls of each turn, as Python source.
      tools: all that the task's services have.
      held: names of tools that come only with a turn, by its index.
    """

    record: Mapping[str, Any]
    truth: Sequence[Sequence[str]]
    tools: Sequence[ToolSpec]
    held: Mapping[int, Sequence[str]]

    @property
    def key(self) -> str:
        """Official identifier, such as `multi_turn_base_0`."""
        return self.record["id"]

    @property
    def long_context(self) -> bool:
        """The services hold much that does not matter."""
        return "long_context" in self.key

    def said(self, turn: int, announcement: str) -> str:
        """What the user says first in a turn; `announcement` where tools come."""
        if turn in self.held:
            return announcement
        return "\n".join(m["content"] for m in self.record["question"][turn])

    def offered(self, turn: int) -> tuple[ToolSpec, ...]:
        """The tools of a turn."""
        late = {n for at, names in self.held.items() if at > turn for n in names}
        return tuple(tool for tool in self.tools if tool.name not in late)


def read_entries(
    folder: Path, split: str, tools: Mapping[str, Sequence[ToolSpec]]
) -> tuple[Entry, ...]:
    """The tasks of a split.

    Args:
      folder: with the official files.
      split: such as `miss_func`.
      tools: by service, from `read_tools`.

    Raises:
      StorageError: a file is missing, or tasks and references do not belong together.
    """
    records = _lines(folder / f"{PREFIX}{split}.json")
    answers = _lines(folder / "possible_answer" / f"{PREFIX}{split}.json")
    if [r["id"] for r in records] != [a["id"] for a in answers]:
        raise StorageError(f"{folder}: tasks and references of {split!r} differ")
    return tuple(
        Entry(
            record=record,
            truth=answer["ground_truth"],
            tools=[t for name in record["involved_classes"] for t in tools[name]],
            held={int(at): n for at, n in record.get("missed_function", {}).items()},
        )
        for record, answer in zip(records, answers, strict=True)
    )


def read_tools(
    folder: Path, files: Mapping[str, str], types: Mapping[str, str]
) -> dict[str, tuple[ToolSpec, ...]]:
    """The tools of each service.

    Args:
      folder: with the official files.
      files: names by service; one that is not there has no tools.
      types: names of types in JSON schemas, by those of BFCL.

    Raises:
      StorageError: a file cannot be read.
    """
    paths = {
        name: folder / "multi_turn_func_doc" / file for name, file in files.items()
    }
    return {
        name: tuple(
            ToolSpec(d["name"], d["description"], _schema(d["parameters"], types))
            for d in _lines(path)
        )
        for name, path in paths.items()
        if path.exists()
    }


def _schema(described: Mapping[str, Any], types: Mapping[str, str]) -> dict[str, Any]:
    """A JSON schema of one in BFCL's types."""
    schema = dict(described)
    if "type" in schema:
        schema["type"] = types[schema["type"]]
    if "properties" in schema:
        parts = schema["properties"].items()
        schema["properties"] = {name: _schema(part, types) for name, part in parts}
    if "items" in schema:
        schema["items"] = _schema(schema["items"], types)
    return schema


def _lines(path: Path) -> list[dict[str, Any]]:
    try:
        text = path.read_text(encoding="utf-8")
        # By newlines alone: texts may hold what else ends lines.
        return [json.loads(line) for line in text.split("\n") if line.strip()]
    except (OSError, ValueError) as error:
        raise StorageError(f"{path}: not a file of BFCL: {error}") from error

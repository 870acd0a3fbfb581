"""DB-Bench's tasks, read from the files of an AgentBench checkout.

The folder is named by whoever runs it, or by the variable `JERP_DBBENCH`; it holds
`dev.jsonl` and `standard.jsonl`. Nothing of it comes with jerp.
"""

from __future__ import annotations

import ast
import hashlib
import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from jerp.bridge.sql_sandbox import SqlTable
from jerp.errors import ConfigError, InputError, StorageError, UnknownNameError

__all__ = [
    "MUTATIONS",
    "SPLITS",
    "VARIABLE",
    "Entry",
    "data_folder",
    "read_entries",
    "with_named_columns",
]

SPLITS = ("dev", "standard")
MUTATIONS = ("INSERT", "UPDATE", "DELETE")
VARIABLE = "JERP_DBBENCH"


@dataclass(frozen=True)
class Entry:
    """One task.

    Attributes:
      question: what is asked, or to be changed.
      about: names of table and columns, in words.
      tables: as they are at first; every column is TEXT, as the benchmark makes it,
        whatever the file declares.
      kind: `INSERT`, `UPDATE`, `DELETE`, or of which kind the question is.
      label: the right answers of a question.
      table_hash: of the right tables after a change; empty for a question.
      statement: the bundled reference; of questions it is often wrong.
    """

    question: str
    about: str
    tables: tuple[SqlTable, ...] = field(repr=False)
    kind: str
    label: tuple[str, ...]
    table_hash: str
    statement: str

    @property
    def changes(self) -> bool:
        """Whether the task is to change the tables, not to answer."""
        return self.kind in MUTATIONS


def data_folder(data: Path | None) -> Path:
    """The folder of the files: `data`, or what the variable names.

    Raises:
      ConfigError: neither names one.
      StorageError: there is no such folder.
    """
    named = data or Path(os.environ.get(VARIABLE) or "")
    if named == Path():
        raise ConfigError(
            "data: expected the folder of AgentBench's DB-Bench (dev.jsonl and "
            "standard.jsonl), which does not come with jerp; name it by --data or by "
            f"the variable {VARIABLE}"
        )
    if not named.is_dir():
        raise StorageError(f"data: expected the folder of DB-Bench, got {named}")
    return named


def read_entries(folder: Path, split: str) -> tuple[tuple[Entry, ...], str]:
    """The tasks of a split, in the order of its file.

    Args:
      folder: see `data_folder`.
      split: one of `SPLITS`.

    Returns:
      The tasks, and the beginning of the file's SHA-256.

    Raises:
      UnknownNameError: no such split.
      StorageError: the file cannot be read.
      InputError: a line is no task.
    """
    if split not in SPLITS:
        raise UnknownNameError("split", split, SPLITS)
    path = folder / f"{split}.jsonl"
    try:
        data = path.read_bytes()
    except OSError as error:
        raise StorageError(f"{path}: {error.strerror}") from error
    entries = []
    for number, line in enumerate(data.splitlines(), 1):
        if not line.strip():
            continue
        try:
            entries.append(_entry(json.loads(line)))
        except (ValueError, KeyError, TypeError, IndexError, SyntaxError) as error:
            raise InputError(
                f"{path}, line {number}: expected a task of DB-Bench, got "
                f"{line[:60]!r} ({type(error).__name__}: {error})"
            ) from error
    return tuple(entries), hashlib.sha256(data).hexdigest()[:12]


def with_named_columns(entry: Entry) -> Entry:
    """With a name for columns that have none, which MySQL does not create.

    One table of the files has such a column: it becomes `column 1`.
    """
    return replace(
        entry,
        tables=tuple(
            replace(
                table,
                columns=tuple(
                    (name or f"column {number}", kind)
                    for number, (name, kind) in enumerate(table.columns, 1)
                ),
            )
            for table in entry.tables
        ),
    )


def _entry(record: Mapping[str, Any]) -> Entry:
    tables = record["table"]
    kind = str(record["type"][0])
    changes = kind in MUTATIONS
    label = tuple(str(item) for item in record["label"])
    return Entry(
        question=str(record["description"]),
        about=str(record.get("add_description") or ""),
        tables=tuple(map(_table, tables if isinstance(tables, list) else [tables])),
        kind=kind,
        label=() if changes else label,
        table_hash=_hash(record["answer_md5"]) if changes else "",
        statement=label[0] if changes else str(record["sql"]["query"]),
    )


def _table(record: Mapping[str, Any]) -> SqlTable:
    info = record["table_info"]
    return SqlTable(
        str(record["table_name"]),
        tuple((str(column["name"]), "TEXT") for column in info["columns"]),
        [tuple(map(str, row)) for row in info["rows"]],
    )


def _hash(published: str) -> str:
    """Of `[('…',)]`, as MySQL's client prints a row of one value."""
    [[value]] = ast.literal_eval(published)
    return str(value)

"""What SQL may use, what it works on, and what came of a statement.

A database is bytes that this process never opens: it is made by the sandbox and goes
back there. Values are those of SQLite: None, int, float, str and bytes.
"""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Literal, get_args

from jerp.errors import ConfigError, SandboxError

__all__ = [
    "Database",
    "SqlLimits",
    "SqlResult",
    "SqlStatus",
    "SqlTable",
    "SqlValue",
    "read_answer",
]

SqlValue = None | int | float | str | bytes

SqlStatus = Literal[
    "ok", "denied", "syntax", "error", "limit", "memory", "timeout", "crash"
]
"""How a statement ended: `denied`, it wanted what no statement may; `syntax`, it does
not parse; `error`, SQLite refused it, as of a table that is not there; `limit`, too
many steps, rows or bytes; `memory`, `timeout`, out of either; `crash`, its process
died. All of these are the statement's fault; a sandbox that fails is a
`SandboxError`."""

_DECLARED = re.compile(r"[A-Za-z0-9_ (),]*")
_MOST_COLUMNS = 1000


@dataclass(frozen=True)
class SqlLimits:
    """What one statement may use.

    Attributes:
      steps: of SQLite's virtual machine; what ends an endless query, the same on every
        machine.
      cpu_seconds, wall_seconds: where a step itself takes long.
      memory_mib: of address space; SQLite's heap has half of it.
      database_mib: of the database.
      rows: returned; more are an error, not a part.
      output_kib: of rows, as JSON.
      statement_chars: of a statement.
    """

    steps: int = 5_000_000
    cpu_seconds: int = 2
    wall_seconds: float = 10.0
    memory_mib: int = 256
    database_mib: int = 8
    rows: int = 1000
    output_kib: int = 256
    statement_chars: int = 100_000

    def __post_init__(self):
        least = {"memory_mib": 64, "steps": 1000, "wall_seconds": 0.1}
        for name, value in asdict(self).items():
            if value < least.get(name, 1):
                raise ConfigError(
                    f"{name}: expected >= {least.get(name, 1)}, got {value}"
                )


@dataclass(frozen=True)
class Database:
    """A SQLite database that no statement changes: a change is another database.

    Attributes:
      image: its bytes, untrusted once a statement has run; none are an empty database.
    """

    image: bytes = field(default=b"", repr=False)


@dataclass(frozen=True)
class SqlTable:
    """A table to create.

    Attributes:
      name: any text.
      columns: name (any text) and declared type, such as `TEXT COLLATE NOCASE`.
      rows: a value for each column.
    """

    name: str
    columns: tuple[tuple[str, str], ...]
    rows: Sequence[Sequence[SqlValue]] = field(repr=False)

    def __post_init__(self):
        if not 1 <= len(self.columns) <= _MOST_COLUMNS:
            raise ConfigError(
                f"columns: expected 1 to {_MOST_COLUMNS} for table {self.name!r}, got "
                f"{len(self.columns)}"
            )
        for name, kind in self.columns:
            if not _DECLARED.fullmatch(kind):
                raise ConfigError(
                    f"columns: expected a declared type of letters, digits, blanks, "
                    f"commas and parentheses for {name!r}, got {kind!r}"
                )
        for number, row in enumerate(self.rows):
            if len(row) != len(self.columns):
                raise ConfigError(
                    f"rows: expected {len(self.columns)} values in row {number} of "
                    f"table {self.name!r}, got {len(row)}"
                )

    def as_request(self) -> dict[str, Any]:
        """As the sandbox reads it."""
        rows = [[*map(_encoded, row)] for row in self.rows]
        return {"name": self.name, "columns": list(self.columns), "rows": rows}


@dataclass(frozen=True)
class SqlResult:
    """What came of a statement.

    Attributes:
      status: "ok", or of which kind its failure is.
      database: after it; the one before unless `status` is "ok" and something changed.
      columns: names; empty where the statement returns no rows.
      rows: returned.
      changes: rows inserted, updated and deleted, by triggers too.
      text: why it failed.
    """

    status: SqlStatus
    database: Database
    columns: tuple[str, ...] = ()
    rows: tuple[tuple[SqlValue, ...], ...] = ()
    changes: int = 0
    text: str = ""


_ENDS: dict[str, tuple[SqlStatus, str]] = {
    "time": ("timeout", "ran out of time"),
    "output": ("limit", "wrote too much"),
    "signal": ("crash", "crashed"),
    "exit": ("crash", "ended without a result"),
}


def read_answer(answer: dict[str, Any], before: Database) -> SqlResult:
    """The result that a sandbox process sent, which untrusted SQL may have garbled.

    Args:
      answer: of `jerp.bridge.sandbox_pool.WorkerPool.run`.
      before: database that the statement was given.

    Raises:
      SandboxError: the sandbox says that it failed itself.
    """
    ended, why = _ENDS[answer["end"]]
    if answer["end"] != "exit":
        return SqlResult(ended, before, text=why)
    try:
        found = json.loads(answer["results"])
        if found["status"] == "failed":
            raise SandboxError(f"the sandbox could not run SQL: {found['text']}")
        return _read(found, before)
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return SqlResult(ended, before, text=why)


def _read(found: dict[str, Any], before: Database) -> SqlResult:
    if found["status"] not in get_args(SqlStatus):
        raise ValueError(f"status: {found['status']!r}")
    if found["status"] != "ok":
        return SqlResult(found["status"], before, text=str(found["text"]))
    image = found["image"]
    changed = image is not None
    database = Database(base64.b64decode(image, validate=True)) if changed else before
    return SqlResult(
        "ok",
        database,
        columns=tuple(str(name) for name in found.get("columns", ())),
        rows=tuple(tuple(map(_decoded, row)) for row in found.get("rows", ())),
        changes=int(found.get("changes", 0)),
    )


def _encoded(value: SqlValue) -> Any:
    return {"blob": value.hex()} if isinstance(value, bytes) else value


def _decoded(value: Any) -> SqlValue:
    if isinstance(value, dict):
        return bytes.fromhex(value["blob"])
    if value is None or isinstance(value, int | float | str):
        return value
    raise TypeError(f"value: {value!r}")

"""What a statement may use on a MySQL server, and how it failed."""

from __future__ import annotations

from dataclasses import asdict, dataclass

from jerp.bridge.sql_report import Database, SqlResult, SqlStatus
from jerp.errors import ConfigError

__all__ = ["FAILURES", "MySqlLimits", "failed"]

FAILURES: dict[SqlStatus, frozenset[int]] = {
    "syntax": frozenset({1064, 1065, 1149}),
    "denied": frozenset({1044, 1045, 1142, 1143, 1227, 1290, 1370, 1410, 1792}),
    "timeout": frozenset({1317, 1969, 2013, 3024}),
    "memory": frozenset({1037, 1038, 1041}),
    "limit": frozenset({1104, 1114, 1153}),
}
"""Numbers of the server's errors; of all others the statement is an `error`."""


@dataclass(frozen=True)
class MySqlLimits:
    """What one statement may use.

    Attributes:
      wall_seconds: on the server, which ends it itself where it can.
      database_mib: of the rows of a database that it changed.
      rows: returned; more are an error, not a part.
      output_kib: of rows.
      statement_chars: of a statement.
    """

    wall_seconds: float = 10.0
    database_mib: int = 8
    rows: int = 1000
    output_kib: int = 256
    statement_chars: int = 100_000

    def __post_init__(self):
        for name, value in asdict(self).items():
            least = 0.1 if name == "wall_seconds" else 1
            if value < least:
                raise ConfigError(f"{name}: expected >= {least}, got {value}")


def failed(name: str, database: Database, error: Exception) -> SqlResult:
    """What came of a statement that the server refused.

    Args:
      name: of the place on the server, which differs from run to run: not shown.
      database: as it still is.
      error: of the client, with the server's number and text.
    """
    code = error.args[0]
    kinds: list[SqlStatus] = [kind for kind, has in FAILURES.items() if code in has]
    status: SqlStatus = kinds[0] if kinds else "error"
    if status == "timeout":
        return SqlResult("timeout", database, text="ran out of time")
    text = str(error.args[-1]).replace(f"{name}.", "")
    return SqlResult(status, database, text=text.replace(name, "database"))

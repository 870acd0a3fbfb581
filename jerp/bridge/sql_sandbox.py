"""Runs SQL that a model wrote, in SQLite, out of process and out of reach.

The process is that of `jerp.bridge.sandbox`, with the same protections: no network, no
file, no second process, limits on time and memory. In it a statement finds a database
in memory and allow-lists of actions, PRAGMAs and functions: no ATTACH, no extension, no
virtual table, no PRAGMA but those that describe tables. A statement that fails changes
nothing, and one that may only read cannot change what is kept: its database is
discarded besides. One statement at a time; transactions are refused, because each
stands alone. `random()` draws the same numbers each time; `date('now')` is the clock's.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from jerp.bridge.sandbox_pool import Isolation, PooledSandbox, WorkerPool
from jerp.bridge.sql_report import (
    Database,
    SqlLimits,
    SqlResult,
    SqlStatus,
    SqlTable,
    SqlValue,
    read_answer,
)
from jerp.errors import ConfigError

__all__ = [
    "Database",
    "SqlLimits",
    "SqlResult",
    "SqlSandbox",
    "SqlStatus",
    "SqlTable",
    "SqlValue",
    "quoted_name",
]

_SLACK_KIB = 64


def quoted_name(name: str) -> str:
    """A table's or column's name as SQL says it.

    Example:
      >>> print(quoted_name('the "best" of'))
      "the ""best"" of"
    """
    return '"' + name.replace('"', '""') + '"'


class SqlSandbox(PooledSandbox):
    """Runs statements on databases. May be used from several threads at once.

    Example:
      >>> table = SqlTable("t", (("a", "INTEGER"),), [(1,), (2,)])
      >>> with SqlSandbox() as sandbox:
      ...     database = sandbox.create([table])
      ...     after = sandbox.run(database, "DELETE FROM t WHERE a = 1").database
      ...     sandbox.run(after, "SELECT a FROM t", read_only=True).rows
      ((2,),)

    Args:
      limits: of each statement.
      isolation, allow_weaker: see `jerp.bridge.sandbox.Sandbox`.
    """

    dialect = "SQLite"
    text_type = "TEXT COLLATE NOCASE"
    quoted = staticmethod(quoted_name)

    def __init__(
        self,
        limits: SqlLimits | None = None,
        *,
        isolation: Isolation = "auto",
        allow_weaker: bool = False,
    ):
        self.limits = limits or SqlLimits()
        most = asdict(self.limits)
        # The process sends rows and database through one pipe, the latter in base64.
        most["output_kib"] += 1400 * self.limits.database_mib + _SLACK_KIB
        most |= {"files_mib": 1, "open_files": 16, "row_kib": self.limits.output_kib}
        super().__init__(
            WorkerPool(most, isolation=isolation, allow_weaker=allow_weaker, runs="sql")
        )

    @property
    def protections(self) -> Mapping[str, str]:
        """Active protections and how each is made; what is not listed is not there.

        Raises:
          SandboxError: see `run`.
        """
        limits, held = self.limits, self._pool.protections
        return {
            "time": f"{limits.steps} steps, {limits.cpu_seconds} s of processor time, "
            f"{limits.wall_seconds:g} s by the clock",
            "output": f"{limits.rows} rows, {limits.output_kib} KiB",
            "database": f"in memory, at most {limits.database_mib} MiB",
            "statements": "one at a time, allow-lists of actions, PRAGMAs, functions",
        } | held

    def create(self, tables: Sequence[SqlTable]) -> Database:
        """A database with these tables.

        Raises:
          ConfigError: they cannot be created, as two of one name.
          SandboxError: see `run`.
        """
        request = [table.as_request() for table in tables]
        result = self._answer(Database(), None, tables=request)
        if result.status != "ok":
            raise ConfigError(
                f"tables: expected some that SQLite can create, got {result.text!r}"
            )
        return result.database

    def run(
        self, database: Database, statement: str, *, read_only: bool = False
    ) -> SqlResult:
        """Runs one statement.

        Args:
          database: to run it on; it stays as it is.
          statement: untrusted.
          read_only: refuse all that changes anything.

        Raises:
          SandboxError: the required protections are not to be had, or the sandbox
            itself failed. Never the statement's fault.
        """
        if len(statement) > self.limits.statement_chars:
            text = f"the statement has over {self.limits.statement_chars} characters"
            return SqlResult("limit", database, text=text)
        return self._answer(database, statement, read_only=read_only)

    def reading(self, table: str, columns: Sequence[str]) -> str:
        """The statement that reads columns of a table."""
        names = ", ".join(map(quoted_name, columns))
        return f"SELECT {names} FROM {quoted_name(table)}"

    def _answer(
        self,
        database: Database,
        statement: str | None,
        *,
        tables: Sequence[dict[str, Any]] = (),
        read_only: bool = False,
    ) -> SqlResult:
        request = {
            "image": base64.b64encode(database.image).decode(),
            "tables": list(tables),
            "statement": statement,
            "read_only": read_only,
        }
        return read_answer(self._pool.run(request), database)

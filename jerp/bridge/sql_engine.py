"""What runs SQL: SQLite in the sandbox, or a MySQL server that a user names."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

from jerp.bridge.sql_report import Database, SqlResult, SqlTable

__all__ = ["SqlEngine"]


class SqlEngine(Protocol):
    """Runs untrusted statements on databases that are values.

    Attributes:
      dialect: its name, as a prompt says it.
      text_type: declared type of a column of text that compares without regard to case.
    """

    dialect: str
    text_type: str

    @property
    def protections(self) -> Mapping[str, str]:
        """Active protections and how each is made."""
        ...

    def create(self, tables: Sequence[SqlTable]) -> Database:
        """A database with these tables."""
        ...

    def run(
        self, database: Database, statement: str, *, read_only: bool = False
    ) -> SqlResult:
        """Runs one statement; `database` stays as it is."""
        ...

    def quoted(self, name: str) -> str:
        """A table's or column's name as statements say it."""
        ...

    def reading(self, table: str, columns: Sequence[str]) -> str:
        """The statement that reads columns of a table as texts."""
        ...

    def close(self) -> None:
        """Ends what is held."""
        ...

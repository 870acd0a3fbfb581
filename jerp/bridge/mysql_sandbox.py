"""Runs SQL that a model wrote on a MySQL or MariaDB server that a user names.

Databases are values, as in `jerp.bridge.sql_sandbox`: the tables' definitions and rows.
A statement runs in a throw-away database that was made from one, by an account that may
do nothing outside of it, over a connection of its own; a change is read back. So what
fails changes nothing, and no variable, lock or setting outlives a statement. What the
server's own process does with untrusted SQL is the server's matter: it should be one
that holds nothing else.
"""

from __future__ import annotations

import os
import weakref
from collections.abc import Mapping, Sequence
from contextlib import closing, suppress
from threading import Lock
from typing import Any, Self

from jerp.bridge.mysql_address import VARIABLE, read_address
from jerp.bridge.mysql_image import image_of, load, mysql_name, new_image
from jerp.bridge.mysql_report import FAILURES, MySqlLimits, failed
from jerp.bridge.mysql_server import MySqlServer, Place
from jerp.bridge.mysql_statements import only_reads, refusal
from jerp.bridge.sql_report import (
    Database,
    SqlResult,
    SqlTable,
    SqlValue,
)
from jerp.errors import ConfigError, InfrastructureError

__all__ = ["MySqlLimits", "MySqlSandbox"]

_MODE = (
    "ONLY_FULL_GROUP_BY,STRICT_TRANS_TABLES,NO_ZERO_IN_DATE,NO_ZERO_DATE,"
    "ERROR_FOR_DIVISION_BY_ZERO,NO_ENGINE_SUBSTITUTION,NO_DIR_IN_CREATE"
)
"""MySQL 8's own, whatever the server's; the last one keeps tables in their place."""

_LOADING = (
    "sql_mode='STRICT_ALL_TABLES,NO_AUTO_VALUE_ON_ZERO', SESSION foreign_key_checks=0"
)
_MOST_IDLE = 16
_GRACE_SECONDS = 2.0
_LOAD_SECONDS = 60.0


class MySqlSandbox:
    """Runs statements on a server. May be used from several threads at once.

    Attributes:
      limits: of each statement.
      version: `mysql-8.4.2` or `mariadb-10.11.19`, say.

    Args:
      address: `mysql://user@host:3306` or `mysql://user@/path/to/socket`; None takes
        what the variable `JERP_MYSQL` names. The password is that of the variable
        `JERP_MYSQL_PASSWORD`.
      limits: of each statement.

    Raises:
      ConfigError: no address, or one that is none.
      MissingExtraError: PyMySQL is not installed.
      SandboxError: see `jerp.bridge.mysql_server.MySqlServer`.
    """

    dialect = "MySQL"
    text_type = "TEXT"
    quoted = staticmethod(mysql_name)

    def __init__(
        self, address: str | None = None, *, limits: MySqlLimits | None = None
    ):
        named = address or os.environ.get(VARIABLE)
        if not named:
            raise ConfigError(
                "mysql: expected the address of a server, such as "
                f"mysql://user@127.0.0.1:3306; name it by the variable {VARIABLE}"
            )
        self.limits = limits or MySqlLimits()
        self._server = MySqlServer(read_address(named))
        self.version = self._server.version
        self._lock, self._idle = Lock(), dict[bytes, list[Place]]()
        self._end = weakref.finalize(self, _drop_all, self._server, self._idle)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def protections(self) -> Mapping[str, str]:
        """Active protections and how each is made, and which one is missing."""
        limits, own = self.limits, self._server.own_accounts
        return {
            "time": f"{limits.wall_seconds:g} s by the clock",
            "output": f"{limits.rows} rows, {limits.output_kib} KiB",
            "database": f"a throw-away one, at most {limits.database_mib} MiB",
            "statements": "one at a time, an allow-list of their kinds",
            "account": "one a database, without rights outside of it"
            if own
            else "NOT PROTECTED: the server's user, who may use every database named "
            "jerp_..., because it may not create users",
            "server": f"{self.version} at {self._server.address}, which is trusted",
        }

    def create(self, tables: Sequence[SqlTable]) -> Database:
        """A database with these tables.

        Raises:
          ConfigError: they cannot be created, as two of one name.
          InfrastructureError: the server does not answer.
        """
        from pymysql import MySQLError

        database = Database(new_image(tables))
        try:
            place = self._loaded(database)
        except MySQLError as error:
            raise ConfigError(
                f"tables: expected some that {self.version} can create, got "
                f"{error.args[-1]!r}"
            ) from None
        self._give(database, place)
        return database

    def run(
        self, database: Database, statement: str, *, read_only: bool = False
    ) -> SqlResult:
        """Runs one statement.

        Args:
          database: to run it on; it stays as it is.
          statement: untrusted.
          read_only: refuse all that changes anything.

        Raises:
          InfrastructureError: the server does not answer. Never the statement's fault.
        """
        if len(statement) > self.limits.statement_chars:
            text = f"the statement has over {self.limits.statement_chars} characters"
            return SqlResult("limit", database, text=text)
        why = refusal(statement, read_only=read_only)
        if why is not None:
            return SqlResult("denied", database, text=f"not allowed: {why}")
        if any("\ud800" <= letter <= "\udfff" for letter in statement):
            return SqlResult("syntax", database, text="half a character")
        from pymysql import MySQLError

        try:
            place = self._take(database) or self._loaded(database)
        except MySQLError as error:
            text = f"the tables cannot be made again: {error.args[-1]}"
            return SqlResult("error", database, text=text)
        keep = None
        try:
            result = self._answer(place, database, statement, read_only)
            unchanged = result.status in ("syntax", "denied") or only_reads(statement)
            if result.status == "ok" or (unchanged and result.status != "timeout"):
                keep = result.database
        finally:
            self._give(keep, place)
        return result

    def reading(self, table: str, columns: Sequence[str]) -> str:
        """The statement that reads columns of a table as texts."""
        texts = ", ".join(f"CAST({mysql_name(name)} AS CHAR)" for name in columns)
        return f"SELECT {texts} FROM {mysql_name(table)}"

    def close(self) -> None:
        """Drops the databases that are held, and leaves the server."""
        self._end()

    def _answer(
        self, place: Place, database: Database, statement: str, read_only: bool
    ) -> SqlResult:
        from pymysql import MySQLError

        connection = self._connected(place, read_only)
        with closing(_Quiet(connection)):
            try:
                columns, rows, changes = self._rows(place, connection, statement)
                if not only_reads(statement):
                    most = self.limits.database_mib << 20
                    database = Database(image_of(connection, most))
            except OverflowError as error:
                return SqlResult("limit", database, text=str(error))
            except MySQLError as error:
                if error.args[0] in FAILURES["timeout"]:
                    # Also tells whether the server is still there.
                    self._server.stop(place, connection, what="CONNECTION")
                return failed(place.name, database, error)
        return SqlResult("ok", database, columns, rows, changes)

    def _rows(
        self, place: Place, connection: Any, statement: str
    ) -> tuple[tuple[str, ...], tuple[tuple[SqlValue, ...], ...], int]:
        from pymysql.cursors import SSCursor

        cursor = connection.cursor(SSCursor)
        cursor.execute(statement)
        if cursor.description is None:
            return (), (), cursor.rowcount
        rows, size = [], 0
        for row in cursor:
            size += sum(len(str(value)) for value in row)
            rows.append(row)
            if len(rows) > self.limits.rows or size > self.limits.output_kib << 10:
                self._server.stop(place, connection, what="QUERY")
                with suppress(Exception):  # the rest of the rows, and that it was ended
                    cursor.close()
                raise OverflowError(
                    f"over {self.limits.rows} rows or {self.limits.output_kib} KiB"
                )
        columns = tuple(column[0] for column in cursor.description)
        cursor.close()
        return columns, tuple(rows), 0

    def _connected(self, place: Place, read_only: bool) -> Any:
        seconds = self.limits.wall_seconds
        limit = self._server.time_limit.format(s=seconds, ms=round(seconds * 1000))
        setup = f"SET SESSION sql_mode='{_MODE}', SESSION {limit}"
        if read_only:
            setup += ", SESSION " + self._server.read_only
        patience = seconds + _GRACE_SECONDS
        return self._server.connect(place, setup=setup, read_timeout=patience)

    def _loaded(self, database: Database) -> Place:
        """A new place with a database's tables."""
        place = self._server.make()
        try:
            connection = self._server.connect(
                place, setup=f"SET SESSION {_LOADING}", read_timeout=_LOAD_SECONDS
            )
            with closing(_Quiet(connection)):
                load(connection, database.image)
        except BaseException:
            self._server.drop(place)
            raise
        return place

    def _take(self, database: Database) -> Place | None:
        """A place that holds this database already; nobody else has it then."""
        with self._lock:
            places = self._idle.get(database.image, [])
            place = places.pop() if places else None
            if not places:
                self._idle.pop(database.image, None)
        return place

    def _give(self, database: Database | None, place: Place) -> None:
        """Keeps a place for the next statement; drops one whose state is unknown."""
        dropped = [place] if database is None else []
        with self._lock:
            if database is not None:
                self._idle.setdefault(database.image, []).append(place)
            if sum(map(len, self._idle.values())) > _MOST_IDLE:
                oldest = next(iter(self._idle))
                dropped += self._idle.pop(oldest)
        for each in dropped:
            self._server.drop(each)


class _Quiet:
    """Closes a connection that the server may have closed already."""

    def __init__(self, connection: Any):
        self._connection = connection

    def close(self) -> None:
        """Says goodbye if it can."""
        with suppress(Exception):
            self._connection.close()


def _drop_all(server: MySqlServer, idle: dict[bytes, list[Place]]) -> None:
    """What is left of a sandbox; not its method, which would keep it alive."""
    while idle:
        for place in idle.popitem()[1]:
            with suppress(InfrastructureError):
                server.drop(place)
    server.close()

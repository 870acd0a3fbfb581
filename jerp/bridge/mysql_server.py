"""A MySQL or MariaDB server, and the throw-away databases on it.

Each database has an unguessable name and, where the given user may create users, an
account of its own that may do nothing outside of it. The user's password comes from the
variable JERP_MYSQL_PASSWORD alone and is in no message. While a server is in use a lock
is held on it; databases whose lock nobody holds are what a crash left, and are dropped
at the next start.
"""

from __future__ import annotations

import os
import re
import secrets
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from threading import Lock
from typing import Any

from jerp.bridge.mysql_address import PASSWORD, Address
from jerp.errors import InfrastructureError, MissingExtraError, SandboxError

__all__ = ["MySqlServer", "Place"]

_NAME = re.compile(r"jerp_([0-9a-f]{8})_[0-9a-f]{16}")
_RIGHTS = "SELECT, INSERT, UPDATE, DELETE, CREATE, DROP, ALTER, INDEX"
_HARMLESS = re.compile(r"GRANT (USAGE ON \*\.\*|.* ON `jerp(\\{1,2})?_%`\.\*) TO ")
_DENIED = frozenset({1044, 1045, 1142, 1143, 1227, 1290, 1410, 1698})
_NO_SUCH_THREAD = 1094
_CONNECT_SECONDS = 10
_MOST_SECONDS = 60.0
"""Of making or dropping a database."""


@dataclass(frozen=True)
class Place:
    """A database on the server, and who may use it."""

    name: str
    user: str
    password: str = field(repr=False)


class MySqlServer:
    """A connection that makes and drops databases. Several threads may share it.

    Attributes:
      version: `mysql-` or `mariadb-` and its number.
      own_accounts: each database has an account of its own.

    Args:
      address: see `jerp.bridge.mysql_address.read_address`.

    Raises:
      MissingExtraError: PyMySQL is not installed.
      InfrastructureError: the server does not answer, or does not take the user.
      SandboxError: the user may not create databases, or it may do more than that and
        cannot create users that may not.
    """

    def __init__(self, address: Address):
        try:
            import pymysql
        except ImportError as error:
            raise MissingExtraError("PyMySQL", "mysql") from error
        self._pymysql, self.address = pymysql, address
        self._lock, self._token = Lock(), secrets.token_hex(4)
        with self._failures("reach"):
            self._admin = self._connect(address.user, os.environ.get(PASSWORD, ""))
        try:
            self._begin()
        except BaseException:
            self._admin.close()
            raise

    def _begin(self) -> None:
        found = str(self._ask("SELECT VERSION()")[0][0])
        number = re.search(r"(5\.5\.5-)?(\d+\.\d+(\.\d+)?)", found)
        self._is_mariadb = "mariadb" in found.lower()
        kind = "mariadb" if self._is_mariadb else "mysql"
        self.version = f"{kind}-{number[2] if number else 'unknown'}"
        self._host = str(self._ask("SELECT USER()")[0][0]).rpartition("@")[2]
        self._ask("SET SESSION wait_timeout = 2147483")
        self._ask("SELECT GET_LOCK(%s, 0)", f"jerp_{self._token}")
        self.own_accounts = True
        self._drop_left()
        self._try_out()

    def make(self) -> Place:
        """An empty database, with its account.

        Raises:
          InfrastructureError: the server does not answer.
        """
        with self._failures("make a database on"):
            return self._make()

    def drop(self, place: Place) -> None:
        """Drops a database, and its account.

        Raises:
          InfrastructureError: the server does not answer.
        """
        with self._failures("drop a database on"):
            self._drop(place)

    def connect(self, place: Place, *, setup: str, read_timeout: float) -> Any:
        """A connection to a database by its account.

        Args:
          place: the database.
          setup: a statement that comes first.
          read_timeout: seconds without an answer after which it is given up.

        Raises:
          InfrastructureError: the server does not answer.
        """
        with self._failures("reach"):
            return self._connect(
                place.user,
                place.password,
                database=place.name,
                init_command=setup,
                read_timeout=read_timeout,
            )

    def stop(self, place: Place, connection: Any, *, what: str) -> None:
        """Ends what a connection to a place is doing.

        Args:
          place: whose account may do so, unlike the server's user.
          connection: which one.
          what: `QUERY`, after which it may be used on, or `CONNECTION`.

        Raises:
          InfrastructureError: the server does not answer.
        """
        setup = f"KILL {what} {connection.thread_id()}"
        try:
            self._connect(
                place.user,
                place.password,
                init_command=setup,
                read_timeout=_MOST_SECONDS,
            ).close()
        except self._pymysql.MySQLError as error:
            if error.args[0] != _NO_SUCH_THREAD:
                raise self._failure("reach", error) from None

    def close(self) -> None:
        """Ends the connection; what was not dropped is dropped at the next start."""
        with suppress(self._pymysql.MySQLError):
            self._admin.close()

    @property
    def time_limit(self) -> str:
        """The variable that limits a statement, with `{ms}` or `{s}` for its value."""
        return (
            "max_statement_time={s}" if self._is_mariadb else "max_execution_time={ms}"
        )

    @property
    def read_only(self) -> str:
        """The setting that lets a connection only read."""
        return "tx_read_only=1" if self._is_mariadb else "transaction_read_only=1"

    def _make(self) -> Place:
        name = f"jerp_{self._token}_{secrets.token_hex(8)}"
        self._ask(f"CREATE DATABASE `{name}` CHARACTER SET utf8mb4")
        if not self.own_accounts:
            return Place(name, self.address.user, os.environ.get(PASSWORD, ""))
        place = Place(name, name, secrets.token_urlsafe(18) + "aA1!")
        try:
            who = (place.user, self._host)
            self._ask("CREATE USER %s@%s IDENTIFIED BY %s", *who, place.password)
            # `_` stands for any character here, but no other name is so nearly this.
            self._ask(f"GRANT {_RIGHTS} ON `{name}`.* TO %s@%s", *who)
        except self._pymysql.MySQLError:
            with suppress(self._pymysql.MySQLError):
                self._drop(place)
            raise
        return place

    def _drop(self, place: Place) -> None:
        self._ask(f"DROP DATABASE IF EXISTS `{place.name}`")
        if place.user == place.name:
            self._ask("DROP USER %s@%s", place.user, self._host)

    def _try_out(self) -> None:
        """Finds whether databases can have accounts; refuses what is not safe."""
        try:
            self.drop(self._make())
            return
        except self._pymysql.MySQLError as error:
            if error.args[0] not in _DENIED:
                raise self._failure("make a database on", error) from None
        self.own_accounts = False
        try:
            self.drop(self._make())
        except self._pymysql.MySQLError as error:
            raise SandboxError(
                "mysql: expected a user that may create databases named jerp_..., "
                f"which {self.address} may not ({_told(error)}); GRANT ALL ON "
                "`jerp\\_%`.* to it"
            ) from None
        grants = [str(row[0]) for row in self._ask("SHOW GRANTS")]
        if not all(map(_HARMLESS.match, grants)):
            raise SandboxError(
                f"mysql: statements would run by the rights of {self.address}, which "
                "go beyond databases named jerp_...; expected a user that may create "
                "users (CREATE USER and GRANT OPTION), or one with no other rights "
                "than GRANT ALL ON `jerp\\_%`.*"
            )

    def _drop_left(self) -> None:
        """Drops the databases and accounts whose lock nobody holds."""
        left = [str(row[0]) for row in self._ask(r"SHOW DATABASES LIKE 'jerp\\_%%'")]
        accounts: list[tuple[str, str]] = []
        with suppress(self._pymysql.MySQLError):  # not every user may read them
            query = r"SELECT user, host FROM mysql.user WHERE user LIKE 'jerp\\_%%'"
            accounts = [(str(user), str(host)) for user, host in self._ask(query)]
        for name in left:
            if self._is_left(name):
                with suppress(self._pymysql.MySQLError):
                    self._ask(f"DROP DATABASE IF EXISTS `{name}`")
        for name, host in accounts:
            if self._is_left(name):
                with suppress(self._pymysql.MySQLError):
                    self._ask("DROP USER %s@%s", name, host)

    def _is_left(self, name: str) -> bool:
        found = _NAME.fullmatch(name)
        if found is None or found[1] == self._token:
            return False
        return bool(self._ask("SELECT IS_FREE_LOCK(%s)", f"jerp_{found[1]}")[0][0])

    def _connect(self, user: str, password: str, **options: Any) -> Any:
        from pymysql.constants import FIELD_TYPE
        from pymysql.converters import conversions

        # Numbers are numbers; all else is text as the server writes it.
        numbers: dict[Any, Any] = {FIELD_TYPE.FLOAT: float, FIELD_TYPE.DOUBLE: float}
        for kind in ("TINY", "SHORT", "LONG", "LONGLONG", "INT24", "YEAR"):
            numbers[getattr(FIELD_TYPE, kind)] = int
        writes = {key: how for key, how in conversions.items() if isinstance(key, type)}
        at = self.address
        where = {"unix_socket": at.socket} if at.socket else {"host": at.host}
        return self._pymysql.connect(
            **where,
            **{"port": at.port, "user": user, "password": password},
            **{"conv": writes | numbers},
            **{"charset": "utf8mb4", "autocommit": True, "local_infile": False},
            **{"connect_timeout": _CONNECT_SECONDS, "read_timeout": _MOST_SECONDS}
            | options,
        )

    def _ask(self, statement: str, *values: str) -> Any:
        with self._lock, self._admin.cursor() as cursor:
            cursor.execute(statement, values)
            return cursor.fetchall()

    @contextmanager
    def _failures(self, doing: str) -> Iterator[None]:
        try:
            yield
        except self._pymysql.MySQLError as error:
            raise self._failure(doing, error) from None

    def _failure(self, doing: str, error: Exception) -> InfrastructureError:
        return InfrastructureError(
            f"mysql: cannot {doing} {self.address}: {_told(error)}; the password comes "
            f"from the variable {PASSWORD}"
        )


def _told(error: Exception) -> str:
    return f"{error.args[-1]}" if error.args else type(error).__name__

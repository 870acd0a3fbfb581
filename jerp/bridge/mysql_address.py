"""Where a MySQL server is. Its password is never part of that."""

from __future__ import annotations

from dataclasses import dataclass
from urllib.parse import unquote, urlsplit

from jerp.errors import ConfigError

__all__ = ["PASSWORD", "VARIABLE", "Address", "read_address"]

VARIABLE = "JERP_MYSQL"
PASSWORD = "JERP_MYSQL_PASSWORD"


@dataclass(frozen=True)
class Address:
    """Where a server is; its text holds no password.

    Attributes:
      user: who creates the databases.
      host, port: of a server on the network.
      socket: path, of a server on this machine; the others are then unused.
    """

    user: str
    host: str = ""
    port: int = 3306
    socket: str = ""

    def __str__(self):
        where = self.socket or f"{self.host}:{self.port}"
        return f"mysql://{self.user}@{where}"


def read_address(text: str) -> Address:
    """The address in `mysql://user@host:3306` or `mysql://user@/path/to/socket`.

    Raises:
      ConfigError: it is none, or it holds a password.

    Example:
      >>> print(read_address("mysql://me@127.0.0.1"))
      mysql://me@127.0.0.1:3306
      >>> read_address("mysql://me@/run/mysqld/mysqld.sock").socket
      '/run/mysqld/mysqld.sock'
    """
    try:
        parts = urlsplit(text)
        port = parts.port or 3306
    except ValueError:
        parts, port = urlsplit(""), 0
    if parts.password is not None:
        raise ConfigError(
            f"mysql: expected an address without a password; give that by the variable "
            f"{PASSWORD}, where no log and no list of processes shows it"
        )
    path = unquote(parts.path)
    told = parts.scheme in ("mysql", "mariadb") and parts.username
    if not told or parts.query or parts.fragment or bool(parts.hostname) == bool(path):
        raise ConfigError(
            "mysql: expected an address such as mysql://user@127.0.0.1:3306 or "
            f"mysql://user@/run/mysqld/mysqld.sock, got {text.rpartition('@')[2]!r}"
        )
    return Address(unquote(parts.username or ""), parts.hostname or "", port, path)

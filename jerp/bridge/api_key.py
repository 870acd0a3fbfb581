"""The key of an endpoint: read from the environment, shown nowhere.

A key object has no text form. What a server says is scrubbed before anything else sees
it, because some servers repeat the key in their errors.
"""

from __future__ import annotations

import os
import re

from jerp.errors import ConfigError

__all__ = ["ApiKey"]

_HIDDEN = "[key]"
_BEARER = re.compile(r"(?i)\bbearer\s+[^\s\"'<>,;]+")
_ABSENT = "none"


class ApiKey:
    """The key in an environment variable, or none where the variable is not set.

    Args:
      variable: its name.

    Raises:
      ConfigError: the key has characters that no header can carry; it is not shown.
    """

    def __init__(self, variable: str):
        self.variable = variable
        self._value = os.environ.get(variable, "").strip()
        if not re.fullmatch(r"[!#-\[\]-~]*", self._value):
            raise ConfigError(
                f"{variable}: expected a key of printable ASCII without spaces, quotes "
                "or backslashes (its value is not shown); set it again"
            )

    def __repr__(self) -> str:
        return f"ApiKey({self.variable!r}, {'set' if self._value else 'not set'})"

    def __reduce__(self):
        # Another process reads its own environment.
        return type(self), (self.variable,)

    @property
    def is_set(self) -> bool:
        """Whether there is one."""
        return bool(self._value)

    def for_client(self) -> str:
        """The secret itself, for the client alone; a placeholder if there is none."""
        return self._value or _ABSENT

    def scrub(self, text: str) -> str:
        """`text` without the key, and without any other bearer token."""
        if self._value:
            text = text.replace(self._value, _HIDDEN)
        return _BEARER.sub(f"Bearer {_HIDDEN}", text)

    def scrub_body(self, body: bytes) -> bytes:
        """`body` without the key."""
        return body.replace(self._value.encode(), _HIDDEN.encode()) if self else body

    def __bool__(self) -> bool:
        return self.is_set

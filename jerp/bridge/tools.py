"""Tools that a model may call, and the calls that it made.

Arguments stay the text that the model wrote: nothing is repaired. A call that must not
be executed (cut off, unknown tool, arguments that are no JSON object) has a `fault` and
no parsed arguments, so that it cannot be executed by mistake.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from jerp.errors import ConfigError

__all__ = ["Tool", "ToolCall", "read_tool_call"]


@dataclass(frozen=True)
class Tool:
    """A function that a model may call.

    Attributes:
      name: what the model calls it by.
      description: what it is told of it.
      parameters: JSON text of the schema of its arguments, which is an object. Text,
        so that it is hashed and stored exactly as it is.
    """

    name: str
    description: str = ""
    parameters: str = '{"type":"object","properties":{}}'

    def __post_init__(self):
        if not self.name:
            raise ConfigError("name: expected the name of a tool, got an empty text")
        if not isinstance(_parsed(self.parameters), dict):
            raise ConfigError(
                f"parameters of tool {self.name!r}: expected the JSON text of a schema "
                f"(an object), got {self.parameters[:80]!r}"
            )


@dataclass(frozen=True)
class ToolCall:
    """A call that a model wrote.

    Attributes:
      name: of the tool.
      arguments: the text that the model wrote.
      call_id: what the tool's message answers to.
      fault: why it must not be executed; empty if it may be.
    """

    name: str
    arguments: str
    call_id: str = ""
    fault: str = ""

    @property
    def parsed(self) -> dict[str, Any] | None:
        """The arguments; None where the call has a fault."""
        if self.fault:
            return None
        value = _parsed(self.arguments)
        return value if isinstance(value, dict) else None


def read_tool_call(
    name: str,
    arguments: str,
    tools: Sequence[Tool],
    *,
    call_id: str = "",
    is_cut_off: bool = False,
) -> ToolCall:
    """A call as it was written, with what is wrong with it.

    Args:
      name: as the model wrote it.
      arguments: as the model wrote them.
      tools: what it might call.
      call_id: as the endpoint gave it.
      is_cut_off: the completion was truncated or filtered: even arguments that happen
        to parse are not what the model meant to say.
    """
    if is_cut_off:
        fault = "it was cut off"
    elif name not in (tool.name for tool in tools):
        known = ", ".join(tool.name for tool in tools) or "none"
        fault = f"unknown tool {name!r} (known: {known})"
    elif not isinstance(_parsed(arguments), dict):
        fault = f"expected arguments that are a JSON object, got {arguments[:80]!r}"
    else:
        fault = ""
    return ToolCall(name, arguments, call_id, fault)


def _parsed(text: str) -> Any:
    """The JSON value, or None: nothing here expects null."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None

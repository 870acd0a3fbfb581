"""The command that makes a run again, from its config."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

__all__ = ["command_of"]


def command_of(program: str, config: Any, names: Sequence[str]) -> str:
    """`program` with the options that differ from their defaults.

    Args:
      program: such as `jerp run harness`.
      config: a dataclass whose fields all have plain defaults.
      names: of the fields that can change a result, in this order.
    """
    words = [program]
    for name in names:
        value = getattr(config, name)
        if value == type(config).__dataclass_fields__[name].default:
            continue
        words.append(f"--{name}")
        if isinstance(value, tuple):
            words += map(str, value)
        elif value is not True:
            words.append(str(value))
    return " ".join(words)

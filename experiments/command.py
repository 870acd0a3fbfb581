"""The command that makes a run again, from its config."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import is_dataclass
from typing import Any

__all__ = ["command_of"]


def command_of(program: str, config: Any, names: Sequence[str]) -> str:
    """`program` with the options that differ from their defaults.

    Args:
      program: such as `jerp run harness`.
      config: a dataclass whose fields all have plain defaults, or are one themselves,
        whose fields are then options like its own.
      names: of the fields that can change a result, in this order.
    """
    return " ".join([program, *_options(config, names)])


def _options(config: Any, names: Sequence[str]) -> Iterator[str]:
    for name in names:
        value = getattr(config, name)
        if value == type(config).__dataclass_fields__[name].default:
            continue
        if is_dataclass(value):
            yield from _options(value, [*type(value).__dataclass_fields__])
            continue
        yield f"--{name.replace('_', '-')}"
        if isinstance(value, tuple):
            yield from map(str, value)
        elif value is not True:
            yield str(value)

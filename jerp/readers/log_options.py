"""What a log of another tool cannot say for itself, and is asked for.

A field that is None was not asked for. Where a log leaves open what a number rests on,
its reader refuses it with the option that settles it; what it can take from the log it
takes, and says so in a note.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any

from jerp.errors import ConfigError, InputError
from jerp.readers.log_fields import MISSING, is_finite, refusal

__all__ = [
    "MESSAGE_UNITS",
    "NONE",
    "LogOptions",
    "spent_of_calls",
    "succeeded",
    "tool_calls",
]

MESSAGE_UNITS = {
    "steps": "the agent's messages that call a tool (the answer is none of them)",
    "turns": "the agent's messages",
    "calls": "the agent's tool calls",
}
"""Units that are counted in the conversation, and how."""

NONE = "none"
"""What `errors` and `truncated` say where it holds for no run."""


@dataclass(frozen=True)
class LogOptions:
    """How to read a log.

    Attributes:
      unit: what `spent` counts: steps, turns, calls, tokens, seconds or dollars.
      score: which of several scores says whether a run succeeded.
      success_at: from which score on it did; None for scores of 0 and 1 alone.
      spent: the field that says what a run spent, or a number for all runs.
      task: the field that names the task.
      agent: whose run it is, of several agents.
      errors: the field that says whether the infrastructure ended a run, or "none".
      truncated: the field that says whether a limit cut a run short, or "none".
    """

    unit: str = "steps"
    score: str | None = None
    success_at: float | None = None
    spent: str | None = None
    task: str | None = None
    agent: str | None = None
    errors: str | None = None
    truncated: str | None = None

    def __post_init__(self) -> None:
        if self.success_at is not None and not math.isfinite(self.success_at):
            raise ConfigError(
                f"--success-at: expected a finite number, got {self.success_at}"
            )

    def refuse(self, names: Sequence[str], why: str) -> None:
        """Refuses options that change nothing in this format.

        Raises:
          ConfigError: one of them was given.
        """
        for name in names:
            if (value := getattr(self, name)) is not None:
                raise ConfigError(
                    f"--{name.replace('_', '-')} {value}: {why}; leave it out"
                )

    def spent_note(self, taken_from: Mapping[str, str]) -> str:
        """What `spent` was taken from, in words."""
        if self.spent is not None:
            return f"spent is {self.spent}, as --spent says"
        return f"spent ({self.unit}) is {taken_from[self.unit]}"

    def given(self) -> list[str]:
        """The names of the fields that were asked for, without the unit."""
        names = (field.name for field in fields(self) if field.name != "unit")
        return [name for name in names if getattr(self, name) is not None]


def succeeded(options: LogOptions, value: Any, field: str, where: str) -> bool:
    """Whether a score says success.

    Raises:
      InputError: it is no finite number, or neither 0 nor 1 and no threshold was given.
    """
    if not isinstance(value, bool) and not is_finite(value):
        raise refusal(where, field, "a finite number, true or false", value)
    if options.success_at is not None:
        return value >= options.success_at
    if value not in (0, 1):
        raise InputError(
            f"{where}, {field}: got {value:g}, neither 0 nor 1; say from which score "
            "on a run has succeeded: --success-at NUMBER"
        )
    return value == 1


def spent_of_calls(unit: str, calls: Sequence[int]) -> int:
    """What a conversation spent, from the tool calls of each agent message."""
    if unit == "steps":
        return sum(number > 0 for number in calls)
    return sum(calls) if unit == "calls" else len(calls)


def tool_calls(message: Any, where: str) -> int:
    """How many tools a message calls.

    Raises:
      InputError: `tool_calls` is no list.
    """
    calls = message.get("tool_calls")
    if calls is not None and not isinstance(calls, list):
        raise refusal(where, "tool_calls", "a list, or null", calls)
    if calls is None:
        return int(message.get("function_call", MISSING) not in (MISSING, None))
    return len(calls)

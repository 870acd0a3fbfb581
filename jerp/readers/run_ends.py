"""What ended a run, in formats that have no fields of their own for it.

Whether the infrastructure ended a run and whether a limit cut it short is taken from
the fields `error` and `truncated`, or those that `--errors` and `--truncated` name, or
from the user's word that there was no such run. It is never assumed.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from jerp.errors import InputError
from jerp.readers.log_fields import MISSING, found, listed_names, refusal
from jerp.readers.log_options import NONE, LogOptions

__all__ = ["RunEnds"]

FINISH_REASONS = {
    "length": True,
    **dict.fromkeys(("stop", "tool_calls", "function_call", "content_filter"), False),
}
"""OpenAI's words for how an answer ended: did its length end it?"""


class RunEnds:
    """How the runs of a file ended, a line at a time."""

    def __init__(self, options: LogOptions) -> None:
        self._errors = _End(
            "errors", "error", "the infrastructure ended it", options.errors, bool
        )
        self._truncated = _End(
            "truncated",
            "truncated",
            "a limit cut it short",
            options.truncated,
            _is_cut,
        )

    def __call__(self, line: Any, where: str) -> tuple[bool, bool]:
        """Whether the infrastructure ended a run, and else whether a limit cut it.

        Raises:
          InputError: nothing says so, or it contradicts an option.
        """
        broken = self._errors(line, where)
        cut = False if broken else self._truncated(line, where)
        if broken is None or cut is None:
            ends = [(self._errors, broken), (self._truncated, cut)]
            unknown = [end for end, holds in ends if holds is None]
            raise InputError(
                f"{where}: expected {' and '.join(repr(e.field) for e in unknown)}, "
                f"got {listed_names(line)}; nothing says of a run whether "
                f"{' or whether '.join(e.says for e in unknown)}. Name the field that "
                f"does, {' '.join(f'--{e.option} FIELD' for e in unknown)}, or say "
                f"that it holds for none: "
                f"{' '.join(f'--{e.option} {NONE}' for e in unknown)}"
            )
        return broken, cut

    def notes(self, where: str) -> list[str]:
        """What was taken from where, once all lines have passed.

        Raises:
          InputError: an option names a field that no line has.
        """
        return [*self._errors.notes(where), *self._truncated.notes(where)]


class _End:
    """One way for a run to end, and how many runs did.

    Attributes:
      option: that names the field.
      field: that option's value, or the usual name.
      says: what it says of a run.
    """

    def __init__(
        self,
        option: str,
        field: str,
        says: str,
        asked: str | None,
        holds: Callable[[Any], bool | None],
    ) -> None:
        self.option, self.says, self.asked = option, says, asked
        self.field = field if asked in (None, NONE) else asked
        self._holds = holds
        self._lines = self._lacking = self._held = 0

    def __call__(self, line: Any, where: str) -> bool | None:
        """Whether a line says it; None where neither it nor an option does."""
        self._lines += 1
        value = found(line, self.field)
        if value is MISSING or (value is None and self.asked is not None):
            self._lacking += 1
            return None if self.asked is None else False
        holds = self._holds(value)
        if holds is None:
            words = ", ".join(FINISH_REASONS)
            raise refusal(where, self.field, f"true or false, or one of {words}", value)
        if holds and self.asked == NONE:
            raise InputError(
                f"{where}, {self.field}: says that {self.says}, but --{self.option} "
                f"{NONE} that this holds for no run; leave the option out"
            )
        self._held += holds
        return holds

    def notes(self, where: str) -> list[str]:
        """How many runs it holds for, and how many do not say."""
        if self.asked == NONE:
            return [f"for no run it is so that {self.says}, as --{self.option} says"]
        if self._lines and self._lacking == self._lines:
            raise InputError(
                f"{where}: expected the field {self.field!r}, as --{self.option} says, "
                f"got no line with it; name another, or say --{self.option} {NONE}"
            )
        notes = [f"{self._held} of {self._lines} runs: {self.says} ({self.field!r})"]
        if self._lacking:
            notes.append(
                f"{self._lacking} of {self._lines} lines do not have {self.field!r}, "
                f"named by --{self.option}; they count as if it were false"
            )
        return notes


def _is_cut(value: Any) -> bool | None:
    if isinstance(value, bool):
        return value
    return FINISH_REASONS.get(value) if isinstance(value, str) else None

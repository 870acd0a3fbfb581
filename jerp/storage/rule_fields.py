"""What is known of one rule, each field in one form or refused by its name."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

import numpy as np

from jerp.errors import InputError
from jerp.rules.text import check_rule_text, plain_line

__all__ = ["PoolRule", "check_key", "check_score", "check_sources", "check_whole"]

MAX_KEY_CHARS, MAX_NOTE_CHARS = 100, 500

_DIGEST = re.compile(r"[!-+\--~]{1,100}")


@dataclass(frozen=True)
class PoolRule:
    """A rule and what is known of it; all is brought into one form or refused.

    Attributes:
      text: see `jerp.rules.text.check_rule_text`.
      score: its utility, a number of float32.
      born: the step at which it, or the oldest rule it was made of, was added.
      uses: episodes that had it in the prompt.
      wins: those of them that succeeded.
      sources: digests of the tasks that it was learned from, see
        `jerp.storage.rule_leaks.task_digests`.
      note: of a person, one line; it means nothing to the program.

    Raises:
      InputError: a field that cannot be meant, by its name.
    """

    text: str
    score: float
    born: int = 0
    uses: int = 0
    wins: int = 0
    sources: tuple[str, ...] = ()
    note: str = ""

    def __post_init__(self) -> None:
        counts = ("born", "uses", "wins")
        fixed = {name: check_whole(name, getattr(self, name)) for name in counts}
        if self.wins > self.uses:
            raise InputError(
                f"wins: expected at most the {self.uses} uses, got {self.wins}"
            )
        fixed |= {
            "text": check_rule_text(self.text),
            "score": check_score(self.score),
            "sources": check_sources(self.sources),
            "note": plain_line("note", self.note, max_chars=MAX_NOTE_CHARS),
        }
        for name, value in fixed.items():
            object.__setattr__(self, name, value)


def check_key(key: str) -> str:
    """A task key in its one form; raises `InputError` if it is none."""
    found = plain_line("task key", key, max_chars=MAX_KEY_CHARS)
    if not found:
        raise InputError("task key: expected a name, got an empty text")
    return found


def check_whole(name: str, value: Any, *, least: int = 0) -> int:
    """A whole number of int32, from `least` on; raises `InputError` if it is none."""
    whole = isinstance(value, int | np.integer) and not isinstance(value, bool)
    if not whole or not least <= value < 2**31:
        raise InputError(f"{name}: expected a whole number >= {least}, got {value!r}")
    return int(value)


def check_score(value: Any) -> float:
    """The shortest decimal of the float32 number: what a file shows is what counts.

    Raises `InputError` if there is none.
    """
    number = isinstance(value, int | float | np.number) and not isinstance(value, bool)
    try:
        with np.errstate(over="ignore"):
            found = np.float32(value) if number else np.float32(np.nan)
    except OverflowError:
        found = np.float32(np.inf)
    if not np.isfinite(found):
        raise InputError(f"score: expected a finite number of float32, got {value!r}")
    if value and not found:
        raise InputError(
            f"score: expected 0 or a number of float32, got {value!r}, which would "
            "become 0"
        )
    return float(str(found)) + 0.0  # no -0.0


def check_sources(sources: Any) -> tuple[str, ...]:
    """Digests, each once, in order; raises `InputError` if one cannot be meant."""
    if not isinstance(sources, tuple | list):
        raise InputError(f"sources: expected a list of digests, got {sources!r:.80}")
    for source in sources:
        if not isinstance(source, str) or not _DIGEST.fullmatch(source):
            raise InputError(
                "sources: expected digests of tasks, at most 100 ASCII characters each "
                f"without blanks and commas, got {source!r:.80}"
            )
    return tuple(dict.fromkeys(sources))

"""The score of a sample of inspect_ai that says whether it succeeded."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from jerp.errors import InputError
from jerp.readers.log_fields import MISSING, found, listed_names, need, refusal

__all__ = ["Score", "number_of", "score_of"]

LETTERS = {"C": 1.0, "I": 0.0, "P": 0.5, "N": 0.0}
"""Correct, incorrect, partly correct, no answer."""

WORDS = {"yes": 1.0, "true": 1.0, "no": 0.0, "false": 0.0}


class Score(NamedTuple):
    """A score as it stands in the log.

    Attributes:
      value: of any kind; NaN is inspect's word for "not scored".
      reason: why it was not, where the log says so.
      field: where it stands.
    """

    value: Any
    reason: str | None
    field: str


def score_of(sample: Mapping[str, Any], asked: str | None, where: str) -> Score:
    """The score that was asked for, or the only one.

    Raises:
      InputError: there is none, or it is not said which of several counts.
    """
    scores = sample.get("scores")
    if not isinstance(scores, dict) or not scores:
        expected = "at least one score (`inspect score` adds them)"
        raise refusal(where, "scores", expected, scores)
    name, part = _name(scores, asked, where)
    if not isinstance(scores[name], dict):
        raise refusal(where, f"scores.{name}", "an object", scores[name])
    field, value = f"scores.{name}.value", found(scores[name], "value")
    if isinstance(value, dict):
        if not part:
            raise InputError(
                f"{where}, {field}: got the parts {listed_names(value)}; say which "
                f"one counts: --score {name}.PART"
            )
        value, field = value.get(part, MISSING), f"{field}.{part}"
    reason = scores[name].get("reason")
    if reason is not None:
        need(scores[name], "reason", f"{where}, scores.{name}", "a text")
    return Score(value, reason, field)


def _name(scores: Mapping[str, Any], asked: str | None, where: str) -> tuple[str, str]:
    """The name of a score and of the part of its value that was asked for."""
    if asked is None:
        if len(scores) > 1:
            raise InputError(
                f"{where}, scores: expected one score, got {listed_names(scores)}; say "
                "which one counts: --score NAME"
            )
        return next(iter(scores)), ""
    if asked in scores:
        return asked, ""
    heads = (each for each in scores if asked.startswith(f"{each}."))
    head = max(heads, key=len, default=None)
    if head is None:
        raise InputError(
            f"{where}, scores: expected the score {asked!r}, as --score says, got "
            f"{listed_names(scores)}"
        )
    return head, asked[len(head) + 1 :]


def number_of(value: Any, field: str, where: str) -> Any:
    """A score's value as a number: inspect also writes letters and words.

    Raises:
      InputError: it is another text.
    """
    if not isinstance(value, str):
        return value
    text = value.strip()
    for words, key in ((LETTERS, text), (WORDS, text.lower())):
        if key in words:
            return words[key]
    try:
        return float(text)
    except ValueError:
        raise refusal(
            where, field, "C, I, P, N, yes, no, true, false, or a number", value
        ) from None

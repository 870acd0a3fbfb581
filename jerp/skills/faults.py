"""What a well-formed skill may not hold: values of its task, too much, talk to a model.

A skill is a procedure for a family of tasks, and one that names the account or the sum
of a single task is its answer and no procedure. Values are looked for line by line, as
whole words and as numbers, whatever their case, accents, quotes, separators and
compatible letters. Not found: numbers in words, look-alikes of other alphabets, codes,
and what is spread over lines.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from decimal import Decimal
from functools import cached_property
from numbers import Real
from typing import Literal

from jerp.errors import InputError
from jerp.ops.checks import check_count
from jerp.rules.book import count_words
from jerp.skills.document import Skill, render_skill

__all__ = ["SkillFault", "skill_faults"]

FaultKind = Literal["secret", "addresses_reader", "length"]

READER_PHRASES = (
    *("all instructions", "new instructions", "previous instructions"),
    *("prior instructions", "earlier instructions", "above instructions"),
    *("instructions above", "your instructions", "system prompt", "system message"),
    *("ignore all", "ignore everything", "disregard all", "disregard everything"),
    *("forget all", "forget everything", "override your", "you are now", "act as"),
    *("from now on", "pretend to be", "pretend that you", "as an ai", "jailbreak"),
    *("developer mode", "language model", "language models"),
)
"""Words of an attack on whoever reads a skill, which a procedure hardly needs.

They are few and plain: who words an attack otherwise passes.
"""

LONG_NUMBER = 6
"""Digits from which on a number is found however its digits are set apart."""

_NUMBER = re.compile(
    r"(?<![^\W_])(?<!\d[.,'’])"  # no part of a word or of another number
    r"\.?\d+(?:[.,'’ _]\d+)*(?:e[+-]?\d{1,3}(?!\d))?"
    r"(?![^\W\d_]*\d)"  # a unit may follow, more of a code may not
)
_MARK = re.compile(r"[.,'’ _]")
_LETTERS = re.compile(r"[^\W\d_]+")


@dataclass(frozen=True)
class SkillFault:
    """Why a skill is not used.

    Attributes:
      kind: "secret", a value of the task; "addresses_reader", words to a model about
        its instructions; "length", too many tokens.
      where: such as "workflow 3", or "skill" for all of it.
      detail: in words; no value of the task stands in it.
    """

    kind: FaultKind
    where: str
    detail: str


def skill_faults(
    skill: Skill,
    *,
    secrets: Iterable[str | int | float] = (),
    max_tokens: int | None = None,
    count_tokens: Callable[[str], int] = count_words,
) -> tuple[SkillFault, ...]:
    """All that a skill may not hold, line by line; nothing if it may be used.

    Args:
      skill: any.
      secrets: values of the task that no procedure for others has: ids of its entities,
        arguments of its calls. Texts are found as whole words, with other separators
        between their parts or none; numbers, and texts that are one, by what they
        amount to: 1500 in "$1,500.00" and "1.5e3". The sign does not count.
      max_tokens: of the skill as Markdown; None for any number.
      count_tokens: a tokenizer's length where there is one.

    Raises:
      InputError: a secret without letters and digits, a number that is not finite, or a
        `max_tokens` below 1.

    Deviations: the paper asks for no concrete values and does not say how it is seen.

    Example:
      >>> skill = Skill("Pay", "Bills.", ("Log in.", "Pay $1,500 to “Ann Lee”."))
      >>> for fault in skill_faults(skill, secrets=["ann_lee", 1500], max_tokens=9):
      ...     print(fault.kind, fault.where, fault.detail)
      secret workflow 2 a text of the task that begins with 'a'
      secret workflow 2 a number of the task
      length skill expected at most 9 tokens, got 14
    """
    if max_tokens is not None:
        check_count("max_tokens", max_tokens)
    known = [_Secret(secret) for secret in secrets]
    faults: list[SkillFault] = []
    for where, text in _texts(skill):
        line = _Line(text)
        found = (secret for secret in known if secret.is_in(line))
        details = dict.fromkeys(secret.detail for secret in found)
        faults += [SkillFault("secret", where, detail) for detail in details]
        phrase = next((one for one in READER_PHRASES if f" {one} " in line.words), None)
        if phrase is not None:
            detail = f"expected a procedure, got {phrase!r}, words to its reader"
            faults.append(SkillFault("addresses_reader", where, detail))
    if max_tokens is not None and (n := count_tokens(render_skill(skill))) > max_tokens:
        detail = f"expected at most {max_tokens} tokens, got {n}"
        faults.append(SkillFault("length", "skill", detail))
    return tuple(faults)


class _Line:
    """A text made plain, and what is looked for in it."""

    def __init__(self, text: str) -> None:
        self._plain = _folded(text)
        self.squeezed, self._edges = _squeezed(self._plain)

    @cached_property
    def words(self) -> str:
        """Its words, with one blank around each."""
        return f" {' '.join(_LETTERS.findall(self._plain))} "

    @cached_property
    def numbers(self) -> frozenset[Decimal]:
        """What its numbers may amount to."""
        tokens = _NUMBER.findall(self._plain)
        return frozenset(value for token in tokens for value in _readings(token))

    def has(self, squeezed: str) -> bool:
        """Whether some of its words in a row are this, whatever is between them."""
        start = self.squeezed.find(squeezed)
        while start >= 0:
            if start in self._edges and start + len(squeezed) in self._edges:
                return True
            start = self.squeezed.find(squeezed, start + 1)
        return False


class _Secret:
    """A value of a task: as whole words, as a number, or both."""

    def __init__(self, value: str | int | float) -> None:
        plain = _folded(_written(value))
        self._squeezed = _squeezed(plain)[0]
        if not self._squeezed:
            raise InputError(
                f"secrets: expected texts with letters or digits, got {value!r}; leave "
                "it out"
            )
        bare = plain.strip("".join({*plain} - {*self._squeezed, "."})).rstrip(".")
        # An id such as 007 is no number, and other numbers are no such id.
        is_number = _NUMBER.fullmatch(bare) and not re.match(r"0\d", bare)
        self._amounts = frozenset(_amounts(bare)) if is_number else frozenset()
        self.detail = (
            "a number of the task"
            if self._amounts
            else f"a text of the task that begins with {self._squeezed[0]!r}"
        )

    def is_in(self, line: _Line) -> bool:
        """Whether the line has it."""
        if not self._amounts:
            return line.has(self._squeezed)
        # In a row, digits of short numbers would be found in those of other ones.
        long = len(self._squeezed) >= LONG_NUMBER
        same = not self._amounts.isdisjoint(line.numbers)
        return same or (long and line.has(self._squeezed))


def _texts(skill: Skill) -> Iterator[tuple[str, str]]:
    yield "name", skill.name
    yield "description", skill.description
    for section in ("workflow", "notes"):
        for number, text in enumerate(getattr(skill, section), 1):
            yield f"{section} {number}", text


def _written(value: str | int | float) -> str:
    if isinstance(value, str):
        return value
    number = isinstance(value, Real) and not isinstance(value, bool)
    if not number or not Decimal(str(value)).is_finite():
        raise InputError(
            f"secrets: expected texts and finite numbers, got {value!r}; leave it out"
        )
    return str(value)


def _folded(text: str) -> str:
    """Without case, accents, compatible forms and digits of other scripts."""
    plain = unicodedata.normalize("NFKD", text).casefold()
    kept = (c for c in plain if unicodedata.category(c)[0] != "M")
    return "".join(str(unicodedata.decimal(c)) if c.isdecimal() else c for c in kept)


def _squeezed(plain: str) -> tuple[str, frozenset[int]]:
    """Its letters and digits in a row, and where in it words may begin and end.

    Scripts without case may be written without blanks: each letter is its own word.
    """
    kept: list[str] = []
    edges = {0}
    for character in plain:
        alone = unicodedata.category(character) == "Lo"
        if alone or not character.isalnum():
            edges.add(len(kept))
        if character.isalnum():
            kept.append(character)
        if alone:
            edges.add(len(kept))
    return "".join(kept), frozenset({*edges, len(kept)})


def _readings(token: str) -> Iterator[Decimal]:
    """What the digits of a text may amount to: one number, or one after the other."""
    for part in dict.fromkeys((token, *token.split(" "))):
        yield from _amounts(part) or map(Decimal, filter(None, _MARK.split(part)))


def _amounts(number: str) -> list[Decimal]:
    """What it may amount to: a comma may stand for thousands, or for a point."""
    body, _, power = number.partition("e")
    groups, marks = _MARK.split(body), _MARK.findall(body)
    whole, last = "".join(groups[:-1]), groups[-1]
    threes = all(len(group) == 3 for group in groups[1:-1])
    found = []
    if not marks or (threes and groups[0] and len(last) == 3):
        found.append(whole + last)
    if marks and marks[-1] in ".," and threes and marks[-1] not in marks[:-1]:
        found.append(f"{whole}.{last}")
    return [Decimal(f"{one}e{power or 0}") for one in found]

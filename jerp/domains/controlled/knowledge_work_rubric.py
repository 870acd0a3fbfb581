"""The rubric of the knowledge-work domain: what a briefing is, and what can be seen.

A briefing has lines such as `- budget: 340 crowns [2]`: a section, what it says, and
the note that says so. The public items need no gold answer, so a check may ask them and
a cross-check may compare with the notes; only the verifier knows the right figures. The
verifier pays every criterion in proportion to the right figures, none for form alone,
and a line with a second value beside its figure is a guess, not a right figure.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from jerp.domains.controlled.knowledge_work_tasks import MONTHS, NUM_SECTIONS, WORDS
from jerp.domains.controlled.research_corpus import terms, words
from jerp.domains.controlled.research_world import FIRST_NAMES, LAST_NAMES
from jerp.records import Criterion, Task

__all__ = [
    "MAX_WORDS",
    "PUBLIC",
    "WEIGHTS",
    "Line",
    "contradicted",
    "criteria",
    "is_current",
    "missing_items",
    "parse_draft",
    "stating",
    "write_draft",
]

MAX_WORDS = 4
WEIGHTS = {
    "figures": 0.6,
    "sources": 0.1,
    "present": 0.1,
    "supported": 0.1,
    "current": 0.1,
}
PUBLIC = ("present", "supported", "current")
_MONTHS = {month.lower() for month in MONTHS}
_VALUES = frozenset(
    word
    for values in (MONTHS, FIRST_NAMES, LAST_NAMES, *WORDS.values())
    for value in values
    for word in words(value)
)
"""Words that are a value, or part of one, whatever the section."""


class Line(NamedTuple):
    """A line of a briefing; `source` is the number of the one note cited, or None."""

    section: str
    text: str
    source: int | None


def parse_draft(draft: str) -> tuple[Line, ...]:
    """The first lines of the form `- section: text [n]`, one a section.

    Example:
      >>> parse_draft("- budget: 340 crowns [2]")
      (Line(section='budget', text='340 crowns', source=2),)
    """
    lines: dict[str, Line] = {}
    for section, text in re.findall(r"^\s*-([^:\n]*):([^\n]*)", draft, re.MULTILINE):
        label = section.strip().lower()
        cited = re.findall(r"\[(\d{1,3})\]", text)
        said = " ".join(re.sub(r"\[\d*\]", " ", text).split()).strip(" .,:;\"'*")
        source = int(cited[0]) if len(cited) == 1 else None
        lines.setdefault(label, Line(label, said, source))
    return tuple(lines.values())[:NUM_SECTIONS]


def write_draft(lines: Sequence[Line]) -> str:
    """The canonical text of a briefing, which `parse_draft` reads back."""
    return "\n".join(
        f"- {line.section}: {line.text}"
        + ("" if line.source is None else f" [{line.source}]")
        for line in lines
    )


def stating(task: Task, text: str, number: int) -> bool:
    """Whether one sentence of a note holds every word of `text`."""
    said = set(terms(text))
    sentences = task.payload["notes"][number - 1]["sentences"]
    return bool(said) and any(said <= set(words(sentence)) for sentence in sentences)


def is_current(task: Task, number: int) -> bool:
    """Whether a note is about the brief's subject and not superseded."""
    note = task.payload["notes"][number - 1]
    return note["about"] == task.payload["subject"] and not note["superseded"]


def contradicted(task: Task, draft: str, hand: Sequence[int]) -> tuple[str, ...]:
    """Sections whose line another sentence in hand speaks against.

    A sentence of a current note that uses the section's own word and does not hold the
    line's words contradicts it; a line that no sentence in hand holds is unfounded.
    Both are found by comparing words, with no regard to meaning.
    """
    said = {line.section: line.text for line in parse_draft(draft)}
    found = []
    for section in task.payload["sections"]:
        text = said.get(section, "")
        named = [
            sentence
            for number in hand
            if is_current(task, number)
            for sentence in task.payload["notes"][number - 1]["sentences"]
            if section in words(sentence)
        ]
        against = any(not set(terms(text)) <= set(words(s)) for s in named)
        if against or not any(stating(task, text, number) for number in hand):
            found.append(section)
    return tuple(found)


def missing_items(
    task: Task, draft: str | None, hand: Sequence[int]
) -> tuple[str, ...]:
    """Items of the public rubric that fail, such as `supported: budget`.

    Three a section, each building on the one before. `present`: the line is there,
    short and of the section's kind. `supported`: it cites a note in hand with a
    sentence that holds all its words. `current`: that note is about the brief's subject
    and not superseded.
    """
    lines = {line.section: line for line in parse_draft(draft or "")}
    missing = []
    for section, kind in task.payload["sections"].items():
        line = lines.get(section, Line(section, "", None))
        present = _is_short(line.text) and _is_kind(kind, line.text)
        supported = present and _cites(task, line, hand)
        current = supported and is_current(task, line.source or 0)
        passed = {"present": present, "supported": supported, "current": current}
        missing += [f"{name}: {section}" for name in PUBLIC if not passed[name]]
    return tuple(missing)


def criteria(
    task: Task, draft: str | None, hand: Sequence[int]
) -> tuple[Criterion, ...]:
    """The verdict's criteria, each a share of the sections.

    `figures`: the line is short and holds the right value and no second one of any
    kind: a list of values would else be right wherever one of them is.
    `sources`: it also cites the note that says so. The public ones are shares of
    `missing_items`, of right lines alone. A line that no note in hand supports, asked
    for or not, costs all of `supported`.
    """
    hidden = task.payload["hidden"]
    lines = parse_draft(draft or "")
    right = [line for line in lines if _is_right(task, line)]
    missing = missing_items(task, draft, hand)
    sourced = [x for x in right if x.source == hidden["sources"][x.section]]
    count = {"figures": len(right), "sources": len(sourced)}
    for name in PUBLIC:
        count[name] = sum(f"{name}: {line.section}" not in missing for line in right)
    if not all(_cites(task, line, hand) for line in lines):
        count["supported"] = 0
    return tuple(
        Criterion(name, count[name] / NUM_SECTIONS, weight, public=name in PUBLIC)
        for name, weight in WEIGHTS.items()
    )


def _is_right(task: Task, line: Line) -> bool:
    figure = task.payload["hidden"]["figures"].get(line.section)
    if figure is None or not _is_short(line.text) or not _holds(line.text, figure):
        return False
    return not _has_second_value(task, line, set(words(figure)))


def _has_second_value(task: Task, line: Line, figure: set[str]) -> bool:
    """Whether a line says a value, of any kind, beside its figure.

    Any number is one, but for the year that is added to a date.
    """
    kind = task.payload["sections"][line.section]
    said = set(words(line.text)) - figure
    if kind == "date":
        said = {word for word in said if not re.fullmatch(r"\d{4}", word)}
    if kind == "name" and len({*map(str.lower, _capitalised(line.text))} & said) >= 2:
        return True
    if any(letter.isdigit() for word in said for letter in word):
        return True
    rival = words(task.payload["hidden"]["rivals"][line.section])
    return not said.isdisjoint(_VALUES.union(rival))


def _cites(task: Task, line: Line, hand: Sequence[int]) -> bool:
    return line.source in hand and stating(task, line.text, line.source or 0)


def _is_short(text: str) -> bool:
    return 0 < len(words(text)) <= MAX_WORDS


def _is_kind(kind: str, text: str) -> bool:
    said = words(text)
    if kind == "number":
        return any(word.isdigit() for word in said)
    if kind == "date":
        return any(w.isdigit() for w in said) and not _MONTHS.isdisjoint(said)
    if kind == "name":
        return len(_capitalised(text)) >= 2
    return bool(said) and all(word.isalpha() for word in said)


def _capitalised(text: str) -> list[str]:
    return re.findall(r"\b[A-Z][a-z]+", text)


def _holds(text: str, value: str) -> bool:
    return f" {' '.join(words(value))} " in f" {' '.join(words(text))} "

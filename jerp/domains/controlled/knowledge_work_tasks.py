"""Tasks of the knowledge-work domain: a brief and the source notes that can be had.

A brief names an undertaking and three sections; each is one fact that stands in one of
the notes, in the section's own word or in other words. Difficulty 0 has notes on the
undertaking alone; difficulty 1 a note on one of nearly the same name with rival values;
difficulty 2 a superseded note on the same undertaking. Every text is this project's
own.
"""

from __future__ import annotations

from random import Random
from typing import Any, Literal, NamedTuple

from jerp.domains.controlled.research_world import (
    ENDINGS,
    FIRST_NAMES,
    LAST_NAMES,
    MODIFIERS,
    ONSETS,
)
from jerp.errors import ConfigError
from jerp.records import Task

__all__ = ["FIELDS", "MONTHS", "NUM_SECTIONS", "Field", "Kind", "generate"]

NUM_DIFFICULTIES = 3
NUM_SECTIONS = 3
OTHER_WORDS_SHARE = 0.25
"""How often a wanted fact is stated without the section's word."""
TOGETHER_SHARE = 0.75
"""How often the first rung of the ladder holds all the wanted facts."""

Kind = Literal["number", "date", "name", "word"]


class Field(NamedTuple):
    """A fact of an undertaking: `plain` states it in its own word, `other` does not."""

    label: str
    kind: Kind
    plain: str
    other: str


FIELDS = (
    Field("budget", "number", "The budget is {} crowns.", "It may cost {} crowns."),
    Field("staff", "number", "The staff is {} people.", "{} people work on it."),
    Field("length", "number", "The length is {} metres.", "It measures {} metres."),
    Field("visitors", "number", "It has {} visitors a day.", "{} guests come a day."),
    Field("deadline", "date", "The deadline is {}.", "It must be done by {}."),
    Field("opening", "date", "The opening is on {}.", "The gates unlock on {}."),
    Field("manager", "name", "The manager is {}.", "{} leads the work."),
    Field("architect", "name", "The architect is {}.", "{} drew the plans."),
    Field("sponsor", "name", "The sponsor is {}.", "{} pays for the work."),
    Field("material", "word", "The material is {}.", "It is built of {}."),
    Field("colour", "word", "The colour is {}.", "It is painted {}."),
)
MONTHS = (
    *("January", "February", "March", "April", "May", "June", "July"),
    *("August", "September", "October", "November", "December"),
)
WORDS = {
    "material": ("oak", "granite", "brick", "slate", "copper", "pine", "glass"),
    "colour": ("red", "green", "white", "yellow", "blue", "grey", "black"),
}
_THINGS = (
    *("Bridge", "Library", "Harbour", "Market", "Tramway", "Museum", "Theatre"),
    *("Garden", "Station", "School", "Ferry", "Observatory"),
)


class _Note(NamedTuple):
    about: str
    superseded: bool
    facts: tuple[tuple[Field, str], ...]


def generate(seed: int, num_tasks: int) -> tuple[Task, ...]:
    """Tasks in turns of difficulty 0, 1, 2; fewer tasks are a prefix of more.

    Args:
      seed: of the generator.
      num_tasks: at least 1.

    Raises:
      ConfigError: `num_tasks` is below 1.
    """
    if num_tasks < 1:
        raise ConfigError(f"num_tasks: expected >= 1, got {num_tasks}")
    return tuple(_task(seed, index) for index in range(num_tasks))


def _task(seed: int, index: int) -> Task:
    key = f"knowledge-work/{seed}/{index:04d}"
    rng = Random(key)
    difficulty = index % NUM_DIFFICULTIES
    place, thing = rng.choice(ONSETS) + rng.choice(ENDINGS), rng.choice(_THINGS)
    subject = f"{place} {thing}"
    first, second = rng.sample(MODIFIERS, 2)
    if difficulty == 1:
        subject = f"{first} {subject}"
    fields = rng.sample(FIELDS, NUM_SECTIONS + 2)
    wanted, filler = fields[:NUM_SECTIONS], fields[NUM_SECTIONS:]
    values = _values(rng, fields)
    together = rng.random() < TOGETHER_SHARE
    near = wanted if together else wanted[: NUM_SECTIONS - 1]
    far = [f for f in (*wanted, *filler) if f not in near][:2]
    rungs = [
        [_note(rng, subject, near, values, 0)],
        [_note(rng, subject, far, values, 0)],
    ]
    if difficulty == 1:
        rungs[0].append(_note(rng, f"{second} {place} {thing}", near, values, 1))
    if difficulty == 2:
        rungs[0].append(_note(rng, subject, near, values, 1, superseded=True))
    rungs = [rng.sample(rung, len(rung)) for rung in rungs]
    labels = [field.label for field in sorted(wanted, key=lambda f: rng.random())]
    return Task(
        key=key,
        domain="knowledge-work",
        difficulty=difficulty,
        prompt=f"Briefing on {subject}: {', '.join(labels)}.",
        payload=_payload(rng, subject, labels, rungs, values),
    )


def _values(rng: Random, fields: list[Field]) -> dict[str, tuple[str, str]]:
    """The current value and a rival of each field; no two values share a word."""
    count = 2 * len(fields)
    days, months = rng.sample(range(2, 29), count), rng.sample(MONTHS, count)
    first, last = rng.sample(FIRST_NAMES, count), rng.sample(LAST_NAMES, count)
    drawn = {
        "number": [str(number) for number in rng.sample(range(40, 990), count)],
        "date": [f"{day} {month}" for day, month in zip(days, months, strict=True)],
        "name": [f"{a} {b}" for a, b in zip(first, last, strict=True)],
    }
    values = {}
    for field in fields:
        words = field.kind == "word"
        pool = rng.sample(WORDS[field.label], 2) if words else drawn[field.kind]
        values[field.label] = (pool.pop(), pool.pop())
    return values


def _note(
    rng: Random,
    about: str,
    fields: list[Field],
    values: dict[str, tuple[str, str]],
    which: int,
    *,
    superseded: bool = False,
) -> _Note:
    order = rng.sample(fields, len(fields))
    return _Note(about, superseded, tuple((f, values[f.label][which]) for f in order))


def _payload(
    rng: Random,
    subject: str,
    labels: list[str],
    rungs: list[list[_Note]],
    values: dict[str, tuple[str, str]],
) -> dict[str, Any]:
    """Notes are numbered from 1 in the order in which the ladder brings them."""
    notes = [note for rung in rungs for note in rung]
    numbers = iter(range(1, len(notes) + 1))
    current = [n for n in notes if n.about == subject and not n.superseded]
    stated = {f.label: notes.index(n) + 1 for n in current for f, _ in n.facts}
    kinds = {field.label: field.kind for field in FIELDS}
    return {
        "subject": subject,
        "sections": {label: kinds[label] for label in labels},
        "notes": [
            {
                "about": note.about,
                "superseded": note.superseded,
                "sentences": [_stated(rng, f, value) for f, value in note.facts],
            }
            for note in notes
        ],
        "ladder": [[next(numbers) for _ in rung] for rung in rungs],
        "hidden": {
            "figures": {label: values[label][0] for label in labels},
            "rivals": {label: values[label][1] for label in labels},
            "sources": {label: stated[label] for label in labels},
        },
    }


def _stated(rng: Random, field: Field, value: str) -> str:
    other = rng.random() < OTHER_WORDS_SHARE
    return (field.other if other else field.plain).format(value)

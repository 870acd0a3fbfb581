"""Drafts of skills that are well formed and know nothing.

An optimizer is cloned from them, so that what it writes can be read. Their steps are
sensible, idle or wrong, drawn without a look at any run.
"""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import NamedTuple

from jerp.skills.document import SKILL_LIMITS, Skill

__all__ = [
    "PROGRAM_WORDS",
    "TOOL_WORDS",
    "DraftWords",
    "Drafted",
    "any_draft",
    "any_revision",
]


class DraftWords(NamedTuple):
    """What drafts of one domain are made of.

    Attributes:
      names, descriptions: of skills.
      steps: of their workflows.
      notes: below them.
      reasons: for a first one.
    """

    names: tuple[str, ...]
    descriptions: tuple[str, ...]
    steps: tuple[str, ...]
    notes: tuple[str, ...]
    reasons: tuple[str, ...]


PROGRAM_WORDS = DraftWords(
    names=(
        *("Write small functions", "Complete a function", "Return one expression"),
        *("Do as the comment says", "Finish the function"),
    ),
    descriptions=(
        "Functions whose comment says what they return.",
        "Small functions of one expression.",
        "Python functions that lack what they return.",
    ),
    steps=(
        "Read the comment above the function to its end.",
        "Use each number of the comment as it is written.",
        "Use a built-in such as sum, len, max or sorted.",
        "Write one expression after return.",
        "Go through the items in a comprehension.",
        "Return the arguments as they are.",
        "Return True or False.",
        "Sort the items first.",
        "Turn every argument into a text.",
        "Look at the type of each argument first.",
        "Write the condition last.",
        "Add or multiply at the end.",
        "Count the items that fit.",
        "Keep the order of the items.",
        "Return zero if nothing fits.",
        "Begin with the name of the argument.",
        "Use an index in square brackets.",
        "Take the remainder to see what divides.",
    ),
    notes=(
        "The comment says what counts.",
        "Numbers may be below zero.",
        "A list may be empty.",
        "Shorter is better.",
        "Words are parted by blanks.",
        "Included means or equal.",
    ),
    reasons=(
        "The comment says what is wanted, so it comes first.",
        "Small functions need few steps.",
        "There was no skill, so this one begins with what is asked.",
        "One expression is enough for such tasks.",
    ),
)
"""For small programs."""

TOOL_WORDS = DraftWords(
    names=("Call tools", "Do what a user asks", "Work with services"),
    descriptions=(
        "Requests of a user that tools can do.",
        "Tasks in which services are called.",
        "Several requests, one after another.",
    ),
    steps=(
        "Read the whole request.",
        "Find the tool whose name fits.",
        "Look at what is there before you change it.",
        "Take values from the request as they are written.",
        "Give each argument that is required.",
        "Leave out arguments that nobody asked for.",
        "Call one tool and wait for what it returns.",
        "Use what the last call returned in the next one.",
        "Read an error, and call again with other arguments.",
        "Do things in the order in which they are asked.",
        "Log in before anything that needs it.",
        "Say in words what was done.",
        "Stop when the request is done.",
        "Ask for what is missing.",
        "Do no more than was asked.",
        "Check the result with a tool that reads.",
    ),
    notes=(
        "Names have to be exact.",
        "Some tools only read.",
        "A request may need several calls.",
        "Numbers are no texts.",
        "The user may change the mind.",
    ),
    reasons=(
        "The request says what is wanted, so it comes first.",
        "Such tasks need few steps.",
        "There was no skill, so this one begins with what is asked.",
        "A few plain steps are enough here.",
    ),
)
"""For conversations in which tools are called."""

REASONS = (
    "A step was missing, and another one led astray.",
    "The order of the steps was not clear.",
    "What failed was read too quickly.",
    "A step said too little, so there is a new one.",
    "The steps did not speak of all that is asked.",
)

MOST_STEPS = 3
"""Of a draft, so that it has room in a small prompt."""

KEPT = 0.5
"""Chance of a step to be kept."""


class Drafted(NamedTuple):
    """A draft.

    Attributes:
      reasoning: why.
      skill: what is proposed.
    """

    reasoning: str
    skill: Skill


def any_draft(rng: Random, words: DraftWords = PROGRAM_WORDS) -> Drafted:
    """A first skill."""
    steps = rng.sample(words.steps, rng.randint(2, MOST_STEPS))
    return Drafted(rng.choice(words.reasons), _skill(rng, steps, words))


def any_revision(
    rng: Random, before: Skill, words: DraftWords = PROGRAM_WORDS
) -> Drafted:
    """Some of the steps of a skill in their order, and at least one new one."""
    kept = [step for step in before.workflow if rng.random() < KEPT]
    kept = kept[: MOST_STEPS - 1]
    new = [step for step in words.steps if step not in before.workflow]
    for step in rng.sample(new, rng.randint(1, MOST_STEPS - len(kept))):
        kept.insert(rng.randint(0, len(kept)), step)
    return Drafted(rng.choice(REASONS), _skill(rng, kept[: SKILL_LIMITS.steps], words))


def _skill(rng: Random, steps: Sequence[str], words: DraftWords) -> Skill:
    notes = rng.sample(words.notes, rng.randint(0, 1))
    name, description = rng.choice(words.names), rng.choice(words.descriptions)
    return Skill(name, description, tuple(steps), tuple(notes))

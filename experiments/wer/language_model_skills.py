"""Drafts of skills that are well formed and know nothing, for small programs.

An optimizer is cloned from them, so that what it writes can be read. Their steps are
sensible, idle or wrong, drawn without a look at any run.
"""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import NamedTuple

from jerp.skills.document import SKILL_LIMITS, Skill

__all__ = ["Drafted", "any_draft", "any_revision"]

NAMES = (
    *("Write small functions", "Complete a function", "Return one expression"),
    *("Do as the comment says", "Finish the function"),
)
DESCRIPTIONS = (
    "Functions whose comment says what they return.",
    "Small functions of one expression.",
    "Python functions that lack what they return.",
)
STEPS = (
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
)
NOTES = (
    "The comment says what counts.",
    "Numbers may be below zero.",
    "A list may be empty.",
    "Shorter is better.",
    "Words are parted by blanks.",
    "Included means or equal.",
)
FIRST_REASONS = (
    "The comment says what is wanted, so it comes first.",
    "Small functions need few steps.",
    "There was no skill, so this one begins with what is asked.",
    "One expression is enough for such tasks.",
)
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


def any_draft(rng: Random) -> Drafted:
    """A first skill."""
    steps = rng.sample(STEPS, rng.randint(2, MOST_STEPS))
    return Drafted(rng.choice(FIRST_REASONS), _skill(rng, steps))


def any_revision(rng: Random, before: Skill) -> Drafted:
    """Some of the steps of a skill in their order, and at least one new one."""
    kept = [step for step in before.workflow if rng.random() < KEPT]
    kept = kept[: MOST_STEPS - 1]
    new = [step for step in STEPS if step not in before.workflow]
    for step in rng.sample(new, rng.randint(1, MOST_STEPS - len(kept))):
        kept.insert(rng.randint(0, len(kept)), step)
    return Drafted(rng.choice(REASONS), _skill(rng, kept[: SKILL_LIMITS.steps]))


def _skill(rng: Random, steps: Sequence[str]) -> Skill:
    notes = rng.sample(NOTES, rng.randint(0, 1))
    name, description = rng.choice(NAMES), rng.choice(DESCRIPTIONS)
    return Skill(name, description, tuple(steps), tuple(notes))

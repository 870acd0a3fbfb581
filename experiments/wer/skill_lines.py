"""Lines that an executor reads as a skill that people read, and back.

A line is a step of the workflow: "When a call fails with no card, call add card." An
executor of lines has no other words: what is said otherwise is refused, not guessed.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from experiments.wer.places import NUM_LINES, Place
from jerp.envs.rule_language import read_sentence, sentence
from jerp.errors import SkillError, UnknownNameError
from jerp.skills.document import Skill

__all__ = ["lines_of", "skill_of", "working_sets"]


def skill_of(place: Place, domain: str, lines: Sequence[int]) -> Skill:
    """The skill of a domain that says some lines, in their order.

    Raises:
      UnknownNameError: a domain that the place does not have.
      SkillError: no line, too many, or one that says nothing.

    Example:
      >>> place = Place()
      >>> skill = skill_of(place, "travel", place.right_lines("travel")[:1])
      >>> skill.name, skill.workflow
      ('Travel', ('When a call fails with not signed in, call sign in.',))
    """
    if domain not in place.domains:
        raise UnknownNameError("domain", domain, place.domains)
    for number, line in enumerate(lines, 1):
        if not 0 <= line < len(place.rules) or not place.rules[line].all():
            raise SkillError(
                f"line {number}: expected the number of a situation and a move of the "
                f"language, got {line}; see Place.line"
            )
    language = place.env.language
    steps = tuple(
        sentence(language, *place.rules[i]) for i in _first_lines(place, lines)
    )
    description = f"Requests in {domain}: what to do when a call does not work."
    return Skill(domain.capitalize(), description, steps)


def lines_of(place: Place, skill: Skill) -> tuple[int, ...]:
    """What a skill says to an executor: the first line of each situation, in order.

    Name and description are for people.

    Raises:
      SkillError: a step in other words, notes, or lines of too many situations.

    Example:
      >>> place = Place()
      >>> skill = Skill("Pay", "Bills.", ("When a call works, end the turn.",))
      >>> lines_of(place, skill) == (place.line(2, 1),)
      True
    """
    if skill.notes:
        raise SkillError(
            f"notes: expected none, got {len(skill.notes)}; this executor reads the "
            "steps of the workflow alone"
        )
    lines = []
    for number, step in enumerate(skill.workflow, 1):
        pair = read_sentence(place.env.language, step)
        if pair is None:
            raise SkillError(
                f"workflow {number}: expected 'When a call fails with ERROR, call "
                f"TOOL.' in the words of the world, got {step[:60]!r}"
            )
        lines.append(place.line(*pair))
    return _first_lines(place, lines)


def working_sets(skills: Iterable[Sequence[int]]) -> np.ndarray:
    """`[N, R]` int32 working sets of the lines of N skills, -1 in empty places.

    Raises:
      SkillError: more than R lines.

    Example:
      >>> working_sets([(7, 3), ()])[:, :3].tolist()
      [[7, 3, -1], [-1, -1, -1]]
    """
    rows = [tuple(lines) for lines in skills]
    sets = np.full((len(rows), NUM_LINES), -1, np.int32)
    for row, lines in zip(sets, rows, strict=True):
        _check_room(lines)
        row[: len(lines)] = lines
    return sets


def _first_lines(place: Place, lines: Iterable[int]) -> tuple[int, ...]:
    """Of each situation the first; what comes later about it is never read."""
    first: dict[int, int] = {}
    for line in lines:
        first.setdefault(int(place.rules[line, 0]), int(line))
    _check_room(tuple(first.values()))
    return tuple(first.values())


def _check_room(lines: Sequence[int]) -> None:
    if len(lines) > NUM_LINES:
        raise SkillError(
            f"lines: expected at most {NUM_LINES} situations, as many as the executor "
            f"reads, got {len(lines)}"
        )

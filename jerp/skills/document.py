"""A skill: a short procedure for a family of tasks, as Markdown that reads back.

    # NAME

    DESCRIPTION, one line

    ## Workflow

    1. STEP
    2. STEP

    ## Notes

    - NOTE

A skill goes into a system prompt as it stands, so all of its texts are plain lines that
cannot alter what is around them: what can be built can be rendered, and reads back to
the same. Nothing is cut, mended or guessed. Nothing here judges whether it is right.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from jerp.errors import InputError, SkillError
from jerp.rules.text import plain_line

__all__ = ["SKILL_LIMITS", "Skill", "parse_skill", "render_skill"]

WORKFLOW, NOTES = "## Workflow", "## Notes"

_OPENERS = "\"'`({“‘«"
_ITEM = re.compile(r"\d+[.)](\s|$)")
_BRACKETED = (
    *("INST", "SYS", "SYSTEM_PROMPT", "MODEL_SETTINGS", "THINK", "TOOL_CALLS"),
    *("TOOL_RESULTS", "TOOL_CONTENT", "AVAILABLE_TOOLS", "ARGS", "CALL_ID", "MASK"),
    *("IMG", "IMG_BREAK", "IMG_END", "AUDIO", "BEGIN_AUDIO"),
    *("gMASK", "sMASK", "PREFIX", "MIDDLE", "SUFFIX", "PAD", "UNK", "CLS", "SEP"),
)
# Tags, delimiters and most control tokens begin with "<"; a comparison has a blank.
_MARKUP = re.compile(rf"<[^\s=]|```|~~~|\]\(|\[/?(?:{'|'.join(_BRACKETED)})\]")


class _SkillLimits(NamedTuple):
    """See `SKILL_LIMITS`."""

    name: int = 80
    description: int = 200
    line: int = 400
    steps: int = 20
    notes: int = 20


SKILL_LIMITS = _SkillLimits()
"""Characters of the name, the description and a `line`; how many steps and notes."""


@dataclass(frozen=True)
class Skill:
    """A procedure; all of its texts are brought into one form or refused.

    The form is Unicode's NFC with one blank between words and none around them. A text
    begins with a letter, a digit, a quote or a bracket and not as an item of a list
    does; it has no line break, no control or invisible character, no code fence, no
    link of Markdown (an address alone is none), no control token of a chat template,
    and no `<` unless a blank or `=` follows.
    Placeholders are written in braces: `{amount}`.

    Attributes:
      name: of the skill.
      description: of the family of tasks, one line.
      workflow: the steps in their order, at least one.
      notes: assumptions, edge cases, known failures; there may be none.

    Raises:
      SkillError: a text that none may be, by its name, or too many.

    Reference: Peng et al., "WER", arXiv:2608.17587, section 3, for the four sections.

    Example:
      >>> Skill("Move a  file", "Files that move.", ("Find it.",)).name
      'Move a file'
      >>> Skill("Move a file", "Files that move.", ())
      Traceback (most recent call last):
          ...
      jerp.errors.SkillError: workflow: expected 1 to 20 texts, got 0
    """

    name: str
    description: str
    workflow: tuple[str, ...]
    notes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        limits = SKILL_LIMITS
        fixed = {
            "name": _line("name", self.name, limits.name),
            "description": _line("description", self.description, limits.description),
            "workflow": _lines("workflow", self.workflow, 1, limits.steps),
            "notes": _lines("notes", self.notes, 0, limits.notes),
        }
        for name, value in fixed.items():
            object.__setattr__(self, name, value)


def render_skill(skill: Skill) -> str:
    """The skill as Markdown, always in the same form.

    Args:
      skill: any.

    Returns:
      Lines, each with its line break; without notes there is no heading for them.

    Example:
      >>> workflow, notes = ("Find it.", "Move it."), ("Ask once.",)
      >>> skill = Skill("Move a file", "Files.", workflow, notes)
      >>> print(render_skill(skill), end="")
      # Move a file
      <BLANKLINE>
      Files.
      <BLANKLINE>
      ## Workflow
      <BLANKLINE>
      1. Find it.
      2. Move it.
      <BLANKLINE>
      ## Notes
      <BLANKLINE>
      - Ask once.
    """
    steps = [f"{number}. {step}" for number, step in enumerate(skill.workflow, 1)]
    lines = [f"# {skill.name}", "", skill.description, "", WORKFLOW, "", *steps]
    if skill.notes:
        lines += ["", NOTES, "", *(f"- {note}" for note in skill.notes)]
    return "".join(f"{line}\n" for line in lines)


def parse_skill(text: str) -> Skill:
    r"""The skill that a Markdown text holds.

    Blanks at the ends of lines, blank lines, more or fewer, and line breaks of Windows
    mean nothing; anything else that `render_skill` would not write is refused.

    Args:
      text: as `render_skill` returns it, or a person or model wrote it.

    Returns:
      The skill: `parse_skill(render_skill(skill)) == skill` for every skill.

    Raises:
      SkillError: with the line, what was expected and what came.

    Example:
      >>> parse_skill("# Move\nFiles.\n## Workflow\n1. Find it.\n2. Move it.").workflow
      ('Find it.', 'Move it.')
      >>> parse_skill("# Move\nFiles.\n## Workflow\n2. Move it.")
      Traceback (most recent call last):
          ...
      jerp.errors.SkillError: line 4: expected '1. STEP', got '2. Move it.'
    """
    if not isinstance(text, str):
        raise SkillError(f"text: expected a text, got {type(text).__name__}")
    lines, limits = _Reader(text), SKILL_LIMITS
    name = lines.text("# ", "'# NAME'", "name", limits.name)
    description = "a line that describes the tasks"
    description = lines.text("", description, "description", limits.description)
    lines.heading(WORKFLOW)
    workflow: list[str] = []
    while not workflow or not (lines.at_end or lines.is_at(NOTES)):
        number = len(workflow) + 1
        expected = f"'{number}. STEP'" + (f" or '{NOTES}'" if workflow else "")
        lines.check_room("workflow", number, limits.steps)
        where = f"workflow {number}"
        workflow.append(lines.text(f"{number}. ", expected, where, limits.line))
    notes: list[str] = []
    if not lines.at_end:
        lines.heading(NOTES)
        while not notes or not lines.at_end:
            lines.check_room("notes", len(notes) + 1, limits.notes)
            where = f"notes {len(notes) + 1}"
            notes.append(lines.text("- ", "'- NOTE'", where, limits.line))
    return Skill(name, description, tuple(workflow), tuple(notes))


class _Reader:
    """The lines that are not blank, one after the other; an error names its line."""

    def __init__(self, text: str) -> None:
        stripped = (line.rstrip(" \t\r") for line in text.split("\n"))
        self._lines = [(i, line) for i, line in enumerate(stripped, 1) if line]
        self._next = 0

    @property
    def at_end(self) -> bool:
        """Whether all lines were read."""
        return self._next == len(self._lines)

    def is_at(self, line: str) -> bool:
        """Whether the next line is this one."""
        return not self.at_end and self._lines[self._next][1] == line

    def heading(self, expected: str) -> None:
        """Reads a line that has to be this one."""
        if not self.is_at(expected):
            raise self._error(f"expected {expected!r}")
        self._next += 1

    def text(self, prefix: str, expected: str, where: str, max_chars: int) -> str:
        """What the next line has after a prefix."""
        line = "" if self.at_end else self._lines[self._next][1]
        found = line.removeprefix(prefix)
        if not line.startswith(prefix) or not found or found[0].isspace():
            raise self._error(f"expected {expected}")
        try:
            found = _line(where, found, max_chars)
        except SkillError as error:
            raise SkillError(f"line {self._lines[self._next][0]}: {error}") from error
        self._next += 1
        return found

    def check_room(self, section: str, number: int, most: int) -> None:
        """Refuses one line more than a section may have."""
        if number > most and not self.at_end:
            raise self._error(f"{section}: expected at most {most} texts")

    def _error(self, expected: str) -> SkillError:
        if self.at_end:
            after = f"line {self._lines[-1][0]}" if self._lines else "line 1"
            return SkillError(f"{after}: {expected}, got the end of the text")
        number, line = self._lines[self._next]
        shown = line if len(line) <= 60 else f"{line[:57]}..."
        return SkillError(f"line {number}: {expected}, got {shown!r}")


def _lines(
    section: str, texts: Sequence[str], least: int, most: int
) -> tuple[str, ...]:
    if isinstance(texts, str) or not isinstance(texts, Sequence):
        raise SkillError(
            f"{section}: expected a list of texts, got {type(texts).__name__}"
        )
    if not least <= len(texts) <= most:
        raise SkillError(
            f"{section}: expected {least} to {most} texts, got {len(texts)}"
        )
    most_chars = SKILL_LIMITS.line
    return tuple(
        _line(f"{section} {number}", text, most_chars)
        for number, text in enumerate(texts, 1)
    )


def _line(where: str, text: str, max_chars: int) -> str:
    """A text in its one form, or why it is none."""
    try:
        found = plain_line(where, text, max_chars=max_chars)
    except InputError as error:
        raise SkillError(str(error)) from error
    if not found:
        raise SkillError(f"{where}: expected some words, got an empty text")
    # Full-width and other compatible letters are read as those that they stand for.
    plain = unicodedata.normalize("NFKC", found)
    if markup := _MARKUP.search(plain):
        raise SkillError(
            f"{where}: expected words without tags, control tokens, code fences and "
            f"links, got {markup.group()!r}; write placeholders in braces, as "
            "'{amount}', and blanks around '<'"
        )
    begins = unicodedata.category(plain[0])[0] in "LN" or plain[0] in _OPENERS
    if not begins or _ITEM.match(plain):
        raise SkillError(
            f"{where}: expected a text that begins with a letter, a digit, a quote or "
            f"a bracket, and not as an item of a list, got {found[:60]!r}"
        )
    return found

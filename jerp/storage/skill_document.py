"""Skills with what was measured of them, as Markdown with a front matter.

    ---
    format: "jerp skill"
    version: 1
    domain: "files"
    effect: 0.12
    interval: [0.03, 0.21]
    ...
    hash: "sha256:..."
    ---

    # NAME
    ...

A line of the front matter is a name and a value in JSON, which is YAML too. What was
measured is of one text, named by its hash: where the text was changed since, the file
is refused. Without front matter it is a skill of which nothing is known.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import math
import re
from dataclasses import dataclass
from numbers import Real
from typing import Any

from jerp.errors import InputError, StorageError, UnknownNameError
from jerp.rules.text import plain_line
from jerp.skills.document import Skill, parse_skill, render_skill
from jerp.storage.rule_fields import check_whole

__all__ = [
    "SKILL_VERSION",
    "SkillDocument",
    "check_domain",
    "skill_from_text",
    "skill_hash",
    "skill_to_text",
]

SKILL_VERSION = 1
FORMAT, FENCE = "jerp skill", "---"

_DOMAIN = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}")
_FIELD = re.compile(r"([a-z]+): (.+)")


@dataclass(frozen=True)
class SkillDocument:
    """A skill and what was measured of it.

    Attributes:
      skill: any.
      domain: that it was written for, as a name in letters, digits, `_` and `-`.
      effect: success with it minus success without, in [-1, 1], to six digits; None
        where nobody measured it.
      interval: of the effect, its low and high end; None where there is none.
      level: of the interval.
      tasks: that the effect is a mean over.
      against: what it was compared with, such as "no skill".
      split: of the tasks that it was measured on, such as "test".
      model: the executor that it was measured with.
      run: that it came from.
      version: of the format.

    Raises:
      InputError: a field that cannot be meant, by its name.
      StorageError: another version.
    """

    skill: Skill
    domain: str = ""
    effect: float | None = None
    interval: tuple[float, float] | None = None
    level: float = 0.95
    tasks: int | None = None
    against: str = ""
    split: str = ""
    model: str = ""
    run: str = ""
    version: int = SKILL_VERSION

    def __post_init__(self) -> None:
        _check_version(self.version)
        names = ("against", "split", "model", "run")
        fixed: dict[str, Any] = {
            name: plain_line(name, getattr(self, name), max_chars=200) for name in names
        }
        if self.domain != "":
            check_domain(self.domain)
        if self.effect is not None:
            fixed["effect"] = _share("effect", self.effect)
        if self.interval is not None:
            fixed["interval"] = _interval(self.interval, self.effect)
        fixed["level"] = _share("level", self.level)
        if not 0 < fixed["level"] < 1:
            raise InputError(f"level: expected it between 0 and 1, got {self.level}")
        if self.tasks is not None:
            fixed["tasks"] = check_whole("tasks", self.tasks, least=1)
        for name, value in fixed.items():
            object.__setattr__(self, name, value)


MEASURED = tuple(field.name for field in dataclasses.fields(SkillDocument))[1:-1]
FIELDS = ("format", "version", *MEASURED, "hash")


def skill_hash(skill: Skill) -> str:
    """A name for the text of a skill.

    Args:
      skill: any.

    Returns:
      "sha256:" and 64 hex digits, of the skill as Markdown in UTF-8.

    Example:
      >>> skill_hash(Skill("Move", "Files.", ("Find it.",)))[:19]
      'sha256:1ce980afb590'
    """
    return f"sha256:{hashlib.sha256(render_skill(skill).encode()).hexdigest()}"


def skill_to_text(document: SkillDocument) -> str:
    """What a file of the document holds, always in the same form.

    Args:
      document: any. What it does not know is left out.

    Example:
      >>> skill = Skill("Move", "Files.", ("Find it.",))
      >>> document = SkillDocument(skill, "files", 0.12, (0.03, 0.21), tasks=40)
      >>> print(skill_to_text(document).partition("hash")[0], end="")
      ---
      format: "jerp skill"
      version: 1
      domain: "files"
      effect: 0.12
      interval: [0.03, 0.21]
      level: 0.95
      tasks: 40
    """
    fields: dict[str, Any] = {"format": FORMAT, "version": document.version}
    for name in MEASURED:
        value = getattr(document, name)
        if value not in (None, "") and (name != "level" or document.interval):
            fields[name] = value
    fields["hash"] = skill_hash(document.skill)
    lines = [f"{k}: {json.dumps(v, ensure_ascii=False)}" for k, v in fields.items()]
    return "\n".join([FENCE, *lines, FENCE, "", render_skill(document.skill)])


def skill_from_text(text: str) -> SkillDocument:
    r"""The document that a text holds.

    Args:
      text: as `skill_to_text` returns it, or the Markdown of a skill alone.

    Raises:
      InputError: with the line, what was expected and what came.
      StorageError: another version.

    Example:
      >>> skill_from_text("# Move\nFiles.\n## Workflow\n1. Find it.").skill.workflow
      ('Find it.',)
    """
    lines = text.split("\n")
    first = next((i for i, line in enumerate(lines) if line.strip()), 0)
    if lines[first].rstrip() != FENCE:
        return SkillDocument(parse_skill(text))
    rest = range(first + 1, len(lines))
    end = next((i for i in rest if lines[i].rstrip() == FENCE), None)
    if end is None:
        raise InputError(f"line {first + 1}: expected another '---' below, found none")
    fields = _fields(lines[first + 1 : end], first + 2)
    # Blank lines in place of the front matter, so that errors name lines of the file.
    skill = parse_skill("\n" * (end + 1) + "\n".join(lines[end + 1 :]))
    for name in ("format", "version", "hash"):
        if name not in fields:
            raise InputError(f"line {end + 1}: expected the field {name!r}, found none")
    if fields.pop("format") != FORMAT:
        raise InputError(f"format: expected {FORMAT!r}; this is another program's file")
    if fields.pop("hash") != skill_hash(skill):
        raise InputError(
            "hash: expected that of the skill below, got another: the skill was "
            "changed since it was measured. Take out the front matter, and measure it "
            "anew"
        )
    return SkillDocument(skill, **fields)


def check_domain(domain: str) -> str:
    """The name of a domain, and so of a file; raises `InputError` if it is none."""
    if not isinstance(domain, str) or not _DOMAIN.fullmatch(domain):
        raise InputError(
            "domain: expected a name of at most 64 letters, digits, '_' and '-', got "
            f"{domain!r:.80}"
        )
    return domain


def _fields(lines: list[str], first: int) -> dict[str, Any]:
    """What the lines of a front matter say, each by its name and once."""
    fields: dict[str, Any] = {}
    for number, line in enumerate(lines, first):
        if not line.strip():
            continue
        found = _FIELD.fullmatch(line.rstrip())
        try:
            if found is None:
                raise InputError(f"expected 'NAME: VALUE', got {line[:60]!r}")
            name = found[1]
            if name not in FIELDS:
                raise InputError(str(UnknownNameError("field", name, FIELDS)))
            if name in fields:
                raise InputError(f"expected {name!r} once, got it again")
            fields[name] = _value(name, found[2])
        except InputError as error:
            raise InputError(f"line {number}: {error}") from error
    return fields


def _value(name: str, written: str) -> Any:
    try:
        return json.loads(written)
    except (ValueError, RecursionError) as error:
        raise InputError(
            f"{name}: expected a text in quotes, a number, or two in brackets, got "
            f"{written[:60]!r}"
        ) from error


def _check_version(version: object) -> None:
    if type(version) is not int or version != SKILL_VERSION:
        newer = type(version) is int and version > SKILL_VERSION
        hint = "; a newer jerp may have written it" if newer else ""
        raise StorageError(f"version: expected {SKILL_VERSION}, got {version!r}{hint}")


def _share(name: str, value: Any) -> float:
    """A number from -1 to 1, to six digits."""
    is_number = isinstance(value, Real) and not isinstance(value, bool)
    found = float(value) if is_number else math.nan
    if not -1 <= found <= 1:
        raise InputError(
            f"{name}: expected a number from -1 to 1, got {value!r:.80}; leave out "
            "what was not measured"
        )
    return round(found, 6) + 0.0  # no -0.0


def _interval(value: Any, effect: float | None) -> tuple[float, float]:
    if not isinstance(value, tuple | list) or len(value) != 2:
        raise InputError(f"interval: expected a low and a high end, got {value!r:.80}")
    low, high = (_share("interval", end) for end in value)
    if low > high:
        raise InputError(f"interval: expected the low end first, got {low} and {high}")
    if effect is None:
        raise InputError("interval: expected an effect that it is of, got none")
    return low, high

"""An optimizer's answer: its reasoning, and the skill that it drafts.

    <reasoning>
    ...
    </reasoning>
    <skill>
    Markdown of one skill, see `jerp.skills.document`
    </skill>

Each delimiter stands once, in these letters and this order, with blanks alone outside
of the two blocks. What differs is no draft, and its faults are counted by name: nothing
is guessed at, and nothing that a model writes raises. Only a skill is ever executed;
reasoning is kept as it was written.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from jerp.errors import InputError, SkillError
from jerp.rules.book import count_words
from jerp.skills.document import Skill, parse_skill
from jerp.skills.faults import skill_faults

__all__ = ["ParsedDraft", "parse_draft"]

MAX_DRAFT = 100_000
"""Characters; a longer answer is refused as a whole, before anything is searched in."""

BLOCKS = ("reasoning", "skill")


@dataclass(frozen=True)
class ParsedDraft:
    """What an answer says.

    Attributes:
      reasoning: what its block holds, without blanks around it; "" where the delimiters
        are not as they should be.
      skill: None if and only if there is a fault.
      faults: by name, none twice. Of the answer: "huge", "empty", "no_delimiters",
        "no_reasoning", "no_skill", "two_reasonings", "two_skills", "unclosed", "order",
        "outside" (words around the blocks). Of what the block of the skill holds:
        "malformed_skill". Of a skill that is well-formed: the kinds of `SkillFault`.
    """

    reasoning: str
    skill: Skill | None
    faults: tuple[str, ...]


def parse_draft(
    text: str,
    *,
    secrets: Iterable[str | int | float] = (),
    max_tokens: int | None = None,
    count_tokens: Callable[[str], int] = count_words,
) -> ParsedDraft:
    r"""Reads an answer; whatever a model wrote is a draft or has faults by name.

    Args:
      text: whatever a model wrote.
      secrets: see `skill_faults`.
      max_tokens: of the skill as Markdown; see `skill_faults`.
      count_tokens: a tokenizer's length where there is one.

    Raises:
      InputError: what the caller gave, a `text` that is none or see `skill_faults`.

    Reference: Peng et al., "WER", arXiv:2608.17587, section 3.3: parseable output with
      the reasoning and the skill in separate blocks. Which, the paper does not say.

    Example:
      >>> skill = "# Move\nFiles.\n## Workflow\n1. Find it."
      >>> answer = f"<reasoning>So.</reasoning>\n<skill>\n{skill}\n</skill>"
      >>> draft = parse_draft(answer)
      >>> draft.reasoning, draft.skill.workflow, draft.faults
      ('So.', ('Find it.',), ())
      >>> parse_draft(skill).faults, parse_draft(answer + answer).faults
      (('no_delimiters',), ('two_reasonings', 'two_skills'))
    """
    if not isinstance(text, str):
        raise InputError(f"text: expected a text, got {type(text).__name__}")
    faults = _delimiter_faults(text)
    if faults:
        return ParsedDraft("", None, faults)
    _, _, rest = text.partition("<reasoning>")
    reasoning, _, rest = rest.partition("</reasoning>")
    body = rest.partition("<skill>")[2].partition("</skill>")[0]
    try:
        skill = parse_skill(body)
    except SkillError:
        return ParsedDraft(reasoning.strip(), None, ("malformed_skill",))
    found = skill_faults(
        skill, secrets=secrets, max_tokens=max_tokens, count_tokens=count_tokens
    )
    faults = tuple(dict.fromkeys(fault.kind for fault in found))
    return ParsedDraft(reasoning.strip(), None if faults else skill, faults)


def _delimiter_faults(text: str) -> tuple[str, ...]:
    """What keeps an answer from having its two blocks, one after the other."""
    if len(text) > MAX_DRAFT:
        return ("huge",)
    if not text.strip():
        return ("empty",)
    pairs = [(text.count(f"<{name}>"), text.count(f"</{name}>")) for name in BLOCKS]
    if not any(map(any, pairs)):
        return ("no_delimiters",)
    faults = []
    for name, pair in zip(BLOCKS, pairs, strict=True):
        if max(pair) > 1:
            faults.append(f"two_{name}s")
        elif not any(pair):
            faults.append(f"no_{name}")
        elif not all(pair):
            faults.append("unclosed")
    if faults:
        return tuple(dict.fromkeys(faults))
    tags = [tag for name in BLOCKS for tag in (f"<{name}>", f"</{name}>")]
    places = [text.index(tag) for tag in tags]
    if places != sorted(places):
        return ("order",)
    between = text[places[1] + len(tags[1]) : places[2]]
    outside = (text[: places[0]], between, text[places[3] + len(tags[3]) :])
    return ("outside",) if any(part.strip() for part in outside) else ()

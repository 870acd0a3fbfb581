"""What a revision changed in a skill, text by text."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import Literal

from jerp.skills.document import Skill

__all__ = ["SkillChange", "diff_skills"]


@dataclass(frozen=True)
class SkillChange:
    """One text that a revision added, took out or wrote anew.

    Attributes:
      kind: which of these.
      where: "name", "description", or the section and number: in the revision, of what
        was taken out in the skill before, and both if they differ, "workflow 2 → 3".
      before: the text that it was; "" of what was added.
      after: the text that it is; "" of what was taken out.
    """

    kind: Literal["added", "removed", "changed"]
    where: str
    before: str = ""
    after: str = ""


def diff_skills(before: Skill, after: Skill) -> tuple[SkillChange, ...]:
    """What was changed from one skill to another, in the order of the sections.

    Between two texts that stayed, those that were there and those that are there now
    are paired one by one, and the rest was removed or added; a step that moved was
    removed here and added there.

    Args:
      before: the skill that was revised.
      after: what became of it.

    Returns:
      Nothing if and only if they are equal.

    Example:
      >>> before = Skill("Pay", "Bills.", ("Log in.", "Pay."))
      >>> after = Skill("Pay", "Bills.", ("Look it up.", "Log in.", "Pay once."))
      >>> for change in diff_skills(before, after):
      ...     print(change.kind, change.where, change.after)
      added workflow 1 Look it up.
      changed workflow 2 → 3 Pay once.
    """
    found = [
        SkillChange("changed", name, old, new)
        for name in ("name", "description")
        if (old := getattr(before, name)) != (new := getattr(after, name))
    ]
    for section in ("workflow", "notes"):
        texts = getattr(before, section), getattr(after, section)
        found += _section_changes(section, *texts)
    return tuple(found)


def _section_changes(
    section: str, before: Sequence[str], after: Sequence[str]
) -> Iterator[SkillChange]:
    matcher = SequenceMatcher(a=before, b=after)
    for kind, old, old_end, new, new_end in matcher.get_opcodes():
        if kind == "equal":
            continue
        paired = min(old_end - old, new_end - new)
        for offset in range(paired):
            i, j = old + offset, new + offset
            numbers = f"{i + 1}" if i == j else f"{i + 1} → {j + 1}"
            where = f"{section} {numbers}"
            yield SkillChange("changed", where, before[i], after[j])
        for i in range(old + paired, old_end):
            yield SkillChange("removed", f"{section} {i + 1}", before=before[i])
        for j in range(new + paired, new_end):
            yield SkillChange("added", f"{section} {j + 1}", after=after[j])

"""A difference says all that was changed, and nothing else."""

import re

from hypothesis import given, settings
from hypothesis import strategies as st

from jerp.skills.difference import SkillChange, diff_skills
from jerp.skills.document import Skill

SEEDED = settings(deadline=None, derandomize=True)


def test_each_kind_of_change_by_hand():
    before = Skill("a", "b", ("x", "y", "z"), ("m", "n"))
    after = Skill("A", "b", ("w", "x", "q", "z"), ("n",))
    assert diff_skills(before, after) == (
        SkillChange("changed", "name", "a", "A"),
        SkillChange("added", "workflow 1", "", "w"),
        SkillChange("changed", "workflow 2 → 3", "y", "q"),
        SkillChange("removed", "notes 1", "m", ""),
    )
    assert diff_skills(before, before) == ()


def test_a_step_that_moved_is_there_twice():
    found = diff_skills(Skill("a", "b", ("x", "y")), Skill("a", "b", ("y", "x")))
    assert found == (
        SkillChange("added", "workflow 1", "", "y"),
        SkillChange("removed", "workflow 2", "y", ""),
    )


def patched(before, after, section, changes):
    """The texts of a section of the revision, from what it was and what was changed."""
    gone, new = set(), {}
    for change in changes:
        if change.where.split()[0] != section:
            continue
        numbers = [int(number) - 1 for number in re.findall(r"\d+", change.where)]
        if change.kind != "added":
            assert getattr(before, section)[numbers[0]] == change.before
            gone.add(numbers[0])
        if change.kind != "removed":
            new[numbers[-1]] = change.after
    kept = [t for i, t in enumerate(getattr(before, section)) if i not in gone]
    size = len(kept) + len(new)
    return tuple(new[i] if i in new else kept.pop(0) for i in range(size))


TEXTS = st.lists(st.sampled_from("abcd"), max_size=6)


@SEEDED
@given(TEXTS, TEXTS, TEXTS, TEXTS)
def test_what_is_said_makes_the_revision_of_what_was(one, other, notes, others):
    before, after = (
        Skill("n", "d", (*texts, "z"), tuple(more))
        for texts, more in ((one, notes), (other, others))
    )
    changes = diff_skills(before, after)
    for section in ("workflow", "notes"):
        made = patched(before, after, section, changes)
        assert made == getattr(after, section)
    assert (changes == ()) == (before == after)
    assert len(changes) <= sum(map(len, (one, other, notes, others)))

"""Skills of tasks become one of their domain, by votes that succeeded."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jerp.errors import InputError
from jerp.runs.skills.merge import MeasuredSkill, merge_by_vote
from jerp.skills.document import Skill


def measured(success, *steps, name="Pay", notes=()):
    return MeasuredSkill("a", Skill(name, "Bills.", steps, notes), success)


def test_votes_by_hand():
    """Weights: Log in. 1.5, Pay. 1.25, Wait. .75, Call. 0."""
    skills = [
        measured(0.5, "Log in.", "Wait.", "Pay.", name="Half"),
        measured(1.0, "Log in.", name="Full", notes=("Once.", "Slow.")),
        measured(0.25, "Wait.", "Pay."),
        measured(0.5, "Pay.", "Pay."),
        measured(None, "Call.", notes=("Never.",)),
    ]
    found = merge_by_vote(skills, max_steps=2)
    assert (found.name, found.description) == ("Full", "Bills.")
    assert found.workflow == ("Log in.", "Pay.")
    # Mean places: Log in. 0, Pay. (2 / 3 + 1 / 2 + 0) / 3, Wait. (1 / 3 + 0) / 2.
    found = merge_by_vote(skills, max_steps=3)
    assert found.workflow == ("Log in.", "Wait.", "Pay.")
    assert merge_by_vote(skills).workflow == ("Log in.", "Call.", "Wait.", "Pay.")
    assert found.notes == ("Once.", "Never.", "Slow.")
    assert merge_by_vote(skills, max_steps=1).workflow == ("Log in.",)


def test_steps_of_one_topic_have_one_seat():
    skills = [
        measured(0.5, "On error 1: retry.", "On error 2: stop."),
        measured(0.75, "On error 1: stop."),
        measured(0.5, "On error 1: retry."),
    ]
    found = merge_by_vote(skills, topic=lambda step: step.partition(":")[0])
    assert found.workflow == ("On error 1: retry.", "On error 2: stop.")
    assert len(merge_by_vote(skills).workflow) == 3


def test_without_any_success_the_number_decides():
    skills = [measured(0.0, "A."), measured(None, "B."), measured(0.0, "B.")]
    assert merge_by_vote(skills, max_steps=1).workflow == ("B.",)


STEPS = st.lists(st.sampled_from("ABCDEF"), min_size=1, max_size=5)
BALLOTS = st.lists(st.tuples(st.floats(0, 1), STEPS), min_size=1, max_size=4)


@given(BALLOTS, st.integers(1, 6))
def test_a_merge_invents_nothing_and_keeps_the_heaviest(ballots, most):
    skills = [measured(success, *steps) for success, steps in ballots]
    found = merge_by_vote(skills, max_steps=most).workflow
    weights = {}
    for success, steps in ballots:
        for step in {*steps}:
            weights[step] = weights.get(step, 0.0) + success
    assert len(found) == len({*found}) == min(most, len(weights))
    out = {*weights} - {*found}
    assert {*found} <= {*weights}
    least = min(weights[step] for step in found)
    assert all(weights[step] <= least + 1e-9 for step in out)
    alone = skills[0]
    steps = tuple(dict.fromkeys(alone.skill.workflow))
    assert {*merge_by_vote([alone]).workflow} == {*steps}


@pytest.mark.parametrize(
    ("skills", "most", "message"),
    [
        ([], 3, "skills: expected at least one to merge"),
        ((measured(1.0, "A.") for _ in range(2)), 3, "skills: .*sequence.*generator"),
        ([measured(1.0, "A."), 1], 3, r"skills\[1\]: expected a MeasuredSkill.*got 1"),
        ([measured(-0.5, "A.")], 3, r"skills\[0\].success: .*\[0, 1\].*got -0.5"),
        ([measured(2.0, "A.")], 3, "success: .*got 2.0"),
        ([measured("x", "A.")], 3, "success: .*got 'x'"),
        ([measured(True, "A.")], 3, "success: .*got True"),
        ([measured(1.0, "A.")], 0, "max_steps: expected a whole number >= 1"),
        ([measured(1.0, "A.")], 99, "max_steps: expected at most 20, got 99"),
    ],
)
def test_bad_input(skills, most, message):
    with pytest.raises(InputError, match=message):
        merge_by_vote(skills, max_steps=most)


def test_a_success_that_is_not_a_number_is_nobodys_answer():
    skills = [measured(float("nan"), "A.", "B."), measured(0.5, "C.")]
    assert merge_by_vote(skills, max_steps=1).workflow == ("C.",)


def test_a_topic_is_a_text():
    with pytest.raises(InputError, match=r"topic: expected a text for 'A.', got \['A"):
        merge_by_vote([measured(1.0, "A.")], topic=lambda step: [step])

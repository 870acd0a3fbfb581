"""What verdicts and checks of named criteria come to, by hand."""

from jerp.domains.base import Workspace
from jerp.domains.controlled.criteria import check_scores, checked, weighted
from jerp.records import Criterion, Task

DRAFT = Workspace(Task("toy/0", "toy", 0, "do"), 0, draft="done")


def test_a_verdict_weighs_every_criterion_and_knows_the_public_ones():
    scores = {"form": 1.0, "correct": 0.0}
    assert weighted(scores, {"correct": 0.6, "form": 0.4}, public=("form",)) == (
        Criterion("correct", 0.0, 0.6, public=False),
        Criterion("form", 1.0, 0.4, public=True),
    )


def test_a_check_covers_what_is_not_missing():
    after, step = checked(DRAFT, ("b",), 4)
    assert after.checked and (after.coverage, after.missing_share) == (0.75, 0.25)
    assert (step.arguments, step.coverage, step.missing) == ("done", 0.75, ("b",))
    assert after.feedback is None and not DRAFT.checked


def test_one_hint_whichever_criteria_failed():
    after, step, text = check_scores(DRAFT, {"a": 1.0, "b": 0.0, "c": 0.0}, "Try.")
    assert text == "missing: b, c. Try." and step.missing == ("b", "c")
    assert (after.feedback.text, after.feedback.failed) == ("Try.", True)


def test_nothing_missing_leaves_no_hint():
    after, step, text = check_scores(DRAFT, {"a": 1.0}, "Try.")
    assert text == "nothing missing" and step.missing == () and after.coverage == 1
    assert (after.feedback.text, after.feedback.failed) == ("", False)

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jerp.errors import ConfigError, UnknownNameError
from jerp.harness.actions import ACTIONS
from jerp.harness.events import EVENTS, Event, MaturityThresholds, process_events
from jerp.harness.maturity import (
    EVENT_WEIGHTS,
    maturity,
    maturity_score,
    threshold_sensitivity,
)
from jerp.records import ProcessStep, ProcessTrace

GOOD = ProcessTrace(
    steps=(
        ProcessStep("observe", new_facts=2, cost=0.5),
        ProcessStep("retrieve", gathers_evidence=True, new_facts=1, cost=0.5),
        ProcessStep("draft", claims=2, evidence=2, code_hash="a", cost=1.0),
        ProcessStep(
            "call-tool",
            tests_passed=1,
            tests_failed=1,
            tool_valid=True,
            claims=2,
            evidence=2,
            code_hash="a",
        ),
        ProcessStep("revise", revises=True, claims=2, evidence=2, code_hash="b"),
        ProcessStep(
            "call-tool",
            tests_passed=2,
            tests_failed=0,
            tool_valid=True,
            claims=2,
            evidence=2,
            code_hash="b",
        ),
        ProcessStep("check", coverage=0.9, missing=(), claims=2, evidence=2),
        ProcessStep("submit", claims=2, evidence=2, code_hash="b"),
    ),
    max_steps=10,
    cost_budget=4.0,
    tools=ACTIONS,
    score=0.9,
    missing_share=0.1,
    runs_code=True,
    needs_evidence=True,
    chose_submit=True,
)


def with_step(trace, index, **fields):
    steps = list(trace.steps)
    steps[index] = replace(steps[index], **fields)
    return replace(trace, steps=tuple(steps))


def fired(trace, **thresholds):
    events = process_events(trace, MaturityThresholds(**thresholds))
    return {name for name, event in events.items() if event.fired}


def test_a_good_episode_fires_everything_but_the_penalty():
    found = maturity(GOOD)
    assert [*found.events] == [*EVENTS] == [*EVENT_WEIGHTS]
    assert all(event.applicable for event in found.events.values())
    assert fired(GOOD) == set(EVENTS) - {"EarlySubmit"}
    assert (found.score, maturity(GOOD, normalisation="released").score) == (1.0, 6 / 7)
    assert (found.useless_runs, found.useless_steps, found.cost) == (0, 0, 2.0)
    assert not found.cost_overrun
    at_the_limit = MaturityThresholds(cost_factor=0.5)
    assert not maturity(GOOD, thresholds=at_the_limit).cost_overrun


# (change, the events that it switches)
BROKEN = {
    "no check": (with_step(GOOD, 6, action="observe"), ["Check", "Stop"]),
    "fault found, submitted at once": (
        with_step(GOOD, 6, missing=("form",)),
        ["Check", "Revision"],
    ),
    "check not recent": (
        replace(GOOD, steps=(*GOOD.steps[:7], *GOOD.steps[1:4], GOOD.steps[7])),
        ["Stop", "Revision", "Test"],
    ),
    "coverage low": (with_step(GOOD, 6, coverage=0.84), ["Stop"]),
    "coverage unknown": (with_step(GOOD, 6, coverage=None), ["Stop"]),
    "submit forced": (replace(GOOD, chose_submit=False), ["Stop"]),
    "at the last step": (replace(GOOD, max_steps=8), ["Stop"]),
    "one claim of two unfounded": (with_step(GOOD, 7, evidence=1), ["Evidence"]),
    "claims before evidence": (with_step(GOOD, 0, claims=1), ["Evidence"]),
    "no evidence gathered": (
        with_step(GOOD, 1, gathers_evidence=False),
        ["Evidence", "EarlySubmit"],
    ),
    "other code submitted": (with_step(GOOD, 7, code_hash="c"), ["Test"]),
    "test crashed": (with_step(GOOD, 5, error=True), ["Test", "Revision"]),
    "failure without revision": (with_step(GOOD, 4, revises=False), ["Revision"]),
    "verify failed": (with_step(GOOD, 5, verify_failed=True), ["Revision"]),
    "invalid tool call": (with_step(GOOD, 3, tool_valid=False), ["Valid"]),
    "most criteria missing": (replace(GOOD, missing_share=0.5), ["EarlySubmit"]),
}


@pytest.mark.parametrize("name", sorted(BROKEN))
def test_each_condition_switches_its_events(name):
    trace, switched = BROKEN[name]
    difference = fired(GOOD) ^ fired(trace)
    assert {e for e in EVENTS if e.startswith(tuple(switched))} == difference


def test_early_submit_of_a_poor_draft():
    steps = (ProcessStep("observe"), ProcessStep("draft"), ProcessStep("submit"))
    trace = replace(GOOD, steps=steps, runs_code=False, score=0.49, max_steps=8)
    assert "EarlySubmit" in fired(trace)
    assert "EarlySubmit" not in fired(replace(trace, score=0.5))
    assert "EarlySubmit" not in fired(replace(trace, score=None))
    assert "EarlySubmit" not in fired(replace(trace, max_steps=7))
    assert "EarlySubmit" in fired(replace(trace, max_steps=7), early_progress=0.3)


def test_early_submit_after_failing_tests():
    assert "EarlySubmit" in fired(with_step(GOOD, 5, tests_passed=1, tests_failed=2))
    assert "EarlySubmit" not in fired(with_step(GOOD, 5, tests_passed=0))


# Every threshold: a trace near it and a value that changes what is found.
MOVED = {
    "evidence_share": (BROKEN["one claim of two unfounded"][0], 0.5),
    "revision_window": (GOOD, 0),
    "valid_share": (BROKEN["invalid tool call"][0], 0.5),
    "check_age": (GOOD, 0),
    "coverage": (GOOD, 0.95),
    "early_score": (replace(GOOD, max_steps=40, score=0.6), 0.7),
    "early_progress": (replace(GOOD, score=0.4), 0.7),
    "early_missing": (GOOD, 0.1),
    "early_pass_rate": (
        with_step(GOOD, 5, tests_passed=3, tests_failed=1),
        0.8,
    ),
    "cost_factor": (GOOD, 0.4),
}


def test_every_threshold_is_tried():
    assert set(MOVED) == set(MaturityThresholds.__dataclass_fields__)


@pytest.mark.parametrize("name", sorted(MOVED))
def test_every_threshold_matters(name):
    trace, value = MOVED[name]
    moved = maturity(trace, thresholds=MaturityThresholds(**{name: value}))
    assert moved != maturity(trace)


def test_not_applicable():
    bare = replace(
        GOOD,
        steps=(ProcessStep("draft"), ProcessStep("submit")),
        tools=("draft", "submit"),
        runs_code=False,
        needs_evidence=False,
    )
    events = maturity(bare).events
    assert {e for e in EVENTS if events[e].applicable} == {"EarlySubmit"}
    assert maturity(bare).score != maturity(bare).score, "NaN: nothing to reach"
    assert maturity(bare, normalisation="released").score == 0.0
    assert events["RevisionAfterFailure"] == Event(False, False)


def test_code_needs_no_evidence_unless_it_says_so():
    trace = replace(GOOD, needs_evidence=False)
    assert not maturity(trace).events["EvidenceBeforeClaim"].applicable
    answer = replace(trace, runs_code=False)
    assert maturity(answer).events["EvidenceBeforeClaim"] == Event(True, True)


def test_without_steps_nothing_fires():
    found = maturity(replace(GOOD, steps=()))
    assert fired(replace(GOOD, steps=())) == set()
    assert (found.cost, found.useless_steps) == (0.0, 0)


def test_runs_of_one_call():
    call, other = ProcessStep("retrieve", arguments="a"), ProcessStep("retrieve", "b")
    fact = replace(call, new_facts=1)
    for steps, expected in {
        (call, call, call, other): (1, 2),
        (fact, call, other, other): (2, 2),
        (call, fact, call): (0, 0),
        (call, other, call, other): (0, 0),
        (call,): (0, 0),
    }.items():
        found = maturity(replace(GOOD, steps=steps))
        assert (found.useless_runs, found.useless_steps) == expected, steps


def test_score_by_hand():
    events = {
        "CheckBeforeSubmit": Event(True, True),
        "TestBeforeSubmit": Event(True, False),
        "ValidToolUse": Event(False, False),
        "EarlySubmit": Event(True, True),
    }
    assert maturity_score(events) == 0.0
    weights = {"CheckBeforeSubmit": 3.0, "EarlySubmit": -0.5}
    assert maturity_score(events, weights=weights) == 2.5 / 4
    released = maturity_score(events, weights=weights, normalisation="released")
    assert released == 2.5 / 4.5


flags = st.booleans()
steps = st.builds(
    ProcessStep,
    action=st.sampled_from(ACTIONS),
    arguments=st.sampled_from(["", "x"]),
    error=flags,
    new_facts=st.integers(0, 1),
    coverage=st.sampled_from([None, 0.0, 0.85, 1.0]),
    missing=st.sampled_from([None, (), ("a",)]),
    tests_passed=st.sampled_from([None, 0, 2]),
    tests_failed=st.sampled_from([None, 0, 1]),
    verify_failed=st.sampled_from([None, False, True]),
    code_hash=st.sampled_from([None, "a", "b"]),
    claims=st.integers(0, 2),
    evidence=st.integers(0, 2),
    gathers_evidence=flags,
    tool_valid=st.sampled_from([None, False, True]),
    revises=flags,
    cost=st.sampled_from([0.0, 0.5]),
)
traces = st.builds(
    ProcessTrace,
    steps=st.lists(steps, max_size=8).map(tuple),
    max_steps=st.integers(1, 10),
    cost_budget=st.sampled_from([0.5, 4.0]),
    tools=st.sampled_from([ACTIONS, ("draft", "submit"), ("check", "submit")]),
    score=st.sampled_from([None, 0.0, 0.5, 1.0]),
    missing_share=st.sampled_from([0.0, 0.5, 1.0]),
    runs_code=flags,
    needs_evidence=flags,
    chose_submit=flags,
)


@given(traces)
@settings(max_examples=150, deadline=None, derandomize=True)
def test_events_do_not_depend_on_names_costs_and_what_follows_the_submit(trace):
    events = maturity(trace).events
    renamed = tuple(
        replace(
            step,
            arguments=step.arguments + "!",
            cost=step.cost + 1,
            code_hash=step.code_hash and step.code_hash * 2,
            missing=step.missing and ("another name",),
            new_facts=step.new_facts + 1,
        )
        for step in trace.steps
    )
    changed = replace(
        trace, steps=renamed, cost_budget=1e9, tools=tuple(reversed(trace.tools))
    )
    assert maturity(changed).events == events
    if any(step.action == "submit" for step in trace.steps):
        later = (ProcessStep("draft", error=True, claims=3), ProcessStep("check"))
        longer = replace(trace, steps=trace.steps + later)
        assert maturity(longer).events == events


@given(traces, st.sampled_from([0.5, 3.0]))
@settings(max_examples=100, deadline=None, derandomize=True)
def test_score_range_scale_and_normalisations(trace, factor):
    events = maturity(trace).events
    released = maturity_score(events, normalisation="released")
    scaled = {name: factor * weight for name, weight in EVENT_WEIGHTS.items()}
    assert maturity_score(events, weights=scaled, normalisation="released") == (
        pytest.approx(released)
    )
    number = sum(e.applicable for e in events.values()) - 1
    assert -1 / (number + 1) <= released <= number / (number + 1)
    if number:
        attainable = maturity_score(events)
        assert attainable * number == pytest.approx(released * (number + 1))
    assert not any(e.fired and not e.applicable for e in events.values())


def test_threshold_sensitivity():
    poor = replace(GOOD, score=0.4)
    table = threshold_sensitivity(
        (GOOD, poor),
        name="early_progress",
        values=(0.25, 0.7),
        normalisation="released",
    )
    assert table == ((0.25, (6 / 7, 6 / 7)), (0.7, (6 / 7, 5 / 7)))
    by_hand = maturity(poor, thresholds=MaturityThresholds(early_progress=0.7)).score
    attainable = threshold_sensitivity((poor,), name="early_progress", values=(0.7,))
    assert attainable[0][1] == (by_hand,)
    strict = threshold_sensitivity(
        (GOOD,),
        name="coverage",
        values=(0.85,),
        thresholds=MaturityThresholds(check_age=0),
        weights={"EarlySubmit": -2.0},
    )
    assert strict == ((0.85, (5 / 6,)),)


def test_errors_name_what_is_wrong():
    with pytest.raises(UnknownNameError, match="did you mean 'early_progress'"):
        threshold_sensitivity((GOOD,), name="early_progres", values=(0.3,))
    with pytest.raises(ConfigError, match="values: expected at least one"):
        threshold_sensitivity((GOOD,), name="coverage", values=())
    with pytest.raises(UnknownNameError, match="did you mean 'EarlySubmit'"):
        maturity(GOOD, weights={"EarlySubmitt": 1.0})
    with pytest.raises(UnknownNameError, match="normalisation"):
        maturity(GOOD, normalisation="released_code")
    with pytest.raises(ConfigError, match=r"max_steps: expected >= 1, got 0"):
        maturity(replace(GOOD, max_steps=0))

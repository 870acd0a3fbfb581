"""HMS against the numbers of the released code, and where jerp differs on purpose."""

from dataclasses import replace

import pytest

from jerp.harness.events import MaturityThresholds
from jerp.harness.maturity import EVENT_WEIGHTS, maturity
from tests.harness.golden import change, load, peer_trace

CASES = {case["name"]: case for case in load("hms")}
EARLY_PROGRESS = (0.25, 0.35)


def trace_of(name):
    return peer_trace(CASES[name]["records"])


def test_every_case_is_here():
    assert len(CASES) == 47


@pytest.mark.parametrize("early_progress", EARLY_PROGRESS)
@pytest.mark.parametrize("name", sorted(CASES))
def test_events_and_score(name, early_progress):
    case = CASES[name]
    weights = case.get("weights", {})
    found = maturity(
        trace_of(name),
        thresholds=MaturityThresholds(early_progress=early_progress),
        weights=weights,
        normalisation="released",
    )
    expected = case["outputs"]
    for event, peer in expected["events"].items():
        fired = peer.get("fired", peer.get(f"fired_c7_{early_progress}"))
        assert found.events[event].applicable == peer["applicable"], event
        assert found.events[event].fired == (fired and peer["applicable"]), event
    assert found.score == pytest.approx(expected[f"hms_norm_c7_{early_progress}"])
    raw = sum(
        weights.get(event, weight)
        for event, weight in EVENT_WEIGHTS.items()
        if found.events[event].fired
    )
    assert raw == pytest.approx(expected[f"hms_raw_c7_{early_progress}"])


@pytest.mark.parametrize("name", sorted(CASES))
def test_auxiliary_counts(name):
    found, expected = maturity(trace_of(name)), CASES[name]["outputs"]["aux"]
    assert found.useless_runs == expected["n_useless_runs"]
    assert found.useless_steps == expected["n_useless_steps"]
    assert found.cost == pytest.approx(expected["total_cost"])
    assert found.cost_overrun == expected["cost_overrun"]


def _empty(trace):
    return replace(trace, steps=())


def _fields(index, **fields):
    return lambda trace: change(trace, index, **fields)


def _episode(**fields):
    return lambda trace: replace(trace, **fields)


# Case, event, (applicable, fired) of the peer, what differs, ours, why. Numbers in the
# reasons are those of the list of deviations that came with the golden files.
DIFFERENCES = [
    (
        "c4_verify_wording",
        "RevisionAfterFailure",
        (True, False),
        _fields(1, verify_failed=False),
        (False, False),
        "19: the peer finds 'missing' and 'fail' in 'no missing steps, 0 failures'; "
        "ours asks the verify step's own field",
    ),
    (
        "c6_no_max_steps",
        "StopWhenSufficient",
        (True, False),
        _episode(chose_submit=True),
        (True, True),
        "a trace always knows its step budget, so that a choice can be seen",
    ),
    (
        "c1_not_in_tools",
        "CheckBeforeSubmit",
        (False, True),
        _episode(),
        (False, False),
        "the peer reports what is not applicable as fired",
    ),
    (
        "c1_missing_then_submit",
        "RevisionAfterFailure",
        (True, False),
        _episode(tools=("retrieve", "draft", "check", "submit")),
        (False, False),
        "21: three of the peer's domains offer no revision, so that the event can not "
        "fire there; ours is then not applicable",
    ),
    (
        "c5_no_tool_list",
        "ValidToolUse",
        (True, True),
        _fields(0, action="read-pdf", tool_valid=False),
        (True, False),
        "21: the peer knows tools by name and misses some of its own; ours takes the "
        "domain's word for what a tool call is and whether it was valid",
    ),
    (
        "c3_hash_same_blob_same",
        "TestBeforeSubmit",
        (True, True),
        _fields(1, code_hash=None),
        (True, False),
        "20: the peer accepts a test of an unknown artefact; ours wants the one that "
        "was submitted",
    ),
    (
        "c7_coding_low_pass",
        "EarlySubmit",
        (True, True),
        _fields(1, error=True),
        (True, False),
        "20: the peer counts the tests of a run that itself failed",
    ),
    (
        "c7_missing_half",
        "EarlySubmit",
        (True, True),
        _episode(max_steps=5),
        (True, False),
        "a submit at the last step is forced, not early",
    ),
    (
        "instant_submit",
        "EarlySubmit",
        (True, True),
        _empty,
        (True, False),
        "22: the peer raises IndexError on an episode without steps",
    ),
]


@pytest.mark.parametrize(
    ("name", "event", "peer", "differs", "ours", "why"),
    DIFFERENCES,
    ids=[f"{d[0]}:{d[1]}" for d in DIFFERENCES],
)
def test_differences_on_purpose(name, event, peer, differs, ours, why):
    reported = CASES[name]["outputs"]["events"][event]
    fired = reported.get("fired", reported.get("fired_c7_0.25"))
    assert (reported["applicable"], fired) == peer, why
    assert maturity(differs(trace_of(name))).events[event] == ours, why


def test_a_perfect_episode_reaches_one_only_where_it_can():
    trace = trace_of("all_seven_apply_good")
    assert maturity(trace, normalisation="released").score == pytest.approx(6 / 7)
    assert maturity(trace).score == 1.0

"""What the controlled domains share, on a domain that does next to nothing."""

from dataclasses import replace

import numpy as np
import pytest

from jerp.bridge.executor import Completion, Message, Request
from jerp.domains.base import ControlledDomain, Feedback
from jerp.harness.actions import ACTIONS, Action
from jerp.harness.state import FEATURES, NO_ACTION
from jerp.records import Criterion, ProcessStep, Task, Verdict


class ToyDomain(ControlledDomain):
    """The executor's text is the draft; a check fails unless it says "good"."""

    name = "toy"
    needs_evidence = False
    runs_code = False
    ladder = 2

    def generate(self, seed, num_tasks):
        return tuple(
            Task(f"toy/{seed}/{i}", "toy", i % 3, "do") for i in range(num_tasks)
        )

    def request(self, workspace, action):
        if action in (Action.DRAFT, Action.REVISE):
            return Request(
                (Message("user", "do"),), sample_index=workspace.sample_index
            )
        return None

    def verify(self, task, artefact, workspace):
        good = float(artefact == "good")
        return Verdict(
            (Criterion("good", good, 1.0), Criterion("some", 1.0, 1.0)), good > 0
        )

    def _retrieve(self, workspace):
        passages = (*workspace.passages, "p")
        return replace(workspace, passages=passages), ProcessStep(""), "retrieved"

    def _call_tool(self, workspace):
        return replace(workspace, tested=True), ProcessStep(""), "tested"

    def _write(self, workspace, action, completion):
        revises = action == Action.REVISE
        after = workspace.with_draft(completion.text, revises=revises)
        return after, ProcessStep("", error=not completion.text), "drafted"

    def _check(self, workspace):
        failed = workspace.draft != "good"
        feedback = Feedback("bad" if failed else "fine", failed)
        after = replace(workspace, checked=True, feedback=feedback)
        return after, ProcessStep(""), "checked"


@pytest.fixture
def domain():
    return ToyDomain()


def run(domain, *actions, text="bad"):
    workspace = domain.begin(domain.generate(0, 1)[0], 0)
    for action in actions:
        asks = domain.request(workspace, action) is not None
        completion = Completion(text) if asks else None
        workspace = domain.advance(workspace, action, completion)
    return workspace


def legal(domain, workspace):
    return {ACTIONS[i] for i in np.flatnonzero(domain.legal(workspace))}


def test_masks(domain):
    assert legal(domain, run(domain)) == {"observe", "retrieve", "draft"}
    read = run(domain, Action.OBSERVE, Action.RETRIEVE, Action.RETRIEVE)
    assert legal(domain, read) == {"draft"}
    drafted = run(domain, Action.OBSERVE, Action.DRAFT)
    assert legal(domain, drafted) == {"retrieve", "call-tool", "check", "submit"}
    failed = run(domain, Action.OBSERVE, Action.DRAFT, Action.CALL_TOOL, Action.CHECK)
    assert legal(domain, failed) == {"retrieve", "revise", "submit"}
    passed = run(domain, Action.DRAFT, Action.CHECK, text="good")
    assert "revise" not in legal(domain, passed)


def test_revisions_are_counted_and_limited(domain):
    once = (Action.CHECK, Action.REVISE)
    workspace = run(domain, Action.DRAFT, *once, *once, Action.CHECK)
    assert workspace.revisions == domain.max_revisions == 2
    assert "revise" not in legal(domain, workspace)


def test_of_a_new_draft_nothing_is_known(domain):
    checked = replace(
        run(domain, Action.DRAFT, Action.CALL_TOOL, Action.CHECK),
        support=0.5,
        coverage=0.5,
        missing_share=0.5,
    )
    fresh = checked.with_draft("new", revises=True)
    assert fresh.feedback is None and not fresh.checked and not fresh.tested
    assert (fresh.support, fresh.coverage, fresh.missing_share) == (-1, 0, 1)
    assert fresh.revisions == checked.revisions + 1
    assert checked.with_draft("new", revises=False).revisions == checked.revisions


def test_features_of_a_known_state(domain):
    features = domain.features(run(domain, Action.OBSERVE, Action.DRAFT, text="x" * 50))
    expected = dict.fromkeys(FEATURES, 0.0) | {
        "progress": 0.2,
        "has_draft": 1.0,
        "draft_length": 0.1,
        "missing_share": 1.0,
        "cost_share": 1.1 / 4,
        "remaining": 0.8,
        "support": -1.0,
        "last:draft": 1.0,
    }
    np.testing.assert_allclose(
        features, [expected[name] for name in FEATURES], rtol=1e-6
    )
    assert features.dtype == np.float32


def test_the_budget_truncates_and_only_a_submit_is_judged(domain):
    workspace = run(domain)
    for _ in range(domain.max_steps):
        assert not workspace.truncated
        workspace = domain.advance(workspace, Action.OBSERVE, None)
    assert workspace.truncated and not workspace.terminated
    assert workspace.verdict is None and not domain.legal(workspace).any()
    submitted = run(domain, Action.DRAFT, Action.SUBMIT)
    assert submitted.terminated and not submitted.truncated
    assert submitted.verdict.score == 0.5 and not domain.legal(submitted).any()


def test_a_submit_in_the_last_step_is_no_truncation(domain):
    actions = [Action.DRAFT] + [Action.OBSERVE] * (domain.max_steps - 2)
    workspace = run(domain, *actions, Action.SUBMIT)
    assert workspace.step == domain.max_steps
    assert workspace.terminated and not workspace.truncated


def test_errors_are_counted(domain):
    workspace = run(domain, Action.DRAFT, text="")
    assert workspace.errors == 1 and workspace.trace[-1].error


def test_anchor_ignores_counters_and_timeless_removes_them(domain):
    one = run(domain, Action.OBSERVE, Action.RETRIEVE, Action.DRAFT)
    two = run(domain, Action.RETRIEVE, Action.OBSERVE, Action.DRAFT)
    assert one.trace != two.trace and domain.anchor(one) == domain.anchor(two)
    late = replace(one, step=domain.max_steps, truncated=True, errors=3, cost=9.0)
    fresh = domain.timeless(late)
    assert domain.anchor(fresh) == domain.anchor(one)
    assert fresh.step == fresh.errors == fresh.cost == 0 and not fresh.truncated
    assert fresh.trace == fresh.transcript == ()
    assert legal(domain, fresh) == legal(domain, one)
    assert domain.anchor(run(domain, Action.OBSERVE)) != domain.anchor(run(domain))


def test_process_trace_of_an_episode(domain):
    trace = domain.process_trace(run(domain, Action.DRAFT, Action.CHECK, Action.SUBMIT))
    assert [step.action for step in trace.steps] == ["draft", "check", "submit"]
    assert [step.cost for step in trace.steps] == [1.0, 0.1, 0.1]
    assert (trace.score, trace.missing_share, trace.chose_submit) == (0.5, 0.5, True)
    unfinished = domain.process_trace(run(domain, Action.DRAFT))
    assert (unfinished.score, unfinished.missing_share) == (0.0, 1.0)
    assert not unfinished.chose_submit


def test_observe_and_submit_unless_a_domain_has_its_own(domain):
    read = run(domain, Action.OBSERVE)
    assert read.observed and read.transcript[0]["observation"] == "do"
    assert (read.trace[0].arguments, read.trace[0].new_facts) == ("toy/0/0", 1)
    entry = run(domain, Action.DRAFT, Action.SUBMIT).transcript[-1]
    assert entry == {"action": "submit", "observation": "bad"}


def test_every_step_after_a_draft_has_its_claims():
    class Claiming(ToyDomain):
        def _claims(self, workspace):
            return {"claims": 2, "evidence": 1} if workspace.draft else {}

    trace = run(Claiming(), Action.OBSERVE, Action.DRAFT, Action.CHECK).trace
    assert [(s.claims, s.evidence) for s in trace] == [(0, 0), (2, 1), (2, 1)]


def test_the_transcript_holds_the_executors_words(domain):
    entry = run(domain, Action.DRAFT).transcript[0]
    assert entry["action"] == "draft" and entry["completion"] == "bad"
    assert entry["status"] == "ok" and entry["observation"] == "drafted"


def test_a_fresh_workspace(domain):
    workspace = domain.begin(domain.generate(0, 1)[0], 2)
    assert workspace.sample_index == 2 and workspace.last_action == NO_ACTION
    assert domain.preflight() == {}

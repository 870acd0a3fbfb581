"""What each action does, what the masks allow, and what the verifier pays for."""

from dataclasses import replace

import numpy as np
import pytest

from jerp.bridge.executor import Completion
from jerp.bridge.sandbox import Sandbox
from jerp.domains.controlled.coding import CodingDomain
from jerp.errors import SandboxError
from jerp.harness.actions import ACTIONS, Action
from jerp.harness.state import FEATURES
from jerp.records import Task

TASK = Task(
    key="coding/test/0000",
    domain="coding",
    difficulty=0,
    prompt="def shift(n):",
    payload={
        "name": "shift",
        "arity": 1,
        "statement": "Return n plus 3.",
        "parameters": {"k": 3},
        "public": [["shift(1)", "4"], ["shift(5)", "8"], ["shift(-3)", "0"]],
        "hidden": [
            ["shift(2)", "5"],
            ["shift(4)", "7"],
            ["shift(6)", "9"],
            ["shift(0)", "3"],
        ],
    },
)
RIGHT, WRONG, BROKEN = " n + 3", " n * 4", " n +"


@pytest.fixture(scope="module")
def domain():
    return CodingDomain(Sandbox())


def run(domain, *actions, task=TASK):
    """After actions by name; `"draft: TEXT"` also says what the executor answers."""
    workspace = domain.begin(task, 0)
    for text in actions:
        name, _, answer = text.partition(":")
        action = ACTIONS.index(name)
        assert domain.legal(workspace)[action], text
        asks = domain.request(workspace, action) is not None
        status = "ok" if answer.strip() else "empty"
        completion = Completion(answer, status) if asks else None
        workspace = domain.advance(workspace, action, completion)
    return workspace


def legal(domain, workspace):
    return {ACTIONS[i] for i in np.flatnonzero(domain.legal(workspace))}


def prompt(domain, workspace, action):
    return "\n".join(m.content for m in domain.request(workspace, action).messages)


def feature(domain, workspace, name):
    return domain.features(workspace)[FEATURES.index(name)]


def test_masks_along_an_episode(domain):
    steps = [
        ((), {"observe", "draft"}),
        (("observe",), {"retrieve", "draft"}),
        (("retrieve",), {"draft"}),
        ((f"draft:{WRONG}",), {"call-tool", "check", "submit"}),
        (("call-tool",), {"check", "revise", "submit"}),
        (("check",), {"revise", "submit"}),
        ((f"revise:{WRONG}",), {"call-tool", "check", "submit"}),
        (("call-tool",), {"check", "revise", "submit"}),
        ((f"revise:{WRONG}",), {"call-tool", "check", "submit"}),
        (("call-tool",), {"check", "submit"}),
    ]
    actions = []
    for taken, allowed in steps:
        actions += taken
        assert legal(domain, run(domain, *actions)) == allowed, actions


def test_nothing_is_read_any_more_once_there_is_a_draft(domain):
    allowed = legal(domain, run(domain, f"draft:{WRONG}"))
    assert not allowed & {"observe", "retrieve", "draft"}


def test_what_is_in_hand_is_in_the_prompt(domain):
    bare = prompt(domain, run(domain), Action.DRAFT)
    assert "def shift(n):" in bare and "Return n plus 3." not in bare
    read = prompt(domain, run(domain, "observe"), Action.DRAFT)
    assert "Return n plus 3." in read and "def example" not in read
    noted = run(domain, "observe", "retrieve")
    assert noted.passages[0] in prompt(domain, noted, Action.DRAFT)
    for text in (bare, read):
        assert text.endswith("def shift(n):\n    return")


def test_only_drafts_and_revisions_ask(domain):
    workspace = run(domain, "observe", f"draft:{WRONG}", "call-tool")
    asking = {a for a in Action if domain.request(workspace, a) is not None}
    assert asking == {Action.DRAFT, Action.REVISE}


def test_requests_do_not_depend_on_how_the_same_state_was_reached(domain):
    tool = run(domain, "observe", f"draft:{BROKEN}", "call-tool")
    check = run(domain, "observe", f"draft:{BROKEN}", "check")
    both = run(domain, "observe", f"draft:{BROKEN}", "check", "call-tool")
    requests = {domain.request(w, Action.REVISE) for w in (tool, check, both)}
    assert len(requests) == 1
    tested = run(domain, "observe", f"draft:{WRONG}", "call-tool")
    checked = run(domain, "observe", f"draft:{WRONG}", "check", "call-tool", task=TASK)
    again = run(domain, "observe", f"draft:{WRONG}", "call-tool", "check")
    assert (
        len({domain.request(w, Action.REVISE) for w in (tested, checked, again)}) == 1
    )


def test_a_revision_sees_the_test_that_failed_and_not_the_draft(domain):
    workspace = run(domain, "observe", f"draft:{WRONG}", "call-tool")
    assert workspace.feedback.text == "shift(5) gives 20, not 8"
    asked = prompt(domain, workspace, Action.REVISE)
    assert "# shift(5) == 8\ndef shift(n):" in asked
    assert "n * 4" not in asked and "shift(1)" not in asked


def test_the_second_revision_sees_one_test_more(domain):
    actions = ("observe", f"draft:{WRONG}", "call-tool", f"revise:{BROKEN}", "check")
    asked = prompt(domain, run(domain, *actions), Action.REVISE)
    assert "# shift(1) == 4\n# shift(5) == 8\ndef shift(n):" in asked


def test_a_draft_without_the_statement_cannot_be_revised(domain):
    assert legal(domain, run(domain, f"draft:{WRONG}", "call-tool")) == {
        "check",
        "submit",
    }


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (" n +", "SyntaxError"),
        (" n / 0", "shift(1) raises ZeroDivisionError, not 4"),
        (" open(n)", "uses a forbidden name"),
        (" n" + " + n" * 60, "longer than 160 characters"),
        (" (i for i in [n])", "shift(1) raises TypeError, not 4"),
        ("", "shift(1) gives None, not 4"),
    ],
)
def test_feedback_in_canonical_form(domain, text, told):
    workspace = run(domain, f"draft:{text}", "call-tool")
    assert workspace.feedback.text == told and workspace.feedback.failed


def test_a_right_draft_leaves_nothing_to_revise(domain):
    workspace = run(domain, "observe", f"draft:{RIGHT}", "call-tool", "check")
    assert not workspace.feedback.failed and workspace.coverage == 1
    assert legal(domain, workspace) == {"submit"}
    assert feature(domain, workspace, "support") == 1


def test_tests_and_checks_are_in_the_features_until_the_draft_changes(domain):
    workspace = run(domain, "observe", f"draft:{WRONG}", "call-tool", "check")
    assert feature(domain, workspace, "support") == pytest.approx(1 / 3)
    assert feature(domain, workspace, "coverage") == pytest.approx(0.8)
    assert feature(domain, workspace, "missing_share") == pytest.approx(0.2)
    revised = domain.advance(workspace, Action.REVISE, Completion(RIGHT))
    assert feature(domain, revised, "support") == -1
    assert feature(domain, revised, "coverage") == 0
    assert feature(domain, revised, "findings") > 0


def test_the_trace_says_what_each_step_did(domain):
    actions = ("observe", "retrieve", f"draft:{WRONG}", "call-tool", "check")
    workspace = run(domain, *actions, f"revise:{RIGHT}", "call-tool", "submit")
    assert [s.action for s in workspace.trace] == [
        "observe", "retrieve", "draft", "call-tool", "check", "revise", "call-tool",
        "submit",
    ]  # fmt: skip
    test, check, revision, retest, submit = workspace.trace[3:]
    assert (test.tests_passed, test.tests_failed) == (1, 2)
    assert check.missing == ("public-tests",) and check.coverage == 0.8
    assert revision.revises and not test.revises
    assert (retest.tests_passed, retest.tests_failed) == (3, 0)
    assert submit.code_hash == retest.code_hash != test.code_hash
    assert [s.cost for s in workspace.trace] == [0.1, 0.1, 1, 0.1, 0.1, 1, 0.1, 0.1]


@pytest.mark.parametrize(
    ("text", "score"),
    [
        (RIGHT, 1.0),
        (WRONG, 0.0),
        (BROKEN, 0.0),
        ("", 0.0),
        (" n + 3 if n < 5 else 0", (3 - 1) / (4 - 1)),
        (" 5", 0.0),
        (" n + 3 + eval('0')", (3 + 3 * 0.25) / 4),
    ],
)
def test_score(domain, text, score):
    workspace = run(domain, f"draft:{text}", "submit")
    assert workspace.verdict.score == pytest.approx(score)
    assert workspace.verdict.success == (score > 0.9)
    assert workspace.terminated and not workspace.truncated


def test_correctness_is_at_least_half_of_the_weight(domain):
    criteria = run(domain, f"draft:{RIGHT}", "submit").verdict.criteria
    hidden = [c for c in criteria if c.name == "hidden-tests"]
    assert not hidden[0].public and len(criteria) > 3
    assert hidden[0].weight >= sum(c.weight for c in criteria) / 2


def test_an_unusable_completion_is_an_error_observation_and_the_episode_goes_on(domain):
    workspace = run(domain, "observe", "draft:")
    assert workspace.trace[-1].error and workspace.errors == 1
    assert workspace.transcript[-1]["observation"] == "executor: empty"
    assert "submit" in legal(domain, workspace)


def test_workspaces_are_never_changed(domain):
    before = run(domain, "observe")
    copy = replace(before)
    domain.advance(before, Action.DRAFT, Completion(RIGHT))
    assert before == copy


def test_a_sandbox_that_refuses_says_so_before_the_run():
    domain = CodingDomain(Sandbox(isolation="limits"))
    with pytest.raises(SandboxError, match="untrusted code is not run here"):
        domain.preflight()
    assert "network" in CodingDomain(Sandbox()).preflight()


class Broken:
    """A verifier that breaks."""

    @property
    def protections(self):
        return {}

    def run_tests(self, code, tests):
        raise SandboxError("the sandbox went away")


def test_a_verifier_that_raises_gives_no_verdict():
    domain = CodingDomain(Broken())
    with pytest.raises(SandboxError, match="went away"):
        run(domain, f"draft:{RIGHT}", "submit")

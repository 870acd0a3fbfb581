"""The seven actions on a benchmark of tool calls, made up for these tests."""

import numpy as np
import pytest

from jerp.bridge.executor import Completion
from jerp.bridge.scripted import ScriptedExecutor
from jerp.bridge.session import Session
from jerp.bridge.tools import ToolCall
from jerp.domains.tool_use import ToolUseDomain
from jerp.errors import UnknownNameError
from jerp.harness.actions import ACTIONS, Action
from jerp.typing import Outcome
from tests.domains.counting import Counting

TWO = '[{"tool": "add", "arguments": {"number": 2}}]'
ONE = '{"tool": "add", "arguments": {"number": 1}}'
TWICE = f"[{ONE}, {ONE}]"
WRONG = '[{"tool": "ad", "arguments": {"number": "two"}}]'


class CountingDomain(ToolUseDomain):
    name = "counting"
    max_steps = 12


@pytest.fixture
def domain():
    made = CountingDomain(Counting(), "all")
    yield made
    made.close()


def run(domain, *actions, task=3):
    """After actions by name; `"draft: TEXT"` also says what the executor answers."""
    workspace = domain.begin(Counting().tasks("all")[task], 0)
    for text in actions:
        workspace = act(domain, workspace, text)
    return workspace


def act(domain, workspace, text):
    name, _, answer = text.partition(":")
    action = ACTIONS.index(name)
    assert domain.legal(workspace)[action], text
    asks = domain.request(workspace, action) is not None
    completion = Completion(answer, "ok" if answer else "empty") if asks else None
    return domain.advance(workspace, action, completion)


def legal(domain, workspace):
    return {ACTIONS[i] for i in np.flatnonzero(domain.legal(workspace))}


def asked(domain, workspace, action=Action.DRAFT):
    return domain.request(workspace, action).messages


def test_tools_are_named_at_first_and_described_once_brought(domain):
    bare, seen = run(domain), run(domain, "observe")
    assert "Tools: add" in asked(domain, bare)[0].content
    assert "Adds to the count." not in asked(domain, bare)[0].content
    assert "add: Adds to the count." in asked(domain, seen)[0].content
    assert asked(domain, run(domain, "retrieve")) == asked(domain, seen)
    assert legal(domain, bare) == {"observe", "retrieve", "draft"}
    assert legal(domain, seen) == {"draft"}
    assert asked(domain, bare)[1].content == "Count to 4."


def test_calls_are_carried_out_and_words_submitted(domain):
    drafted = run(domain, "observe", f"draft:{TWO}")
    assert legal(domain, drafted) == {"call-tool", "check"}
    called = act(domain, drafted, "call-tool")
    assert called.draft is None and legal(domain, called) == {"draft"}
    assert [m.content for m in asked(domain, called)[2:]] == [TWO, "2"]
    spoken = act(domain, called, "draft:well")
    assert legal(domain, spoken) == {"submit", "check"}
    assert not act(domain, spoken, "submit").terminated


def test_an_episode_ends_with_the_official_judgement(domain):
    steps = ["observe", f"draft:{TWO}", "call-tool", f"draft:{TWICE}", "call-tool"]
    won = run(domain, *steps, "draft:done", "submit")
    assert won.terminated and won.verdict.success and not legal(domain, won)
    lost = run(domain, f"draft:{TWO}", "call-tool", "draft:done", "submit")
    assert lost.terminated and not lost.verdict.success
    assert domain.process_trace(won).chose_submit


def test_a_check_finds_what_schemas_forbid_and_a_revision_sees_it(domain):
    checked = run(domain, f"draft:{WRONG}", "check")
    assert checked.feedback.text == "there is no tool 'ad'"
    assert legal(domain, checked) == {"observe", "retrieve", "call-tool", "revise"}
    *_, draft, told = asked(domain, checked, Action.REVISE)
    assert draft.content == WRONG and "there is no tool 'ad'" in told.content
    revised = act(domain, checked, f"revise:{TWO}")
    assert revised.draft == TWO and revised.revisions == 1 and not revised.checked
    assert not act(domain, revised, "check").feedback.failed


def test_what_is_refused_is_an_observation(domain):
    called = run(domain, f"draft:{WRONG}", "call-tool")
    assert called.trace[-1].error and called.trace[-1].tool_valid is False
    assert asked(domain, called)[-1].content == "no such tool or argument"
    again = act(domain, called, f"draft:{TWO}")
    assert again.trace[-1].revises


def test_revisions_count_anew_for_the_next_draft(domain):
    steps = [f"draft:{WRONG}", "check", f"revise:{WRONG}", "check", f"revise:{WRONG}"]
    spent = run(domain, *steps, "check")
    assert "revise" not in legal(domain, spent)
    after = act(domain, spent, "call-tool")
    assert after.revisions == 0 and after.feedback is None


def test_a_state_taken_up_again_is_the_same(domain):
    drafted = run(domain, f"draft:{TWO}")
    first = act(domain, drafted, "call-tool")
    act(domain, act(domain, first, f"draft:{TWO}"), "call-tool")
    again = act(domain, drafted, "call-tool")
    assert again.extra == first.extra
    assert domain.anchor(again) == domain.anchor(first) != domain.anchor(drafted)


def test_the_budget_ends_an_episode_without_a_judgement(domain):
    workspace = run(domain)
    while not workspace.truncated:
        workspace = act(domain, workspace, f"draft:{TWO}")
        workspace = act(domain, workspace, "call-tool")
    assert workspace.step == domain.max_steps and workspace.verdict is None


def test_native_calls_go_in_the_protocol_s_own_form():
    domain = CountingDomain(Counting(), "all", calling="native", policy="Be kind.")
    workspace = run(domain, "observe")
    request = domain.request(workspace, Action.DRAFT)
    assert [tool.name for tool in request.tools] == ["add"]
    assert request.messages[0].content.endswith("Be kind.")
    calls = (ToolCall("add", '{"number": 2}', "x"),)
    workspace = domain.advance(
        workspace, Action.DRAFT, Completion("Hm.", tool_calls=calls)
    )
    workspace = act(domain, workspace, "call-tool")
    said, reply = domain.request(workspace, Action.DRAFT).messages[2:]
    assert said.content == "Hm." and said.tool_calls[0].arguments == '{"number": 2}'
    assert (reply.role, reply.content) == ("tool", "2")
    assert reply.tool_call_id == said.tool_calls[0].call_id
    domain.close()


def test_native_calls_that_are_to_be_revised_were_not_made():
    domain = CountingDomain(Counting(), "all", calling="native")
    workspace = run(domain, f"draft:{WRONG}", "check")
    *_, said, reply = domain.request(workspace, Action.REVISE).messages
    assert said.tool_calls[0].name == "ad" and reply.role == "tool"
    assert reply.content.startswith("Not done") and not workspace.extra.turns
    assert domain.request(run(domain), Action.DRAFT).tools == ()
    domain.close()


def test_whole_episodes_through_a_session(domain):
    tasks = domain.generate(0, domain.num_tasks)
    executor = ScriptedExecutor(
        lambda r: (
            TWO if r.messages[-1].role == "user" and len(r.messages) < 5 else "done"
        )
    )
    order = (Action.OBSERVE, Action.DRAFT, Action.CALL_TOOL, Action.SUBMIT)
    with Session(domain, executor) as session:
        handle, _, legal = session.open(tasks, np.zeros(len(tasks), np.int32))
        while legal.any():
            action = [next((a for a in order if row[a]), 0) for row in legal]
            step = session.step(handle, action)
            legal = step.legal
    won = {
        t.payload["to"]
        for t, o in zip(tasks, step.outcome, strict=True)
        if o == Outcome.SUCCESS
    }
    assert won == {4} and step.terminated.all()


def test_a_way_to_call_that_there_is_not_is_named():
    with pytest.raises(UnknownNameError, match="calling"):
        CountingDomain(Counting(), "all", calling="loud")

"""What counts as calls of tools, and what never is executed."""

import pytest

from jerp.bridge.executor import Completion
from jerp.bridge.tools import ToolCall
from jerp.domains.benchmark import Call, Say
from jerp.domains.tool_use.drafts import read_draft

ADD = Call("add", {"x": 1})


@pytest.mark.parametrize(
    "text",
    [
        '[{"tool": "add", "arguments": {"x": 1}}]',
        '{"tool": "add", "arguments": {"x": 1}}',
        '{"name": "add", "parameters": {"x": 1}}',
        'So:\n```json\n[{"tool": "add", "arguments": {"x": 1}}]\n```\n',
        '<think>[{"tool": "no"}]</think>\n[{"tool": "add", "arguments": {"x": 1}}]',
    ],
)
def test_calls_in_text(text):
    draft = read_draft(Completion(text))
    assert draft.calls == (ADD,) and not draft.fault
    assert draft.moves == (ADD,)


def test_a_call_without_arguments_has_none():
    assert read_draft(Completion('[{"tool": "ls"}]')).calls == (Call("ls", {}),)


@pytest.mark.parametrize(
    "text",
    [
        '[{"tool": "add", "arguments": {"x": 1}',
        '[{"tool": "add", "arguments": {"x": 1}}] and then some',
        '[{"tool": "add", "arguments": [1]}]',
        '[{"tool": 3}]',
        "[]",
        "{}",
        "[" * 100_000,
    ],
)
def test_what_is_no_list_of_calls_is_a_fault_and_no_call(text):
    draft = read_draft(Completion(text))
    assert draft.fault and not draft.calls
    assert draft.moves == (Say(text),)


def test_words_are_words():
    draft = read_draft(Completion(" All done. "))
    assert (draft.words, draft.calls, draft.fault) == ("All done.", (), "")
    assert draft.moves == (Say("All done."),)


@pytest.mark.parametrize("status", ["truncated", "refused", "empty", "malformed"])
def test_calls_of_an_answer_that_is_not_whole_are_never_made(status):
    text = '[{"tool": "add", "arguments": {"x": 1}}]'
    calls = (ToolCall("add", '{"x": 1}', "1"),)
    for completion in (
        Completion(text, status),
        Completion("", status, tool_calls=calls),
    ):
        draft = read_draft(completion)
        assert draft.fault == f"the answer was {status}" and not draft.calls


def test_calls_in_the_protocol_s_own_form():
    calls = (ToolCall("add", '{"x": 1}', "1"), ToolCall("ls", "{}", "2"))
    draft = read_draft(Completion("First this.", tool_calls=calls))
    assert draft.calls == (ADD, Call("ls", {})) and draft.words == "First this."


def test_one_faulty_call_stops_all():
    calls = (ToolCall("add", '{"x": 1}'), ToolCall("ls", "{", fault="it was cut off"))
    draft = read_draft(Completion("", tool_calls=calls))
    assert draft.fault == "it was cut off" and not draft.calls

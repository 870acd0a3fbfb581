"""Calls of tools: what may be executed, what never, and how they are stored."""

import dataclasses
import json

import pytest

from jerp.bridge.executor import (
    Completion,
    Message,
    Request,
)
from jerp.bridge.request_records import (
    completion_from_record,
    completion_record,
    request_from_record,
    request_key,
    request_record,
    request_seed,
)
from jerp.bridge.tools import Tool, ToolCall, read_tool_call
from jerp.errors import ConfigError

WEATHER = Tool("weather", "Of a city.", '{"type":"object"}')
CALL = ToolCall("weather", '{"city":"Oslo"}', "c1")
REQUEST = Request(
    messages=(
        Message("user", "Oslo?"),
        Message("assistant", "", (CALL,)),
        Message("tool", "rain", tool_call_id="c1"),
    ),
    tools=(WEATHER,),
)


def test_a_whole_call_has_parsed_arguments():
    call = read_tool_call("weather", '{"city":"Oslo"}', [WEATHER], call_id="c1")
    assert call == CALL
    assert call.parsed == {"city": "Oslo"}


@pytest.mark.parametrize(
    ("name", "arguments", "fault"),
    [
        ("weather", '{"city":"Os', "expected arguments that are a JSON object, got"),
        ("weather", "[1]", "JSON object"),
        ("weather", "", "JSON object"),
        ("weather", "[" * 100_000, "JSON object"),
        ("wether", "{}", r"unknown tool 'wether' \(known: weather\)"),
    ],
)
def test_a_malformed_call_says_why_and_has_no_arguments(name, arguments, fault):
    call = read_tool_call(name, arguments, [WEATHER])
    assert call.parsed is None
    with pytest.raises(AssertionError, match=fault):
        raise AssertionError(call.fault)
    assert call.arguments == arguments


def test_a_call_that_was_cut_off_is_not_executed_even_if_it_parses():
    call = read_tool_call("weather", "{}", [WEATHER], is_cut_off=True)
    assert call.parsed is None and "cut off" in call.fault


def test_requests_and_completions_with_tools_round_trip():
    assert request_from_record(json.loads(json.dumps(request_record(REQUEST)))) == (
        REQUEST
    )
    bad = read_tool_call("weather", "{", [WEATHER])
    completion = Completion("", "malformed", tool_calls=(CALL, bad), dollars=0.25)
    record = json.loads(json.dumps(completion_record(completion)))
    assert completion_from_record(record) == completion


@pytest.mark.parametrize(
    "change",
    [
        {"tools": ()},
        {"tools": (dataclasses.replace(WEATHER, description="Of a town."),)},
        {"seed": 5},
        {"messages": (*REQUEST.messages[:2], Message("tool", "rain"))},
        {"messages": (REQUEST.messages[0], Message("assistant", ""))},
    ],
)
def test_tools_calls_and_the_seed_are_part_of_the_identity(change):
    other = dataclasses.replace(REQUEST, **change)
    assert request_key("m", other) != request_key("m", REQUEST)
    assert request_seed(other) != request_seed(REQUEST)


def test_a_seed_of_its_own_is_the_seed():
    assert request_seed(dataclasses.replace(REQUEST, seed=5)) == 5
    with pytest.raises(ConfigError, match="seed: expected in"):
        dataclasses.replace(REQUEST, seed=-1)


def test_records_without_tools_are_what_they_were():
    record = request_record(Request((Message("user", "a"),)))
    assert set(record) == {"messages", "sampling", "sample_index"}
    assert record["messages"] == [["user", "a"]]
    assert set(completion_record(Completion("a"))) == {
        *("text", "status", "tokens", "log_probs"),
        *("tokens_in", "tokens_out", "seconds", "error"),
    }


@pytest.mark.parametrize("change", [{"name": ""}, {"parameters": "[]"}])
def test_a_tool_that_is_none_is_refused(change):
    with pytest.raises(ConfigError, match=next(iter(change))):
        dataclasses.replace(WEATHER, **change)

"""Bodies of requests, and what becomes of every kind of reply."""

import json

import pytest

from jerp.bridge.chat_completions import (
    WireOptions,
    most_tokens_in,
    read_reply,
    request_body,
)
from jerp.bridge.executor import Message, Request, Sampling
from jerp.bridge.request_records import request_seed
from jerp.bridge.tools import Tool, ToolCall
from jerp.errors import ConfigError

CALL = ToolCall("f", '{"x":1}', "c1")
REQUEST = Request((Message("user", "hé"),), tools=(Tool("f", "It."),))


def test_a_body_spelt_out_by_hand():
    request = Request(
        (
            Message("user", "q"),
            Message("assistant", "", (CALL,)),
            Message("tool", "r", tool_call_id="c1"),
        ),
        Sampling(temperature=0.5, top_k=4, top_p=0.9, max_tokens=8, stop=("\n",)),
        tools=(Tool("f", "It."),),
    )
    options = WireOptions(log_probs=True, extra_body={"min_p": 0.1})
    function = {"name": "f", "arguments": '{"x":1}'}
    schema = {"type": "object", "properties": {}}
    described = {"name": "f", "description": "It.", "parameters": schema}
    assert request_body(request, "m", options) == {
        "model": "m",
        "messages": [
            {"role": "user", "content": "q"},
            {
                "role": "assistant",
                "content": "",
                "tool_calls": [{"id": "c1", "type": "function", "function": function}],
            },
            {"role": "tool", "content": "r", "tool_call_id": "c1"},
        ],
        "temperature": 0.5,
        "top_k": 4,
        "top_p": 0.9,
        "max_tokens": 8,
        "stop": ["\n"],
        "seed": request_seed(request),
        "logprobs": True,
        "tools": [{"type": "function", "function": described}],
        "min_p": 0.1,
    }


def test_only_what_is_needed_is_sent():
    request = Request((Message("user", "q"),))
    options = WireOptions(send_seed=False, max_tokens_name="max_completion_tokens")
    assert set(request_body(request, "m", options)) == {
        *("model", "messages", "temperature", "max_completion_tokens")
    }


@pytest.mark.parametrize("prefill", ["continue", "plain"])
def test_an_opened_answer_is_marked_for_those_who_need_to_be_told(prefill):
    request = Request((Message("user", "q"), Message("assistant", "A =")))
    body = request_body(request, "m", WireOptions(prefill=prefill))
    told = body.get("continue_final_message"), body.get("add_generation_prompt")
    assert told == ((True, False) if prefill == "continue" else (None, None))


def test_extra_fields_do_not_replace_those_of_a_request():
    with pytest.raises(ConfigError, match=r"does not have, got \['seed'\]"):
        WireOptions(extra_body={"seed": 1, "min_p": 0.1})


def test_no_byte_makes_more_than_one_token():
    assert most_tokens_in(REQUEST) >= len("hé".encode()) + len(REQUEST.tools[0].name)


def reply(choice=None, *, kind="application/json; charset=utf-8", **body):
    whole = {"model": "m", "choices": [choice] if choice else [], **body}
    return read_reply(json.dumps(whole).encode(), kind, REQUEST)


def choice(content="text", reason="stop", **message):
    return {"message": {"content": content, **message}, "finish_reason": reason}


def call(arguments='{"x":1}', name="f"):
    function = {"name": name, "arguments": arguments}
    return [{"id": "c1", "type": "function", "function": function}]


@pytest.mark.parametrize(
    ("given", "status"),
    [
        (choice(), "ok"),
        (choice(reason=None), "ok"),
        (
            choice([{"type": "text", "text": "te"}, {"type": "text", "text": "xt"}]),
            "ok",
        ),
        (choice(None, "tool_calls", tool_calls=call()), "ok"),
        (choice("", reason="stop"), "empty"),
        (choice(None), "empty"),
        (choice(" \n"), "empty"),
        (choice(reason="length"), "truncated"),
        (choice(None, reason="length"), "truncated"),
        (choice(None, "length", tool_calls=call()), "truncated"),
        (choice(reason="content_filter"), "refused"),
        (choice(None, "content_filter", tool_calls=call()), "refused"),
        (choice(None, refusal="No."), "refused"),
        (choice(None, "tool_calls", tool_calls=call("{")), "malformed"),
        (choice(None, "tool_calls", tool_calls=call(name="g")), "malformed"),
        (choice(None, "tool_calls"), "malformed"),
    ],
)
def test_what_a_model_said(given, status):
    found = reply(given)
    assert found.failure is None
    assert found.completion.status == status
    calls = found.completion.tool_calls
    assert all(c.parsed == {"x": 1} for c in calls if status == "ok")
    assert all(c.parsed is None for c in calls if status != "ok")
    is_filtered = given["finish_reason"] == "content_filter"
    has_reason = calls or (status in ("malformed", "refused") and not is_filtered)
    assert bool(found.completion.error) == bool(has_reason and status != "ok")


def test_a_whole_answer():
    log_probs = {"content": [{"token": "t", "logprob": -0.1}, {"logprob": -2}]}
    usage = {"prompt_tokens": 5, "completion_tokens": 2}
    found = reply(
        choice(tool_calls=call()) | {"logprobs": log_probs},
        usage=usage,
        system_fingerprint="f1",
    )
    assert found.tokens == (5, 2)
    assert (found.model, found.system_fingerprint) == ("m", "f1")
    completion = found.completion
    assert (completion.text, completion.log_probs) == ("text", (-0.1, -2.0))
    assert (completion.tokens_in, completion.tokens_out) == (5, 2)
    assert completion.tool_calls == (CALL,)


@pytest.mark.parametrize(
    ("content", "kind", "said"),
    [
        (b"<html>Bad gateway</html>", "text/html", "content type 'text/html'"),
        (b'{"choices":[]}', "text/plain", "content type"),
        (b"<html>", "application/json", "not whole JSON"),
        (b'{"choices":[{"mess', "application/json", "not whole JSON"),
        (b"\xff\xfe", "application/json", "not whole JSON"),
        (b"[" * 100_000, "application/json", "not whole JSON"),
        (b"[1]", "application/json", "no chat completion"),
        (b'"text"', "application/json", "no chat completion"),
        (b"{}", "application/json", "no chat completion"),
        (b'{"choices":[{"text":"old"}]}', "application/json", "no chat completion"),
        (b'{"choices":[{"message":{"content":3}}]}', "application/json", "is a int"),
        (b'{"error":{"message":"busy"}}', "application/json", "error with status 200"),
        (b"", "", "content type ''"),
    ],
)
def test_what_no_model_said_is_a_failure_and_has_no_text(content, kind, said):
    found = read_reply(content, kind, REQUEST)
    assert found.failure is not None and found.failure.kind == "garbled"
    assert said in found.failure.message and found.failure.may_be_billed
    assert found.completion.text == ""


def test_a_reply_without_choices_is_tried_again_and_charged():
    found = reply(None, usage={"prompt_tokens": 5, "completion_tokens": 0})
    assert found.failure is not None and found.failure.kind == "empty"
    assert found.tokens == (5, 0)


@pytest.mark.parametrize("usage", [None, {}, {"prompt_tokens": "5"}, [1]])
def test_tokens_that_are_not_counted_are_not_known(usage):
    found = reply(choice(), usage=usage)
    assert found.failure is None and found.tokens is None

import asyncio

import pytest

from jerp.bridge.executor import Completion, Message, Request
from jerp.bridge.scripted import ScriptedExecutor
from jerp.errors import ConfigError, ExecutorError


def ask(executor, *texts):
    requests = [Request((Message("user", text),)) for text in texts]
    return asyncio.run(executor.complete(requests))


def test_a_mapping_answers_by_the_last_message_in_order():
    executor = ScriptedExecutor({"a": "one two", "b": " "})
    first, second = ask(executor, "b", "a")
    assert (first.text, first.status) == (" ", "empty")
    assert (second.text, second.status, second.tokens_out) == ("one two", "ok", 2)
    assert second.tokens_in == 1


def test_a_mapping_without_an_answer_names_the_prompt():
    with pytest.raises(ExecutorError, match="no answer to 'c'"):
        ask(ScriptedExecutor({"a": "x"}), "c")


def test_a_function_may_give_a_whole_completion():
    whole = Completion("x", "refused", tokens=(1, 2))
    assert ask(ScriptedExecutor(lambda request: whole), "a") == [whole]


def test_failures_strike_by_number_over_all_calls():
    plan = {1: "timeout", 2: "malformed", 4: "empty"}
    executor = ScriptedExecutor(lambda request: "fine", failures=plan)
    first = ask(executor, "a", "b", "c")
    second = ask(executor, "d", "e")
    assert [c.status for c in first + second] == [
        "ok",
        "timeout",
        "malformed",
        "ok",
        "empty",
    ]
    assert first[1].text == "" and first[1].error
    assert first[2].text.strip()
    assert executor.calls == 2
    assert executor.statuses == {"ok": 2, "timeout": 1, "malformed": 1, "empty": 1}
    assert [r.messages[0].content for r in executor.requests] == list("abcde")


def test_latency_is_waited_for_once_a_call(monkeypatch):
    waited = []

    async def sleep(seconds):
        waited.append(seconds)

    monkeypatch.setattr(asyncio, "sleep", sleep)
    ask(ScriptedExecutor({"a": "x"}, latency=0.25), "a", "a", "a")
    ask(ScriptedExecutor({"a": "x"}), "a")
    assert waited == [0.25]


def test_the_fingerprint_says_that_it_is_a_stand_in():
    assert ScriptedExecutor({}).fingerprint == "scripted:stand-in"
    assert ScriptedExecutor({}, name="mine").fingerprint == "scripted:mine"


def test_a_negative_latency_is_refused():
    with pytest.raises(ConfigError, match="latency"):
        ScriptedExecutor({}, latency=-1.0)

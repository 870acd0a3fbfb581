import asyncio
import dataclasses

import pytest

from jerp.bridge.executor import (
    Completion,
    Message,
    Request,
    Sampling,
)
from jerp.bridge.request_records import (
    request_key,
)
from jerp.bridge.scripted import ScriptedExecutor
from jerp.bridge.shards import shard_paths
from jerp.bridge.store import ResponseStore, StoredExecutor
from jerp.errors import ConfigError, ExecutorError, StoreMissError


def request(text="a", sample=0, temperature=0.7):
    return Request((Message("user", text),), Sampling(temperature=temperature), sample)


def ask(executor, *requests):
    return asyncio.run(executor.complete(requests))


def model(**kwargs):
    def script(request):
        text = f"{request.messages[0].content}{request.sample_index}"
        return Completion(
            text,
            tokens=(1, 2),
            log_probs=(-0.123456789, -1.0),
            tokens_in=3,
            tokens_out=2,
            seconds=0.25,
        )

    return ScriptedExecutor(script, **kwargs)


def test_the_model_is_asked_once_and_a_replay_needs_none(tmp_path):
    inner = model()
    with ResponseStore(tmp_path) as store:
        live = StoredExecutor(inner, store)
        first = ask(live, request("a"), request("b"))
        assert ask(live, request("b"), request("a")) == first[::-1]
        assert inner.calls == 1
    replay = StoredExecutor(None, ResponseStore(tmp_path, mode="replay"))
    assert ask(replay, request("a"), request("b")) == first
    assert replay.fingerprint == inner.fingerprint


def test_a_live_answer_is_rounded_as_its_replay_will_be(tmp_path):
    executor = StoredExecutor(model(), ResponseStore(tmp_path))
    assert ask(executor, request())[0].log_probs == (-0.12346, -1.0)


def test_only_what_is_missing_is_asked_and_the_order_is_kept():
    inner = model()
    executor = StoredExecutor(inner, ResponseStore(None))
    ask(executor, request("b"))
    texts = [c.text for c in ask(executor, *(request(t) for t in "abcab"))]
    assert texts == ["a0", "b0", "c0", "a0", "b0"]
    assert [r.messages[0].content for r in inner.requests] == ["b", "a", "c"]


def test_the_sample_index_and_the_model_are_part_of_the_question(tmp_path):
    store = ResponseStore(tmp_path)
    one, two = model(name="one"), model(name="two")
    ask(StoredExecutor(one, store), request(sample=0), request(sample=1))
    ask(StoredExecutor(two, store), request(sample=0))
    assert len(one.requests) == 2 and len(two.requests) == 1
    assert len(store.entries()) == 3


@pytest.mark.parametrize("status", ["timeout", "error"])
def test_failures_are_never_stored(status, tmp_path):
    inner = model(failures={0: status})
    with ResponseStore(tmp_path) as store:
        executor = StoredExecutor(inner, store)
        first = ask(executor, request("a"), request("b"))
        assert [c.status for c in first] == [status, "ok"]
        assert first[0].error
        assert len(store.entries()) == 1
        assert ask(executor, request("a"))[0].status == "ok"


@pytest.mark.parametrize("status", ["empty", "refused", "malformed", "truncated"])
def test_what_the_model_really_said_is_stored(status):
    store = ResponseStore(None)
    first = ask(StoredExecutor(model(failures={0: status}), store), request())
    again = ask(StoredExecutor(model(), store), request())
    assert again == first and first[0].status == status


def test_a_batch_lost_to_the_network_is_not_stored():
    class Down(ScriptedExecutor):
        async def complete(self, requests):
            raise ConnectionError("refused")

    store = ResponseStore(None)
    completions = ask(StoredExecutor(Down({}), store), request("a"), request("b"))
    assert [c.status for c in completions] == ["error", "error"]
    assert not store.entries()


def test_entries_hold_the_request_and_nothing_else(tmp_path):
    store = ResponseStore(tmp_path)
    ask(StoredExecutor(model(), store), request("é\u2028"))
    store.close()
    (entry,) = ResponseStore(tmp_path).entries()
    assert entry.key == request_key("scripted:stand-in", request("é\u2028"))
    assert set(entry.record) == {"request", "completion"}
    assert entry.record["request"] == {
        "messages": [["user", "é\u2028"]],
        "sampling": {
            "temperature": 0.7,
            "top_k": 0,
            "top_p": 1.0,
            "max_tokens": 64,
            "stop": [],
        },
        "sample_index": 0,
    }


def test_answers_are_on_disk_when_they_are_given(tmp_path):
    ask(StoredExecutor(model(), ResponseStore(tmp_path)), request())
    assert len(ResponseStore(tmp_path, mode="replay").entries()) == 1


@pytest.mark.parametrize("inner", [None, "model"])
def test_a_miss_in_a_replay_names_the_prompt_and_the_remedy(tmp_path, inner):
    ask(StoredExecutor(model(), ResponseStore(tmp_path)), request())
    store = ResponseStore(tmp_path, mode="replay")
    executor = StoredExecutor(model() if inner else None, store, remedy="type this")
    new = request("x" * 200 + " the end", sample=2)
    with pytest.raises(StoreMissError, match=r"xxx the end'.*type this") as caught:
        ask(executor, request(), new, request("other"))
    message = str(caught.value)
    assert "sample 2" in message and "1 more" in message and len(message) < 400
    assert caught.value.args[1] == new


def test_without_a_model_a_miss_is_an_error_in_the_default_mode_too(tmp_path):
    ask(StoredExecutor(model(), ResponseStore(tmp_path)), request())
    executor = StoredExecutor(None, ResponseStore(tmp_path))
    with pytest.raises(StoreMissError, match="jerp run harness --executor smollm2"):
        ask(executor, request("new"))


@pytest.mark.parametrize("mode", ["record", "off"])
def test_modes_that_must_ask_need_a_model(tmp_path, mode):
    ask(StoredExecutor(model(), ResponseStore(tmp_path)), request())
    with pytest.raises(ConfigError, match=f"got None and a store in mode '{mode}'"):
        StoredExecutor(None, ResponseStore(tmp_path, mode=mode))


def test_a_replay_needs_answers_of_exactly_one_model(tmp_path):
    with pytest.raises(ConfigError, match=r"answers of \[\]"):
        StoredExecutor(None, ResponseStore(None))
    for name in ("one", "two"):
        ask(StoredExecutor(model(name=name), ResponseStore(tmp_path)), request())
    with pytest.raises(ConfigError, match="scripted:one', 'scripted:two"):
        StoredExecutor(None, ResponseStore(tmp_path, mode="replay"))


def test_off_asks_every_time_and_stores_nothing(tmp_path):
    inner = model()
    executor = StoredExecutor(inner, ResponseStore(tmp_path, mode="off"))
    for _ in range(2):
        ask(executor, request())
    assert inner.calls == 2 and not shard_paths(tmp_path)


def test_record_asks_anew_and_then_shares(tmp_path):
    ask(StoredExecutor(model(), ResponseStore(tmp_path)), request())
    inner = model()
    executor = StoredExecutor(inner, ResponseStore(tmp_path, mode="record"))
    for _ in range(2):
        ask(executor, request())
    assert inner.calls == 1


def test_an_executor_that_drops_answers_is_an_error_and_nothing_is_stored():
    class Short(ScriptedExecutor):
        async def complete(self, requests):
            return (await super().complete(requests))[1:]

    store = ResponseStore(None)
    with pytest.raises(ExecutorError, match="expected 2 completions"):
        ask(StoredExecutor(Short(lambda r: "x"), store), request("a"), request("b"))
    assert not store.entries()


def test_cancelling_stores_nothing():
    store = ResponseStore(None)
    executor = StoredExecutor(model(latency=3600), store)

    async def cancelled():
        task = asyncio.ensure_future(executor.complete([request()]))
        await asyncio.sleep(0)
        task.cancel()
        await task

    with pytest.raises(asyncio.CancelledError):
        asyncio.run(cancelled())
    assert not store.entries()


def test_diversity_tells_a_sampler_that_ignores_the_sample_index():
    store = ResponseStore(None)
    stuck = ScriptedExecutor(lambda r: r.messages[0].content)
    requests = [request(t, sample=s) for t in "ab" for s in range(3)]
    ask(StoredExecutor(stuck, store), *requests)
    assert dataclasses.astuple(store.stats.diversity) == (2, 2, pytest.approx(1 / 3))
    store = ResponseStore(None)
    ask(StoredExecutor(model(), store), *requests, request("c"))
    assert dataclasses.astuple(store.stats.diversity) == (2, 0, 1.0)


def test_diversity_leaves_greedy_requests_out():
    store = ResponseStore(None)
    requests = [request(sample=s, temperature=0.0) for s in range(3)]
    ask(StoredExecutor(ScriptedExecutor(lambda r: "same"), store), *requests)
    assert dataclasses.astuple(store.stats.diversity) == (0, 0, 1.0)


def test_diversity_is_of_what_this_run_asked(tmp_path):
    stuck = ScriptedExecutor(lambda r: "same")
    requests = [request(t, sample=s) for t in "ab" for s in range(2)]
    ask(StoredExecutor(stuck, ResponseStore(tmp_path)), *requests)
    store = ResponseStore(tmp_path, mode="replay")
    assert store.stats.diversity.prompts == 0
    ask(StoredExecutor(None, store), *requests[:2])
    assert store.stats.diversity.identical == store.stats.diversity.prompts == 1


def test_what_was_answered_before_the_end_of_a_call_is_stored():
    class Eager(ScriptedExecutor):
        async def complete_each(self, requests, on_answer):
            on_answer(1, Completion("early"))
            raise ExecutorError("a cap was reached")

    store = ResponseStore(None)
    with pytest.raises(ExecutorError, match="cap was reached"):
        ask(StoredExecutor(Eager({}), store), request("a"), request("b"))
    (entry,) = store.entries()
    assert entry.key == request_key("scripted:stand-in", request("b"))

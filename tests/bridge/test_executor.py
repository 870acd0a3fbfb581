"""Identity of requests: pinned once, because recorded stores depend on it."""

import asyncio
import dataclasses
import hashlib
import json

import numpy as np
import pytest

from jerp.bridge.executor import (
    Completion,
    Message,
    Request,
    Sampling,
    complete_checked,
)
from jerp.bridge.request_records import (
    completion_from_record,
    completion_record,
    request_from_record,
    request_key,
    request_record,
    request_seed,
)
from jerp.errors import ConfigError, ExecutorError, StorageError

REQUEST = Request(
    messages=(Message("system", "You are é."), Message("user", "Write f.\u2028Now.")),
    sampling=Sampling(
        temperature=0.7, top_k=40, top_p=0.95, max_tokens=32, stop=("\n\n",)
    ),
    sample_index=2,
)
OTHER_VALUES = {
    "temperature": 0.6,
    "top_k": 41,
    "top_p": 0.9,
    "max_tokens": 33,
    "stop": ("\n",),
}


def test_key_and_seed_are_pinned():
    assert request_key("smollm2:test", REQUEST) == (
        "a506a5d3a960e95d9e4e1e5e0673a92a21704e4cbef5ee63a6e0a74607f5d457"
    )
    assert request_seed(REQUEST) == 1693600678


def test_key_equals_a_hash_spelt_out_by_hand():
    text = (
        '{"fingerprint":"smollm2:test","request":{"messages":[["system","You are é."],'
        '["user","Write f.\u2028Now."]],"sample_index":2,"sampling":{"max_tokens":32,'
        '"stop":["\\n\\n"],"temperature":0.7,"top_k":40,"top_p":0.95}}}'
    )
    digest = hashlib.sha256(text.encode()).hexdigest()
    assert request_key("smollm2:test", REQUEST) == digest


@pytest.mark.parametrize("name", [f.name for f in dataclasses.fields(Sampling)])
def test_every_sampling_field_changes_key_and_seed(name):
    sampling = dataclasses.replace(REQUEST.sampling, **{name: OTHER_VALUES[name]})
    other = dataclasses.replace(REQUEST, sampling=sampling)
    assert request_key("m", other) != request_key("m", REQUEST)
    assert request_seed(other) != request_seed(REQUEST)


@pytest.mark.parametrize(
    "change",
    [
        {"sample_index": 3},
        {"messages": REQUEST.messages[:1]},
        {"messages": (Message("system", "You are é."), Message("assistant", "x"))},
        {"messages": (REQUEST.messages[0], Message("user", "Write f.\nNow."))},
    ],
)
def test_every_request_field_changes_key_and_seed(change):
    other = dataclasses.replace(REQUEST, **change)
    assert request_key("m", other) != request_key("m", REQUEST)
    assert request_seed(other) != request_seed(REQUEST)


def test_model_changes_the_key_but_not_the_seed():
    assert request_key("a", REQUEST) != request_key("b", REQUEST)


def test_equal_numbers_of_other_types_are_the_same_request():
    same = Request(
        REQUEST.messages,
        Sampling(np.float64(0.7), np.int32(40), 0.95, np.int64(32), ("\n\n",)),
        np.int32(2),
    )
    assert request_key("m", same) == request_key("m", REQUEST)
    zero, whole = (Request((), Sampling(temperature=t)) for t in (0, 0.0))
    assert request_key("m", zero) == request_key("m", whole)


def test_lone_surrogates_do_not_break_the_key():
    broken = dataclasses.replace(REQUEST, messages=(Message("user", "\udc80"),))
    assert len(request_key("m", broken)) == 64


def test_record_round_trips_through_json():
    record = json.loads(json.dumps(request_record(REQUEST)))
    assert request_from_record(record) == REQUEST


@pytest.mark.parametrize(
    "setting", [{"temperature": -1.0}, {"top_p": 0.0}, {"top_k": -1}, {"max_tokens": 0}]
)
def test_bad_sampling_is_refused_by_name(setting):
    with pytest.raises(ConfigError, match=next(iter(setting))):
        Sampling(**setting)


class Returns:
    """An executor that returns or raises whatever it is given."""

    fingerprint = "odd"

    def __init__(self, result):
        self.result = result

    async def complete(self, requests):
        if isinstance(self.result, BaseException):
            raise self.result
        return self.result


def checked(result, count=2):
    return asyncio.run(complete_checked(Returns(result), [REQUEST] * count))


def test_completions_that_keep_the_contract_pass():
    completions = [Completion("a"), Completion("b", "refused")]
    assert checked(completions) == completions
    assert checked(tuple(completions)) == completions


@pytest.mark.parametrize(
    ("result", "got"),
    [
        ([Completion("a")], "got 1 of them"),
        ([], "got 0 of them"),
        (None, "got a NoneType"),
        ([Completion("a"), "text"], "got 'text'"),
    ],
)
def test_anything_but_one_completion_a_request_is_an_executor_error(result, got):
    with pytest.raises(ExecutorError, match=f"'odd': expected 2 completions.*{got}"):
        checked(result)


@pytest.mark.parametrize(
    ("error", "status"),
    [
        (TimeoutError(), "timeout"),
        (TimeoutError("slow"), "timeout"),
        (ConnectionRefusedError("refused"), "error"),
    ],
)
def test_a_batch_lost_to_the_network_becomes_statuses(error, status):
    completions = checked(error)
    assert [c.status for c in completions] == [status, status]
    assert all(c.error for c in completions)


def test_other_exceptions_are_executor_errors_that_name_the_cause():
    with pytest.raises(ExecutorError, match="'odd' raised ValueError: bad"):
        checked(ValueError("bad"))


def test_our_own_errors_and_cancellation_pass_unchanged():
    with pytest.raises(StorageError, match="disk full"):
        checked(StorageError("disk full"))
    with pytest.raises(asyncio.CancelledError):
        checked(asyncio.CancelledError())


def test_a_completion_round_trips_with_rounded_log_probabilities():
    whole = Completion(
        "é\u2028",
        "truncated",
        tokens=(np.int32(3), 4),
        log_probs=(-0.123456789, -2.0),
        tokens_in=5,
        tokens_out=2,
        seconds=0.123456,
    )
    back = completion_from_record(json.loads(json.dumps(completion_record(whole))))
    assert back == dataclasses.replace(
        whole, log_probs=(-0.12346, -2.0), seconds=0.1235
    )

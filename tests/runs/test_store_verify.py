import asyncio
import dataclasses

import pytest

from jerp.bridge.executor import (
    Completion,
    Message,
    Request,
)
from jerp.bridge.request_records import (
    request_record,
)
from jerp.bridge.scripted import ScriptedExecutor
from jerp.bridge.store import ResponseStore, StoredExecutor
from jerp.errors import ConfigError, StorageError
from jerp.runs.store_verify import verify_store

COUNT = 20


def script(request):
    number = int(request.messages[-1].content.split()[-1])
    return Completion(f"text {number}", "ok", (number, 7, 8), (-0.5, -0.25, -1.0))


def changed(position, **fields):
    """Like `script`, but otherwise for prompt 3."""

    def other(request):
        completion = script(request)
        if not request.messages[-1].content.endswith(" 3"):
            return completion
        tokens = list(completion.tokens)
        if position is not None:
            tokens[position] += 1
        return dataclasses.replace(completion, **{"tokens": tuple(tokens)} | fields)

    return ScriptedExecutor(other)


@pytest.fixture
def store():
    store = ResponseStore(None)
    requests = [Request((Message("user", f"prompt {i}"),)) for i in range(COUNT)]
    executor = StoredExecutor(ScriptedExecutor(script), store)
    asyncio.run(executor.complete(requests))
    store.put("verdict", "v", {"passed": True})
    return store


def test_a_model_that_repeats_itself_agrees(store):
    progress = []
    report = verify_store(
        store,
        ScriptedExecutor(script),
        sample=8,
        batch_size=3,
        on_progress=progress.append,
    )
    assert report.agrees
    assert (report.stored, report.sampled) == (COUNT, 8)
    assert progress == [3, 6, 8]
    assert report.log_prob_gap == 0
    assert ("the same, token by token", "8") in report.rows()


def test_the_sample_is_a_function_of_the_seed(store):
    def sampled(seed):
        executor = ScriptedExecutor(script)
        verify_store(store, executor, sample=5, seed=seed)
        return [r.messages[0].content for r in executor.requests]

    assert sampled(0) == sampled(0) != sampled(1)
    assert len(set(sampled(0))) == 5


def test_no_more_is_sampled_than_there_is(store):
    assert verify_store(store, ScriptedExecutor(script), sample=999).sampled == COUNT


@pytest.mark.parametrize("position", [0, 2])
def test_another_token_is_found_with_its_position(store, position):
    report = verify_store(store, changed(position), sample=COUNT)
    assert not report.agrees
    (difference,) = report.differences
    assert difference.position == position
    assert difference.prompt == "prompt 3"
    assert ("different", "1") in report.rows()
    assert any(f"from token {position}" in name for name, _ in report.rows())


def test_a_shorter_answer_differs_where_it_ends(store):
    report = verify_store(store, changed(None, tokens=(3, 7)), sample=COUNT)
    assert report.differences[0].position == 2


@pytest.mark.parametrize("fields", [{"text": "other"}, {"status": "truncated"}])
def test_text_and_status_count_too(store, fields):
    (difference,) = verify_store(
        store, changed(None, **fields), sample=COUNT
    ).differences
    assert difference.position is None
    assert difference.stored == "'text 3' [ok]"
    assert next(iter(fields.values())) in difference.regenerated


def test_log_probabilities_are_compared_but_do_not_decide(store):
    executor = changed(None, log_probs=(-0.5, -0.25, -1.001))
    report = verify_store(store, executor, sample=COUNT)
    assert report.agrees and report.log_prob_gap == pytest.approx(1e-3)


def test_an_executor_that_fails_proves_nothing(store):
    executor = ScriptedExecutor(script, failures={0: "timeout"})
    report = verify_store(store, executor, sample=COUNT)
    assert report.failed == 1 and not report.agrees and not report.differences


def test_another_model_is_refused_by_name(store):
    with pytest.raises(StorageError, match="no completions of scripted:other"):
        verify_store(store, ScriptedExecutor(script, name="other"))


def test_an_entry_under_a_wrong_key_is_refused(store):
    record = {"request": request_record(Request(())), "completion": {}}
    store.put("completion", "f" * 64, record)
    with pytest.raises(StorageError, match="ffff: its key is not that of its request"):
        verify_store(store, ScriptedExecutor(script))


@pytest.mark.parametrize("name", ["sample", "batch_size"])
def test_sizes_below_one_are_refused_by_name(store, name):
    with pytest.raises(ConfigError, match=f"^{name}: expected at least 1, got 0"):
        verify_store(store, ScriptedExecutor(script), **{name: 0})

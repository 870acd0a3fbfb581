"""The local executor keeps the executor's contract, on a tiny random model."""

import asyncio
from functools import cache

import pytest

from jerp.bridge.batching import BatchShape
from jerp.bridge.executor import Message, Request, Sampling
from jerp.bridge.local import LocalExecutor
from jerp.errors import ExecutorError
from tests.bridge.asking import SHAPE, ask
from tests.bridge.tiny_model import tiny_model


@cache
def executor():
    return LocalExecutor(tiny_model(), numerics="float32", shape=SHAPE)


def complete(*requests):
    return asyncio.run(executor().complete(requests))


def results(completions):
    """Without the measured seconds."""
    return [(c.text, c.status, c.tokens, c.log_probs) for c in completions]


def test_same_length_order_and_samples():
    requests = [ask("a", i) for i in range(5)] + [ask("b")]
    together = complete(*requests)
    assert len(together) == 6
    assert results(together[::-1]) == results(complete(*requests[::-1]))
    assert results(together[3:4]) == results(complete(requests[3]))
    assert len({c.tokens for c in together[:5]}) == 5
    assert all(c.tokens_in == len("a") + 2 for c in together)
    assert all(len(c.log_probs) == c.tokens_out == len(c.tokens) for c in together)
    assert all(c.seconds > 0 for c in together)
    assert complete() == []


def test_the_sampling_parameters_are_part_of_the_seed():
    first, second = complete(ask("a"), ask("a", max_tokens=7))
    assert first.tokens[:7] != second.tokens


def test_log_probabilities_are_negative_and_zero_when_greedy():
    drawn, greedy = complete(ask("q"), ask("q", temperature=0.0))
    assert max(drawn.log_probs) < 0
    assert set(greedy.log_probs) == {0.0}
    assert complete(ask("q", 9, temperature=0.0))[0].tokens == greedy.tokens


def test_an_assistant_message_is_continued():
    """Greedy: continuing from the first byte of an answer gives the rest of it."""
    asked = [ask(c, temperature=0.0, max_tokens=6) for c in "abcdefghijklmnop"]
    question, whole = next(
        (question, answer)
        for question, answer in zip(asked, complete(*asked), strict=True)
        if answer.tokens[0] < 128  # a byte that is a character
    )
    opened = Message("assistant", chr(whole.tokens[0]))
    sampling = Sampling(temperature=0.0, max_tokens=5)
    [rest] = complete(Request((*question.messages, opened), sampling))
    assert rest.tokens == whole.tokens[1:]


@pytest.fixture
def one_seed(monkeypatch):
    """Stop strings and `max_tokens` then change only where a completion ends."""
    monkeypatch.setattr("jerp.bridge.chat_jobs.request_seed", lambda request: 7)


def test_a_stop_string_ends_the_text_before_it(one_seed):
    [free] = complete(ask("s", max_tokens=12))
    place = next(i for i, c in enumerate(free.text) if c.isascii() and i > 1)
    stop = free.text[place]
    place = free.text.index(stop)
    [stopped] = complete(ask("s", max_tokens=12, stop=("never", stop)))
    assert (stopped.text, stopped.status) == (
        free.text[:place],
        "ok" if free.text[:place].strip() else "empty",
    )
    assert stopped.tokens == free.tokens[: stopped.tokens_out]
    assert stopped.tokens[-1] == ord(stop)


def test_max_tokens_cuts_and_says_so(one_seed):
    whole, cut = complete(ask("m", max_tokens=8), ask("m", max_tokens=3))
    assert cut.tokens == whole.tokens[:3]
    assert cut.status == "truncated"


@pytest.fixture
def stop_at(monkeypatch):
    """Makes a token a stop token of the executor under test."""

    def change(token):
        monkeypatch.setattr(executor()._chats, "stop_tokens", (token,))

    return change


def test_a_stop_token_ends_an_answer(one_seed, stop_at):
    [free] = complete(ask("t"))
    end = free.tokens.index(free.tokens[4])
    stop_at(free.tokens[4])
    [stopped] = complete(ask("t"))
    assert stopped.tokens == free.tokens[: end + 1]
    assert stopped.status == "ok"
    shown = bytes(free.tokens[:end]).decode(errors="replace")
    assert stopped.text == shown.removesuffix("\N{REPLACEMENT CHARACTER}")


def test_nothing_visible_is_empty(one_seed, stop_at):
    [free] = complete(ask("t"))
    stop_at(free.tokens[0])
    [stopped] = complete(ask("t"))
    assert (stopped.text, stopped.status) == ("", "empty")
    assert stopped.tokens == free.tokens[:1]


@pytest.mark.parametrize(
    ("request_", "message"),
    [
        (ask("x" * 130), "a prompt of 132 tokens with max_tokens=8 does not fit the"),
        (
            ask("x" * 100, max_tokens=60),
            "with max_tokens=60 does not fit the context of 128",
        ),
        (Request(()), "messages: expected a system or user message, got none"),
    ],
)
def test_an_impossible_request_is_a_status(request_, message):
    bad, good = complete(request_, ask("a"))
    assert bad.status == "error"
    assert message in bad.error
    assert (bad.text, bad.tokens) == ("", ())
    assert results([good]) == results(complete(ask("a")))


def test_cancellation_propagates_and_the_executor_goes_on():
    async def cancel():
        task = asyncio.create_task(
            executor().complete([ask(f"c{i}", max_tokens=60) for i in range(40)])
        )
        await asyncio.sleep(0.01)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        return await executor().complete([ask("a")])

    assert results(asyncio.run(cancel())) == results(complete(ask("a")))


def test_two_calls_at_once_do_not_disturb_each_other():
    requests = [[ask("a", i) for i in range(3)], [ask("b", i) for i in range(5)]]

    async def both():
        return await asyncio.gather(*map(executor().complete, requests))

    for completions, alone in zip(asyncio.run(both()), requests, strict=True):
        assert results(completions) == results(complete(*alone))


def test_the_fingerprint_names_all_that_decides_the_numbers():
    assert executor().fingerprint == "tiny/float32/cpu/r4b8p4s64c2"
    others = (
        LocalExecutor(tiny_model(), shape=SHAPE),
        LocalExecutor(tiny_model(fingerprint="other"), numerics="float32", shape=SHAPE),
        LocalExecutor(tiny_model(), numerics="float32", shape=BatchShape(rows=8)),
    )
    assert len({executor().fingerprint, *(e.fingerprint for e in others)}) == 4


def test_a_base_model_is_refused():
    with pytest.raises(ExecutorError, match="no chat template"):
        LocalExecutor(tiny_model(chat_template=""))

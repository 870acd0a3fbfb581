"""Batches of jobs through a function, here one that spells the end of the prompt."""

import asyncio
import threading
from itertools import islice

import jax
import pytest

from jerp.bridge.batch_executor import BatchExecutor, uniform_numbers
from jerp.bridge.chat import ChatTemplate
from jerp.bridge.chat_jobs import ChatJobs
from jerp.bridge.executor import Message, Request, Sampling
from jerp.errors import ConfigError
from tests.bridge.tiny_model import TEMPLATE, tokenizer

CHATS = ChatJobs(
    tokenizer(), ChatTemplate(TEMPLATE), stop_tokens=(256,), context_length=64
)


class Speller:
    """Repeats the question and stops; `room` is the most prompt tokens of a batch."""

    def __init__(self, room=1000):
        self.room, self.batches = room, []

    def __call__(self, jobs, cancelled):
        self.batches.append([len(job.prompt) for job in jobs])
        if sum(self.batches[-1]) > self.room:
            jobs[0].take([65], [-1.0])  # half done
            raise MemoryError("no room")
        for job in jobs:
            words = [*job.prompt[1:-1], 256]  # between the two roles
            while not cancelled() and not job.take([words.pop(0)], [-0.5]):
                pass


def ask(text, max_tokens=20, stop=()):
    sampling = Sampling(max_tokens=max_tokens, stop=stop)
    return Request((Message("user", text),), sampling)


def run(decode, *requests, batch_size=2, on_answer=lambda index, answer: None):
    model = BatchExecutor(CHATS, decode, batch_size=batch_size, fingerprint="speller")
    return asyncio.run(model.complete_each(requests, on_answer))


def test_answers_keep_their_places_and_batches_hold_prompts_of_like_length():
    decode, told = Speller(), []
    texts = ["long words", "a", "longer words", "b", "cc"]
    answers = run(decode, *map(ask, texts), on_answer=lambda *told_: told.append(told_))
    assert [answer.text for answer in answers] == texts
    assert decode.batches == [[3, 3], [4, 12], [14]]
    assert [index for index, _ in told] == [1, 3, 4, 0, 2]
    assert all(answers[index] is answer for index, answer in told)
    assert all(answer.status == "ok" and answer.seconds > 0 for answer in answers)
    assert (answers[1].tokens, answers[1].log_probs) == ((97, 256), (-0.5, -0.5))
    assert run(decode) == []


def test_how_an_answer_ends():
    cut, stopped, empty = run(
        Speller(), ask("words", 3), ask("words", stop=("rd",)), ask("")
    )
    assert (cut.text, cut.status, cut.tokens_out) == ("wor", "truncated", 3)
    assert (stopped.text, stopped.status, stopped.tokens_out) == ("wo", "ok", 4)
    assert (empty.text, empty.status) == ("", "empty")


def test_an_impossible_request_is_a_status_that_no_batch_waits_for():
    decode, told = Speller(), []
    bad, good = run(
        decode, ask("x" * 60), ask("a"), on_answer=lambda index, _: told.append(index)
    )
    assert bad.status == "error"
    assert bad.error.startswith("a prompt of 62 tokens with max_tokens=20 does not fit")
    assert (good.text, decode.batches, told) == ("a", [[3]], [0, 1])


def test_a_batch_that_does_not_fit_is_tried_in_halves_once():
    decode = Speller(room=10)
    answers = run(decode, *map(ask, ["abcdefg", "a", "b", "abcdefgh"]), batch_size=4)
    assert decode.batches == [[3, 3, 9, 10], [3, 3], [9, 10]]
    assert [answer.text for answer in answers] == ["", "a", "b", ""]
    assert answers[1].tokens == (97, 256)
    assert [answer.status for answer in answers] == ["error", "ok", "ok", "error"]
    assert answers[3].error == "out of memory with a batch of 2: no room"
    assert answers[3].tokens_in == 10
    [alone] = run(decode, ask("abcdefghi"), batch_size=4)
    assert alone.error == "out of memory with a batch of 1: no room"


def test_a_cancelled_call_stops_decoding_and_the_next_one_goes_on():
    began, stopped, speller = threading.Event(), [], Speller()

    def endless(jobs, cancelled):
        if jobs[0].prompt[1] != ord("x"):
            speller(jobs, cancelled)
            return
        began.set()
        while not cancelled():
            pass
        stopped.append(len(jobs))

    async def cancel():
        model = BatchExecutor(CHATS, endless, batch_size=1, fingerprint="endless")
        first = asyncio.create_task(model.complete([ask("x"), ask("xy")]))
        await asyncio.to_thread(began.wait)
        second = asyncio.create_task(model.complete([ask("b")]))
        waits = asyncio.create_task(model.complete([ask("x")]))
        await asyncio.sleep(0)
        for task in (waits, first):
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
        return await second

    [answer] = asyncio.run(cancel())
    assert (answer.text, stopped) == ("b", [1])


def test_the_numbers_of_a_seed_are_those_of_the_decoder():
    numbers = list(islice(uniform_numbers(7), 130))
    expected = [
        float(jax.random.uniform(jax.random.fold_in(jax.random.key(7), n)))
        for n in (0, 1, 63, 64, 129)
    ]
    assert [numbers[n] for n in (0, 1, 63, 64, 129)] == expected
    assert numbers[:3] != list(islice(uniform_numbers(8), 3))


def test_a_batch_of_nothing_is_refused():
    with pytest.raises(ConfigError, match="batch_size: expected at least 1, got 0"):
        BatchExecutor(CHATS, Speller(), batch_size=0, fingerprint="")

"""A job's tokens are bitwise the same whatever else the batcher does."""

import random
from functools import cache

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jerp.bridge.batching import Batcher, BatchShape
from jerp.bridge.rows import Job
from jerp.errors import ConfigError
from jerp.models.generate import generate
from tests.models.tiny import CONFIG, DECODER, random_params, sampling_rows

SHAPE = BatchShape(
    rows=4, block_size=4, prefill_blocks=3, capacity=16, chunk=2, pool_tokens=128
)


@cache
def batcher():
    return Batcher(CONFIG, random_params(), SHAPE)


def fresh():
    """The batcher with nothing kept from earlier jobs."""
    batcher()._reset()
    return batcher()


def job(seed, length=9, max_tokens=5, ends=lambda tokens: False, **changes):
    rng = random.Random(seed)
    settings = {"temperature": 1.0, "top_k": 0, "top_p": 1.0} | changes
    prompt = tuple(rng.randrange(40) for _ in range(length))
    return Job(prompt, seed=seed, max_tokens=max_tokens, ends=ends, **settings)


def run(*jobs):
    batcher().run(jobs)
    return [(tuple(j.tokens), tuple(j.log_probs)) for j in jobs]


def test_equals_the_one_scan_without_blocks():
    made = job(3, length=7, max_tokens=6)
    out = generate(
        random_params(),
        jax.vmap(jax.random.key)(jnp.array([3], jnp.uint32)),
        jnp.array([made.prompt]),
        jnp.array([7]),
        sampling_rows([1.0]),
        jnp.array([-1]),
        decoder=DECODER,
        steps=6,
    )
    [(tokens, log_probs)] = run(made)
    assert list(tokens) == out.tokens[0].tolist()
    np.testing.assert_allclose(log_probs, out.log_prob[0], atol=1e-4)


def test_bitwise_the_same_alone_and_in_any_batch():
    """Eleven jobs share four rows, are refilled, reordered, and partly repeated."""

    def made():
        return [
            job(s, length=1 + 3 * (s % 4), max_tokens=2 + s % 5, top_k=s % 3)
            for s in range(11)
        ]

    together = run(*made())
    alone = [run(single)[0] for single in made()]
    assert together == alone
    order = random.Random(1).sample(range(11), 11)
    shuffled = run(*(made()[i] for i in order), *made()[:5])
    assert [shuffled[order.index(i)] for i in range(11)] == together
    assert shuffled[11:] == together[:5]
    jobs = made()
    fresh().run(jobs[::-1])
    assert [(tuple(j.tokens), tuple(j.log_probs)) for j in jobs] == together


def test_samples_of_one_prompt_share_its_prefill(monkeypatch):
    used, calls = fresh(), []
    compute = used._compute
    monkeypatch.setattr(
        used, "_compute", lambda: (calls.append(len(used._promised)), compute())
    )
    jobs = [job(5, length=9) for _ in range(6)]
    for seed, each in enumerate(jobs):
        each.seed = seed
    used.run(jobs)
    assert calls == [2]  # eight tokens before the last, in two blocks
    assert len({tuple(j.tokens) for j in jobs}) > 3
    used.run([job(5, length=9)])
    assert calls == [2]


def test_a_job_ends_where_it_says():
    free = job(8, max_tokens=7)
    run(free)
    third = free.tokens[2]
    early = job(8, max_tokens=7, ends=lambda tokens: tokens[-1] == third)
    run(early)
    assert early.tokens == free.tokens[: free.tokens.index(third) + 1]
    assert len(early.tokens) == len(early.log_probs)
    assert early.seconds > 0


def test_long_and_short_jobs_run_in_classes_of_their_own():
    short, long = job(1, length=5), job(2, length=40, max_tokens=20)
    assert [SHAPE.capacity_for(n) for n in (10, 16, 17, 60)] == [16, 16, 32, 64]
    assert [SHAPE.rows_for(c) for c in (16, 32, 64, 128, 1024)] == [4, 4, 2, 2, 2]
    assert BatchShape(rows=1).rows_for(8192) == 1
    mixed = run(short, long, job(3))
    assert len(long.tokens) == 20
    assert run(job(1, length=5))[0] == mixed[0]


def test_more_prompts_than_the_pool_holds():
    """Blocks are given away and computed again, to the same effect."""
    few = fresh()
    jobs = [job(s, length=13, max_tokens=3) for s in range(40)]
    few.run(jobs)
    again = [job(s, length=13, max_tokens=3) for s in range(40)]
    few.run(again)
    assert [j.tokens for j in jobs] == [j.tokens for j in again]


def test_cancelling_stops_and_leaves_the_batcher_usable():
    used, looks = fresh(), []

    def cancelled():
        looks.append(1)
        return len(looks) > 2

    jobs = [job(s, max_tokens=6) for s in range(9)]
    used.run(jobs, cancelled=cancelled)
    assert [len(j.tokens) for j in jobs] == [4] * 4 + [0] * 5
    again = job(0, max_tokens=6)
    used.run([again])
    assert again.tokens[:4] == jobs[0].tokens
    assert len(again.tokens) == 6


def test_a_job_that_raises_leaves_the_batcher_usable():
    def explode(tokens):
        raise RuntimeError("boom")

    used = fresh()
    with pytest.raises(RuntimeError, match="boom"):
        used.run([job(1, ends=explode), job(2)])
    again = job(2)
    used.run([again])
    assert len(again.tokens) == 5


def test_capacity_is_made_of_blocks():
    with pytest.raises(ConfigError, match="multiple of block_size=16, got 100"):
        BatchShape(capacity=100)


def test_the_name_holds_what_decides_the_numbers():
    names = {
        BatchShape(**change).name
        for change in (
            {},
            {"rows": 8},
            {"block_size": 32},
            {"prefill_blocks": 4},
            {"capacity": 512},
            {"chunk": 4},
        )
    }
    assert len(names) == 6
    assert BatchShape(pool_tokens=1).name == BatchShape().name

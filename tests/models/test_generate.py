"""Decoding with a cache: equals full forward passes, and rows never mix."""

from functools import partial

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jerp.models.generate import DecodeRows, decode, generate, init_cache
from tests.models.tiny import CONFIG, DECODER, random_params, sampling_rows
from tests.reference import decoder as reference

STEPS = 6
LENGTH = np.array([3, 5, 1, 4], np.int32)
TOKENS = np.array(
    [[1, 2, 3, 0, 0], [9, 8, 7, 6, 5], [4, 0, 0, 0, 0], [11, 12, 13, 14, 0]], np.int32
)
NO_STOP = jnp.full(4, -1)
run = jax.jit(partial(generate, decoder=DECODER, steps=STEPS))
forward = jax.jit(DECODER.apply)
keys_of = jax.vmap(jax.random.key)
six_tokens = jax.jit(partial(decode, decoder=DECODER, steps=6))
two_tokens = jax.jit(partial(decode, decoder=DECODER, steps=2))


def keys(*seeds):
    return keys_of(jnp.array(seeds, jnp.uint32))


def next_logits(params, sequence):
    """By a full forward pass; padding on the right does not matter."""
    padded = np.zeros((1, 11), np.int32)
    padded[0, : len(sequence)] = sequence
    return np.asarray(forward(params, padded))[0, len(sequence) - 1]


def test_greedy_decoding_equals_full_forward_passes():
    params = random_params()
    out = run(
        params, keys(0, 1, 2, 3), TOKENS, LENGTH, sampling_rows([0.0] * 4), NO_STOP
    )
    for row in range(4):
        sequence = TOKENS[row, : LENGTH[row]].tolist()
        for drawn in out.tokens[row].tolist():
            assert drawn == int(next_logits(params, sequence).argmax())
            sequence.append(drawn)
    assert bool(out.mask.all())
    assert not out.log_prob.any()


def test_sampled_tokens_and_log_probabilities_equal_the_reference():
    """The draw of step `n` uses `fold_in(key, n)` and nothing else."""
    params, seeds = random_params(), (7, 8, 9, 10)
    temperature, top_k, top_p = [1.0, 0.7, 1.3, 1.0], [0, 5, 0, 8], [1.0, 1.0, 0.8, 0.6]
    rows = sampling_rows(temperature, top_k, top_p)
    out = run(params, keys(*seeds), TOKENS, LENGTH, rows, NO_STOP)
    for row in range(4):
        sequence = TOKENS[row, : LENGTH[row]].tolist()
        for n, drawn in enumerate(out.tokens[row].tolist()):
            p = reference.probabilities(
                next_logits(params, sequence), temperature[row], top_k[row], top_p[row]
            )
            uniform = jax.random.uniform(
                jax.random.fold_in(jax.random.key(seeds[row]), n)
            )
            assert drawn == reference.draw(p, float(uniform))
            assert out.log_prob[row, n] == pytest.approx(np.log(p[drawn]), abs=1e-3)
            sequence.append(drawn)


def test_a_row_is_bitwise_the_same_among_other_rows():
    params = random_params()
    rows = sampling_rows([1.0] * 4, [0, 3, 0, 0], [1.0, 1.0, 0.5, 1.0])
    first = run(params, keys(1, 2, 3, 4), TOKENS, LENGTH, rows, NO_STOP)
    # the row moves to the end, among other prompts, lengths, seeds and settings
    tokens, length = TOKENS[[3, 1, 2, 0]].copy(), np.array([2, 1, 5, 3], np.int32)
    tokens[2] = 30
    rows = sampling_rows([0.0, 2.0, 1.0, 1.0], [0, 0, 2, 0], [1.0, 0.3, 1.0, 1.0])
    second = run(params, keys(9, 8, 7, 1), tokens, length, rows, NO_STOP)
    moved = jax.tree.map(lambda a, b: (a[0], b[3]), first, second)
    for name in ("tokens", "log_prob", "mask"):
        chex.assert_trees_all_equal(*getattr(moved, name))


def test_other_seeds_draw_other_tokens():
    params, rows = random_params(), sampling_rows([1.0] * 4)
    tokens, length = np.tile(TOKENS[:1], (4, 1)), np.full(4, 3, np.int32)
    out = run(params, keys(1, 2, 3, 1), tokens, length, rows, NO_STOP)
    drawn = out.tokens.tolist()
    assert drawn[0] == drawn[3]
    assert len({tuple(d) for d in drawn}) == 3


def test_mask_ends_with_the_first_stop_token():
    params, rows = random_params(), sampling_rows([1.0] * 4)
    free = run(params, keys(1, 2, 3, 4), TOKENS, LENGTH, rows, NO_STOP)
    stops = free.tokens[:, 2]
    out = run(params, keys(1, 2, 3, 4), TOKENS, LENGTH, rows, stops)
    chex.assert_trees_all_equal(out.tokens, free.tokens)
    for row in range(4):
        drawn = free.tokens[row].tolist()
        end = min(i for i, t in enumerate(drawn) if t in stops.tolist())
        assert out.mask[row].tolist() == [i <= end for i in range(STEPS)]


def test_chunks_equal_one_scan():
    params, rows = random_params(), sampling_rows([1.0] * 2)
    start = DecodeRows(
        token=jnp.array([3, 4]),
        position=jnp.zeros(2, jnp.int32),
        drawn=jnp.zeros(2, jnp.int32),
        keys=keys(5, 6),
        sampling=rows,
    )
    cache = init_cache(CONFIG, batch_size=2, capacity=8)
    _, end, whole, log_prob = six_tokens(params, cache, start)
    rows, parts = start, []
    for _ in range(3):
        cache, rows, *drawn = two_tokens(params, cache, rows)
        parts.append(drawn)
    tokens, log_probs = (jnp.concatenate(p, axis=1) for p in zip(*parts, strict=True))
    chex.assert_trees_all_equal(tokens, whole)
    np.testing.assert_allclose(log_probs, log_prob, atol=1e-5)
    chex.assert_trees_all_equal(rows.position, end.position)
    assert end.drawn.tolist() == [6, 6]


def test_a_row_beyond_its_capacity_disturbs_nobody():
    params, rows = random_params(), sampling_rows([1.0, 1.0])

    def drawn(position):
        start = DecodeRows(
            token=jnp.array([3, 4]),
            position=jnp.array([0, position]),
            drawn=jnp.zeros(2, jnp.int32),
            keys=keys(5, 6),
            sampling=rows,
        )
        cache = init_cache(CONFIG, batch_size=2, capacity=8)
        return jax.tree.map(lambda x: x[0], six_tokens(params, cache, start)[2:])

    chex.assert_trees_all_equal(drawn(0), drawn(6))


def test_one_trace_for_all_values():
    chex.clear_trace_counter()

    @jax.jit
    @chex.assert_max_traces(n=1)
    def traced(params, keys, tokens, length, rows, stops):
        return generate(
            params, keys, tokens, length, rows, stops, decoder=DECODER, steps=2
        )

    for seed, temperature in ((0, 0.0), (1, 1.0)):
        rows = sampling_rows([temperature] * 4, [seed] * 4)
        traced(random_params(), keys(*[seed] * 4), TOKENS, LENGTH, rows, NO_STOP)

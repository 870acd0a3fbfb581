"""Prefilled blocks hold what a full forward pass computes, in any order and company."""

from functools import partial

import chex
import jax
import jax.numpy as jnp
import numpy as np

from jerp.models.decoder import hidden_states
from jerp.models.generate import init_cache
from jerp.models.paging import BlockBatch, admit, init_pool, prefill
from tests.models.tiny import CONFIG, DECODER, random_params

NUM_BLOCKS, BLOCK, WIDTH = 8, 4, 3
compute = jax.jit(partial(prefill, decoder=DECODER))
move = jax.jit(admit)
PROMPT = (5, 9, 2, 30, 17, 1, 1, 8, 3, 22)  # two full blocks and half of a third


def batch(*rows, count=4):
    """`(tokens, start, table)` of each block; the table ends with its own place."""
    tokens = np.full((count, BLOCK), 39, np.int32)
    start, place = np.zeros(count, np.int32), np.full(count, NUM_BLOCKS, np.int32)
    table = np.zeros((count, WIDTH), np.int32)
    for i, (piece, first, known) in enumerate(rows):
        tokens[i, : len(piece)] = piece
        start[i], place[i] = first, known[-1]
        table[i, : len(known)] = known
    return BlockBatch(*map(jnp.asarray, (tokens, start, place, table)))


def empty():
    return init_pool(CONFIG, num_blocks=NUM_BLOCKS, block_size=BLOCK)


def blocks_at(*places):
    cut = [PROMPT[i : i + BLOCK] for i in range(0, len(PROMPT), BLOCK)]
    return [
        (piece, BLOCK * i, places[: i + 1])
        for i, piece in enumerate(cut[: len(places)])
    ]


def in_rows(pool, *places):
    cache = init_cache(CONFIG, batch_size=2, capacity=BLOCK * WIDTH)
    return move(cache, pool, jnp.array([1, 2]), jnp.array([places, (0, 0, 0)]))


def expected():
    tokens = jnp.array([PROMPT])
    positions = jnp.arange(len(PROMPT))[None]
    return hidden_states(DECODER, random_params(), tokens, positions)[1]


def test_blocks_equal_a_full_forward_pass():
    """All blocks of the prompt in one call, at places out of order."""
    pool = compute(random_params(), empty(), batch(*blocks_at(6, 0, 3)))
    cache = in_rows(pool, 6, 0, 3)
    n = len(PROMPT)
    for (keys, values), (k, v) in zip(cache, expected(), strict=True):
        np.testing.assert_allclose(keys[1, :, :, :n], k[0], rtol=1e-4, atol=1e-5)
        np.testing.assert_allclose(values[1, :, :n], v[0], rtol=1e-4, atol=1e-5)
        assert not keys[0].any()  # the unused entry of the table went nowhere


def test_a_block_is_bitwise_the_same_in_any_company():
    params = random_params()
    together = compute(params, empty(), batch(*blocks_at(0, 1, 2)))
    pool, other = empty(), ((7, 7, 7), 0, (7,))
    for piece in blocks_at(4, 5, 6):  # one by one, behind another prompt's block
        pool = compute(params, pool, batch(other, piece))
    chex.assert_trees_all_equal(in_rows(together, 0, 1, 2), in_rows(pool, 4, 5, 6))


def test_a_shared_beginning_serves_two_endings():
    params = random_params()
    pool = compute(params, empty(), batch(*blocks_at(0, 1)))
    ending = ((33, 12), 2 * BLOCK, (0, 1, 5))
    pool = compute(params, pool, batch(ending, blocks_at(0, 1, 2)[2]))
    whole = compute(params, empty(), batch(*blocks_at(0, 1, 2)))
    chex.assert_trees_all_equal(in_rows(pool, 0, 1, 2), in_rows(whole, 0, 1, 2))
    n = 2 * BLOCK
    for (keys, _), (k, _) in zip(in_rows(pool, 0, 1, 5), expected(), strict=True):
        np.testing.assert_allclose(
            keys[1, :, :, :n], k[0, :, :, :n], rtol=1e-4, atol=1e-5
        )
        assert not np.allclose(keys[1, :, :, n], k[0, :, :, n], atol=1e-2)


def test_garbage_behind_a_prompt_does_not_matter():
    """Unwritten blocks and the padding of the last block are never attended to."""
    params, blocks = random_params(), batch(*blocks_at(0, 1, 2))
    clean = compute(params, empty(), blocks)
    poison = jax.tree.map(lambda x: jnp.full_like(x, 1e15), empty())
    padded = blocks.replace(tokens=jnp.where(blocks.tokens == 39, 4, blocks.tokens))
    dirty = compute(params, poison, padded)
    n = len(PROMPT)
    for (k, v), (dirty_k, dirty_v) in zip(
        in_rows(clean, 0, 1, 2), in_rows(dirty, 0, 1, 2), strict=True
    ):
        chex.assert_trees_all_equal(k[1, :, :, :n], dirty_k[1, :, :, :n])
        chex.assert_trees_all_equal(v[1, :, :n], dirty_v[1, :, :n])

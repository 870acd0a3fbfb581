"""Attention in blocks of queries: the numbers and gradients of all at once."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jerp.models.blocked_attention import blocked_causal_mixer
from jerp.models.decoder import causal_mixer
from jerp.models.token_stream import BLOCK, read_stream
from tests.models.tiny import DECODER, random_params


def heads(length, seed=0, batch=2):
    """Four query heads over two key/value heads."""
    keys = jax.random.split(jax.random.key(seed), 3)
    shapes = [(batch, length, h, 4) for h in (4, 2, 2)]
    return [jax.random.normal(k, s) for k, s in zip(keys, shapes, strict=True)]


def value_and_slopes(mixer, rows):
    def loss(rows):
        mixed, _ = mixer(*rows, None)
        weight = jnp.cos(jnp.arange(mixed.size)).reshape(mixed.shape)
        return jnp.sum(mixed * weight), mixed

    (_, mixed), slopes = jax.jit(jax.value_and_grad(loss, has_aux=True))(rows)
    return [mixed, *slopes]


@pytest.mark.parametrize(("length", "block"), [(13, 4), (3, 8)])
def test_blocks_give_what_all_queries_at_once_give(length, block):
    """Whether or not they divide the length; gradients too."""
    rows = heads(length)
    blocked = value_and_slopes(partial(blocked_causal_mixer, block=block), rows)
    whole = value_and_slopes(causal_mixer, rows)
    for x, y in zip(blocked, whole, strict=True):
        assert x.shape == y.shape
        np.testing.assert_allclose(x, y, atol=1e-5)


def test_blocks_by_a_plain_loop():
    """One query after the other in float64, over the keys up to it."""
    query, key, value = (np.asarray(x, np.float64) for x in heads(7, batch=1))
    found, _ = jax.jit(partial(blocked_causal_mixer, block=3))(*heads(7, batch=1), None)
    for t in range(7):
        for head in range(4):
            seen = key[0, : t + 1, head // 2] @ query[0, t, head] / 2
            weight = np.exp(seen - seen.max())
            expected = weight / weight.sum() @ value[0, : t + 1, head // 2]
            np.testing.assert_allclose(found[0, t, head], expected, atol=1e-5)


def test_gradients_keep_no_scores_of_all_queries():
    """Of 512 queries: eight blocks need less than a third of the memory."""
    rows = jax.eval_shape(lambda: heads(512, batch=1))

    def memory(mixer):
        def loss(rows):
            return jnp.sum(jnp.sin(mixer(*rows, None)[0]))

        compiled = jax.jit(jax.grad(loss)).lower(rows).compile()
        return compiled.memory_analysis().temp_size_in_bytes

    assert memory(partial(blocked_causal_mixer, block=64)) < memory(causal_mixer) / 3


def test_long_episodes_are_read_in_blocks_to_the_same_states():
    """A capacity beyond two blocks changes no state of a short episode."""
    seen = jnp.array([[[3, 4, 0], [5, 0, 0]], [[6, 7, 8], [9, 3, 0]]])
    said = jnp.array([[[1, 2], [3, 0]], [[4, 0], [5, 6]]])
    mask = jnp.ones((2, 2), bool)
    rows = (random_params(), seen, said, said > 0, mask)
    read = partial(read_stream, *rows, decoder=DECODER)
    short = jax.jit(partial(read, capacity=12))()
    long = jax.jit(partial(read, capacity=2 * BLOCK + 1))()
    np.testing.assert_allclose(long.states, short.states, atol=1e-5)
    # The second episode has eight tokens; behind them there is padding.
    for (keys, values), (others, those) in zip(long.cache, short.cache, strict=True):
        np.testing.assert_allclose(keys[1, ..., :8], others[1, ..., :8], atol=1e-5)
        np.testing.assert_allclose(values[1, :, :8], those[1, :, :8], atol=1e-5)

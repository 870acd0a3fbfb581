"""A shared prompt: attention over two parts is attention over the whole."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jerp.errors import InputError, ShapeError
from jerp.models.attention import grouped_attention
from jerp.models.prefix import prefill_prefix, shared_attention
from tests.models.tiny import DECODER, random_params

PROMPTS, ROWS, T, S, OWN, HEADS, GROUPS, DIM = 2, 3, 2, 5, 4, 4, 2, 6
LENGTH = np.array([5, 2], np.int32)


def normal(seed, *shape):
    return jax.random.normal(jax.random.key(seed), shape)


def parts():
    batch = PROMPTS * ROWS
    query = normal(0, batch, T, HEADS, DIM)
    shared = normal(1, PROMPTS, GROUPS, DIM, S), normal(2, PROMPTS, GROUPS, S, DIM)
    own = normal(3, batch, GROUPS, DIM, OWN), normal(4, batch, GROUPS, OWN, DIM)
    mask = jnp.arange(OWN)[None, None] <= jnp.arange(T)[None, :, None] + 1
    return query, shared, own, jnp.broadcast_to(mask, (batch, T, OWN))


def whole(query, shared, own, mask):
    """With a copy of the prompt in every row."""
    keys, values = (jnp.repeat(x, ROWS, axis=0) for x in shared)
    keys = jnp.concatenate([keys, own[0]], axis=3)
    values = jnp.concatenate([values, own[1]], axis=2)
    seen = np.repeat(np.arange(S)[None] < LENGTH[:, None], ROWS, axis=0)
    seen = jnp.broadcast_to(seen[:, None], (*mask.shape[:2], S))
    return grouped_attention(
        query, keys, values, jnp.concatenate([seen, mask], axis=-1)
    )


@jax.jit
def both(query, shared, own, mask):
    """`(sum of squares of the output, gradients)` in two parts, and of the whole."""

    def split(query, shared, own):
        found = shared_attention(query, shared, jnp.asarray(LENGTH), own, mask)
        return jnp.sum(found**2), found

    def joint(query, shared, own):
        found = whole(query, shared, own, mask)
        return jnp.sum(found**2), found

    return [
        jax.grad(attend, argnums=(0, 1, 2), has_aux=True)(query, shared, own)
        for attend in (split, joint)
    ]


def test_two_parts_equal_the_whole_and_so_do_their_gradients():
    split, joint = both(*parts())
    np.testing.assert_allclose(split[1], joint[1], atol=1e-5)
    for x, y in zip(*map(jax.tree.leaves, (split[0], joint[0])), strict=True):
        np.testing.assert_allclose(x, y, atol=1e-4)


def test_large_scores_do_not_overflow():
    query, shared, own, mask = parts()
    split, joint = both(1e3 * query, shared, own, mask)
    np.testing.assert_allclose(split[1], joint[1], rtol=1e-4, atol=1e-5)


def test_by_hand():
    """Scores 0 of two prompt tokens and log 2 of an own one: weights 1/4, 1/4, 1/2."""
    query = jnp.array([[[[np.sqrt(2.0) * np.log(2.0), 0.0]]]])
    shared = jnp.zeros((1, 1, 2, 3)), jnp.array([[[[4.0, 0], [0, 4], [99, 99]]]])
    own = jnp.array([[[[1.0], [0.0]]]]), jnp.array([[[[2.0, 2.0]]]])
    seen = jnp.ones((1, 1, 1), bool)
    found = shared_attention(query, shared, jnp.array([2]), own, seen)
    np.testing.assert_allclose(found[0, 0, 0], [2.0, 2.0], atol=1e-5)


def test_a_prefix_has_the_last_real_state():
    params = random_params()
    tokens, length = np.array([[1, 2, 3, 9], [4, 5, 9, 9]]), np.array([3, 2])
    read = jax.jit(partial(prefill_prefix, decoder=DECODER))
    prefix = read(params, tokens, length)
    tokens[:, 3] = 7
    other = read(params, tokens, length)
    np.testing.assert_array_equal(prefix.hidden, other.hidden)
    logits = jax.jit(DECODER.apply)(params, tokens)
    found = jax.jit(partial(DECODER.apply, method="logits"))(params, prefix.hidden)
    np.testing.assert_allclose(found[0], logits[0, 2], atol=1e-4)
    np.testing.assert_allclose(found[1], logits[1, 1], atol=1e-4)


def test_lengths_and_axes_that_cannot_be_meant():
    params, tokens = random_params(), jnp.ones((2, 3), jnp.int32)
    with pytest.raises(InputError, match="length: expected 1 to 3, got 0"):
        prefill_prefix(params, tokens, jnp.array([0, 1]), decoder=DECODER)
    with pytest.raises(ShapeError, match="length"):
        prefill_prefix(params, tokens, jnp.array([1]), decoder=DECODER)

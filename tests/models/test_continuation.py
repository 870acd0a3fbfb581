"""Turn after turn into one cache: equal to a full forward pass over all tokens."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jerp.errors import InputError
from jerp.models.continuation import append, generate_turn
from jerp.models.generate import generate, init_cache
from jerp.models.prefix import prefill_prefix
from tests.models.tiny import CONFIG, DECODER, random_params, sampling_rows
from tests.reference import decoder as reference

CAPACITY, WIDTH = 12, 20
adding = jax.jit(partial(append, decoder=DECODER))
drawing = jax.jit(partial(generate_turn, decoder=DECODER, steps=4))
forward = jax.jit(DECODER.apply)
reading = jax.jit(partial(prefill_prefix, decoder=DECODER))
TURNS = (
    (np.array([[1, 2, 3], [4, 0, 0], [5, 6, 0]]), np.array([3, 1, 2])),
    (np.array([[7, 8, 0], [9, 10, 11], [0, 0, 0]]), np.array([2, 3, 0])),
    (np.array([[12, 0, 0], [13, 14, 0], [15, 16, 17]]), np.array([1, 2, 3])),
)
PROMPTS, PROMPT_LENGTH = np.array([[20, 21, 22], [23, 24, 0]]), np.array([3, 2])


def logits_of(params, sequences):
    """`[rows, WIDTH, V]` by full forward passes; padding does not count."""
    tokens = np.zeros((4, WIDTH), np.int32)
    for row, sequence in enumerate(sequences):
        tokens[row, : len(sequence)] = sequence
    return np.asarray(forward(params, tokens))


output = jax.jit(partial(DECODER.apply, method="logits"))


def empty(batch_size, capacity=CAPACITY):
    cache = init_cache(CONFIG, batch_size=batch_size, capacity=capacity)
    return cache, jnp.zeros(batch_size, jnp.int32)


def keys(number, seed=0):
    return jax.random.split(jax.random.key(seed), number)


def test_turns_of_different_lengths_equal_full_forward_passes():
    params, (cache, position) = random_params(), empty(3)
    sequences = [[], [], []]
    for tokens, length in TURNS:
        rows = adding(params, cache, position, tokens, length)
        sequences = [
            [*s, *t[:n]] for s, t, n in zip(sequences, tokens, length, strict=True)
        ]
        full, found = logits_of(params, sequences), output(params, rows.hidden)
        for row, (sequence, n) in enumerate(zip(sequences, length, strict=True)):
            expected = full[row, len(sequence) - n : len(sequence)]
            np.testing.assert_allclose(found[row, :n], expected, atol=1e-4)
            last = rows.hidden[row, n - 1] if n else np.zeros(CONFIG.hidden_size)
            np.testing.assert_array_equal(rows.last[row], last)
        cache, position = rows.cache, rows.position
    assert position.tolist() == [6, 6, 5]
    assert rows.fits.all() and int(rows.num_full) == 0


def test_rows_after_a_shared_prompt_equal_full_forward_passes():
    """Four rows, two a prompt; the prompts' keys are there once."""
    params = random_params()
    prefix = reading(params, PROMPTS, PROMPT_LENGTH)
    assert prefix.cache[0][0].shape[0] == 2
    cache, position = empty(4)
    prompts = [PROMPTS[i, : PROMPT_LENGTH[i]].tolist() for i in (0, 0, 1, 1)]
    sequences = prompts
    for turn, length in (([1, 2], [2, 1, 2, 1]), ([3, 4], [1, 2, 0, 2])):
        tokens = np.array([turn, [5, 6], [7, 8], [9, 10]])
        rows = adding(params, cache, position, tokens, np.array(length), prefix=prefix)
        sequences = [
            [*s, *t[:n]] for s, t, n in zip(sequences, tokens, length, strict=True)
        ]
        full, found = logits_of(params, sequences), output(params, rows.hidden)
        for row, (sequence, n) in enumerate(zip(sequences, length, strict=True)):
            expected = full[row, len(sequence) - n : len(sequence)]
            np.testing.assert_allclose(found[row, :n], expected, atol=1e-4)
        cache, position = rows.cache, rows.position


def test_a_row_beyond_its_capacity_is_masked_counted_and_alone():
    params, (cache, _) = random_params(), empty(3)
    tokens = np.array([[1, 2, 3], [4, 5, 6], [7, 8, 9]])
    position = jnp.array([CAPACITY - 3, 0, CAPACITY - 4])
    first = adding(params, cache, position, tokens, np.array([3, 1, 2]))
    second = adding(params, first.cache, first.position, tokens, np.array([3, 1, 1]))
    third = adding(params, second.cache, second.position, tokens, np.array([0, 2, 0]))
    assert [int(rows.num_full) for rows in (first, second, third)] == [0, 1, 1]
    assert second.fits.tolist() == third.fits.tolist() == [False, True, True]
    full = logits_of(params, [[4, 4, 4, 5]])
    np.testing.assert_allclose(output(params, third.last)[1], full[0, 3], atol=1e-4)
    assert np.isfinite(third.hidden).all()
    start = (params, third.cache, third.position, third.last)
    rows = sampling_rows([1.0] * 3)
    turn = drawing(*start, keys(3), rows, jnp.array([-1]))
    # A full row draws nothing, one with a single place left draws one token.
    assert turn.generated.mask.sum(axis=1).tolist() == [0, 4, 1]
    assert int(turn.num_full) == 2
    # What a full row would have drawn ends nothing.
    turn = drawing(*start, keys(3), rows, turn.generated.tokens[0, :1])
    assert int(turn.num_full) == 2


def test_drawing_equals_generate_and_then_goes_on():
    """The same keys draw the same tokens; the next turn sees all that was drawn."""
    params, rows = random_params(), sampling_rows([1.0, 0.7, 1.0], [0, 5, 0])
    tokens, length = TURNS[0]
    free = jax.jit(partial(generate, decoder=DECODER, steps=4))(
        params, keys(3), tokens, length, rows, jnp.array([-1])
    )
    stop = free.tokens[:1, 1]
    cache, position = empty(3)
    read = adding(params, cache, position, tokens, length)
    turn = drawing(params, read.cache, read.position, read.last, keys(3), rows, stop)
    drawn, mask = np.asarray(turn.generated.tokens), np.asarray(turn.generated.mask)
    assert mask[0].tolist() == [True, True, False, False]
    np.testing.assert_array_equal(drawn[mask], np.asarray(free.tokens)[mask])
    np.testing.assert_allclose(
        turn.generated.log_prob[mask], free.log_prob[mask], atol=1e-4
    )
    assert turn.position.tolist() == (length + mask.sum(axis=1)).tolist()
    assert int(turn.num_full) == 0
    after = adding(params, turn.cache, turn.position, *TURNS[2])
    sequences = [
        [*tokens[i, : length[i]], *drawn[i][mask[i]], *TURNS[2][0][i, : TURNS[2][1][i]]]
        for i in range(3)
    ]
    full, found = logits_of(params, sequences), output(params, after.last)
    for i, sequence in enumerate(sequences):
        np.testing.assert_allclose(found[i], full[i, len(sequence) - 1], atol=1e-4)


def test_a_group_of_rollouts_from_one_prompt_has_the_reference_log_probabilities():
    params = random_params()
    prefix = reading(params, PROMPTS, PROMPT_LENGTH)
    cache, position = empty(4)
    turn = drawing(
        params,
        cache,
        position,
        jnp.repeat(prefix.hidden, 2, axis=0),
        keys(4),
        sampling_rows([1.0] * 4),
        jnp.array([-1]),
        prefix=prefix,
    )
    drawn = np.asarray(turn.generated.tokens)
    assert len({tuple(row) for row in drawn}) == 4
    for row in range(4):
        prompt = PROMPTS[row // 2, : PROMPT_LENGTH[row // 2]].tolist()
        full = logits_of(params, [[*prompt, *drawn[row]]])[0]
        for n, token in enumerate(drawn[row]):
            p = reference.probabilities(full[len(prompt) - 1 + n], 1.0, 0, 1.0)
            assert turn.generated.log_prob[row, n] == pytest.approx(
                np.log(p[token]), abs=1e-3
            )


def test_numbers_that_cannot_be_meant():
    params, (cache, position) = random_params(), empty(3)
    with pytest.raises(InputError, match="length: expected 0 to 3, got 4"):
        append(
            params, cache, position, TURNS[0][0], np.array([4, 1, 1]), decoder=DECODER
        )

"""Candidates scored in one pass: equal to a forward pass over each of them."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jerp.errors import InputError, ShapeError
from jerp.models.scoring import score_candidates
from tests.models.tiny import CONFIG, DECODER, random_params
from tests.reference import decoder as reference

PROMPTS, LENGTH = np.array([[1, 2, 3, 0], [4, 5, 0, 0]]), np.array([3, 2])
CANDIDATES = np.array(
    [
        [[7, 8, 9], [7, 8, 0], [7, 0, 0], [6, 6, 6]],
        [[9, 8, 7], [8, 8, 8], [1, 0, 0], [2, 3, 0]],
    ]
)
SIZES = np.array([[3, 2, 1, 0], [3, 3, 1, 2]])
score = jax.jit(partial(score_candidates, decoder=DECODER))


@jax.jit
def both(*arguments):
    """Sums, and means over tokens."""
    return [
        score_candidates(*arguments, decoder=DECODER, normalise=normalise)
        for normalise in (False, True)
    ]


def expected(params, row, number):
    """Token by token, from the probabilities of a full forward pass."""
    prompt = PROMPTS[row, : LENGTH[row]].tolist()
    candidate = CANDIDATES[row, number, : SIZES[row, number]].tolist()
    tokens = np.zeros((1, 8), np.int32)
    tokens[0, : len(prompt) + len(candidate)] = [*prompt, *candidate]
    logits = np.asarray(forward(params, tokens))[0, len(prompt) - 1 :]
    return sum(
        np.log(reference.probabilities(logits[j], 1.0, 0, 1.0)[token])
        for j, token in enumerate(candidate)
    )


forward = jax.jit(DECODER.apply)


def test_scores_equal_full_forward_passes():
    params = random_params()
    found, mean = both(params, PROMPTS, LENGTH, CANDIDATES, SIZES)
    for row in range(2):
        for number in range(4):
            size = SIZES[row, number]
            if size == 0:
                assert found[row, number] == mean[row, number] == np.float32(-1e30)
                continue
            wanted = expected(params, row, number)
            assert float(found[row, number]) == pytest.approx(wanted, abs=1e-4)
            assert float(mean[row, number]) == pytest.approx(wanted / size, abs=1e-4)


def test_padding_may_hold_anything():
    params = random_params()
    clean, _ = both(params, PROMPTS, LENGTH, CANDIDATES, SIZES)
    prompts = np.where(np.arange(4)[None] < LENGTH[:, None], PROMPTS, 39)
    other = np.where(np.arange(3)[None, None] < SIZES[..., None], CANDIDATES, 38)
    dirty, _ = both(params, prompts, LENGTH, other, SIZES)
    np.testing.assert_array_equal(clean, dirty)


def test_one_prompt_without_a_batch_axis_and_candidates_of_one_token():
    """All words as candidates: the distribution of the next token."""
    params = random_params()
    words = jnp.arange(CONFIG.vocab_size)[:, None]
    sizes = jnp.ones(CONFIG.vocab_size, jnp.int32)
    found = score(params, PROMPTS[0], LENGTH[0], words, sizes)
    tokens = np.zeros((1, 8), np.int32)
    tokens[0, :4] = PROMPTS[0]
    logits = np.asarray(forward(params, tokens))[0, LENGTH[0] - 1]
    wanted = np.log(reference.probabilities(logits, 1.0, 0, 1.0))
    np.testing.assert_allclose(found, wanted, atol=1e-4)


def test_gradients_are_finite_with_a_missing_candidate():
    params = random_params()

    def loss(params):
        scores = score_candidates(
            params, PROMPTS, LENGTH, CANDIDATES, SIZES, decoder=DECODER
        )
        return -jnp.sum(jax.nn.log_softmax(scores)[:, 0])

    gradients = jax.tree.leaves(jax.jit(jax.grad(loss))(params))
    assert all(np.isfinite(x).all() for x in gradients)
    assert any(np.abs(x).max() > 1e-3 for x in gradients)


def test_what_cannot_be_meant():
    params, run = random_params(), partial(score_candidates, decoder=DECODER)
    with pytest.raises(InputError, match="length: expected 1 to 4, got 5"):
        run(params, PROMPTS, np.array([5, 2]), CANDIDATES, SIZES)
    with pytest.raises(InputError, match="candidate_length: expected 0 to 3, got 4"):
        run(params, PROMPTS, LENGTH, CANDIDATES, SIZES + 1)
    with pytest.raises(ShapeError, match="candidates"):
        run(params, PROMPTS, LENGTH, CANDIDATES[0], SIZES)
    hidden, _ = both(params, PROMPTS, np.array([5, 2]), CANDIDATES, SIZES)
    assert np.isnan(hidden[0]).all() and np.isfinite(hidden[1]).all()

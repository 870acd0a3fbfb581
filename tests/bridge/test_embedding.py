"""Vectors of texts: what they are, and that nothing but the text decides them."""

from functools import partial

import jax
import numpy as np
import pytest

from jerp.bridge.embedding import TextEmbedder, centred
from jerp.errors import InputError, ShapeError
from jerp.models.decoder import Decoder
from jerp.rules.selection import select_similar
from jerp.storage.weights import list_models, load_weights
from tests.bridge.tiny_model import tiny_model
from tests.rules.pools import pool_of

[SMOLLM2] = (info for info in list_models() if info.name == "smollm2")
SHORT, OTHER, LONG = "Heat it.", "Cool it first.", "Open drawers before shelves."


@pytest.fixture(scope="module")
def model():
    return tiny_model()


@pytest.fixture(scope="module")
def embedder(model):
    return TextEmbedder(model, batch_size=2)


def by_hand(model, text):
    """One text alone, without padding, through the module itself."""
    tokens = np.array([list(text.encode())])
    run = jax.jit(partial(Decoder(model.config).apply, method="hidden"))
    states, _ = run(model.params, tokens, np.arange(tokens.shape[1])[None])
    mean = np.asarray(states, np.float64)[0].mean(axis=0)
    return mean / np.sqrt((mean**2).sum())


def test_a_vector_is_the_mean_of_the_states_at_length_1(model, embedder):
    found = embedder.embed([SHORT, LONG, OTHER])
    assert found.dtype == np.float32 and found.shape == (3, model.config.hidden_size)
    expected = [by_hand(model, text) for text in (SHORT, LONG)]
    np.testing.assert_allclose(found[:2], expected, rtol=1e-4, atol=1e-5)
    assert np.abs(found[0] - found[2]).max() > 0.01


def test_company_and_order_change_no_bit(embedder):
    alone = np.concatenate([embedder.embed([text]) for text in (SHORT, OTHER, LONG)])
    together = embedder.embed([LONG, OTHER, SHORT, "Look.", OTHER])
    np.testing.assert_array_equal(together[[2, 1, 0]], alone)
    np.testing.assert_array_equal(together[4], together[1])


def test_the_longest_text_is_as_long_as_the_context(model, embedder):
    most = model.config.context_length
    [found] = embedder.embed(["x" * most])
    np.testing.assert_allclose(found, by_hand(model, "x" * most), rtol=1e-4, atol=1e-5)
    with pytest.raises(InputError, match=f"1 to {most} tokens, got {most + 1} in .* 1"):
        embedder.embed([SHORT, "x" * (most + 1)])


def test_no_text_has_no_vector(model, embedder):
    assert embedder.embed([]).shape == (0, model.config.hidden_size)
    with pytest.raises(InputError, match="expected 1 to 128 tokens, got 0"):
        embedder.embed([""])
    with pytest.raises(InputError, match="a list of texts, got one"):
        embedder.embed(SHORT)
    with pytest.raises(InputError, match="batch_size: expected a whole number >= 1"):
        TextEmbedder(model, batch_size=0)


def test_a_text_is_nearest_to_itself_among_rules(embedder):
    texts = [SHORT, OTHER, LONG]
    row = {slot: (2.0, slot, 0, 0, 0, 3) for slot in range(3)}
    sets = select_similar(
        pool_of(row, capacity=4),
        np.zeros(3, int),
        embedder.embed(texts),
        embedder.embed(texts),
        num_rules=1,
    )
    assert sets[:, 0].tolist() == [0, 1, 2]


def test_what_all_of_a_kind_share_is_taken_out():
    kind = np.float32([[3, 4, 0], [3, -4, 0], [3, 0, 6]]) / 5
    np.testing.assert_allclose(
        centred(kind, kind),
        [[0, 2, -1] / np.sqrt(5), [0, -2, -1] / np.sqrt(5), [0, 0, 1]],
        atol=1e-6,
    )
    shifted = centred(kind + 7, kind + 7)
    np.testing.assert_allclose(shifted, centred(kind, kind), atol=1e-5)
    assert centred(kind[:1], kind[:1]).tolist() == [[0, 0, 0]]
    with pytest.raises(ShapeError, match=r"kind: expected axes \[M, D\]"):
        centred(kind, kind[:, :2])


# 8 s of processor time; the tests above are of the same functions.
@pytest.mark.slow
@pytest.mark.weights
@pytest.mark.skipif(not SMOLLM2.present, reason="no SmolLM2 weights in the cache")
def test_smollm2_finds_most_rules_once_vectors_are_centred():
    rules = [
        "When you hold what must be hot, heat it in the microwave.",
        "When you hold what must be cold, cool it in the fridge.",
        "When you hold what must be clean, wash it in the sink.",
        "When a shirt costs more than the budget, go back and search again.",
        "When a file is missing, list the folder first.",
    ]
    tasks = [
        "Put a hot potato on the table.",
        "Put a cold tomato on the table.",
        "Put a clean plate on the shelf.",
        "Buy a red shirt that costs less than 30 dollars.",
        "Move the report into the folder of drafts.",
    ]
    embedder = TextEmbedder(load_weights("smollm2"), batch_size=5)
    rule, task = embedder.embed(rules), embedder.embed(tasks)
    nearest = np.argmax(centred(task, task) @ centred(rule, rule).T, axis=1)
    assert (nearest == np.arange(5)).sum() >= 4
    # As they are, one rule is the nearest to nearly all tasks.
    plain = np.argmax(task @ rule.T, axis=1)
    assert np.bincount(plain).max() >= 4

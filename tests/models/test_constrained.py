"""Writing admissible actions: nothing else comes out, and the numbers are exact."""

from functools import partial

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jerp.errors import ShapeError
from jerp.models.constrained import (
    _representatives,
    constrained_log_probs,
    constrained_mask,
    generate_constrained,
)
from jerp.models.continuation import append
from jerp.models.generate import init_cache
from tests.models.tiny import CONFIG, DECODER, random_params
from tests.reference import constrained as reference

# The first action begins the second and the third, the fourth has no sibling at all.
ACTIONS = np.array([[5, 0, 0], [5, 6, 0], [5, 6, 7], [8, 9, 0], [5, 9, 3]], np.int32)
OTHER = ACTIONS[::-1] + (ACTIONS[::-1] > 0)
LEGAL = np.array(
    [
        [True, True, True, True, True],
        [True, False, True, False, False],
        [False, False, False, True, False],
        [False, False, False, False, False],
    ]
)
score = jax.jit(constrained_log_probs)
forward = jax.jit(DECODER.apply)


def random_logits(batch, seed=0):
    return jax.random.normal(jax.random.key(seed), (batch, 3, CONFIG.vocab_size))


def test_by_hand():
    """(5 or 8) 1/2, then (end or 6 or 9) by logits 0, log 2, 0: 1/4, 1/2, 1/4."""
    logits = np.zeros((1, 3, 10), np.float32)
    logits[0, 1, 6] = np.log(2)
    logits[0, 0, 7] = 100.0  # no action begins with it
    halves = -np.log(2)
    for tokens, log_prob, mask, choice in (
        ([5, 0, 0], [halves, 2 * halves, 0], [True, True, False], [True, True, False]),
        ([5, 6, 7], [halves, halves, halves], [True, True, True], [True, True, True]),
        ([8, 9, 0], [halves, 0, 0], [True, True, False], [True, False, False]),
    ):
        found = score(logits, np.array([tokens]), ACTIONS, LEGAL[:1])
        np.testing.assert_allclose(found.token_log_prob[0], log_prob, atol=1e-6)
        assert found.token_mask[0].tolist() == mask
        assert found.choice[0].tolist() == choice
        assert float(found.log_prob[0]) == pytest.approx(sum(log_prob))


@pytest.mark.parametrize("end_token", [0, 12])
def test_all_actions_equal_the_reference_and_add_to_one(end_token):
    actions = np.where(ACTIONS == 0, end_token, ACTIONS)
    logits = np.tile(random_logits(1), (5, 1, 1))
    legal = np.tile(np.array([True, True, True, True, False]), (5, 1))
    found = jax.jit(partial(constrained_log_probs, end_token=end_token))(
        logits, actions, actions, legal
    )
    options = [tuple(row) for row in actions[:4].tolist()]
    for number, tokens in enumerate(options):
        wanted = reference.log_probs(logits[0], tokens, options, end_token)
        for j, (log_prob, entropy, generated) in enumerate(wanted):
            assert bool(found.token_mask[number, j]) == generated
            options_left = reference.next_tokens(tokens[:j], options)
            chosen = generated and len(options_left) > 1
            assert bool(found.choice[number, j]) == chosen
            assert float(found.token_log_prob[number, j]) == pytest.approx(
                log_prob, abs=1e-5
            )
            assert float(found.token_entropy[number, j]) == pytest.approx(
                entropy, abs=1e-5
            )
        assert int(found.action[number]) == number
    assert float(jnp.sum(jnp.exp(found.log_prob[:4]))) == pytest.approx(1, abs=1e-5)
    assert float(found.log_prob[4]) < -1e29
    chex.assert_trees_all_equal(
        constrained_mask(actions, actions, legal, end_token=end_token), found.token_mask
    )


@pytest.mark.parametrize("num_words", [6, 2000], ids=["by words", "by pairs"])
def test_the_first_of_the_actions_with_one_token_stands_for_it(num_words):
    """By hand, by a loop, and bit for bit as all pairs say it."""
    find = jax.jit(_representatives, static_argnums=2)
    words = np.array([[3, 5, 3, 0, 5, 3]])
    alive = np.array([[False, True, True, True, True, True]])
    by_hand = [[False, True, True, True, False, False]]
    assert find(words, alive, num_words).tolist() == by_hand
    random = np.random.default_rng(0)
    words = random.integers(0, 6, (40, 30)).astype(np.int32)
    alive = random.random((40, 30)) < np.linspace(0, 1, 40)[:, None]
    found = np.asarray(find(words, alive, num_words))
    assert found.tolist() == [*map(reference.representatives, words, alive)]
    np.testing.assert_array_equal(
        found, reference.representatives_by_pairs(words, alive)
    )
    # Rows of rows, as those of the places of an action.
    nested = find(words.reshape(8, 5, 30), alive.reshape(8, 5, 30), num_words)
    np.testing.assert_array_equal(np.asarray(nested).reshape(40, 30), found)


def test_an_end_that_is_not_allowed_is_no_padding():
    """Of 5 and 5 6 only the longer may be written: to stop after 5 is off the trie."""
    legal = np.array([[False, True, False, False, False]])
    found = score(random_logits(1), np.array([[5, 0, 0]]), ACTIONS, legal)
    assert float(found.log_prob[0]) < -1e29 and np.isfinite(found.log_prob[0])


def test_gradients_are_finite_everywhere_and_0_in_padding():
    tokens = np.array([[5, 6, 7], [5, 0, 0], [8, 9, 0], [0, 0, 0]])

    @jax.jit
    @jax.grad
    def gradient(logits):
        found = constrained_log_probs(logits, tokens, ACTIONS, LEGAL)
        return jnp.sum(found.token_log_prob[:3]) + jnp.sum(found.token_entropy[:3])

    found = np.asarray(gradient(random_logits(4)))
    assert np.isfinite(found).all() and np.abs(found[0]).max() > 0.01
    assert not found[2].any() and not found[3].any()
    assert not found[1, 2].any()


BATCH = 2000
PROMPT = np.array([[1, 2, 3], [4, 5, 0], [6, 0, 0], [7, 8, 0]])
LENGTH = np.array([3, 2, 1, 2])


@pytest.fixture(scope="module")
def spoken():
    """2,000 rows of four prompts, each with actions of its own."""
    params, batch = random_params(), BATCH

    @jax.jit
    def run(tokens, length, actions, legal):
        cache = init_cache(CONFIG, batch_size=batch, capacity=6)
        start = jnp.zeros(batch, jnp.int32)
        rows = append(params, cache, start, tokens, length, decoder=DECODER)
        keys = jax.random.split(jax.random.key(0), batch)
        return generate_constrained(
            params,
            rows.cache,
            rows.position,
            rows.last,
            keys,
            actions,
            legal,
            decoder=DECODER,
        )

    kind = np.arange(batch) % 4
    actions = np.stack([ACTIONS, ACTIONS, OTHER, OTHER])[kind]
    legal = LEGAL[kind]
    spoken = run(PROMPT[kind], LENGTH[kind], actions, legal)
    return kind, actions, legal, jax.tree.map(np.asarray, spoken)


def test_only_admissible_actions_are_written(spoken):
    _, actions, legal, out = spoken
    live = legal.any(axis=1)
    chosen = out.written.action
    assert legal[np.arange(BATCH), chosen][live].all()
    written = actions[np.arange(BATCH), chosen]
    np.testing.assert_array_equal(out.written.tokens[live], written[live])


def test_one_forward_pass_gives_the_same_numbers(spoken):
    kind, actions, legal, out = spoken
    some = np.arange(40)
    sequences = np.zeros((40, 6), np.int32)
    for row in some:
        n, size = LENGTH[kind[row]], int(out.written.token_mask[row].sum())
        sequences[row, :n] = PROMPT[kind[row], :n]
        sequences[row, n : n + size] = out.written.tokens[row, :size]
    logits = np.asarray(forward(random_params(), sequences))
    before = LENGTH[kind[some]][:, None] - 1 + np.arange(3)[None]
    found = score(
        np.take_along_axis(logits, before[..., None], axis=1),
        out.written.tokens[some],
        actions[some],
        legal[some],
    )
    for name in ("token_log_prob", "token_entropy", "log_prob"):
        x, y = getattr(found, name), getattr(out.written, name)[some]
        live = legal[some].any(axis=1)
        np.testing.assert_allclose(x[live], y[live], atol=1e-4)
    for name in ("tokens", "token_mask", "choice", "action"):
        x, y = getattr(found, name), getattr(out.written, name)[some]
        np.testing.assert_array_equal(x, y)


def test_actions_are_drawn_as_often_as_they_should(spoken):
    kind, _, _, out = spoken
    chosen, log_prob = (
        x[kind == 0] for x in (out.written.action, out.written.log_prob)
    )
    total = 0.0
    for number in range(5):
        rows = chosen == number
        p = float(np.exp(log_prob[rows][0])) if rows.any() else 0.0
        total += p
        assert abs(rows.mean() - p) < 4 * np.sqrt(p * (1 - p) / len(rows)) + 1e-9
    assert total == pytest.approx(1.0, abs=1e-2)


def test_the_cache_holds_what_was_generated_and_nothing_else(spoken):
    kind, _, legal, out = spoken
    written = np.where(legal.any(axis=1), out.written.token_mask.sum(axis=1), 0)
    np.testing.assert_array_equal(out.position, LENGTH[kind] + written)
    for leaf in jax.tree.leaves(out.written):
        assert np.isfinite(leaf).all()


def test_axes_that_do_not_fit():
    with pytest.raises(ShapeError, match="action_tokens: expected axes"):
        constrained_log_probs(random_logits(1), ACTIONS[:1], ACTIONS, LEGAL[:1, :4])

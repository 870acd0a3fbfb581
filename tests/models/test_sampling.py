"""Sampling against sorting and loops, and its limits."""

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jerp.models.sampling import sample_tokens
from tests.conftest import TRANSFORMS
from tests.models.tiny import sampling_rows
from tests.reference import decoder as reference

sample = jax.jit(sample_tokens)


def normal(seed, *shape):
    return 3 * jax.random.normal(jax.random.key(seed), shape)


@pytest.mark.parametrize("name", ["eager", "jit", "vmap_many"])
def test_by_hand(name):
    """Probabilities .5, .25, .25 at temperature 1; an edge goes to the next token."""
    logits = jnp.log(jnp.array([[2.0, 1.0, 1.0]] * 4))
    uniform = jnp.array([0.0, 0.49, 0.5, 0.76])
    token, log_prob = TRANSFORMS[name](sample_tokens)(
        logits, uniform, sampling_rows([1.0] * 4)
    )
    assert token.tolist() == [0, 0, 1, 2]
    np.testing.assert_allclose(log_prob, np.log([0.5, 0.5, 0.25, 0.25]), rtol=1e-6)


@pytest.mark.parametrize("size", [3, 256, 700])
@pytest.mark.parametrize(
    ("temperature", "top_k", "top_p"),
    [(1.0, 0, 1.0), (0.5, 0, 1.0), (2.0, 5, 1.0), (1.0, 0, 0.7), (0.8, 7, 0.6)],
)
def test_equals_sorting_and_loops(size, temperature, top_k, top_p):
    rows = 16
    logits = normal(size, rows, size)
    uniform = jax.random.uniform(jax.random.key(1), (rows,))
    settings = sampling_rows([temperature] * rows, [top_k] * rows, [top_p] * rows)
    token, log_prob = map(np.asarray, sample(logits, uniform, settings))
    logits = np.asarray(logits)
    for row in range(rows):
        p = reference.probabilities(logits[row], temperature, top_k, top_p)
        assert token[row] == reference.draw(p, float(uniform[row]))
        assert log_prob[row] == pytest.approx(np.log(p[int(token[row])]), abs=1e-4)


def test_frequencies_are_the_probabilities():
    """Evenly spaced uniform numbers hit every token in proportion."""
    n, logits = 4000, normal(5, 1, 20)
    uniform = (jnp.arange(n) + 0.5) / n
    token, _ = sample(
        jnp.broadcast_to(logits, (n, 20)), uniform, sampling_rows([1.0] * n, [6] * n)
    )
    expected = reference.probabilities(np.asarray(logits[0]), 1.0, 6, 1.0)
    counts = np.bincount(np.asarray(token), minlength=20)
    np.testing.assert_allclose(counts / n, expected, atol=1.5 / n)


def test_zero_temperature_takes_the_first_largest():
    logits = normal(0, 8, 300).at[1, 100].set(50).at[1, 290].set(50)
    token, log_prob = sample(logits, jnp.full(8, 0.99), sampling_rows([0.0] * 8))
    assert token.tolist() == jnp.argmax(logits, -1).tolist()
    assert token[1] == 100
    assert not log_prob.any()


@pytest.mark.parametrize(
    "narrow",
    [sampling_rows([1.0] * 8, [1] * 8), sampling_rows([1.0] * 8, None, [1e-6] * 8)],
)
def test_narrowest_sampling_is_greedy(narrow):
    logits, uniform = normal(2, 8, 300), jnp.linspace(0, 0.999, 8)
    token, log_prob = sample(logits, uniform, narrow)
    assert token.tolist() == jnp.argmax(logits, -1).tolist()
    np.testing.assert_allclose(log_prob, 0, atol=1e-6)


def test_large_temperature_is_uniform():
    token, log_prob = sample(
        normal(0, 4, 10), jnp.array([0.05, 0.35, 0.65, 0.95]), sampling_rows([1e6] * 4)
    )
    assert token.tolist() == [0, 3, 6, 9]
    np.testing.assert_allclose(log_prob, np.log(0.1), atol=1e-4)


def test_ties_at_the_edge_are_kept():
    logits = jnp.array([[1.0, 1.0, 1.0, 0.0]] * 3)
    settings = sampling_rows([1.0] * 3, [1, 0, 2], [1.0, 0.1, 0.5])
    token, log_prob = sample(logits, jnp.array([0.9, 0.5, 0.1]), settings)
    assert token.tolist() == [2, 1, 0]
    np.testing.assert_allclose(log_prob, np.log(1 / 3), rtol=1e-5)


def test_rows_never_mix():
    """A row draws the same whether its neighbours are narrow, greedy or plain."""
    logits, uniform = normal(3, 8, 300), jnp.linspace(0.1, 0.9, 8)
    plain = sample(logits, uniform, sampling_rows([0.7] * 8))
    others = ([0.7] + [0.0, 0.5] * 3 + [1.0], [0, 3] * 4, [1.0] + [0.5] * 7)
    mixed = sample(logits, uniform, sampling_rows(*others))
    chex.assert_trees_all_equal(
        *(jax.tree.map(lambda x: x[0], r) for r in (plain, mixed))
    )


@pytest.mark.parametrize("uniform", [0.0, 1 - 2**-24])
def test_rounding_never_picks_what_was_cut_off(uniform):
    """Ten thousand equal tokens, the first and the last thousand impossible."""
    logits = jnp.full((1, 10_000), -jnp.inf).at[0, 1000:9000].set(0.3)
    token, log_prob = sample(logits, jnp.array([uniform]), sampling_rows([0.7]))
    assert token[0] == (1000 if uniform == 0 else 8999)
    assert log_prob[0] == pytest.approx(-np.log(8000), rel=1e-4)


@settings(max_examples=40, deadline=None, derandomize=True)
@given(
    st.lists(st.floats(-8, 8, width=32), min_size=12, max_size=12),
    st.floats(0, 1, exclude_max=True, width=32),
    st.integers(0, 12),
    st.sampled_from([0.05, 0.3, 0.8, 1.0]),
)
def test_a_drawn_token_is_among_the_kept(row, uniform, top_k, top_p):
    token, log_prob = sample(
        jnp.array([row]), jnp.array([uniform]), sampling_rows([1.0], [top_k], [top_p])
    )
    better = sum(v > row[int(token[0])] for v in row)
    assert better < (top_k or 12)
    likelier = [np.exp(v) for v in row if v > row[int(token[0])]]
    total = sum(sorted(map(np.exp, row))[::-1][: top_k or 12])
    assert sum(likelier) < top_p * total * (1 + 1e-4)
    assert log_prob[0] <= 1e-6

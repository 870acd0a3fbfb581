"""The test that holds whenever one looks: rational numbers, and its error rate."""

from fractions import Fraction
from functools import cache, partial
from math import log

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jerp.errors import InputError, ShapeError, UnknownNameError
from jerp.estimators.sequential import (
    SequentialVerdict,
    paired_e_value,
    sequential_verdict,
    spent_alpha,
)
from jerp.estimators.sequential_power import pairs_needed
from jerp.estimators.significance import mcnemar_one_sided
from jerp.estimators.votes import first_discordant
from tests.reference import sequential as reference

GRID = np.indices((31, 31), np.int32)
UNDECIDED, ACCEPTED, REJECTED = SequentialVerdict
compiled = jax.jit(sequential_verdict, static_argnames="spending")


@pytest.fixture(autouse=True)
def _strict_dtypes():
    with jax.numpy_dtype_promotion("strict"):
        yield


def test_e_values_by_hand():
    """3/2, 1/2, (1 + 3)/6 = 2/3, 7/3; of n gains alone (2^(n + 1) - 1) / (n + 1)."""
    found = jnp.exp(
        paired_e_value(jnp.array([0, 1, 0, 1, 2, 7]), jnp.array([0, 0, 1, 1, 0, 0]))
    )
    expected = [1, 3 / 2, 1 / 2, 2 / 3, 7 / 3, 255 / 8]
    np.testing.assert_allclose(found, expected, rtol=1e-6)


def test_e_values_against_rational_numbers(transform):
    found = np.asarray(transform(paired_e_value)(*GRID))
    exact = [[float(reference.e_value(b, c)) for c in range(31)] for b in range(31)]
    np.testing.assert_allclose(found, np.log(exact), rtol=1e-6, atol=1e-6)


def test_e_values_are_the_integral():
    found = np.exp(np.asarray(paired_e_value(*GRID), np.float64))
    by_points = [[reference.integral(b, c) for c in range(31)] for b in range(31)]
    np.testing.assert_allclose(found, by_points, rtol=1e-5)


def test_no_fair_pair_is_expected_to_change_e():
    e = np.exp(np.asarray(paired_e_value(*GRID), np.float64))
    np.testing.assert_allclose((e[1:, :-1] + e[:-1, 1:]) / 2, e[:-1, :-1], rtol=1e-5)
    assert (np.diff(e, axis=0) > 0).all() and (np.diff(e, axis=1) < 0).all()


def test_many_pairs():
    b, c = (
        np.array([1000, 0, 500, 700, 600, 300, 90]),
        np.array([0, 1000, 500, 300, 400, 700, 10]),
    )
    found = paired_e_value(b, c)
    exact = [
        reference.e_value(*pair) for pair in zip(b.tolist(), c.tolist(), strict=True)
    ]
    logs = [log(e.numerator) - log(e.denominator) for e in exact]
    np.testing.assert_allclose(found, logs, rtol=2e-7, atol=1e-6)
    assert np.isnan(
        jax.jit(paired_e_value)(jnp.array([-1, 2]), jnp.array([3, -2]))
    ).all()


def test_alpha_by_test(transform):
    number = np.arange(1, 101)
    for spending in ("harmonic_squared", "halving"):
        level = transform(partial(spent_alpha, alpha=0.1, spending=spending))(number)
        expected = [reference.spent(j, 0.1, spending) for j in range(1, 101)]
        np.testing.assert_allclose(level, expected, rtol=1e-6)


def test_alpha_is_spent_and_no_more():
    for spending in ("harmonic_squared", "halving"):
        level = spent_alpha(np.arange(1, 2001), alpha=0.1, spending=spending)
        # What harmonic spending has left after j tests is nearly .6 alpha / j.
        total = np.asarray(level, np.float64).sum()
        assert 0.1 * (1 - 0.7 / 2000) < total <= 0.1 * (1 + 1e-6)
    assert spent_alpha(1, alpha=0.1, spending="halving") < spent_alpha(1, alpha=0.1)


NUMBER = np.where(GRID.sum(0) % 2, 3, 1).astype(np.int32)
PAIRS = GRID.sum(0) + GRID[0] % 4


@cache
def expected_verdicts(spending):
    levels = {j: Fraction(reference.spent(j, 0.1, spending)) for j in (1, 3)}
    rows = zip(*(x.ravel().tolist() for x in (*GRID, PAIRS, NUMBER)), strict=True)
    found = [reference.verdict(b, c, m, 70, levels[j]) for b, c, m, j in rows]
    return np.reshape(found, PAIRS.shape)


def test_verdicts_against_rational_numbers(transform):
    rule = partial(sequential_verdict, max_pairs=70, alpha=0.1)
    found = transform(lambda *x: rule(*x[:3], number=x[3]))(*GRID, PAIRS, NUMBER)
    np.testing.assert_array_equal(found, expected_verdicts("harmonic_squared"))
    assert {*np.asarray(found).ravel().tolist()} == {0, 1, 2}


def test_verdicts_under_the_other_spending():
    found = compiled(
        *GRID, PAIRS, max_pairs=70, number=NUMBER, alpha=0.1, spending="halving"
    )
    expected = expected_verdicts("halving")
    np.testing.assert_array_equal(found, expected)
    assert (expected != expected_verdicts("harmonic_squared")).any()


def test_at_the_cap_there_is_a_verdict():
    found = compiled(*GRID, 60, max_pairs=60, number=1)
    assert not (found == UNDECIDED).any()
    later = compiled(*GRID, 60, max_pairs=61, number=1)
    assert ((found == ACCEPTED) == (later == ACCEPTED)).all()
    assert (later == UNDECIDED).any()


def test_settings_need_no_new_trace_but_spending():
    traced = jax.jit(
        chex.assert_max_traces(sequential_verdict, n=2), static_argnames="spending"
    )
    counts = {"max_pairs": 90, "number": jnp.int32(1), "alpha": jnp.float32(0.05)}
    base = traced(*GRID, 60, **counts)
    for change in (
        {"max_pairs": 60},
        {"number": jnp.int32(5)},
        {"alpha": jnp.float32(0.2)},
    ):
        assert (traced(*GRID, 60, **counts | change) != base).any()
    assert (traced(*GRID, 60, **counts, spending="halving") != base).any()


def test_mistakes_are_named():
    rest = {"max_pairs": 9, "number": 1}
    with pytest.raises(
        InputError, match=r"num_pairs: expected at least gains \+ losses, got 3"
    ):
        sequential_verdict(3, 1, 3, **rest)
    with pytest.raises(
        InputError, match="max_pairs: expected at least num_pairs, got 9"
    ):
        sequential_verdict(3, 1, 10, **rest)
    for wrong in (
        {"number": 0},
        {"alpha": 0.0},
        {"alpha": 1.0},
        {"alpha": float("nan")},
    ):
        [name] = wrong
        with pytest.raises(InputError, match=f"{name}: expected"):
            sequential_verdict(3, 1, 5, **rest | wrong)
    with pytest.raises(UnknownNameError, match="did you mean 'halving'"):
        spent_alpha(1, spending="halve")
    with pytest.raises(InputError, match="gains: expected >= 0, got -1"):
        paired_e_value(-1, 0)
    with pytest.raises(ShapeError, match="gains: expected type int"):
        paired_e_value(1.0, 0)
    with pytest.raises(ShapeError, match="gains, losses: expected shapes"):
        paired_e_value(np.zeros(2, int), np.zeros(3, int))


def test_under_jit_nothing_is_accepted_by_mistake():
    b, c = np.int32(20), np.int32(0)
    assert compiled(b, c, 25, max_pairs=30, number=1) == ACCEPTED
    wrong = (
        {"max_pairs": 22, "number": 1},
        {"max_pairs": 30, "number": 0},
        {"max_pairs": 30, "number": 1, "alpha": 0.0},
    )
    assert all(compiled(b, c, 25, **kind) == UNDECIDED for kind in wrong)
    assert compiled(b, c, 19, max_pairs=30, number=1) == UNDECIDED
    assert compiled(b, -c - 1, 25, max_pairs=30, number=1) == UNDECIDED


# Trees of five revisions, none of them better, each looked at after every pair.


def drawn_counts(key, shape, p_gain, p_loss):
    """Gains and losses `[..., m]` after each pair."""
    uniform = jax.random.uniform(key, shape)
    gain, loss = uniform < p_gain, uniform > 1 - p_loss
    return [jnp.cumsum(x, axis=-1, dtype=jnp.int32) for x in (gain, loss)]


def above(gains, losses, levels):
    """Whether E is ever above 1 / level; the last axis of `gains` is time."""
    size = max(int(gains.max()), int(losses.max())) + 1
    table = np.asarray(paired_e_value(*np.indices((size, size), np.int32)))
    log_e = table[np.asarray(gains), np.asarray(losses)]
    return (log_e.max(-1) >= -np.log(levels)).any(-1)


def assert_at_most(share, level, number):
    assert share <= level + 3 * np.sqrt(level * (1 - level) / number), share


def test_at_most_5_percent_of_trees_accept_what_is_no_better():
    trees, levels = 1000, np.asarray(spent_alpha(np.arange(1, 6)))
    gains, losses = drawn_counts(jax.random.key(0), (trees, 5, 120), 0.25, 0.25)
    share = above(gains, losses, levels).mean()
    assert_at_most(share, 0.05, trees)
    powers = [pairs_needed(0.25, 0.25, alpha=a, max_pairs=120).power for a in levels]
    exact = 1 - np.prod(1 - np.array(powers))
    assert abs(share - exact) < 3 * np.sqrt(exact * (1 - exact) / trees)
    # The exact test of McNemar, looked at as often with the same levels, does not hold.
    size = 121
    p = np.asarray(mcnemar_one_sided(*np.indices((size, size), np.int32)))
    peeked = p[np.asarray(gains), np.asarray(losses)].min(-1) <= levels
    assert peeked.any(-1).mean() > 0.1
    # Nor does a level of .05 for each of thirty revisions.
    again = above(
        *(x.reshape(trees // 6, 30, -1) for x in (gains[:996], losses[:996])), 0.05
    )
    assert again.mean() > 0.2


def test_tasks_that_are_counted_once_a_pair_accept_too_often():
    """Fifteen tasks, each helped or harmed for good by a revision, in eight rounds."""
    trees, levels = 200, np.asarray(spent_alpha(np.arange(1, 6)))
    net = jax.random.rademacher(jax.random.key(1), (trees, 5, 15), jnp.int32)
    net = jnp.tile(net, (1, 1, 8))
    task = jnp.tile(jnp.arange(15), 8)
    once = jax.vmap(jax.vmap(partial(first_discordant, task=task)))(net > 0, net < 0)
    shares = [
        above(
            *(jnp.cumsum(s * x > 0, -1, dtype=jnp.int32) for s in (1, -1)), levels
        ).mean()
        for x in (once, net)
    ]
    assert_at_most(shares[0], 0.05, trees)
    assert shares[1] > 0.3


@pytest.mark.slow
@pytest.mark.parametrize("chance", [0.5, 0.2, 0.05])
@pytest.mark.parametrize("spending", ["harmonic_squared", "halving"])
def test_error_rate_of_ten_thousand_trees(chance, spending):
    trees = 10_000
    levels = np.asarray(spent_alpha(np.arange(1, 6), spending=spending))
    key = jax.random.key(int(1000 * chance))
    shares = [
        above(*drawn_counts(k, (1000, 5, 400), chance, chance), levels)
        for k in jax.random.split(key, trees // 1000)
    ]
    assert_at_most(np.mean(shares), 0.05, trees)

"""Power by hand, against every outcome of small studies, and at its limits."""

from functools import partial

import jax
import numpy as np
import pytest

from jerp.errors import InputError, ShapeError
from jerp.estimators import power as module
from jerp.estimators.changes import expected_changes
from jerp.estimators.power import (
    boundary_power,
    questions_for_power,
    samples_for_power,
)
from jerp.estimators.trinomial import critical_gains, draw_changes, seed_tables
from tests.reference import power as reference
from tests.reference.verdict import tail


def exact(*case, **settings):
    return boundary_power(jax.random.key(0), *case, **settings)


def questions(*case, **settings):
    return questions_for_power(jax.random.key(0), *case, **settings)


def samples(*case, **settings):
    return samples_for_power(jax.random.key(0), *case, **settings)


def test_power_by_hand():
    # Five of five is p = 1/32; four of five 6/32. Of six, five are 7/64, six 1/64.
    assert exact(5, 1.0, 0.0) == 1
    assert exact(4, 1.0, 0.0) == 0
    assert exact(5, 0.5, 0.5) == pytest.approx(1 / 32)
    assert exact(5, 0.5, 0.25) == pytest.approx(1 / 32)
    assert exact(6, 0.5, 0.0) == pytest.approx((6 + 1) / 64)
    assert exact(5, 1.0, 0.0, num_categories=2) == 0, "1/32 is more than .025"
    assert exact(6, 0.5, 0.0, num_categories=2) == pytest.approx(1 / 64)


@pytest.mark.parametrize(
    ("questions", "gain", "loss", "categories"),
    [(9, 0.5, 0.25, 1), (12, 0.75, 0.125, 3), (16, 0.25, 0.25, 2), (20, 0.5, 0, 3)],
)
def test_against_every_outcome(questions, gain, loss, categories):
    found = exact(questions, gain, loss, num_categories=categories)
    expected = reference.power(questions, gain, loss, categories)
    assert found == pytest.approx(expected, rel=1e-10)


@pytest.mark.parametrize("seeds", [2, 3])
def test_seeds_against_every_outcome(seeds):
    case = {2: (6, 0.75, 0.125), 3: (3, 0.75, 0.125)}[seeds]
    studies = 40_000
    found = exact(*case, num_seeds=seeds, num_studies=studies)
    expected = reference.power(*case, seeds=seeds)
    assert 0.1 < expected < 0.9
    error = np.sqrt(expected * (1 - expected) / studies)
    assert found == pytest.approx(expected, abs=3 * error)


def test_alpha_and_categories_ask_for_more():
    # Holm's smallest of four at .05 is one at .0125.
    of_four = exact(60, 0.2, 0.05, num_categories=4)
    assert of_four == exact(60, 0.2, 0.05, alpha=0.0125)
    assert of_four < exact(60, 0.2, 0.05, num_categories=2) < exact(60, 0.2, 0.05)


def test_where_nothing_moves_the_power_is_below_alpha():
    for chance in (0.01, 0.1, 0.25, 0.5):
        for categories in (1, 3):
            found = exact(200, chance, chance, num_categories=categories)
            assert found < 0.05 / categories
    assert exact(200, 0.0, 0.0) == 0


def test_a_spread_between_seeds():
    # Without room for it nothing is spread: a chance of 0 or of all stays.
    assert exact(30, 0.0, 0.0, seed_spread=0.3) == 0
    weak, strong = (0.12, 0.06), (0.3, 0.02)
    spread = {"seed_spread": 0.1}
    assert exact(100, *weak, **spread) > exact(100, *weak), "luck of one seed"
    assert exact(100, *strong, **spread) < exact(100, *strong)
    several = partial(exact, 100, *strong, num_seeds=3, num_studies=2000)
    assert several(seed_spread=0.1) < several() <= 1
    # A tiny one is none.
    assert exact(100, *weak, seed_spread=1e-9) == pytest.approx(exact(100, *weak))


@pytest.mark.parametrize("spread", [0.0, 0.03])
def test_tables_hold_everything_with_the_right_moments(spread):
    number, gain, loss = 2000, 0.1, 0.05
    tables = seed_tables(number, gain, loss, spread)
    net = [(t.gains[:, None] - t.losses) / number for t in tables]

    def expected(values):
        return sum(
            t.weight * (t.mass * v).sum() for t, v in zip(tables, values, strict=True)
        )

    assert expected([1.0] * len(tables)) == pytest.approx(1, rel=1e-10)
    # The losses end three deviations away: little of the normal is cut.
    mean = expected(net)
    assert mean == pytest.approx(gain - loss, rel=1e-10 if not spread else 1e-3)
    questions = (gain + loss - (gain - loss) ** 2) / number
    variance = expected([(x - mean) ** 2 for x in net])
    between = spread**2 * (1 - 1 / number)
    assert variance == pytest.approx(
        questions + between, rel=1e-9 if not spread else 1e-2
    )


def test_draws_have_the_chances_of_the_table():
    tables = seed_tables(3, 0.5, 0.25, 0.1)
    cells = (np.arange(40_000) + 0.5) / 40_000
    which = np.arange(40_000) * 0.6180339887 % 1
    gains, losses = draw_changes(tables, np.stack([which, cells]))
    for b, c in ((0, 0), (1, 1), (3, 0), (0, 3)):
        place = [
            (t.gains.tolist().index(b), t.losses.tolist().index(c)) for t in tables
        ]
        chance = sum(t.weight * t.mass[at] for t, at in zip(tables, place, strict=True))
        share = np.mean((gains == b) & (losses == c))
        assert share == pytest.approx(chance, abs=2e-3)


@pytest.mark.parametrize("level", [0.05, 0.05 / 3, 1e-4])
def test_critical_gains_against_rational_tails(level):
    for n, needed in enumerate(critical_gains(0, 60, level).tolist()):
        assert needed == n + 1 or tail(needed, n - needed) < level
        assert tail(needed - 1, n - needed + 1) >= level
    few = critical_gains(1000, 1003, level)
    for n, needed in zip(range(1000, 1004), few.tolist(), strict=True):
        assert tail(needed, n - needed) < level <= tail(needed - 1, n - needed + 1)


def test_questions_are_the_first_that_reach_the_power():
    found = questions(0.1, 0.02, num_categories=3)
    reached = [exact(n, 0.1, 0.02, num_categories=3) >= 0.8 for n in range(1, 200)]
    assert found == reached.index(True) + 1 == 172
    more = questions(0.1, 0.02, num_categories=3, power=0.95)
    assert more > found
    assert questions(1.0, 0.0) == 5
    seeds = {"num_seeds": 3, "num_studies": 2000}
    alone, three = questions(0.1, 0.02), questions(0.1, 0.02, **seeds)
    assert three > alone, "two degrees of freedom cost more than three seeds bring"
    assert questions(0.1, 0.02, num_seeds=8, num_studies=2000) < alone
    assert questions(0.1, 0.02, seed_spread=0.2, **seeds) is None


def test_no_number_of_questions_where_gains_are_no_likelier(monkeypatch):
    assert questions(0.1, 0.1) is None
    assert questions(0.03, 0.07) is None
    monkeypatch.setattr(module, "MOST_QUESTIONS", 171)
    assert questions(0.1, 0.02, num_categories=3) is None
    monkeypatch.setattr(module, "MOST_QUESTIONS", 172)
    assert questions(0.1, 0.02, num_categories=3) == 172


def test_changes_by_hand_and_by_a_loop():
    # Half of the questions new at .5, the others at .5 for both, two samples each.
    found = expected_changes([0.0, 0.5], [0.5, 0.5], num_samples=2)
    assert found == pytest.approx(((0.75 + 3 / 16) / 2, 3 / 32))
    base, trained, weight = [0.0, 0.3, 0.01], [0.2, 0.4, 0.005], [1, 5, 2]
    found = expected_changes(base, trained, num_samples=64, weight=weight)
    assert found == pytest.approx(reference.changes(base, trained, weight, 64))
    back = expected_changes(trained, base, num_samples=64, weight=weight)
    assert back == pytest.approx(found[::-1])
    # With samples without end, only what the other can never solve is left.
    last = expected_changes(base, trained, num_samples=10**6, weight=weight)
    assert last == pytest.approx((1 / 8, 0))


def test_samples_are_the_first_that_reach_the_power():
    rates = ([0.0, 0.5], [0.05, 0.5])
    weight = [0.1, 0.9]
    found = samples(100, *rates, weight=weight)

    def power(n):
        changes = expected_changes(*rates, num_samples=n, weight=weight)
        return exact(100, *changes)

    assert power(found) >= 0.8 > power(found - 1)
    assert samples(100, *rates, weight=weight, power=0.9) > found
    # Three new questions of 100 are too few for any number of samples.
    assert samples(100, *rates, weight=[0.03, 0.97]) is None


def test_bad_input_is_named():
    for case, message in (
        ((0, 0.1, 0.1), "num_questions: expected a whole number >= 1"),
        ((9, -0.1, 0.1), r"gain: expected in \[0, 1\], got -0.1"),
        ((9, 0.6, 0.6), r"gain, loss: expected a sum of at most 1, .* got 0.6 and 0.6"),
        ((9, float("nan"), 0.1), "gain: expected"),
    ):
        with pytest.raises(InputError, match=message):
            exact(*case)
    for name, value in (
        ("num_categories", 0),
        ("num_seeds", 1.5),
        ("num_studies", 0),
        ("alpha", 0.6),
        ("seed_spread", -1),
    ):
        with pytest.raises(InputError, match=f"{name}: expected"):
            exact(9, 0.2, 0.1, **{name: value})
    with pytest.raises(InputError, match=r"power: expected in \(0, 1\), got 1"):
        questions(0.2, 0.1, power=1)
    with pytest.raises(InputError, match=r"trained: expected in \[0, 1\], got \[2.0\]"):
        expected_changes([0.1], [2.0], num_samples=4)
    with pytest.raises(InputError, match=r"weight: expected a finite sum > 0"):
        expected_changes([0.1], [0.2], num_samples=4, weight=[0])
    with pytest.raises(ShapeError, match=r"trained: expected axes \[Q\] = \[1\]"):
        expected_changes([0.1], [0.2, 0.3], num_samples=4)

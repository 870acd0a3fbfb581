"""How many pairs a test takes: every path of small ones, and simulated tests."""

from fractions import Fraction
from itertools import islice

import jax
import numpy as np
import pytest

from jerp.errors import InputError
from jerp.estimators import sequential_power as module
from jerp.estimators.sequential import (
    SequentialVerdict,
    paired_e_value,
    sequential_verdict,
    spent_alpha,
)
from jerp.estimators.sequential_power import accepting_gains, pairs_needed
from tests.estimators.test_sequential import drawn_counts
from tests.reference import sequential as reference


def test_by_hand():
    """Of gains alone 7/3 < 3 <= 15/4 <= 20 <= 127/7: three accept at 1/3, seven at
    1/20, of which the first six are 127/7 = 18.1."""
    plan = pairs_needed(1.0, 0.0, alpha=1 / 3, calls_per_run=5)
    assert plan == (3, 1.0, 3.0, 30.0, 30.0)
    assert pairs_needed(1.0, 0.0, alpha=0.05).pairs == 7
    # Two pairs never, three with .9^3 = .729, four if at least three of them are gains
    # and none is a loss: .729 + 3 .729 .1 = .9477.
    plan = pairs_needed(0.9, 0.0, alpha=1 / 3)
    assert plan.pairs == 4
    assert plan.power == pytest.approx(0.9477)
    assert plan.expected_pairs == pytest.approx(3 + 1 - 0.729)


@pytest.mark.parametrize(
    ("gain", "loss", "level", "most"),
    [(0.5, 0.125, 0.25, 24), (0.75, 0.25, 0.0625, 16), (0.25, 0.25, 0.125, 20)],
)
def test_against_every_path(gain, loss, level, most):
    powers, expected = reference.power(gain, loss, level, most)
    for pairs in (1, most // 2, most):
        plan = pairs_needed(gain, loss, alpha=level, power=0.999, max_pairs=pairs)
        assert plan.pairs is None
        assert plan.power == pytest.approx(float(powers[pairs]), rel=1e-10)
        assert plan.expected_pairs == pytest.approx(float(expected[pairs]), rel=1e-10)
        assert plan.calls == 2 * pairs
    wanted = float(powers[most // 2]) * 0.999
    plan = pairs_needed(gain, loss, alpha=level, power=wanted, max_pairs=most)
    assert plan.pairs == next(m for m, p in enumerate(powers) if p >= wanted)
    assert plan.expected_calls == pytest.approx(2 * float(expected[plan.pairs]))


@pytest.mark.parametrize("level", [0.3, 0.05, 0.0304, 0.001])
def test_what_is_accepted_against_rational_numbers_and_the_test(level):
    found = list(accepting_gains(level, 120))
    for n in (1, 5, 40, 119, 120):
        enough = [
            g
            for g in range(n + 1)
            if reference.e_value(g, n - g) * Fraction(level) >= 1
        ]
        assert found[n - 1] == min(enough, default=n + 1)
    n = np.arange(1, 121)
    inside = np.array(found) <= n
    at, below = np.array(found)[inside], np.array(found)[inside] - 1
    threshold = -np.log(level)
    assert (np.asarray(paired_e_value(at, n[inside] - at)) >= threshold).all()
    assert (np.asarray(paired_e_value(below, n[inside] - below)) < threshold).all()


def test_many_pairs_stay_exact():
    for n, gains in islice(enumerate(accepting_gains(0.05, 1000), 1), 999, None):
        bounds = [reference.e_value(g, n - g) / 20 for g in (gains, gains - 1)]
        assert bounds[0] >= 1 > bounds[1]


def test_no_better_is_accepted_with_at_most_alpha():
    for chance in (0.5, 0.1):
        plan = pairs_needed(chance, chance, alpha=0.05, max_pairs=1500)
        assert plan.pairs is None
        assert 0.02 < plan.power <= 0.05
    assert pairs_needed(0.1, 0.3, alpha=0.05).power < 0.005
    nothing = pairs_needed(0.0, 0.0, alpha=0.05, max_pairs=7)
    assert nothing == (None, 0.0, 7.0, 14.0, 14.0)


def test_more_is_asked_of_small_gains_small_levels_and_much_power():
    def pairs(gain=0.3, loss=0.1, **settings):
        return pairs_needed(gain, loss, **{"alpha": 0.05} | settings).pairs

    assert pairs() < pairs(gain=0.25) < pairs(gain=0.25, loss=0.12)
    assert pairs() < pairs(alpha=float(spent_alpha(3)))
    assert pairs(power=0.5) < pairs() < pairs(power=0.9)


def test_simulated_tests_find_what_was_planned():
    """The verdict after each pair, until it is none: power, cost, and no lost find."""
    studies, level = 1000, 0.2
    alpha = float(spent_alpha(2, alpha=level))
    plan = pairs_needed(0.3, 0.1, alpha=alpha, power=0.7)
    assert plan.pairs is not None
    counts = drawn_counts(jax.random.key(3), (studies, plan.pairs), 0.3, 0.1)
    so_far = np.arange(1, plan.pairs + 1)
    found = np.asarray(
        sequential_verdict(
            *counts, so_far[None], max_pairs=plan.pairs, number=2, alpha=level
        )
    )
    first = (found != SequentialVerdict.UNDECIDED).argmax(1)
    accepted = found[np.arange(studies), first] == SequentialVerdict.ACCEPTED
    error = np.sqrt(plan.power * (1 - plan.power) / studies)
    assert abs(accepted.mean() - plan.power) < 3 * error
    ever = (found == SequentialVerdict.ACCEPTED).any(1)
    np.testing.assert_array_equal(accepted, ever)
    stop = np.where(
        ever, (found == SequentialVerdict.ACCEPTED).argmax(1) + 1, plan.pairs
    )
    error = stop.std() / np.sqrt(studies)
    assert abs(stop.mean() - plan.expected_pairs) < 3 * error
    assert (first + 1 <= stop).all() and (first + 1).mean() < stop.mean()


@pytest.mark.parametrize(
    ("case", "settings", "message"),
    [
        ((1.1, 0), {}, r"p_gain: expected in \[0, 1\], got 1.1"),
        ((0.5, float("nan")), {}, r"p_loss: expected in \[0, 1\], got nan"),
        ((0.6, 0.6), {}, "p_gain, p_loss: expected a sum of at most 1"),
        ((0.3, 0.1), {"alpha": 0}, r"alpha: expected in \(0, 1\), got 0"),
        ((0.3, 0.1), {"power": 1.0}, r"power: expected in \(0, 1\), got 1.0"),
        ((0.3, 0.1), {"max_pairs": 0}, "max_pairs: expected a whole number >= 1"),
        (
            (0.3, 0.1),
            {"max_pairs": module.MOST_PAIRS + 1},
            "max_pairs: expected at most",
        ),
        ((0.3, 0.1), {"calls_per_run": 0}, "calls_per_run: expected > 0, got 0"),
    ],
)
def test_mistakes_are_named(case, settings, message):
    with pytest.raises(InputError, match=message):
        pairs_needed(*case, **{"alpha": 0.05} | settings)

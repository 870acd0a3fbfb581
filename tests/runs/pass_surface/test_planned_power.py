"""A thousand studies with known success rates against the power that was planned.

A study has three categories, questions of its own for every training seed, and two
agents with 64 samples a question. A question is of one of four kinds, drawn with known
weights. From the counts of successes to the verdict all goes through jerp's functions;
`jerp passkt plan` knows the weights and the rates alone.
"""

from functools import partial
from math import comb

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jerp.estimators.boundary import capability_set
from jerp.estimators.changes import expected_changes
from jerp.estimators.passk import pass_at_k
from jerp.estimators.power import boundary_power
from jerp.estimators.student import student_interval
from jerp.estimators.verdict import (
    BoundaryVerdict,
    boundary_test,
    boundary_verdict,
    task_changes,
)
from jerp.runs.pass_surface.plan import plan
from jerp.runs.pass_surface.plan_settings import PlanSettings

SAMPLES, STUDIES, CATEGORIES = 64, 1000, 3
# Solved by both, at luck's mercy, new, lost.
BASE, TRAINED = (0.3, 0.01, 0.0, 0.1), (0.3, 0.01, 0.1, 0.0)
NOTHING_MOVES, ALL_IS_LUCK = (0.7, 0.2, 0.05, 0.05), (0.0, 1.0, 0.0, 0.0)


def table(rates):
    """i + P(at most c successes) of kind i, for c up to n: it rises, `[4 (n + 1)]`."""
    n = SAMPLES
    mass = [
        [comb(n, c) * p**c * (1 - p) ** (n - c) for c in range(n + 1)] for p in rates
    ]
    below = np.minimum(np.cumsum(mass, axis=1), 1)
    return jnp.asarray((np.arange(4)[:, None] + below).ravel(), jnp.float32)


def solved(key, rates, kind):
    """Tasks with a success in what was drawn for each, `[S, Q]` bool."""
    drawn = kind.astype(jnp.float32) + jax.random.uniform(key, kind.shape)
    place = jnp.searchsorted(table(rates), drawn, side="right").astype(jnp.int32)
    successes = jnp.minimum(place - kind * (SAMPLES + 1), SAMPLES)
    # Above 0 at k = 1 just where it is at every other, which costs more.
    number = jnp.full(kind.shape, SAMPLES)
    return capability_set(pass_at_k(number, successes, k=1)).member


def category(key, weights, spread, *, seeds, questions):
    """Gains, losses and the seeds' means of gain - loss in a category of a study."""
    shifts, kinds, first, second = jax.random.split(key, 4)
    both = weights[2] + weights[3]
    shift = spread * jax.random.normal(shifts, (seeds,)) / 2
    new = jnp.clip(weights[2] + shift, 0, both)
    rest = jnp.broadcast_to(weights[:2], (seeds, 2))
    mine = jnp.concatenate([rest, new[:, None], both - new[:, None]], axis=1)
    drawn = jax.random.uniform(kinds, (seeds, questions))[..., None]
    bounds = jnp.cumsum(mine, axis=1)[:, None, :3]
    kind = jnp.sum(drawn > bounds, axis=-1, dtype=jnp.int32)
    before, after = solved(first, BASE, kind), solved(second, TRAINED, kind)
    gain, loss = after & ~before, before & ~after
    changes = task_changes(gain.reshape(-1), loss.reshape(-1))
    net = gain.astype(jnp.float32) - loss.astype(jnp.float32)
    return changes.gains, changes.losses, jnp.mean(net, axis=1)


def study(key, weights, spread, *, seeds, questions):
    """The verdicts of a study, `[C]`."""
    one = partial(category, seeds=seeds, questions=questions)
    keys = jax.random.split(key, CATEGORIES)
    gains, losses, net = jax.vmap(one, (0, 0, None))(keys, weights, spread)
    interval = student_interval(net.T)
    return boundary_verdict(
        boundary_test(gains, losses),
        seed_low=interval.low,
        seed_high=interval.high,
        efficiency_low=jnp.full(CATEGORIES, jnp.nan),
    )


@partial(jax.jit, static_argnames=("seeds", "questions"))
def studies(key, weights, spread, *, seeds, questions):
    one = partial(study, seeds=seeds, questions=questions)
    keys = jax.random.split(key, STUDIES)
    return jax.vmap(one, (0, None, None))(keys, weights, spread)


def shares(seed, moving, spread, sizes):
    """Of the verdict in the first category, and of any in the others, `[4]` each."""
    weights = jnp.array([moving, NOTHING_MOVES, ALL_IS_LUCK], jnp.float32)
    found = studies(jax.random.key(seed), weights, jnp.float32(spread), **sizes)
    names = np.asarray(found)[..., None] == np.array(BoundaryVerdict)
    return names[:, 0].mean(0), names[:, 1:].any(1).mean(0)


def planned(target, spread, sizes, *, luck, lost):
    """Weights with as many new questions as that power asks for, and `plan`'s power."""

    def weights(new):
        return (1 - luck - new - lost, luck, new, lost)

    def is_enough(new):
        changes = expected_changes(
            BASE, TRAINED, num_samples=SAMPLES, weight=weights(new)
        )
        power = boundary_power(
            jax.random.key(1),
            sizes["questions"],
            *changes,
            num_categories=CATEGORIES,
            num_seeds=sizes["seeds"],
            seed_spread=spread,
        )
        return power >= target

    low, high = 0.0, 0.7
    for _ in range(12):
        middle = (low + high) / 2
        low, high = (low, middle) if is_enough(middle) else (middle, high)
    settings = PlanSettings(
        **sizes,
        samples=SAMPLES,
        expansion=high,
        loss=lost,
        new_rate=TRAINED[2],
        rare=luck,
        rare_rate=BASE[1],
        categories=CATEGORIES,
        seed_spread=spread,
    )
    return weights(high), plan(settings)["power"]


ONE, THREE = ({"seeds": seeds, "questions": 100} for seeds in (1, 3))
LUCKY, RESTLESS = {"luck": 0.2, "lost": 0.02}, {"luck": 0.0, "lost": 0.15}


@pytest.mark.parametrize(
    ("target", "spread", "sizes", "world"),
    [
        *[(target, 0.0, ONE, LUCKY) for target in (0.5, 0.8, 0.95)],
        *[(target, 0.0, THREE, LUCKY) for target in (0.5, 0.8, 0.95)],
        (0.8, 0.05, THREE, RESTLESS),
    ],
)
def test_a_moved_boundary_is_found_as_often_as_planned(target, spread, sizes, world):
    moving, power = planned(target, spread, sizes, **world)
    assert power == pytest.approx(target, abs=0.01)
    found, others = shares(int(100 * target), moving, spread, sizes)
    error = np.sqrt(power * (1 - power) / STUDIES)
    assert found[BoundaryVerdict.EXPANDED] == pytest.approx(power, abs=3 * error)
    assert found[BoundaryVerdict.REGRESSED] == 0
    assert others[BoundaryVerdict.EXPANDED] <= 0.065


@pytest.mark.parametrize("sizes", [ONE, THREE])
@pytest.mark.parametrize("still", [NOTHING_MOVES, ALL_IS_LUCK])
def test_nothing_that_stands_still_is_said_to_move(still, sizes):
    found, others = shares(3, still, 0.0, sizes)
    for name in (BoundaryVerdict.EXPANDED, BoundaryVerdict.REGRESSED):
        assert found[name] + others[name] <= 0.065, "in any of the three"


def test_what_differs_between_seeds_alone_takes_seeds_to_see():
    turning = (0.2, 0.0, 0.4, 0.4)
    (one, _), (three, _) = (shares(4, turning, 0.2, each) for each in (ONE, THREE))
    assert one[BoundaryVerdict.EXPANDED] > 0.1
    assert three[BoundaryVerdict.EXPANDED] <= 0.025 + 3 * np.sqrt(0.025 / STUDIES)

"""Moves as good as the oracle's, against playing every action on by hand."""

from collections import Counter
from functools import partial
from itertools import count

import jax
import numpy as np
import pytest

from experiments.joint_rules.as_good import as_good_moves, judged_moves
from experiments.joint_rules.places import place_named
from jerp.envs.shop_rules import SHOP_TYPES

SHOP, TASKS = place_named("shop"), 256
LANGUAGE = SHOP.env.language


@pytest.fixture(scope="module")
def share():
    return as_good_moves(jax.random.key(3), SHOP, TASKS)


def _cell(kind, situation, move):
    return (
        SHOP_TYPES.index(kind),
        LANGUAGE.situations.index(situation),
        LANGUAGE.moves.index(move),
    )


@pytest.mark.slow
def test_either_of_two_orders_is_as_good_and_a_wrong_choice_is_not(share):
    """Slow: the oracle in a loop in a loop takes seconds to compile."""
    at = ("a size and a colour", "you look at what fits and nothing asked is chosen")
    moves = ("the size that is asked", "the colour that is asked", "another size")
    size, colour, other = (share[_cell(*at, f"choose {move}")] for move in moves)
    assert min(size, colour) > 0.9 > 0.1 > other
    assert share[_cell(*at, "buy it")] < 0.1


@pytest.mark.slow
def test_rare_situations_and_lost_ones_are_not_judged(share):
    visits = np.isfinite(share).any(axis=2)
    assert not visits[:, 0].any()
    assert np.array_equal(visits, np.isfinite(share).all(axis=2))
    few = as_good_moves(jax.random.key(4), SHOP, 2)
    assert np.isnan(few).mean() > 0.9


def test_the_same_by_hand():
    """Every action of some steps of an episode, played on in a plain loop."""
    env, keys = SHOP.env, (jax.random.key(n) for n in count())
    step, oracle = jax.jit(env.step), jax.jit(env.oracle)
    judged = jax.jit(partial(judged_moves, SHOP))
    tasks = SHOP.tasks(next(keys), 4, "train")
    task = jax.tree.map(lambda x: x[3], tasks)

    def finished(state, action):
        """Score and steps, the first included."""
        state, now = step(next(keys), state, action, task)
        steps = 1
        while not (now.terminated or now.truncated):
            state, now = step(next(keys), state, oracle(state, task), task)
            steps += 1
        return float(now.score) if now.terminated else 0.0, steps

    state, now = env.reset(next(keys), task)
    while not now.terminated:
        own = int(oracle(state, task))
        situation, share, known = judged(next(keys), state, own, task)
        best, least = finished(state, own)
        good, every = Counter(), Counter()
        for action in np.flatnonzero(now.legal):
            move = int(LANGUAGE.move(action, situation, task))
            score, steps = finished(state, action)
            every[move] += 1
            good[move] += score >= best - 1e-6 and steps <= least
        expected = [good[m] / max(every[m], 1) for m in range(len(LANGUAGE.moves))]
        np.testing.assert_allclose(share, expected, rtol=1e-6)
        assert known == (best > 0)
        assert share[int(LANGUAGE.move(own, situation, task))] > 0
        state, now = step(next(keys), state, own, task)
    assert now.score > 0

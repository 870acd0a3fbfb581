"""The rule against a walk in rational numbers, by hand, and at its limits."""

import functools
import itertools

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jerp.errors import InputError, ShapeError
from jerp.estimators.significance import mcnemar_one_sided
from jerp.estimators.verdict import (
    BoundaryTest,
    BoundaryVerdict,
    boundary_test,
    boundary_verdict,
    task_changes,
)
from tests.reference import verdict as reference


@functools.partial(jax.jit, static_argnames="alpha")
def _rule(gains, losses, mask, low, high, efficiency, alpha=0.05):
    return boundary_verdict(
        boundary_test(gains, losses, mask=mask),
        seed_low=low,
        seed_high=high,
        efficiency_low=efficiency,
        alpha=alpha,
    )


def verdicts(pairs, seeds, efficiency, **settings):
    """Of up to eight categories; the others are masked, so that one is compiled."""
    size, most = len(pairs), 8
    gains, losses = np.full((2, most), 40, np.int32)
    gains[:size], losses[:size] = np.transpose(pairs)
    low, high, least = np.full((3, most), np.nan, np.float32)
    low[:size], high[:size] = np.transpose([s or (np.nan, np.nan) for s in seeds])
    least[:size] = [np.nan if e is None else e for e in efficiency]
    found = _rule(gains, losses, np.arange(most) < size, low, high, least, **settings)
    assert set(found[size:].tolist()) <= {int(BoundaryVerdict.NOT_ENOUGH_SAMPLES)}
    return [BoundaryVerdict(v).name for v in found[:size].tolist()]


def test_published_counts_move_no_boundary():
    """arXiv:2604.14877: 3:3, 5:1 and 5:1 of the trained, 3:7 and 9:1 beside them."""
    three = [(3, 3), (5, 1), (5, 1)]
    found = boundary_test(*np.int32(three).T)
    assert found.p_up.tolist() == [42 / 64, 7 / 64, 7 / 64]
    assert found.p_up_holm.tolist() == [42 / 64, 21 / 64, 21 / 64]
    assert verdicts(three, [None] * 3, [None] * 3) == ["NOT_ENOUGH_SAMPLES"] * 3
    # Alone, and one-sided, 9:1 is .011: the third of three categories has no such luck.
    assert verdicts([(9, 1)], [None], [None]) == ["EXPANDED"]
    assert verdicts([(9, 1), *three[:2]], [None] * 3, [None] * 3)[0] == "EXPANDED"
    assert verdicts([(3, 7)], [None], [None]) == ["NOT_ENOUGH_SAMPLES"]
    assert verdicts([(0, 7)], [None], [None]) == ["REGRESSED"]


def test_every_case_against_the_walk():
    pairs = [(0, 0), (5, 0), (0, 5), (9, 1), (2, 11), (30, 14)]
    seeds = [None, (0.1, 0.2), (-0.1, 0.2), (-0.2, -0.1)]
    low = [None, 0.1, -0.1]
    cases = list(itertools.product(pairs, seeds, low))
    for size in (1, 3, 8):
        for start in range(0, len(cases) - size, 7):
            chosen = tuple(zip(*cases[start : start + size], strict=True))
            assert verdicts(*chosen) == reference.verdicts(*chosen), chosen


def test_the_seeds_can_only_take_a_verdict_away():
    for pair, kept, other in (
        ((9, 0), (0.01, 0.2), (-0.01, 0.2)),
        ((0, 9), (-0.2, -0.01), (-0.2, 0.01)),
    ):
        (alone,) = verdicts([pair], [None], [None])
        assert verdicts([pair], [kept], [None]) == [alone]
        assert verdicts([pair], [other], [None]) == ["NOT_ENOUGH_SAMPLES"]
        assert verdicts([pair], [other], [0.1]) == ["MORE_EFFICIENT"]
        assert verdicts([pair], [kept], [0.1]) == [alone]
    # Exactly 0 is not above 0.
    assert verdicts([(9, 0)], [(0.0, 0.2)], [0.0]) == ["NOT_ENOUGH_SAMPLES"]


def test_alpha_decides():
    case = [(5, 1)], [None], [None]
    assert verdicts(*case, alpha=0.11) == ["EXPANDED"]
    assert verdicts(*case) == ["NOT_ENOUGH_SAMPLES"]
    with pytest.raises(InputError, match=r"alpha: expected in \(0, 1\), got 0"):
        verdicts(*case, alpha=0)


def test_a_category_without_a_task_is_no_test():
    found = boundary_test(
        jnp.array([6, 0]), jnp.array([0, 0]), mask=jnp.array([True, False])
    )
    assert found.p_up_holm.tolist()[0] == 1 / 64, "a family of one"
    assert np.isnan(found.p_up[1]) and np.isnan(found.p_down_holm[1])
    none = jnp.full(2, jnp.nan)
    named = boundary_verdict(found, seed_low=none, seed_high=none, efficiency_low=none)
    assert named.tolist() == [
        BoundaryVerdict.EXPANDED,
        BoundaryVerdict.NOT_ENOUGH_SAMPLES,
    ]


def test_directions_are_mirrors():
    gains, losses = jnp.array([9, 2, 5]), jnp.array([1, 8, 5])
    one, other = boundary_test(gains, losses), boundary_test(losses, gains)
    np.testing.assert_array_equal(one.p_up_holm, other.p_down_holm)
    np.testing.assert_array_equal(one.p_up, mcnemar_one_sided(gains, losses))


def test_replicates_of_a_task_share_one_vote():
    # Task 3 gains twice of three, 5 loses, 8 is undecided, 9 is masked.
    task = jnp.array([3, 5, 3, 8, 8, 3, 9])
    gain = jnp.array([True, False, True, True, False, False, True])
    loss = jnp.array([False, True, False, False, True, True, False])
    mask = jnp.array([True] * 6 + [False])
    found = task_changes(gain, loss, cluster=task, mask=mask)
    assert (int(found.gains), int(found.losses)) == (1, 1)


def test_changes_against_a_dict(transform):
    rows = np.arange(60)
    gain, loss = rows % 4 == 0, rows % 5 == 1
    gain &= ~loss
    mask = rows % 7 != 0

    def changes(gain, loss, cluster, mask):
        return task_changes(gain, loss, cluster=cluster, mask=mask)

    for size in (1, 3, 17):
        cluster = (rows * 31) % size
        found = transform(jax.jit(changes))(gain, loss, cluster, mask)
        expected = reference.task_changes(gain, loss, cluster, mask)
        assert tuple(map(int, found)) == expected
    alone = task_changes(gain, loss)
    assert tuple(map(int, alone)) == (gain.sum(), loss.sum())


def test_bad_input_is_named():
    rows = np.zeros(3, bool)
    with pytest.raises(ShapeError, match=r"loss: expected axes \[N\] = \[3\], got"):
        task_changes(rows, rows[:2])
    with pytest.raises(ShapeError, match="cluster: expected type int, got float"):
        task_changes(rows, rows, cluster=np.zeros(3))
    with pytest.raises(InputError, match="gains: expected >= 0, got -1"):
        boundary_test(np.array([-1]), np.array([1]))
    test = BoundaryTest(*np.float32([[0.1], [0.9], [0.1], [0.9]]))
    limits = {"seed_low": np.ones(1), "seed_high": np.full(1, np.nan)}
    with pytest.raises(InputError, match="seed_low: expected at most seed_high"):
        boundary_verdict(test, **limits, efficiency_low=np.ones(1))
    with pytest.raises(ShapeError, match=r"efficiency_low: .*\[C\] = \[1\], got \[2\]"):
        boundary_verdict(test, **limits, efficiency_low=np.ones(2))


def test_studies_side_by_side_in_one_trace():
    def rule(gains, losses):
        return boundary_test(gains, losses).p_up_holm

    run = jax.jit(jax.vmap(chex.assert_max_traces(lambda *x: rule(*x), n=1)))
    for shift in range(2):
        gains = np.int32([[9 + shift, 1], [0, 4]])
        losses = np.int32([[1, 9], [0, 4]])
        found = run(gains, losses)
        one = [
            boundary_test(b, c).p_up_holm for b, c in zip(gains, losses, strict=True)
        ]
        np.testing.assert_array_equal(found, np.stack(one))

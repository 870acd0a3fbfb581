"""When training pays: by hand, against loops, bounds where the base falls short."""

import math

import jax
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jerp.errors import InputError, ShapeError
from jerp.estimators.break_even import break_even, pass_between, samples_needed
from jerp.estimators.passk import pass_at_k
from tests.reference import novelty as reference

KS = (1, 2, 4, 8)
CURVE = np.float32([0.1, 0.2, 0.4, 0.5])
NUM_CORRECT = np.array([0, 1, 1, 2, 4, 3])
BASE = np.asarray(pass_at_k(8, NUM_CORRECT, k=KS))
TRAINED = np.asarray(pass_at_k(8, np.minimum(2 * NUM_CORRECT + 1, 8), k=KS))
COSTS = {
    "base_cost": np.float32([3, 4, 5, 6, 7, 8]),
    "trained_cost": np.float32([6, 6, 6, 6, 6, 12]),
}


def found_300(base=BASE, trained=TRAINED, ks=KS, **changed):
    """Gives every array, so that all compile once."""
    keywords = {
        **COSTS,
        "training_cost": 1200.0,
        "cluster": np.arange(6, dtype=np.int32),
        "mask": np.ones(6, bool),
        "num_resamples": 300,
    }
    return break_even(jax.random.key(0), base, trained, ks, **(keywords | changed))


def test_samples_needed_by_hand(transform):
    def needed(curve, targets):
        return jax.vmap(lambda target: samples_needed(curve, KS, target))(targets)

    found = transform(needed)(CURVE, np.float32([0.05, 0.1, 0.15, 0.2, 0.3, 0.5]))
    np.testing.assert_allclose(found, [1, 1, 2**0.5, 2, 2**1.5, 8], rtol=1e-5)


def test_a_target_beyond_the_grid_is_never_reached():
    assert math.isnan(samples_needed(CURVE, KS, 0.51))


@given(
    st.lists(st.integers(0, 8), min_size=4, max_size=4).map(sorted),
    st.integers(0, 8),
)
@settings(max_examples=100, deadline=None, derandomize=True)
def test_samples_needed_against_bisection(counts, target):
    curve = np.float32(counts) / 8
    expected = reference.samples_needed(curve.tolist(), KS, target / 8)
    found = float(_needed(curve, np.float32(target / 8)))
    assert found == pytest.approx(expected, rel=1e-4, nan_ok=True)


def test_between_grid_points_a_curve_is_linear_in_log_k():
    found = pass_between(CURVE, KS, np.float32([1, 2**0.5, 4, 8, 0.9, 9]))
    np.testing.assert_allclose(found[:4], [0.1, 0.15, 0.4, 0.5], rtol=1e-5)
    assert np.isnan(found[4:]).all()


def test_how_many_and_how_much_are_inverses():
    for target in (0.12, 0.2, 0.33, 0.5):
        number = samples_needed(CURVE, KS, target)
        assert float(pass_between(CURVE, KS, number)) == pytest.approx(target, abs=1e-5)


def test_uses_against_the_reference():
    found = found_300()
    expected = reference.uses(
        BASE.tolist(),
        TRAINED.tolist(),
        KS,
        *map(np.ndarray.tolist, COSTS.values()),
        1200,
    )
    assert float(found.uses.point) == pytest.approx(expected, rel=1e-4)
    assert float(found.uses.low) <= float(found.uses.point) <= float(found.uses.high)
    assert bool(found.reached)


def test_costs_by_hand():
    found = found_300()
    ratio = 42 / 33
    assert float(found.affordable.point) == pytest.approx(ratio, rel=1e-5)
    mean = BASE.mean(0)
    at_cost = mean[0] + math.log2(ratio) * (mean[1] - mean[0])
    assert float(found.base_value.point) == pytest.approx(at_cost, rel=1e-5)
    expected = TRAINED[:, 0].mean() - at_cost
    assert float(found.difference.point) == pytest.approx(expected, rel=1e-4)


def test_at_one_price_equal_cost_is_equal_k():
    same = {name: np.full(6, 5, np.float32) for name in COSTS}
    found = found_300(**same)
    np.testing.assert_allclose(
        found.equal_cost.point, (TRAINED - BASE).mean(0), atol=1e-6
    )
    np.testing.assert_allclose(found.difference.point, found.equal_cost.point[0])


def test_a_dearer_trained_agent_cannot_be_run_where_the_base_runs_once():
    found = found_300()
    assert math.isnan(found.equal_cost.point[0]) and math.isnan(found.equal_cost.low[0])
    assert not np.isnan(found.equal_cost.point[1:]).any()


def test_an_agent_is_its_own_equal_and_never_pays_for_itself():
    found = found_300(trained=BASE, trained_cost=COSTS["base_cost"])
    assert float(found.samples.point) == float(found.samples.high) == 1
    assert float(found.saving.point) == pytest.approx(0, abs=1e-5)
    assert math.isinf(found.uses.point) and math.isinf(found.uses.high)


def test_where_the_base_never_gets_there_the_numbers_are_bounds():
    found = found_300(base=np.zeros_like(BASE))
    assert not bool(found.reached)
    assert float(found.samples.point) == float(found.samples.high) == KS[-1]
    saving = KS[-1] * COSTS["base_cost"].mean() - COSTS["trained_cost"].mean()
    assert float(found.saving.point) == pytest.approx(saving)
    assert float(found.uses.point) == pytest.approx(1200 / saving)


def test_uses_grow_with_what_training_cost():
    once, twice = found_300(), found_300(training_cost=2400.0)
    assert float(twice.uses.point) == pytest.approx(2 * float(once.uses.point))
    assert float(found_300(training_cost=0.0).uses.point) == 0


def test_a_task_that_is_masked_or_missing_changes_nothing_else():
    poisoned = BASE.copy()
    poisoned[2] = np.nan
    masked = found_300(
        base=np.where(np.isnan(poisoned), 0.5, poisoned), mask=np.arange(6) != 2
    )
    missing = found_300(base=poisoned)
    assert float(masked.uses.point) == pytest.approx(
        float(missing.uses.point), rel=1e-5
    )
    assert int(missing.uses.num_values) == 5


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"ks": (2, 4, 8, 16)}, "ks: expected 1 as the first"),
        ({"trained": TRAINED[:5]}, r"trained: expected axes \[N, K\]"),
        ({"base_cost": -COSTS["base_cost"]}, "base_cost: expected >= 0"),
        ({"trained_cost": np.ones(5)}, r"trained_cost: expected axes \[N\]"),
        ({"training_cost": -1.0}, "training_cost: expected >= 0"),
    ],
)
def test_what_cannot_be_meant_is_refused(changes, words):
    with pytest.raises((InputError, ShapeError), match=words):
        found_300(**changes)


_needed = jax.jit(lambda curve, target: samples_needed(curve, KS, target))

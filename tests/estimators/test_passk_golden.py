"""pass@k and pass^k against released code and exact values; where jerp differs."""

import json
from fractions import Fraction
from functools import partial
from math import comb
from pathlib import Path

import jax
import numpy as np
import pytest

from jerp.errors import InputError
from jerp.estimators.passk import pass_at_k, pass_hat_k
from jerp.estimators.passk_float64 import pass_at_k_float64, pass_hat_k_float64

GOLDEN = Path(__file__).parents[1] / "golden" / "passk.json"
CASES = {case["name"]: case for case in json.loads(GOLDEN.read_text())["cases"]}
GRIDS = {"small": 70, "n64": 49, "n1024": 42}  # rows
MEANS = ("same_n", "different_n")
TABLES = ("balanced", "partial_rewards")
ESTIMATORS = {
    "pass_at_k": (pass_at_k, pass_at_k_float64),
    "pass_hat_k": (pass_hat_k, pass_hat_k_float64),
}
FLOAT32_ERROR = 1.3e-7  # as measured, see test_passk.py


def test_every_case_is_here():
    assert list(CASES) == [*GRIDS, "k_above_n", *MEANS, *TABLES]
    assert {name: len(CASES[name]["rows"]) for name in GRIDS} == GRIDS


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_grids(estimator):
    device, host = ESTIMATORS[estimator]
    rows = [row for name in GRIDS for row in CASES[name]["rows"]]
    n, c, k = (np.array([row[key] for row in rows]) for key in ("n", "c", "k"))
    exact = np.array([row[f"exact_{estimator}"]["float"] for row in rows])
    peer = np.array([row[f"peer_{estimator}"] for row in rows])
    ks = tuple(np.unique(k).tolist())
    at = (np.arange(len(rows)), np.searchsorted(ks, k))
    np.testing.assert_allclose(device(n, c, k=ks)[at], exact, atol=FLOAT32_ERROR)
    found = host(n, c, k=ks)[at]
    np.testing.assert_allclose(found, exact, rtol=1e-12)
    np.testing.assert_allclose(found, peer, rtol=1e-12)


@pytest.mark.parametrize("name", MEANS)
def test_vector_of_tasks(name):
    case = CASES[name]
    found = pass_at_k(np.array(case["n"]), np.array(case["c"]), k=case["k"])
    np.testing.assert_allclose(found, case["exact_each"], atol=FLOAT32_ERROR)
    found = pass_at_k_float64(case["n"], case["c"], k=case["k"])
    np.testing.assert_allclose(found, case["peer_each"], rtol=1e-12)
    np.testing.assert_allclose(found.mean(), case["peer_mean"], rtol=1e-12)


def counts(rows):
    """Samples and successes of each task, judged as the peer does."""
    tasks = sorted({task for task, _, _ in rows})
    rewards = [[r for t, _, r in rows if t == task] for task in tasks]
    good = [sum(abs(r - 1) <= 1e-6 for r in each) for each in rewards]
    return np.array([len(each) for each in rewards]), np.array(good)


@pytest.mark.parametrize("name", TABLES)
def test_table_of_trials(name):
    case = CASES[name]
    n, c = counts(case["rows_task_trial_reward"])
    exact = case["exact_with_own_n_per_task"]
    ks = tuple(map(int, exact))
    found = pass_hat_k_float64(n, c, k=ks).mean(axis=0)
    np.testing.assert_allclose(found, [float(Fraction(v)) for v in exact.values()])
    np.testing.assert_allclose(found, list(case["peer"]["pass_hat"].values()))
    found = pass_hat_k(n, c, k=ks).mean(axis=0)
    np.testing.assert_allclose(
        found, list(case["peer"]["pass_hat"].values()), atol=1e-7
    )


# Where jerp differs on purpose, with both numbers. The peer's come from the golden set,
# or from its notes where the set has no such row.


def test_more_samples_asked_for_than_there_are_is_undefined():
    """Peer: 1.0, even with no correct sample; jerp: NaN, no estimate exists."""
    rows = CASES["k_above_n"]["rows"]
    assert [row["peer_pass_at_k"] for row in rows] == [1.0] * len(rows) == [1.0] * 5
    n, c, k = (np.array([row[key] for row in rows]) for key in ("n", "c", "k"))
    ks = tuple(np.unique(k).tolist())
    for estimators in ESTIMATORS.values():
        for function in estimators:
            found = function(n, c, k=ks)[np.arange(len(rows)), np.searchsorted(ks, k)]
            assert np.isnan(found).all()


def test_no_samples_are_no_estimate():
    """Peer: 1.0 for n = 0; jerp: NaN."""
    assert np.isnan(pass_at_k(0, 0, k=1))
    assert np.isnan(pass_at_k_float64(0, 0, k=1))


def test_more_correct_than_sampled_is_an_error():
    """Peer: 1.0 for c > n; jerp: refused, and NaN where only the device can see it."""
    with pytest.raises(InputError, match="num_correct: expected <= num_samples, got 4"):
        pass_at_k(3, 4, k=1)
    assert np.isnan(jax.jit(partial(pass_at_k, k=1))(3, 4))


def test_a_budget_of_none_is_an_error():
    """Peer: 0.0 for k = 0; jerp: refused."""
    with pytest.raises(InputError, match="k: expected whole numbers >= 1, got 0"):
        pass_at_k(3, 1, k=0)


def over_distinct_trials(rows, k):
    """The peer's table: C(number of distinct trials in the file, k) for every task."""
    _, c = counts(rows)
    distinct = len({trial for _, trial, _ in rows})
    return np.mean([comb(each, k) / comb(distinct, k) for each in c.tolist()])


def test_a_missing_trial_is_no_failure():
    """Peer: 2/3, the trial that is missing counts as failed; jerp: 5/6, own n."""
    rows = [(0, 0, 1.0), (0, 1, 1.0), (1, 0, 1.0), (2, 0, 1.0), (2, 1, 0.0)]
    n, c = counts(rows)
    np.testing.assert_allclose(over_distinct_trials(rows, 1), 2 / 3)
    np.testing.assert_allclose(pass_hat_k(n, c, k=1).mean(), 5 / 6, rtol=1e-6)
    # With both trials asked for, the task that has one gives no estimate at all.
    np.testing.assert_array_equal(pass_hat_k(n, c, k=2), np.float32([1, np.nan, 0]))


def test_a_trial_recorded_twice_gives_no_more_than_one():
    """Peer: 1.5; jerp: 1.0 from three samples, refused as three of two."""
    rows = [(0, 0, 1.0), (0, 1, 1.0), (0, 1, 1.0)]
    n, c = counts(rows)
    assert over_distinct_trials(rows, 1) == 1.5
    assert pass_hat_k(n, c, k=1).tolist() == [1.0]
    with pytest.raises(InputError, match="num_correct"):
        pass_hat_k(2, c, k=1)

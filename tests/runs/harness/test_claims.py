"""Support against gain and prediction against outcome, on invented domains."""

import jax
import pytest

from jerp.runs.harness.claims import (
    SUPPORT,
    prediction_check,
    prediction_pairs,
    support_check,
)
from tests.runs.harness.made_results import two_domains


def test_support_that_orders_the_gains_correlates_fully():
    found = support_check(jax.random.key(0), two_domains())
    assert len(found["points"]) == 2 * 2 * 2  # domains, difficulties, AWR arms
    by_measure = found["correlation"]["awr"]
    assert set(by_measure) == set(SUPPORT)
    assert by_measure["headroom"]["coefficient"] == pytest.approx(1.0)
    assert by_measure["effective_sample_share"]["coefficient"] == pytest.approx(-1.0)
    # A share that never differs orders nothing.
    assert by_measure["tasks_with_spread"]["coefficient"] is None
    assert "bc" not in found["correlation"]


def test_headroom_is_best_less_mean():
    (point, *_) = support_check(jax.random.key(0), two_domains())["points"]
    assert point["headroom"] == pytest.approx(0.5 - 0.3)
    assert (point["domain"], point["arm"], point["difficulty"]) == (
        "coding",
        "awr",
        "0",
    )


def test_predictions_are_compared_with_outcomes_seed_by_seed():
    found = prediction_check(jax.random.key(0), two_domains())["ordinary"]
    # Two domains, three arms, two seeds; seed 1 comes out .01 above what was said.
    assert (found["judged"], found["refused"]) == (12, 0)
    assert found["bias"] == pytest.approx(-0.005)
    assert found["mean_error"] == pytest.approx(0.005)
    assert found["coverage"] == found["overlap"] == 1.0
    assert found["correlation"]["n"] == 12
    assert found["correlation"]["coefficient"] > 0.9


def test_what_misses_its_interval_is_not_covered():
    domains = two_domains()
    for said in domains["coding"]["prediction"]["awr"]:
        said["methods"]["ordinary"] = {"point": 0.9, "low": 0.85, "high": 0.95}
    found = prediction_check(jax.random.key(0), domains)["ordinary"]
    assert found["coverage"] == found["overlap"] == pytest.approx(10 / 12)


def test_refused_predictions_enter_no_number():
    domains = two_domains(refused=("doubly_robust",))
    found = prediction_check(jax.random.key(0), domains)["doubly_robust"]
    assert (found["judged"], found["refused"]) == (6, 6)
    names = {name for name, *_ in prediction_pairs(domains, "doubly_robust")}
    assert names == {"research"}
    every = two_domains(refused=("ordinary",))
    every["research"] = every["coding"]
    assert prediction_check(jax.random.key(0), every)["ordinary"] == {
        "judged": 0,
        "refused": 12,
    }

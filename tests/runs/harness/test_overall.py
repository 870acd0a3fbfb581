"""Macro averages, sign test and Holm over invented domains."""

import jax
import numpy as np
import pytest

from jerp.runs.harness.overall import overall
from tests.runs.harness.made_results import two_domains


@pytest.fixture(scope="module")
def numbers():
    return overall(jax.random.key(0), two_domains())


def test_every_domain_weighs_alike_whatever_its_tasks(numbers):
    # Means .1 and .4 of two and of six tasks: .25, where all tasks alike give .325.
    assert numbers["base"]["q"]["point"] == pytest.approx(0.25)
    assert numbers["awr"]["difference"]["q"]["point"] == pytest.approx((0.2 + 0.4) / 2)
    # HMS is half of Q in these results.
    assert numbers["awr"]["difference"]["hms"]["point"] == pytest.approx(0.15)


def test_tasks_are_resampled_within_domains(numbers):
    # Only the two tasks of one domain differ: their mean is 0, .1 or .2 in a resample.
    low, high = (numbers["base"]["q"][k] for k in ("low", "high"))
    assert (low, high) == (pytest.approx(0.2), pytest.approx(0.3))


def test_sign_test_and_holm_by_hand(numbers):
    sign = numbers["bc"]["sign"]
    assert (sign["positive"], sign["negative"]) == (2, 0)
    assert sign["p"] == sign["smallest_p"] == 0.5
    # Two raw p-values of .01: the smaller counts twice, the larger cannot be below it.
    assert list(numbers["bc"]["holm"]) == ["coding", "research"]
    np.testing.assert_allclose(list(numbers["bc"]["holm"].values()), 0.02, rtol=1e-6)
    assert "sign" not in numbers["base"]


def test_an_undefined_task_is_left_out_of_its_domain():
    domains = two_domains()
    domains["research"]["arms"]["base"]["q_by_task"][0] = float("nan")
    found = overall(jax.random.key(0), domains)
    assert found["base"]["q"]["point"] == pytest.approx(0.25)

"""Arguments of the estimators: what is refused, with the words it is refused in."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jerp.errors import ConfigError, InputError, ShapeError, UnknownNameError
from jerp.estimators.arguments import broadcast_counts
from jerp.estimators.bands import simultaneous_band
from jerp.estimators.boundary import boundary_change, unsolved_upper_bound
from jerp.estimators.crossing import crossing_k
from jerp.estimators.intervals import bootstrap_interval, paired_difference
from jerp.estimators.passk import pass_at_k, pass_hat_k
from jerp.estimators.proportion import wilson_interval
from jerp.estimators.significance import mcnemar_exact
from jerp.estimators.standard_error import clustered_standard_error
from jerp.estimators.summary import (
    interquartile_mean,
    performance_profile,
    probability_of_improvement,
)
from jerp.estimators.surface import pass_at_k_t

KEY = jax.random.key(0)
ROWS = np.float32([0.0, 1.0, 0.5, 0.25])
SOLVED = np.array([True, False, True])
RUNS = np.zeros((2, 3), np.float32)
WIDE = np.array([1, 1, 2**32 + 1, 2**32 + 1])
interval = partial(bootstrap_interval, KEY, ROWS)
surface = partial(pass_at_k_t, ks=(1,), horizons=(1,), announced=False)

REFUSED = {
    "wide cluster": (
        lambda: interval(cluster=WIDE),
        r"cluster: expected int32, got 4294967297 at \[2\] \(2 of 4 wrong\)",
    ),
    "wide cluster in a list": (
        lambda: interval(cluster=WIDE.tolist()),
        "cluster: expected int32, got 4294967297",
    ),
    "wide cluster of a pair": (
        lambda: paired_difference(KEY, ROWS, ROWS, cluster=WIDE),
        "cluster: expected int32, got 4294967297",
    ),
    "wide cluster of an error": (
        lambda: clustered_standard_error(ROWS, cluster=WIDE),
        "cluster: expected int32, got 4294967297",
    ),
    "wide strata": (
        lambda: simultaneous_band(KEY, ROWS, strata=WIDE),
        "strata: expected int32, got 4294967297",
    ),
    "wide values": (
        lambda: bootstrap_interval(KEY, WIDE),
        "values: expected int32, got 4294967297",
    ),
    "wide samples": (
        lambda: pass_at_k(np.array([2**32 + 4]), np.array([1]), k=1),
        r"num_samples: expected at most 2\^31 - 1 .*float64.*, got 4294967300",
    ),
    "samples beyond int32": (
        lambda: pass_hat_k(2**31, 1, k=1),
        r"num_samples: expected at most 2\^31 - 1 .*, got 2147483648",
    ),
    "wide trials": (
        lambda: wilson_interval(np.array([3]), np.array([2**32 + 10])),
        r"num_trials: expected at most 2\^31 - 1, got 4294967306 at \[0\]",
    ),
    "wide gains": (
        lambda: mcnemar_exact(np.array([2**32 + 9]), np.array([1])),
        r"gains: expected at most 2\^31 - 1, got 4294967305",
    ),
    "wide number of samples": (
        lambda: unsolved_upper_bound(2**32 + 1),
        r"num_samples: expected at most 2\^31 - 1, got 4294967297",
    ),
    "float cluster": (
        lambda: interval(cluster=ROWS),
        "cluster: expected type int, got float32",
    ),
    "float strata": (
        lambda: interval(strata=ROWS),
        "strata: expected type int, got float32",
    ),
    "short cluster": (
        lambda: interval(cluster=np.arange(3)),
        r"cluster: expected axes \[N\] = \[4\], got \[3\]",
    ),
    "short mask": (
        lambda: interval(mask=np.ones(5, bool)),
        r"mask: expected axes \[N\] = \[4\], got \[5\]",
    ),
    "float mask": (
        lambda: interval(mask=np.ones(4)),
        "mask: expected type bool, got float64",
    ),
    "a list of numbers": (
        lambda: bootstrap_interval(KEY, [0.0, 1.0]),
        r"values\[0\]: expected axes \[N, ...\], .* got \[\]. .* by np.asarray",
    ),
    "arrays of two lengths": (
        lambda: bootstrap_interval(KEY, {"a": ROWS, "b": ROWS[:2]}),
        r"values\['b'\]: expected axes .* got \[2\]",
    ),
    "no array": (
        lambda: bootstrap_interval(KEY, {}),
        r"values: expected an array \[N, ...\], got \{\}",
    ),
    "a whole surface": (
        lambda: simultaneous_band(KEY, surface(RUNS, np.ones((2, 3), np.int32))),
        r"values\S+: expected axes .*: surface.estimate",
    ),
    "infinite values": (
        lambda: bootstrap_interval(KEY, np.where(ROWS > 0, np.inf, ROWS)),
        r"values: expected finite numbers, or NaN for none, got inf at \[1\] \(3 of 4",
    ),
    "infinite curves": (
        lambda: simultaneous_band(KEY, np.float32([[1, 2], [3, -np.inf]])),
        r"values: expected finite numbers.* got -inf at \[1, 1\]",
    ),
    "an infinite half of a pair": (
        lambda: paired_difference(KEY, ROWS, np.where(ROWS > 0.5, np.inf, ROWS)),
        r"^b: expected finite numbers.* got inf at \[1\]",
    ),
    "infinite curves of an agent": (
        lambda: crossing_k(KEY, RUNS, RUNS - np.inf, (1, 2, 4)),
        r"^b: expected finite numbers.* got -inf at \[0, 0\]",
    ),
    "a number for a key": (
        lambda: bootstrap_interval(0, ROWS),
        r"key: expected one key, as jax.random.key\(0\) is, got 0",
    ),
    "two keys": (
        lambda: bootstrap_interval(jax.random.split(KEY), ROWS),
        r"key: expected one key, .* got key<fry> \[2\]",
    ),
    "float resamples": (
        lambda: interval(num_resamples=2e3),
        "num_resamples: expected a whole number >= 1, got 2000.0",
    ),
    "an axis for a weight": (
        lambda: interval(jnp.mean),
        r"statistic: expected a function \(values, weight \[N\]\).* got mean, which "
        "raised",
    ),
    "a cluster for a statistic": (
        lambda: interval(np.arange(4)),
        "statistic: expected a function .* got ndarray. .* cluster=",
    ),
    "a text for a bool": (
        lambda: interval(cluster=np.arange(4), resample_within="no"),
        "resample_within: expected True or False, got 'no'",
    ),
    "pairs of two lengths": (
        lambda: paired_difference(KEY, ROWS, ROWS[:2]),
        r"b: expected axes \[N\] = \[4\], got \[2\]",
    ),
    "curves of one axis": (
        lambda: crossing_k(KEY, ROWS, ROWS, (1, 2)),
        r"a: expected axes \[N, K\].* got \[4\]",
    ),
    "curves of other tasks": (
        lambda: crossing_k(KEY, RUNS, RUNS[:1], (1, 2, 4)),
        r"b: expected axes \[N, K\] = \[2, 3\], got \[1, 3\]",
    ),
    "float budgets": (
        lambda: crossing_k(KEY, RUNS, RUNS, (1, 2.5, 4)),
        r"ks: expected whole numbers .* got \(1, 2.5, 4\)",
    ),
    "float sets": (
        lambda: boundary_change(ROWS, ROWS),
        "a: expected type bool, got float32",
    ),
    "sets of other tasks": (
        lambda: boundary_change(SOLVED, SOLVED[:2]),
        r"b: expected axes \[N\] = \[3\], got \[2\]",
    ),
    "float trials": (
        lambda: wilson_interval(1.0, np.nan),
        "num_successes: expected type int, got float",
    ),
    "counts that do not fit": (
        lambda: wilson_interval([1, 2], [3, 4, 5]),
        r"num_successes, num_trials: expected shapes .* got \[2\] and \[3\]",
    ),
    "samples that do not fit": (
        lambda: pass_at_k(np.ones(3), np.ones(2), k=1),
        r"num_samples, num_correct: expected shapes .* got \[3\] and \[2\]",
    ),
    "float gains": (
        lambda: mcnemar_exact(1.5, 2.0),
        "gains: expected type int, got float64",
    ),
    "long weights": (
        lambda: interquartile_mean(ROWS, np.ones(3)),
        r"weight: expected axes \[N\] = \[4\], got \[3\]",
    ),
    "weights of two axes": (
        lambda: interquartile_mean(RUNS, RUNS),
        r"weight: expected axes \[N\] = \[2\], got \[2, 3\]",
    ),
    "scores without runs": (
        lambda: probability_of_improvement(ROWS, ROWS),
        r"a: expected axes \[N, M\].* got \[4\]",
    ),
    "scores of other tasks": (
        lambda: probability_of_improvement(RUNS, RUNS[:1]),
        r"b: expected axes \[N, L\] = \[2, 3\], got \[1, 3\]",
    ),
    "float mask of runs": (
        lambda: probability_of_improvement(RUNS, RUNS, mask_b=RUNS),
        "mask_b: expected type bool, got float32",
    ),
    "a mask of other runs": (
        lambda: performance_profile(RUNS, ROWS, mask=np.ones((3, 2), bool)),
        r"mask: expected axes \[N, K\] = \[2, 3\], got \[3, 2\]",
    ),
    "thresholds of two axes": (
        lambda: performance_profile(RUNS, RUNS),
        r"thresholds: expected axes \[K\].* got \[2, 3\]",
    ),
    "float outcomes": (
        lambda: surface(RUNS, RUNS),
        "outcome: expected type int, got float32",
    ),
    "bool outcomes": (
        lambda: surface(RUNS, RUNS > 0),
        "outcome: expected type int, got bool",
    ),
    "a mask of tasks": (
        lambda: surface(RUNS, np.ones((2, 3), int), mask=np.ones(2, bool)),
        r"mask: expected axes \[N, M\] = \[2, 3\], got \[2\]",
    ),
    "float mask of samples": (
        lambda: surface(RUNS, np.ones((2, 3), int), mask=RUNS),
        "mask: expected type bool, got float32",
    ),
    "outcomes of other tasks": (
        lambda: surface(RUNS, np.ones((1, 3), int)),
        r"outcome: expected axes \[N, M\] = \[2, 3\], got \[1, 3\]",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refused_by_name(name):
    call, message = REFUSED[name]
    with pytest.raises(InputError, match=message):
        call()


def test_an_axis_or_type_is_a_shape_error():
    for name in ("float mask", "short cluster", "float trials", "a whole surface"):
        with pytest.raises(ShapeError):
            REFUSED[name][0]()


def test_a_method_that_is_none_is_answered_with_the_nearest():
    with pytest.raises(UnknownNameError, match="did you mean 'bca'"):
        interval(method="BCa")


def test_copies_pass_for_samples_in_no_statistic_but_a_mean():
    with pytest.raises(ConfigError, match=r"resample_within: .* got interquartile_me"):
        interval(
            interquartile_mean, cluster=np.int32([0, 0, 1, 1]), resample_within=True
        )


def test_what_is_masked_may_be_infinite():
    mask = np.array([True, True, True, False])
    poisoned = np.where(mask, ROWS, np.inf)
    assert float(bootstrap_interval(KEY, poisoned, mask=mask).point) == 0.5


def test_lists_are_arrays():
    tasks, mask = [7, 7, 3, 5], [True, True, True, False]
    lists = interval(cluster=tasks, mask=mask)
    arrays = interval(cluster=np.array(tasks), mask=np.array(mask))
    assert float(lists.low) == float(arrays.low)
    difference = paired_difference(KEY, [0.0, 1.0, 2.0], [1.0, 1.0, 2.5])
    assert float(difference.point) == -0.5
    crossing = crossing_k(KEY, [[0.5, 0.5]] * 2, [[0.25, 0.75]] * 2, [1, 4])
    assert float(crossing.k.point) == 2.0
    assert float(interquartile_mean([1.0, 2, 3], [1, 1, 1])) == 2.0
    assert surface([[0.5, 2.0]], [[1, 1]]).num_correct.tolist() == [[1]]
    assert float(clustered_standard_error([0, 1, 0, 1.0])) == pytest.approx(1 / 12**0.5)


def test_counts_broadcast():
    assert wilson_interval([1, 2], 10).point.tolist() == pytest.approx([0.1, 0.2])
    assert [x.dtype for x in broadcast_counts(n=2**31 - 1)] == [jnp.int32]

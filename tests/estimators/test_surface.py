"""PASS@(k, T): by hand, over all subsets, and what no horizon or crash may do."""

from functools import partial

import chex
import jax
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jerp.errors import InputError, UnknownNameError
from jerp.estimators.passk import pass_at_k
from jerp.estimators.surface import pass_at_k_t
from jerp.typing import Outcome
from tests.reference import surface as reference

FAIL, GOOD, CUT, BAD, INFRA = map(int, Outcome)
NAN = np.nan
# Five samples a task; task 2 has three, task 3 has none that answered.
SPENT = np.float32(
    [
        [1, 3, 2, 5, 4],
        [2, 2, 9, 1, NAN],
        [1, 6, 2, NAN, 1e30],
        [NAN, NAN, 1, 2, 9],
    ]
)
OUTCOME = np.int32(
    [
        [GOOD, GOOD, FAIL, INFRA, CUT],
        [BAD, GOOD, INFRA, FAIL, INFRA],
        [FAIL, GOOD, GOOD, 99, -7],
        [INFRA, INFRA, INFRA, INFRA, INFRA],
    ]
)
MASK = np.ones((4, 5), bool)
MASK[2, 3:] = False
KS, HORIZONS = (1, 2, 4), (1, 2, 4, 8)
GRID = {"ks": KS, "horizons": HORIZONS, "announced": False}
# A separate set of runs for each horizon, none above it.
RESPENT = np.minimum(np.stack([SPENT] * 4), np.float32(HORIZONS)[:, None, None])
RERUN_OUTCOME = np.stack([OUTCOME, OUTCOME[:, ::-1], np.roll(OUTCOME, 2, 1), OUTCOME])
RERUN_OUTCOME = np.where((RERUN_OUTCOME < 0) | (RERUN_OUTCOME > 4), 0, RERUN_OUTCOME)
RERUN_OUTCOME = np.where(np.isnan(RESPENT), INFRA, RERUN_OUTCOME).astype(np.int32)
REMASK = np.stack([MASK] * 4)

PARTS = ("estimate", "low", "high")


@pytest.fixture(autouse=True)
def _strict_dtypes():
    with jax.numpy_dtype_promotion("strict"):
        yield


def nested(spent, outcome, mask, **changes):
    return pass_at_k_t(spent, outcome, mask=mask, **{**GRID, **changes})


def rerun(spent, outcome, mask, **changes):
    return nested(spent, outcome, mask, protocol="rerun", **changes)


def arrays(surface):
    return jax.tree.map(np.asarray, surface)


def test_by_hand():
    """Two successes at 1 and 3, a failure, a crash at 5, a run cut at 4."""
    s = nested(SPENT, OUTCOME, MASK, min_coverage=0.8)
    assert s.num_correct[0].tolist() == [1, 1, 2, 2]
    assert s.num_infrastructure[0].tolist() == [0, 0, 0, 1]
    assert s.num_samples[0].tolist() == [5, 5, 5, 4]
    np.testing.assert_allclose(s.coverage[0], [1, 1, 1, 0.8])
    # Unfinished at T = 4, the crash at 5 is a failure; at T = 8 nobody knows it.
    np.testing.assert_allclose(
        s.estimate[0], [[0.2, 0.2, 0.4, 0.5], [0.4, 0.4, 0.7, 5 / 6], [0.8, 0.8, 1, 1]]
    )
    np.testing.assert_allclose(s.low[0, :2, 3], [0.4, 0.7])
    np.testing.assert_allclose(s.high[0, :2, 3], [0.6, 0.9])


@pytest.mark.parametrize("min_coverage", [0.0, 0.7, 1.0])
@pytest.mark.parametrize("function", [nested, rerun])
def test_equals_all_subsets(function, min_coverage):
    runs = (SPENT, OUTCOME, MASK)
    if function is rerun:
        runs = (RESPENT, RERUN_OUTCOME, REMASK)
    expected = reference.surface(
        *runs,
        ks=KS,
        horizons=HORIZONS,
        nested=function is nested,
        min_coverage=min_coverage,
    )
    found = function(*runs, min_coverage=min_coverage)
    for part, truth in zip(PARTS, expected, strict=True):
        np.testing.assert_allclose(getattr(found, part), truth, atol=1e-7)
    assert np.isnan(expected[0]).any() and not np.isnan(expected).all()


def test_parity(transform):
    def surfaces(*runs):
        return nested(*runs[:3]), rerun(*runs[3:])

    runs = (SPENT, OUTCOME, MASK, RESPENT, RERUN_OUTCOME, REMASK)
    chex.assert_trees_all_close(
        arrays(transform(surfaces)(*runs)), arrays(surfaces(*runs)), rtol=1e-6
    )


def test_what_does_not_exist_does_not_matter():
    clean = arrays(nested(SPENT, OUTCOME, MASK))
    assert clean.num_invalid == 0
    for poison in (np.nan, 1e30, -1.0):
        dirty = np.where(MASK, SPENT, np.float32(poison))
        chex.assert_trees_all_equal(arrays(nested(dirty, OUTCOME, MASK)), clean)
    other = np.where(MASK, OUTCOME, GOOD)
    chex.assert_trees_all_equal(arrays(nested(SPENT, other, MASK)), clean)


def test_a_task_is_not_moved_by_the_others_or_by_the_order_of_samples():
    whole = nested(SPENT, OUTCOME, MASK)
    order = np.array([3, 0, 4, 1, 2])
    alone = nested(SPENT[1:2], OUTCOME[1:2], MASK[1:2])
    shuffled = nested(SPENT[:, order], OUTCOME[:, order], MASK[:, order])
    for part in (*PARTS, "num_correct", "coverage"):
        np.testing.assert_array_equal(getattr(shuffled, part), getattr(whole, part))
        np.testing.assert_array_equal(getattr(alone, part)[0], getattr(whole, part)[1])


def test_mixed_numbers_of_samples_have_their_own_n():
    """Task 2 has three samples: no estimate and no bounds at k = 4, the others do."""
    s = nested(SPENT, OUTCOME, MASK, min_coverage=0.0)
    for part in PARTS:
        assert np.isnan(getattr(s, part)[2, 2]).all()
        assert not np.isnan(getattr(s, part)[2, :2]).any()
    assert not np.isnan(s.low[:2]).any()
    assert s.num_samples[2].tolist() == [3] * 4
    none = nested(SPENT, OUTCOME, MASK & (np.arange(4) != 1)[:, None])
    for part in (*PARTS, "coverage"):
        assert np.isnan(getattr(none, part)[1]).all()


def test_refused_where_too_few_answered():
    """Task 3 at T = 8: four of five crashed by then; the bounds say all there is."""
    s = nested(SPENT, OUTCOME, MASK)
    np.testing.assert_allclose(s.coverage[3], [0.4, 0.2, 0.2, 0.2])
    assert np.isnan(s.estimate[3]).all()
    assert s.low[3].tolist() == np.zeros((3, 4)).tolist()
    np.testing.assert_allclose(s.high[3, 0], [0.6, 0.8, 0.8, 0.8], rtol=1e-6)
    # An outage is not a green run: with nothing refused there still is no estimate.
    crashed = np.zeros_like(SPENT), np.full_like(OUTCOME, INFRA)
    every = nested(*crashed, None, min_coverage=0.0)
    assert np.isnan(every.estimate).all() and every.num_samples.sum() == 0


def test_coverage_at_the_limit_is_enough():
    spent = np.ones((1, 10), np.float32)
    outcome = np.array([[GOOD] * 9 + [INFRA]])
    s = pass_at_k_t(spent, outcome, ks=(1,), horizons=(2,), announced=None)
    assert s.estimate.tolist() == [[[1.0]]]
    refused = pass_at_k_t(
        spent, outcome, ks=(1,), horizons=(2,), announced=None, min_coverage=0.91
    )
    assert np.isnan(refused.estimate).all()


def test_a_rerun_of_the_truncated_runs_is_the_nested_surface():
    """Cut at T, an unfinished run is TRUNCATED with T spent."""
    over = np.stack([h < SPENT for h in HORIZONS])
    spent = np.where(over, np.float32(HORIZONS)[:, None, None], SPENT)
    outcome = np.where(over, CUT, OUTCOME).astype(np.int32)
    again = rerun(spent, outcome, REMASK)
    once = nested(SPENT, OUTCOME, MASK)
    for part in (*PARTS, "coverage", "num_samples", "num_correct"):
        np.testing.assert_array_equal(getattr(again, part), getattr(once, part))


def test_a_wide_horizon_is_plain_pass_at_k():
    s = nested(SPENT, OUTCOME, MASK, horizons=(0, 1, 2, 100), min_coverage=0.0)
    n, c, u = np.array([[5, 5, 3, 5], [2, 1, 2, 0], [1, 2, 0, 5]])
    np.testing.assert_allclose(s.estimate[..., 3], pass_at_k(n - u, c, k=KS))
    np.testing.assert_allclose(s.low[..., 3], pass_at_k(n, c, k=KS))
    np.testing.assert_allclose(s.high[..., 3], pass_at_k(n, c + u, k=KS))


def test_only_success_is_success():
    spent = np.ones_like(SPENT)
    for ended in (FAIL, CUT, BAD):
        s = nested(spent, np.full_like(OUTCOME, ended), None)
        assert s.high.max() == 0 and s.num_samples.min() == 5


def test_settings_are_recorded_and_change_what_they_say():
    s = nested(SPENT, OUTCOME, MASK, announced=None, unit="dollars", min_coverage=0.5)
    assert (s.ks, s.horizons) == (KS, HORIZONS)
    assert (s.protocol, s.announced, s.unit) == ("nested", None, "dollars")
    assert s.min_coverage == 0.5
    assert nested(SPENT, OUTCOME, MASK).unit == "steps"
    assert nested(SPENT, OUTCOME, MASK, announced=True).announced is True
    default = nested(SPENT, OUTCOME, MASK)
    assert np.isnan(default.estimate).sum() > np.isnan(s.estimate).sum()
    with pytest.raises(TypeError, match="announced"):
        pass_at_k_t(SPENT, OUTCOME, ks=KS, horizons=HORIZONS)


def test_mean_over_tasks():
    s = nested(SPENT, OUTCOME, MASK, ks=(1, 2))
    mean = s.mean()
    # Tasks 0 (coverage .8 at T = 8), 1 and 3 are refused somewhere.
    assert (int(mean.num_estimated), int(mean.num_bounded)) == (1, 4)
    np.testing.assert_allclose(mean.estimate, s.estimate[2], rtol=1e-6)
    np.testing.assert_allclose(mean.low, np.mean(s.low, axis=0), rtol=1e-6)
    np.testing.assert_allclose(mean.high, np.mean(s.high, axis=0), rtol=1e-6)
    with_four = nested(SPENT, OUTCOME, MASK).mean()  # task 2 has three samples only
    assert (int(with_four.num_estimated), int(with_four.num_bounded)) == (0, 3)
    assert np.isnan(with_four.estimate).all() and not np.isnan(with_four.low).any()


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"ks": (1, 6)}, r"ks: expected at most M = 5, .* got 6"),
        ({"ks": (2, 1)}, "ks: expected strictly increasing"),
        ({"ks": (1, 1)}, "ks: expected strictly increasing"),
        ({"ks": (0, 1)}, "ks: expected whole numbers >= 1"),
        ({"ks": (1.5,)}, "ks: expected whole numbers"),
        ({"ks": ()}, "ks: expected whole numbers"),
        ({"horizons": (2, 1)}, "horizons: expected finite numbers >= 0, strictly"),
        ({"announced": "yes"}, "announced: expected True, False or None, got 'yes'"),
        ({"announced": 1}, "announced"),
        ({"min_coverage": 1.1}, r"min_coverage: expected \[0, 1\], got 1.1"),
        ({"min_coverage": NAN}, "min_coverage"),
        ({"protocol": "nestled"}, "protocol 'nestled'; did you mean 'nested'"),
        ({"unit": "step"}, "unit 'step'; did you mean 'steps'"),
        ({"protocol": "rerun"}, r"expected \[H = 4, N, M\] for protocol 'rerun'"),
    ],
)
def test_bad_settings_are_named(changes, message):
    with pytest.raises((InputError, UnknownNameError), match=message):
        nested(SPENT, OUTCOME, MASK, **changes)


WRONG = [
    ("spent", NAN, r"spent: expected >= 0, and NaN only for INFRASTRUCTURE, got nan"),
    ("spent", -1.0, r"spent: expected >= 0, .* got -1.0 at \[0, 2\]"),
    ("outcome", 5, r"outcome: expected an Outcome, 0 to 4, got 5 at \[0, 2\]"),
    ("outcome", -1, "outcome: expected an Outcome"),
]


jitted_nested = jax.jit(nested)


@pytest.mark.parametrize(("name", "value", "message"), WRONG)
def test_bad_runs_are_named_or_counted(name, value, message):
    runs = {"spent": SPENT.copy(), "outcome": OUTCOME.copy(), "mask": MASK}
    runs[name][0, 2] = value
    with pytest.raises(InputError, match=message):
        nested(**runs)
    s = jitted_nested(*runs.values())
    clean = nested(SPENT, OUTCOME, MASK)
    assert int(s.num_invalid) == 1
    for part in (*PARTS, "coverage"):
        assert np.isnan(getattr(s, part)[0]).all()
        np.testing.assert_array_equal(getattr(s, part)[1:], getattr(clean, part)[1:])


def test_a_rerun_that_spent_more_than_its_horizon_is_no_rerun():
    spent = RESPENT.copy()
    spent[1, 0, 2] = 2.5
    with pytest.raises(
        InputError,
        match=r"spent: expected at most T in a rerun, got 2.5 at \[1, 0, 2\]",
    ):
        rerun(spent, RERUN_OUTCOME, REMASK)
    s = jax.jit(rerun)(spent, RERUN_OUTCOME, REMASK)
    clean = rerun(RESPENT, RERUN_OUTCOME, REMASK)
    assert int(s.num_invalid) == 1
    assert np.isnan(s.low[0, :, 1]).all() and np.isnan(s.coverage[0, 1])
    rest = [0, 2, 3]
    np.testing.assert_array_equal(s.low[0][:, rest], clean.low[0][:, rest])


def test_one_trace_per_shape_and_grid():
    @partial(jax.jit, static_argnames="horizons")
    @chex.assert_max_traces(n=2)
    def traced(spent, outcome, horizons):
        return nested(spent, outcome, None, horizons=horizons)

    for ended in range(4):
        traced(np.ones((2, 5), np.float32), np.full((2, 5), ended), (1, 2))
    traced(np.ones((2, 5), np.float32), np.full((2, 5), GOOD), (1, 3))
    with pytest.raises(AssertionError, match="traced"):
        traced(np.ones((2, 5), np.float32), np.full((2, 5), GOOD), (1, 4))


def test_unbiased_and_bounded_where_the_chances_are_known():
    """Solved with p = .3 after 1 to 5 steps alike; 10% crash at random; 4 errors."""
    rng = np.random.default_rng(5)
    shape = (4000, 16)
    solved, crashed = rng.random(shape) < 0.3, rng.random(shape) < 0.1
    spent = rng.integers(1, 6, shape)
    outcome = np.where(crashed, INFRA, solved.astype(np.int32))
    s = pass_at_k_t(
        spent,
        outcome,
        ks=(1, 4),
        horizons=(2, 5),
        announced=False,
        min_coverage=0.0,
    )
    mean = s.mean()
    # By T = 5 the crashed runs are left out. By T = 2 only the 2/5 of them that had
    # crashed by then: .9 x .3 x .4 of the runs are known successes, .04 are unknown.
    truth = np.array([0.27 * 0.4 / 0.96, 0.3])
    for i, k in enumerate((1, 4)):
        value = np.asarray(s.estimate[:, i], np.float64)
        error = 4 * value.std(axis=0) / np.sqrt(len(value))
        assert (np.abs(value.mean(axis=0) - (1 - (1 - truth) ** k)) < error).all()
        assert (error < 0.02).all()
    assert (mean.low < mean.estimate).all() and (mean.estimate < mean.high).all()


RUN = st.tuples(st.integers(0, 9), st.integers(0, 4), st.booleans())
RUNS = st.lists(RUN, min_size=18, max_size=18)
PROPERTY = jax.jit(
    partial(nested, ks=(1, 2, 3, 6), horizons=(0, 2, 5, 9), min_coverage=0.0)
)


@settings(max_examples=200, deadline=None)
@given(RUNS, st.integers(0, 17))
def test_properties_of_any_runs(runs, which):
    spent, outcome, mask = (np.array(x).reshape(3, 6) for x in zip(*runs, strict=True))
    spent, outcome = spent.astype(np.float32), outcome.astype(np.int32)
    spent[(outcome == INFRA) & (spent == 9)] = np.nan
    which = divmod(which, 6)
    mask[which] = True
    s = arrays(PROPERTY(spent, outcome, mask))
    assert s.num_invalid == 0
    for part in PARTS:
        value = getattr(s, part)
        for axis in (1, 2):  # grows with k and T, exactly
            assert not (np.diff(value, axis=axis) < 0).any()
    assert not (s.estimate < s.low - 1e-6).any()
    assert not (s.estimate > s.high + 1e-6).any()
    existing = mask.sum(axis=1)[:, None]
    np.testing.assert_array_equal(s.num_samples + s.num_infrastructure - existing, 0)
    certain = s.num_infrastructure == 0
    same = np.moveaxis(s.low, 1, 2)[certain], np.moveaxis(s.high, 1, 2)[certain]
    np.testing.assert_array_equal(*same)
    # A success at once, whatever it was before, lowers nothing.
    spent[which], outcome[which] = 0, GOOD
    better = arrays(PROPERTY(spent, outcome, mask))
    for part in ("low", "high", "num_correct"):
        assert not (getattr(better, part) < getattr(s, part)).any()

"""pass@k and pass^k: by hand, against rational numbers, and where they must agree."""

from functools import partial

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jerp.errors import InputError
from jerp.estimators.passk import budgets, check_counts, pass_at_k, pass_hat_k
from jerp.estimators.passk_float64 import pass_at_k_float64, pass_hat_k_float64
from tests.reference import passk as reference

DEVICE = (pass_at_k, pass_hat_k)
HOST = (pass_at_k_float64, pass_hat_k_float64)
EXACT = (reference.at_least_one, reference.all_of_them)
# All counts of up to six samples: every case of an empty, full or too small sample.
SMALL = np.array([(n, c) for n in range(7) for c in range(n + 1)], np.int32).T


@pytest.fixture(autouse=True)
def _strict_dtypes():
    with jax.numpy_dtype_promotion("strict"):
        yield


def exact_table(exact, counts, ks):
    return np.array([[float(exact(*map(int, nc), k)) for k in ks] for nc in counts.T])


def both(num_samples, num_correct, *, k):
    return [function(num_samples, num_correct, k=k) for function in DEVICE]


def test_by_hand():
    """Two of four: 1 - C(2, 2) / C(4, 2) = 5/6, and C(2, 2) / C(4, 2) = 1/6."""
    at, hat = both(np.int32([4, 4, 4, 2]), np.int32([2, 0, 4, 1]), k=2)
    np.testing.assert_allclose(at, [5 / 6, 0, 1, 1], atol=1e-7)
    np.testing.assert_allclose(hat, [1 / 6, 0, 1, 0], atol=1e-7)


def test_every_small_count_equals_the_reference(transform):
    ks = tuple(range(1, 8))
    undefined = SMALL[0][:, None] < np.array(ks)
    results = transform(partial(both, k=ks))(*SMALL)
    for found, host, exact in zip(results, HOST, EXACT, strict=True):
        expected = exact_table(exact, SMALL, ks)
        assert found.dtype == jnp.float32
        np.testing.assert_allclose(found, expected, atol=1e-7)
        np.testing.assert_array_equal(np.isnan(found), undefined)
        np.testing.assert_allclose(host(*SMALL, k=ks), expected, rtol=1e-12)


def test_the_reference_counts_subsets():
    for n, c in SMALL.T:
        successes = [True] * c + [False] * (n - c)
        for k in range(1, n + 1):
            for combine, exact in zip((any, all), EXACT, strict=True):
                counted = reference.over_subsets(successes, k, combine)
                assert counted == exact(int(n), int(c), k)


def test_float32_is_as_accurate_as_measured():
    """Worst errors over all k and, up to n = 1024, all c, as measured.

    | n | pass@k absolute, relative | pass^k absolute, relative above 1e-30 |
    | --- | --- | --- |
    | 16 | 4.5e-8, 1.8e-7 | 2.4e-8, 5.0e-7 |
    | 64 | 6.6e-8, 2.1e-7 | 4.9e-8, 6.3e-6 |
    | 256 | 9.0e-8, 3.0e-7 | 6.2e-8, 1.3e-5 |
    | 1024 | 1.23e-7, 3.9e-7 | 8.3e-8, 1.4e-5 |

    Multiplying the factors instead is off by up to 4.8e-7, 5.8e-6 at n = 1024 for
    pass@k, and by 8e-6 for pass^k of c near n; lgamma by 1e-4 at n = 200.
    """
    ks = tuple(range(1, 1025))
    some = {64: range(65), 1024: [*range(0, 1024, 93), 1, 1023, 1024]}
    n, c = np.array([(n, c) for n, each in some.items() for c in each]).T
    bounds = ((1.3e-7, 4e-7), (9e-8, 1.5e-5))
    for device, host, (absolute, relative) in zip(DEVICE, HOST, bounds, strict=True):
        truth = host(n, c, k=ks)
        error = np.abs(np.asarray(device(n, c, k=ks), np.float64) - truth)
        assert np.nanmax(error) < absolute
        visible = truth > 1e-30
        assert (error[visible] / truth[visible]).max() < relative


def test_tiny_values_keep_their_digits():
    """A plain 1 - prod gives 1e-6 only to a few digits in float32."""
    found = float(pass_at_k(1_000_000, 1, k=1))
    np.testing.assert_allclose(found, 1e-6, rtol=2e-7)


def test_shapes_and_broadcasting():
    c = np.arange(6, dtype=np.int32).reshape(2, 3)
    for function in (*DEVICE, *HOST):
        single, several = function(8, c, k=3), function(8, c, k=(1, 3))
        assert (single.shape, several.shape) == ((2, 3), (2, 3, 2))
        assert function(8, 2, k=[3]).shape == (1,)
        np.testing.assert_array_equal(several[..., 1], single)
        np.testing.assert_array_equal(function(8, c, k=(3, 1)), several[..., ::-1])


def test_one_sample_is_the_share_of_successes():
    n, c = SMALL[:, 1:]
    for function in DEVICE:
        np.testing.assert_array_equal(function(n, c, k=1), np.float32(c / n))
        assert not np.array_equal(function(n, c, k=2), np.float32(c / n))
    for function in HOST:
        np.testing.assert_allclose(function(n, c, k=1), c / n, rtol=1e-15)


def test_all_samples_are_exactly_any_and_all():
    for n in (3, 200):
        c = np.arange(n + 1)
        for at, hat in (DEVICE, HOST):
            np.testing.assert_array_equal(at(n, c, k=n), np.float32(c > 0))
            np.testing.assert_array_equal(hat(n, c, k=n) == 1, c == n)
            np.testing.assert_array_equal(hat(n, c, k=n) > 0, c == n)
            assert not np.signbit(at(n, c, k=n)).any()


def test_the_textbook_formula_is_biased_downwards():
    """1 of 4 correct: every draw of 4 holds it, but 1 - (3/4)^4 = .684."""
    n, c = 4, np.arange(1, 4)
    textbook = 1 - (1 - c / n) ** 4
    np.testing.assert_allclose(textbook[0], 0.68359375)
    np.testing.assert_array_equal(pass_at_k(n, c, k=4), np.ones(3, np.float32))
    c = np.arange(1, 33)
    textbook = 1 - (1 - c / 64) ** 16
    assert (pass_at_k_float64(64, c, k=16) > textbook).all()


def test_unbiased_where_the_chance_is_known():
    """20,000 tasks of 8 samples at p = .2; 4 standard errors."""
    c = (np.random.default_rng(3).random((20_000, 8)) < 0.2).sum(axis=1)
    for function, truth in ((pass_at_k, 1 - 0.8**3), (pass_hat_k, 0.2**3)):
        value = np.asarray(function(8, c, k=3), np.float64)
        error = value.std() / np.sqrt(len(value))
        assert abs(value.mean() - truth) < 4 * error < 0.01


ALL_KS = tuple(range(1, 33))
jitted = [jax.jit(partial(function, k=ALL_KS)) for function in DEVICE]
COUNTS = st.lists(
    st.integers(0, 32).flatmap(lambda n: st.tuples(st.just(n), st.integers(0, n))),
    min_size=8,
    max_size=8,
)


@settings(max_examples=200, deadline=None)
@given(COUNTS)
def test_properties_of_any_counts(counts):
    n, c = np.array(counts, np.int32).T
    at, hat = (np.asarray(function(n, c)) for function in jitted)
    for found, host in ((at, pass_at_k_float64), (hat, pass_hat_k_float64)):
        some = (1, 5, 32)
        np.testing.assert_allclose(
            found[:, np.array(some) - 1], host(n, c, k=some), atol=1e-7
        )
        real = found[~np.isnan(found)]
        assert ((real >= 0) & (real <= 1)).all()
    assert not (np.diff(at, axis=1) < 0).any()
    assert not (np.diff(hat, axis=1) > 0).any()
    np.testing.assert_allclose(at, 1 - np.asarray(jitted[1](n, n - c)), atol=1.3e-7)
    more = np.minimum(c + 1, n)
    assert not (np.asarray(jitted[0](n, more)) < at).any()


@pytest.mark.parametrize(
    ("num_samples", "num_correct", "message"),
    [
        (3, 4, "num_correct: expected <= num_samples, got 4"),
        (0, 1, "num_correct: expected <= num_samples, got 1"),
        (3, -1, "num_correct: expected whole numbers >= 0, got -1"),
        (-1, -1, "num_samples: expected whole numbers >= 0, got -1"),
        (3.5, 1, r"num_samples: expected whole numbers >= 0, got 3\.5"),
        (4, 0.25, r"num_correct: expected whole numbers >= 0, got 0\.25"),
        (np.nan, 0, "num_samples: expected whole numbers >= 0, got nan"),
        ([2, 5], [2, 6], r"num_correct: .* got 6 at \[1\] \(1 of 2 wrong\)"),
    ],
)
def test_bad_counts_are_named_or_nan(num_samples, num_correct, message):
    n, c = np.asarray(num_samples), np.asarray(num_correct)
    for function in (*DEVICE, *HOST):
        with pytest.raises(InputError, match=message):
            function(n, c, k=1)
    with pytest.raises(InputError, match=message):
        check_counts(n, c)
    # The first of two tasks is sound where the bad counts are one task's.
    n, c = (np.append(np.float32(good), x)[-2:] for good, x in ((2, n), (2, c)))
    for found in jitted_once(n, c):
        assert np.isnan(found[1]) and found[0] == 1


jitted_once = jax.jit(partial(both, k=1))


@pytest.mark.parametrize(
    "k", [0, -2, 1.0, True, (), (1, 0), (2, True), "4", None, np.array([1, 2])]
)
def test_bad_budgets_are_refused(k):
    for function in (*DEVICE, *HOST):
        with pytest.raises(InputError, match="k: expected whole numbers"):
            function(4, 2, k=k)
    with pytest.raises(InputError, match="ks: expected whole numbers"):
        budgets(k, name="ks")


def test_a_budget_that_is_traced_is_refused():
    with pytest.raises(InputError, match="known before tracing"):
        jax.jit(lambda k: pass_at_k(4, 2, k=k))(2)


def test_whole_numbers_of_any_type_are_counts():
    for kind in (np.int64, np.uint8, np.float32, jnp.bfloat16):
        assert pass_at_k(np.array(4, kind), np.array(1, kind), k=np.int32(2)) == 0.5


def test_one_trace_per_shape_and_budget():
    @partial(jax.jit, static_argnames="k")
    @chex.assert_max_traces(n=2)
    def traced(num_samples, num_correct, *, k):
        return pass_at_k(num_samples, num_correct, k=k)

    for c in range(4):
        traced(jnp.int32([4, 6]), jnp.int32([c, c]), k=(1, 2))
        traced(jnp.int32([4, 6]), jnp.int32([c, c]), k=3)
    with pytest.raises(AssertionError, match="traced"):
        traced(jnp.int32([4, 6]), jnp.int32([1, 1]), k=4)


def test_a_budget_beyond_all_samples_costs_nothing():
    """4 GB a count otherwise, for a NaN."""
    found = pass_at_k(10**6, 5, k=(1, 10**9))
    assert found[0] == np.float32(5e-6) and np.isnan(found[1])
    assert np.isnan(pass_hat_k(np.array([4, 2]), 1, k=10**9)).all()
    mixed = pass_at_k(np.array([4, 2]), 1, k=(2, 4, 8))
    np.testing.assert_array_equal(np.isnan(mixed), [[0, 0, 1], [0, 1, 1]])
    np.testing.assert_allclose(mixed[0, :2], [0.5, 1.0], rtol=1e-6)
    assert pass_at_k(np.zeros(0), np.zeros(0), k=3).shape == (0,)

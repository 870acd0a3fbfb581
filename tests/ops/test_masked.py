"""Masked reductions against numpy.ma, with poisoned padding and finite gradients."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jerp.ops.masked import (
    categorical_entropy,
    masked_log_softmax,
    masked_mean,
    masked_sum,
    masked_variance,
    safe_exp,
    safe_sqrt,
    standardize,
)

X = np.array(
    [[1.5, -2.0, 3.25, 0.5], [4.0, 0.25, -1.0, 2.0], [7.0, 7.0, 7.0, 7.0]], np.float32
)
MASK = np.array([[1, 1, 0, 1], [1, 0, 0, 0], [0, 0, 0, 0]], bool)
AXES = (None, 0, 1)


def poisoned(poison):
    return np.where(MASK, X, np.float32(poison))


def reference(axis, ddof=0):
    """Sum, mean, variance by numpy.ma in float64, 0 where undefined."""
    data = np.ma.masked_array(X.astype(np.float64), ~MASK)
    count = data.count(axis=axis)
    with np.errstate(invalid="ignore", divide="ignore"):
        variance = np.ma.filled(data.var(axis=axis), 0) * count / (count - ddof)
    variance = np.where(count > ddof, variance, 0)
    return (
        np.ma.filled(data.sum(axis=axis), 0),
        np.ma.filled(data.mean(axis=axis), 0),
        variance,
    )


@pytest.mark.parametrize("poison", [0.0, np.nan, np.inf, 1e30])
@pytest.mark.parametrize("axis", AXES)
def test_reductions_equal_numpy_ma(axis, poison):
    x = poisoned(poison)
    total, mean, variance = reference(axis)
    np.testing.assert_allclose(masked_sum(x, MASK, axis=axis), total, rtol=1e-6)
    np.testing.assert_allclose(masked_mean(x, MASK, axis=axis), mean, rtol=1e-6)
    np.testing.assert_allclose(masked_variance(x, MASK, axis=axis), variance, rtol=1e-6)
    np.testing.assert_allclose(
        masked_variance(x, MASK, axis=axis, ddof=1), reference(axis, 1)[2], rtol=1e-6
    )


def test_parity_of_transforms(transform):
    total, mean, variance = reference(None)
    for reduce, expected in (
        (masked_sum, total),
        (masked_mean, mean),
        (masked_variance, variance),
    ):
        np.testing.assert_allclose(transform(reduce)(X, MASK), expected, rtol=1e-6)
    z = transform(standardize)(X, MASK)
    expected = (X - mean) / (np.sqrt(variance) + 1e-5)
    np.testing.assert_allclose(z, np.where(MASK, expected, 0), rtol=1e-5)


def test_standardize_by_hand_and_by_rows():
    x = np.array([[1.0, 3.0, np.nan], [10.0, 20.0, 30.0]], np.float32)
    mask = np.array([[1, 1, 0], [1, 1, 1]], bool)
    z = standardize(x, mask, axis=1, epsilon=0.0)
    third = np.sqrt(1.5)
    np.testing.assert_allclose(z, [[-1, 1, 0], [-third, 0, third]], atol=1e-6)
    ddof = standardize(x, mask, axis=1, ddof=1, epsilon=0.0)
    np.testing.assert_allclose(ddof[1], [-1, 0, 1], atol=1e-6)
    shrunk = standardize(x, mask, axis=1, epsilon=1.0)
    np.testing.assert_allclose(shrunk[0, :2], [-0.5, 0.5], atol=1e-6)


@pytest.mark.parametrize("count", [3, 15, 20])
def test_equal_numbers_have_no_spread_at_all(count):
    """The float32 mean of equal numbers differs from them; the results must not."""
    value = np.array([9.9, 8.5737, 0.3, -1e30, 1e-30], np.float32)
    x = np.tile(value[:, None], count)
    mask = np.ones(x.shape, bool)
    assert not np.asarray(standardize(x, mask, axis=1, epsilon=0.0)).any()
    assert not np.asarray(masked_variance(x, mask, axis=1)).any()


@pytest.mark.parametrize("size", [1e-30, 1.0, 1e30])
def test_standardize_does_not_see_the_size_of_numbers(size):
    x = np.array([1.0, 2.0, 4.0, 9.0], np.float32)
    z = standardize(x * np.float32(size), np.ones(4, bool), epsilon=0.0)
    expected = (x - x.mean()) / x.std()
    np.testing.assert_allclose(z, expected, rtol=1e-6)


def test_half_precision_accumulates_in_float32():
    """In bfloat16 a sum of ones stops at 256."""
    x, mask = jnp.ones(1000, jnp.bfloat16), np.ones(1000, bool)
    half = x.at[::2].set(2.0)
    for found, expected in (
        (masked_sum(x, mask), 1000.0),
        (masked_mean(half, mask), 1.5),
        (masked_variance(half, mask), 0.25),
        (standardize(half, mask, epsilon=0.0)[:2], [1.0, -1.0]),
        (masked_log_softmax(x, mask)[:1], [-np.log(1000.0)]),
        (categorical_entropy(masked_log_softmax(x, mask)), np.log(1000.0)),
    ):
        assert found.dtype == jnp.float32
        np.testing.assert_allclose(found, expected, rtol=1e-6)


def test_integers_are_counted_exactly():
    large = np.array([2**24, 1, 7], np.int32)
    assert int(masked_sum(large, np.array([1, 1, 0], bool))) == 2**24 + 1
    half = masked_mean(np.array([True, False, True]), np.array([1, 1, 0], bool))
    assert float(half) == 0.5


def test_a_mask_that_is_not_bool_is_refused():
    with pytest.raises(AssertionError, match="bool"):
        masked_mean(X, MASK.astype(np.float32))


def test_gradient_of_standardize_is_that_of_the_formula():
    def formula(x):
        x = x.astype(np.float64)
        return np.sum(((x - x.mean()) / (x.std() + 0.5)) ** 3)

    x, step = np.array([1.0, -2.0, 0.5, 4.0], np.float32), 1e-3
    expected = [
        (formula(x + step * e) - formula(x - step * e)) / (2 * step) for e in np.eye(4)
    ]
    found = jax.grad(
        lambda x: jnp.sum(standardize(x, jnp.ones(4, bool), epsilon=0.5) ** 3)
    )(x)
    np.testing.assert_allclose(found, expected, rtol=1e-3, atol=1e-4)


def test_standardize_with_a_large_offset_keeps_its_precision():
    x = np.array([1.0, 2.0, 4.0, 9.0], np.float32)
    mask = np.ones(4, bool)
    shifted = standardize(x + np.float32(4096), mask)
    np.testing.assert_allclose(shifted, standardize(x, mask), atol=1e-6)


def test_padding_reaches_neither_values_nor_gradients():
    def outputs(x):
        mask = jnp.asarray(MASK)
        return jnp.stack(
            [
                masked_mean(x, mask),
                safe_sqrt(masked_variance(x, mask)),
                jnp.sum(standardize(x, mask, axis=1) ** 3),
            ]
        )

    both = jax.jit(lambda x: (outputs(x), jax.jacrev(outputs)(x)))
    clean = both(X)
    for poison in (np.nan, 1e30):
        for ours, expected in zip(both(poisoned(poison)), clean, strict=True):
            assert np.isfinite(ours).all()
            np.testing.assert_allclose(ours, expected, rtol=1e-6)


def test_safe_exp_is_exp_up_to_its_cap_and_its_tangent_beyond(transform):
    x = np.array([-np.inf, -80.0, 0.0, 1.0, 80.0, 100.0], np.float32)
    above = np.exp(80.0) * np.array([1.0, 21.0])
    expected = [*np.exp(x[:4].astype(np.float64)), *above]
    np.testing.assert_allclose(transform(safe_exp)(x), expected, rtol=1e-6)
    slope = transform(jax.vmap(jax.grad(safe_exp)))(x)
    np.testing.assert_allclose(slope, [*expected[:4], *above[[0, 0]]], rtol=1e-6)
    np.testing.assert_allclose(safe_exp(x[3:4], cap=0.5), 1.5 * np.exp(0.5), rtol=1e-6)


def test_safe_exp_far_beyond_its_cap_has_its_gradient():
    value, slope = jax.vmap(jax.value_and_grad(safe_exp))(jnp.array([6e3, 1e30]))
    np.testing.assert_allclose(value[0], np.exp(80.0) * 5921, rtol=1e-6)
    np.testing.assert_allclose(slope, np.exp([80.0, 80.0]), rtol=1e-6)


def test_safe_exp_hands_large_cotangents_on_below_its_cap():
    """exp(cap) times them is infinite, and would be NaN times the 0 of no excess."""
    for size in (-1e30, 1e30):
        slope = jax.grad(lambda x, size=size: size * safe_exp(x))(0.5)
        np.testing.assert_allclose(slope, size * np.exp(0.5), rtol=1e-6)


def test_safe_sqrt_and_its_gradient():
    x = jnp.array([4.0, 0.0, -1.0])
    np.testing.assert_allclose(safe_sqrt(x), [2.0, 0.0, 0.0])
    gradient = jax.vmap(jax.grad(safe_sqrt))(x)
    np.testing.assert_allclose(gradient, [0.25, 0.0, 0.0])


def test_no_spread_has_gradient_zero():
    def spread(x):
        return safe_sqrt(masked_variance(x, jnp.ones(3, bool)))

    gradient = jax.jit(jax.grad(spread))(jnp.full(3, 2.0))
    np.testing.assert_array_equal(gradient, np.zeros(3))


LEGAL = np.array([[1, 0, 1], [0, 1, 0], [0, 0, 0]], bool)
LOGITS = np.array([[0.0, 50.0, np.log(3.0)], [1.0, -2.0, 5.0], [1.0, 2.0, 3.0]])


def test_masked_softmax_by_hand(transform):
    logits = LOGITS.astype(np.float32)
    log_prob = transform(masked_log_softmax)(logits, LEGAL)
    probability = np.exp(log_prob)
    np.testing.assert_allclose(probability[0], [0.25, 0.0, 0.75], atol=1e-6)
    np.testing.assert_array_equal(probability[1], [0.0, 1.0, 0.0])
    np.testing.assert_allclose(probability[2], np.full(3, 1 / 3), atol=1e-6)
    assert (probability[:2][~LEGAL[:2]] == 0).all()
    columns = masked_log_softmax(logits.T, LEGAL.T, axis=0)
    np.testing.assert_allclose(columns.T, log_prob, rtol=1e-6)


def test_illegal_logits_have_no_influence_and_no_nan_gradient():
    def entropy(logits):
        log_prob = masked_log_softmax(logits, jnp.asarray(LEGAL))
        return jnp.sum(categorical_entropy(log_prob)) + log_prob[0, 0]

    logits = jnp.asarray(LOGITS, jnp.float32)
    other = jnp.where(LEGAL, logits, 1e9)
    both = jax.jit(jax.value_and_grad(entropy))
    value, gradient = both(logits)
    np.testing.assert_allclose(value, both(other.at[2].set(logits[2]))[0], rtol=1e-6)
    assert np.isfinite(gradient).all()
    np.testing.assert_array_equal(np.asarray(gradient)[:2][~LEGAL[:2]], 0)


def test_entropy_by_hand():
    log_prob = masked_log_softmax(
        LOGITS.astype(np.float32), np.array([[1, 0, 1], [0, 1, 0], [1, 1, 1]], bool)
    )
    expected = -(0.25 * np.log(0.25) + 0.75 * np.log(0.75))
    entropy = categorical_entropy(log_prob)
    np.testing.assert_allclose(entropy[:2], [expected, 0.0], atol=1e-6)
    np.testing.assert_allclose(
        categorical_entropy(log_prob.T, axis=0), entropy, rtol=1e-6
    )

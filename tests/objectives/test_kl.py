"""KL estimates: exact over the range, finite beyond it, and true on average."""

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jerp.objectives.kl import kl_estimate
from tests.objectives.tokens import LOG_PROB, MASK, POISONS, REFERENCE, poisoned
from tests.reference import kl as reference

ESTIMATORS = ("k1", "k2", "k3")


def all_estimators(log_prob, anchor, mask):
    return [kl_estimate(log_prob, anchor, mask, estimator=e) for e in ESTIMATORS]


def of_tokens(function, estimator):
    """What the reference says of each token, 0 in padding."""
    expected = np.zeros(MASK.shape)
    for i in map(tuple, np.argwhere(MASK)):
        expected[i] = function(float(LOG_PROB[i]), float(REFERENCE[i]), estimator)
    return expected


def test_values_equal_the_reference(transform):
    values = transform(all_estimators)(LOG_PROB, REFERENCE, MASK)
    for estimator, ours in zip(ESTIMATORS, values, strict=True):
        expected = of_tokens(reference.estimate, estimator)
        np.testing.assert_allclose(ours, expected, rtol=1e-6)


def test_slopes_equal_the_reference():
    def totals(log_prob):
        return [jnp.sum(x) for x in all_estimators(log_prob, REFERENCE, MASK)]

    slopes = jax.jit(jax.jacrev(totals))(LOG_PROB)
    for estimator, ours in zip(ESTIMATORS, slopes, strict=True):
        expected = of_tokens(reference.slope, estimator)
        np.testing.assert_allclose(ours, expected, rtol=1e-6)


def test_values_by_hand():
    """Policy 1/2, reference 1/2, 1/4 and 1."""
    log_prob = np.log(np.full(3, 0.5, np.float32))
    anchor = np.log(np.array([0.5, 0.25, 1.0], np.float32))
    values = jax.jit(all_estimators)(log_prob, anchor, np.ones(3, bool))
    expected = [
        [0.0, np.log(2), -np.log(2)],
        [0.0, np.log(2) ** 2 / 2, np.log(2) ** 2 / 2],
        [0.0, 0.5 - 1 + np.log(2), 2 - 1 - np.log(2)],
    ]
    np.testing.assert_allclose(values, expected, rtol=1e-6)


@jax.jit
def k3_and_slope(log_prob, anchor, mask):
    def total(log_prob):
        kl = kl_estimate(log_prob, anchor, mask)
        return jnp.sum(kl), kl

    slope, kl = jax.grad(total, has_aux=True)(log_prob)
    return kl, slope


SIZES = np.geomspace(1e-6, 80, 2001)
DIFFERENCES = np.concatenate([SIZES, -SIZES, -np.linspace(80, 100, 80), [0, 80]])


def test_k3_is_exact_from_minus_100_to_80_tiny_differences_included():
    """`exp(d) - d - 1` in float32 is wrong in the first digit at d = 1e-6."""
    difference = DIFFERENCES.astype(np.float32)
    zero = np.zeros_like(difference)
    kl, slope = k3_and_slope(zero, difference, np.ones(difference.shape, bool))
    expected = [reference.estimate(0.0, float(d), "k3") for d in difference]
    np.testing.assert_allclose(kl, expected, rtol=1e-6)
    slopes = [reference.slope(0.0, float(d), "k3") for d in difference]
    np.testing.assert_allclose(slope, slopes, rtol=1e-6)
    naive = np.exp(difference) - difference - 1
    assert np.abs(naive[0] / kl[0] - 1) > 0.1


def test_k3_beyond_the_cap_is_finite_continuous_and_pulls_the_right_way():
    difference = np.array([79.99999, 80.0, 80.00001, 100.0, 1000.0], np.float32)
    zero = np.zeros_like(difference)
    kl, slope = k3_and_slope(zero, difference, np.ones(5, bool))
    expected = [reference.estimate(0.0, float(d), "k3") for d in difference]
    np.testing.assert_allclose(kl, expected, rtol=1e-6)
    assert np.isfinite(kl).all()
    assert (np.diff(kl) > 0).all()
    np.testing.assert_allclose(slope[1:], -np.exp(80.0), rtol=1e-6)
    np.testing.assert_allclose(slope[0], -np.exp(80.0), rtol=1e-4)


def test_estimators_agree_to_second_order():
    d = np.array([1e-2, -1e-2, 0.0], np.float32)
    values = jax.jit(all_estimators)(0 * d, d, np.ones(3, bool))
    k1, k2, k3 = map(np.asarray, values)
    np.testing.assert_array_equal(k1, -d)
    np.testing.assert_allclose(k3, k2, rtol=1e-2 / 3 * 1.01)
    assert (k3[:2] != k2[:2]).all()


@jax.jit
def mean_estimates(logits, anchor):
    """Means over all tokens of a vocabulary, with the slopes by the logits."""
    mask = jnp.ones(anchor.shape, bool)

    def mean(logits, estimator):
        log_prob = jax.nn.log_softmax(logits)
        p = jax.lax.stop_gradient(jnp.exp(log_prob))
        return jnp.sum(p * kl_estimate(log_prob, anchor, mask, estimator=estimator))

    return [jax.value_and_grad(mean)(logits, estimator) for estimator in ESTIMATORS]


def test_means_under_the_policy_are_the_divergence_and_its_gradients():
    p, q = np.array([0.5, 0.25, 0.125, 0.125]), np.array([0.125, 0.125, 0.25, 0.5])
    estimates = mean_estimates(np.float32(np.log(p)), np.float32(np.log(q)))
    forward = np.sum(p * np.log(p / q))
    forward_slope = p * (np.log(p / q) - forward)
    (k1, k1_slope), (_, k2_slope), (k3, k3_slope) = estimates
    np.testing.assert_allclose([k1, k3], [forward, forward], rtol=1e-6)
    np.testing.assert_allclose(k1_slope, np.zeros(4), atol=1e-6)
    np.testing.assert_allclose(k2_slope, forward_slope, atol=1e-6)
    np.testing.assert_allclose(k3_slope, p - q, atol=1e-6)  # of KL(q, p)


def test_padding_reaches_neither_values_nor_gradients():
    clean = k3_and_slope(poisoned(LOG_PROB, 0), poisoned(REFERENCE, 0), MASK)
    for poison in POISONS:
        for other in POISONS:
            dirty = poisoned(LOG_PROB, poison), poisoned(REFERENCE, other)
            chex.assert_trees_all_equal(k3_and_slope(*dirty, MASK), clean)


NATS = st.lists(st.integers(-90 * 1024, 0), min_size=8, max_size=8)


@settings(deadline=None)
@given(NATS, NATS)
def test_k3_is_never_negative_and_pulls_towards_the_reference(log_prob, anchor):
    log_prob, anchor = np.float32(log_prob) / 1024, np.float32(anchor) / 1024
    kl, slope = k3_and_slope(log_prob, anchor, np.ones(8, bool))
    assert ((np.asarray(kl) > 0) == (log_prob != anchor)).all()
    assert not (np.asarray(kl) < 0).any()
    np.testing.assert_array_equal(np.sign(slope), np.sign(log_prob - anchor))


def test_both_arguments_can_learn():
    slopes = jax.grad(lambda *x: kl_estimate(*x, jnp.array(True)), argnums=(0, 1))
    ours, anchors = jax.jit(slopes)(-1.0, -3.0)
    np.testing.assert_allclose(ours, 1 - np.exp(-2), rtol=1e-6)
    np.testing.assert_allclose(anchors, -ours, rtol=1e-6)


@pytest.mark.parametrize("name", ["log_prob", "reference_log_prob"])
@pytest.mark.parametrize("bad", [np.nan, -np.inf])
def test_a_real_entry_that_is_no_number(name, bad):
    arrays = {"log_prob": LOG_PROB, "reference_log_prob": REFERENCE, "mask": MASK}
    arrays[name] = arrays[name].copy()
    arrays[name][0, 2] = bad
    with pytest.raises(ValueError, match=rf"^{name}: expected finite .* at \[0, 2\]"):
        kl_estimate(**arrays)
    kl, slope = k3_and_slope(*arrays.values())
    for x in (kl, slope):
        assert np.isnan(x[0, 2])
        assert np.isnan(x).sum() == 1


def test_an_unknown_estimator_is_named():
    with pytest.raises(ValueError, match="unknown estimator 'abs'"):
        kl_estimate(LOG_PROB, REFERENCE, MASK, estimator="abs")


def test_half_precision_is_widened_before_the_difference():
    half = jnp.asarray(LOG_PROB, jnp.bfloat16), jnp.asarray(REFERENCE, jnp.bfloat16)
    kl = kl_estimate(*half, MASK)
    assert kl.dtype == jnp.float32
    single = kl_estimate(*(x.astype(jnp.float32) for x in half), MASK)
    np.testing.assert_array_equal(kl, single)


def test_one_trace_a_shape():
    traced = jax.jit(chex.assert_max_traces(kl_estimate, n=1))
    for shift in (0, 1):
        traced(LOG_PROB - shift, REFERENCE, MASK)

"""Reductions over the real entries of padded arrays.

`mask` is bool, True for real entries, and has the shape of the data. Padding may hold
anything, NaN and infinities included: inputs are masked before arithmetic, outputs
after it, so that neither values nor gradients of padding leak. Reductions of nothing
are 0. Nothing here divides by the padded length. Half precision comes in, float32
goes out.
"""

from __future__ import annotations

from functools import partial

import chex
import jax
import jax.numpy as jnp
from jax import lax

from jerp.typing import Array

__all__ = [
    "categorical_entropy",
    "masked_log_softmax",
    "masked_mean",
    "masked_sum",
    "masked_variance",
    "safe_exp",
    "safe_sqrt",
    "standardize",
]

Axis = int | tuple[int, ...] | None

_ILLEGAL = -1e30
"""Finite, so that `p log p` of an illegal entry is 0 and not NaN; `exp` gives 0."""


def masked_sum(x: Array, mask: Array, *, axis: Axis = None) -> Array:
    """Sum of the real entries.

        s = sum_i m_i x_i

    Args:
      x: any shape, float or an integer type.
      mask: same shape, bool.
      axis: reduced axes; all by default.

    Returns:
      `x` without the reduced axes, float32 or the integer type; 0 where nothing is
      real.

    Example:
      >>> x = jnp.array([1.0, 2.0, jnp.nan])
      >>> float(masked_sum(x, jnp.array([True, True, False])))
      3.0
    """
    chex.assert_equal_shape([x, mask])
    chex.assert_type(mask, bool)
    if jnp.issubdtype(x.dtype, jnp.floating):
        x = jnp.asarray(x, jnp.float32)
    return jnp.sum(jnp.where(mask, x, 0), axis=axis)


def masked_mean(x: Array, mask: Array, *, axis: Axis = None) -> Array:
    """Mean of the real entries.

        mean = sum_i m_i x_i / max(sum_i m_i, 1)

    Args:
      x: any shape, float.
      mask: same shape, bool.
      axis: reduced axes; all by default.

    Returns:
      `x` without the reduced axes, float32; 0 where nothing is real.

    Example:
      >>> x = jnp.array([1.0, 2.0, jnp.nan])
      >>> float(masked_mean(x, jnp.array([True, True, False])))
      1.5
    """
    total = masked_sum(jnp.asarray(x, jnp.float32), mask, axis=axis)
    return total / _at_least_one(mask, axis, 0, keepdims=False)


def masked_variance(
    x: Array, mask: Array, *, axis: Axis = None, ddof: int = 0
) -> Array:
    """Variance of the real entries.

        var = sum_i m_i (x_i - mean)^2 / max(sum_i m_i - ddof, 1)

    Args:
      x: any shape, float.
      mask: same shape, bool.
      axis: reduced axes; all by default.
      ddof: 0 for the population's variance, 1 for the unbiased estimate.

    Returns:
      `x` without the reduced axes, float32; 0 where at most `ddof` entries are real,
      and exactly 0 where all are equal.

    Example:
      >>> x = jnp.array([1.0, 3.0, jnp.nan])
      >>> float(masked_variance(x, jnp.array([True, True, False]), ddof=1))
      2.0
    """
    return _mean_square(_centred(x, mask, axis), mask, axis, ddof, keepdims=False)


def standardize(
    x: Array,
    mask: Array,
    *,
    axis: Axis = None,
    ddof: int = 0,
    epsilon: float = 1e-5,
) -> Array:
    """Real entries shifted to mean 0 and scaled to standard deviation 1.

        z_i = (x_i - mean) / (sqrt(var) + epsilon)

    Args:
      x: any shape, float.
      mask: same shape, bool.
      axis: axes over which mean and variance are taken; all by default.
      ddof: see `masked_variance`.
      epsilon: added outside the root, as released AWR and GRPO codes do.

    Returns:
      Shape of `x`, float32; 0 where `mask` is False, and exactly 0 everywhere if all
      entries are equal. Neither entries of 1e30 nor of 1e-30 over- or underflow.

    Example:
      >>> x = jnp.array([1.0, 3.0, jnp.nan])
      >>> z = standardize(x, jnp.array([True, True, False]), epsilon=0.0)
      >>> z.tolist()
      [-1.0, 1.0, 0.0]
    """
    centred = _centred(x, mask, axis)
    # The standard deviation is a multiple of its unit, whatever that is: numbers up to
    # 1 are squared, and no gradient is lost by taking the unit as a constant.
    largest = jnp.max(jnp.abs(centred), axis=axis, keepdims=True, initial=0.0)
    unit = lax.stop_gradient(jnp.where(largest > 0, largest, 1))
    variance = _mean_square(centred / unit, mask, axis, ddof, keepdims=True)
    scale = unit * safe_sqrt(variance) + epsilon
    return jnp.where(mask, centred / jnp.where(scale > 0, scale, 1), 0)


def safe_exp(x: Array, *, cap: float = 80.0) -> Array:
    """Exponential up to `cap`, its tangent beyond, finite up to x = 6,000.

        y = exp(x)                      for x <= cap
            exp(cap) (1 + x - cap)      above

    Value and gradient are continuous, and the gradient keeps its sign and size where a
    clamp would make it 0. The cap acts before `exp`, so that no infinity meets a 0.

    Args:
      x: any shape, float32.
      cap: at most 88, where `exp` leaves float32.

    Returns:
      Shape of `x`.

    Example:
      >>> float(safe_exp(jnp.array(0.0))), bool(safe_exp(jnp.array(1000.0)) < jnp.inf)
      (1.0, True)
    """
    return _tangent_exp(x, cap)


# The slope is written down because the chain rule would multiply a large cotangent with
# exp(cap) also below the cap, and infinity with the 0 of the branch not taken.
@partial(jax.custom_jvp, nondiff_argnums=(1,))
def _tangent_exp(x: Array, cap: float) -> Array:
    return jnp.exp(jnp.minimum(x, cap)) + jnp.exp(cap) * jnp.maximum(x - cap, 0)


@_tangent_exp.defjvp
def _tangent_exp_jvp(cap: float, primals: tuple, tangents: tuple) -> tuple:
    (x,), (tangent,) = primals, tangents
    return _tangent_exp(x, cap), jnp.exp(jnp.minimum(x, cap)) * tangent


def safe_sqrt(x: Array) -> Array:
    """Square root with gradient 0 instead of infinity at 0 (and 0 below it).

    Example:
      >>> float(jax.grad(safe_sqrt)(0.0))
      0.0
    """
    positive = x > 0
    return jnp.where(positive, jnp.sqrt(jnp.where(positive, x, 1)), 0)


def masked_log_softmax(logits: Array, legal: Array, *, axis: int = -1) -> Array:
    """Log-probabilities of a softmax over the legal entries.

        log p_a = z_a - log sum_{b legal} exp(z_b)

    Args:
      logits: any shape, float.
      legal: same shape, bool.
      axis: of the choices.

    Returns:
      Shape of `logits`, float32. An illegal entry holds a finite number whose `exp` is
      exactly 0: it is never sampled, `p log p` is 0 and no gradient is NaN. Where
      nothing is legal (padding alone) all entries are equal.

    Example:
      >>> legal = jnp.array([True, True, False])
      >>> jnp.exp(masked_log_softmax(jnp.zeros(3), legal)).tolist()
      [0.5, 0.5, 0.0]
    """
    chex.assert_equal_shape([logits, legal])
    logits = jnp.asarray(logits, jnp.float32)
    return jax.nn.log_softmax(jnp.where(legal, logits, _ILLEGAL), axis=axis)


def categorical_entropy(log_prob: Array, *, axis: int = -1) -> Array:
    """Entropy of distributions given by `masked_log_softmax`.

        H = - sum_a p_a log p_a

    Args:
      log_prob: any shape, float, normalised along `axis`.
      axis: of the choices.

    Returns:
      `log_prob` without `axis`; at most the log of the number of legal choices.

    Example:
      >>> log_prob = masked_log_softmax(jnp.zeros(3), jnp.array([True, True, False]))
      >>> round(float(categorical_entropy(log_prob)), 4)
      0.6931
    """
    log_prob = jnp.asarray(log_prob, jnp.float32)
    return -jnp.sum(jnp.exp(log_prob) * log_prob, axis=axis)


def _centred(x: Array, mask: Array, axis: Axis) -> Array:
    """Differences from the mean, 0 in padding.

    In float32 the mean of equal numbers differs from them by rounding, which a later
    division by a tiny spread would blow up. Differences from one of the numbers are
    exact there, and a second centring removes what the first one rounded.
    """
    chex.assert_equal_shape([x, mask])
    chex.assert_type(mask, bool)
    x = jnp.asarray(x, jnp.float32)
    top = jnp.max(x, axis=axis, keepdims=True, initial=-jnp.inf, where=mask)
    x = jnp.where(mask, x, 0) - lax.stop_gradient(jnp.where(mask, top, 0))
    for _ in range(2):
        total = jnp.sum(x, axis=axis, keepdims=True)
        x = jnp.where(mask, x - total / _at_least_one(mask, axis, 0, True), 0)
    return x


def _mean_square(
    centred: Array, mask: Array, axis: Axis, ddof: int, *, keepdims: bool
) -> Array:
    """Sum of squares over the degrees of freedom, 0 without any."""
    squares = jnp.sum(jnp.square(centred), axis=axis, keepdims=keepdims)
    defined = jnp.sum(mask, axis=axis, keepdims=keepdims) > ddof
    return jnp.where(defined, squares / _at_least_one(mask, axis, ddof, keepdims), 0)


def _at_least_one(mask: Array, axis: Axis, ddof: int, keepdims: bool) -> Array:
    """Number of real entries less `ddof`, fit to divide by."""
    freedom = jnp.sum(mask, axis=axis, keepdims=keepdims) - ddof
    return jnp.maximum(freedom, 1).astype(jnp.float32)

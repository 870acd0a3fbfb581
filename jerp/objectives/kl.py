"""Per-token estimates of the KL divergence from samples, exact in float32.

For tokens drawn from a policy pi with reference q, each estimates KL(pi, q) from the
two log-probabilities of the token alone. The exponent is capped before `exp`, far out
and with the tangent beyond, so that a policy that has drifted away still has a finite
gradient that points back.
"""

from __future__ import annotations

from typing import Literal, get_args

import jax.numpy as jnp

from jerp.objectives.entries import real_entries
from jerp.ops.checks import check_choice
from jerp.ops.masked import safe_exp
from jerp.typing import Array

__all__ = ["KlEstimator", "kl_estimate"]

KlEstimator = Literal["k1", "k2", "k3"]

_NEAR = 1.0
"""Below this |d|, `exp(d) - 1 - d` loses digits and a series takes over."""
_NUM_TERMS = 11
"""Of the series; the next term is 4e-10 of the sum at |d| = 1."""


def kl_estimate(
    log_prob: Array,
    reference_log_prob: Array,
    mask: Array,
    *,
    estimator: KlEstimator = "k3",
) -> Array:
    """Estimate of KL(policy, reference) at each token.

        d = log q - log pi
        "k1": - d
        "k2": d^2 / 2
        "k3": exp(d) - 1 - d     for d <= 80, continued along its tangent above

    | | mean over tokens of pi | mean of its gradient | sign |
    | --- | --- | --- | --- |
    | k1 | the KL divergence | 0: no use in a loss | any |
    | k2 | biased, equal to second order | that of KL(pi, q) | >= 0 |
    | k3 | the KL divergence | that of KL(q, pi) | >= 0 |

    Args:
      log_prob: any shape, float: `log pi` of the sampled tokens, under the policy that
        learns. Padding may hold anything, NaN and infinities included.
      reference_log_prob: same shape, `log q`. Gradients flow to both arguments; stop
        them where one is a constant.
      mask: same shape, bool.
      estimator: see above. GRPO has k3.

    Returns:
      Shape of `log_prob`, float32; 0 where `mask` is False. k3 is exact to float32 for
      d from -100 to 80, tiny d included, and finite up to d = 6000.

    Raises:
      InputError: a NaN or infinite real entry, where Python can see it. Under jit that
        entry of the answer is NaN.

    Deviations: verl clamps k3 at 10 (and d at 20 before), with gradient 0 beyond: a
      policy that has drifted furthest is no longer pulled back, in either direction.
      Here k3 is not clamped, as in the paper. Its form with `abs` is left out, and so
      are forms whose value is one estimator and whose gradient is another's.

    Reference: Schulman, "Approximating KL Divergence", 2020; GRPO, Shao et al.,
      arXiv:2402.03300, eq. 4.

    Example:
      >>> log_prob, reference = jnp.array([-1.0, -1.0]), jnp.array([-1.0, -3.0])
      >>> kl_estimate(log_prob, reference, jnp.ones(2, bool), estimator="k1").tolist()
      [0.0, 2.0]
      >>> kl = kl_estimate(log_prob, reference, jnp.ones(2, bool))
      >>> [round(float(k), 4) for k in kl]
      [0.0, 1.1353]
    """
    check_choice("estimator", estimator, get_args(KlEstimator))
    real, _ = real_entries(
        mask, log_prob=log_prob, reference_log_prob=reference_log_prob
    )
    policy, reference = real["log_prob"], real["reference_log_prob"]
    if estimator == "k1":
        return policy - reference
    difference = reference - policy
    if estimator == "k2":
        return 0.5 * jnp.square(difference)
    return _excess_of_exp(difference)


def _excess_of_exp(x: Array) -> Array:
    """`exp(x) - 1 - x`, without the cancellation around 0 and the overflow above."""
    near = jnp.abs(x) < _NEAR
    small, large = jnp.where(near, x, 0), jnp.where(near, 0, x)
    series = jnp.ones_like(x)
    for n in range(_NUM_TERMS + 1, 2, -1):
        series = 1 + small / n * series
    return jnp.where(
        near, 0.5 * jnp.square(small) * series, safe_exp(large) - 1 - large
    )

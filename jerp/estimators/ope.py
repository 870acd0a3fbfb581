"""The value of a policy from episodes that another one logged: reweighting.

Symbols: `B` episodes, `T` steps, `K` terms; `pi` the target policy, `b` the behaviour
that logged, `rho_{0:t} = prod_{u <= t} pi(a_u | s_u) / b(a_u | s_u)` the weight of an
episode up to step t, `G = sum_t discount^t r_t` its return. An episode ends with its
mask, whether it terminated or ran out of budget: what is estimated is the expected sum
of the rewards that a log holds. A row without a real step is no episode. Nothing is
clipped; whether an answer can be trusted, `jerp.estimators.overlap` says.
"""

from __future__ import annotations

from functools import partial
from typing import Literal, get_args

import jax
import jax.numpy as jnp

from jerp.estimators.episode_weights import log_weights
from jerp.estimators.ope_terms import OpeTerms
from jerp.ops.checks import (
    check_axes,
    check_choice,
    check_finite,
    check_settings,
)
from jerp.typing import Array, ArrayLike

__all__ = ["Kind", "doubly_robust", "importance_sampling"]

Kind = Literal["ordinary", "weighted", "per_decision", "weighted_per_decision"]


def importance_sampling(
    reward: ArrayLike,
    log_prob: ArrayLike | None,
    target_log_prob: ArrayLike,
    mask: ArrayLike,
    *,
    kind: Kind = "ordinary",
    discount: ArrayLike = 1.0,
) -> OpeTerms:
    """Importance sampling over whole episodes or decision by decision.

        ordinary:              mean_e rho_{0:T} G
        weighted:              sum_e rho_{0:T} G / sum_e rho_{0:T}
        per_decision:          mean_e sum_t discount^t rho_{0:t} r_t
        weighted_per_decision: sum_t discount^t sum_e rho_{0:t} r_t / sum_e rho_{0:t}

    The first and the third are unbiased; the weighted ones are biased at any finite
    number of episodes, consistent, and never outside the range of what they average.
    An episode that has ended keeps its last weight in the sums over e.

    Args:
      reward: `[B, T]` float32. Padding may hold anything.
      log_prob: `[B, T]` float32, log b of the action taken.
      target_log_prob: `[B, T]` float32, log pi of the same action; -inf for an action
        that the target never takes.
      mask: `[B, T]` bool, a prefix in every row, all False for invalid episodes.
      kind: see above.
      discount: in [0, 1].

    Returns:
      `OpeTerms`; its `value()` is the estimate. T terms for `weighted_per_decision`,
      one for the others.

    Raises:
      InputError: no behaviour probabilities; a reward or log-probability that is seen
        not to be one. `ShapeError`, one of them: other axes. Under jit these make NaN.
      UnknownNameError: another kind.

    Reference: Precup, Sutton and Singh, "Eligibility traces for off-policy policy
      evaluation", ICML 2000; Thomas, "Safe reinforcement learning" (2015), chapter 3,
      for the weighted per-decision form.

    Example:
      >>> reward, mask = jnp.array([[0.0], [1.0]]), jnp.ones((2, 1), bool)
      >>> log_prob, target = jnp.log(jnp.array([[[0.5], [0.5]], [[0.25], [0.75]]]))
      >>> float(importance_sampling(reward, log_prob, target, mask).value())
      0.75
    """
    check_choice("kind", kind, get_args(Kind))
    discount, poison = _discount(discount)
    log_weight = log_weights(log_prob, target_log_prob, mask)
    check_axes(reward=(reward, "B T"), mask=(mask, "B T", bool))
    check_finite("reward", reward, mask)
    return _importance_sampling(reward, log_weight, mask, discount, poison, kind=kind)


def doubly_robust(
    reward: ArrayLike,
    log_prob: ArrayLike | None,
    target_log_prob: ArrayLike,
    q: ArrayLike,
    v: ArrayLike,
    mask: ArrayLike,
    *,
    discount: ArrayLike = 1.0,
) -> OpeTerms:
    """Per-decision importance sampling of what a model of the values gets wrong.

        mean_e [ v_0 + sum_t discount^t rho_{0:t} (r_t + discount v_{t+1} - q_t) ]

    which is the recursion `V_t = v_t + rho_t (r_t + discount V_{t+1} - q_t)`, with v
    and V zero after the end. Unbiased with any q and v that were not fitted on the
    episodes they correct, and then the better they are the less it varies; exactly
    per-decision importance sampling where both are 0.

    Args:
      reward: `[B, T]` float32.
      log_prob: `[B, T]` float32, log b of the action taken.
      target_log_prob: `[B, T]` float32, log pi of the same action.
      q: `[B, T]` float32, modelled value of the state and the action taken.
      v: `[B, T]` float32, modelled value of the state, `sum_a pi(a | s) q(s, a)`.
      mask: `[B, T]` bool, a prefix in every row, all False for invalid episodes.
      discount: in [0, 1].

    Returns:
      `OpeTerms` of one term.

    Raises:
      InputError: see `importance_sampling`.

    Reference: Jiang and Li, "Doubly robust off-policy value evaluation for
      reinforcement learning", ICML 2016, equation 10; Thomas and Brunskill,
      "Data-efficient off-policy policy evaluation", ICML 2016, for the sum.

    Example:
      >>> reward, mask = jnp.array([[0.0], [1.0]]), jnp.ones((2, 1), bool)
      >>> log_prob, target = jnp.log(jnp.array([[[0.5], [0.5]], [[0.25], [0.75]]]))
      >>> q, v = jnp.array([[0.0], [1.0]]), jnp.array([[0.75], [0.75]])
      >>> terms = doubly_robust(reward, log_prob, target, q, v, mask)
      >>> terms.numerator[:, 0].tolist(), float(terms.value())
      ([0.75, 0.75], 0.75)
    """
    discount, poison = _discount(discount)
    log_weight = log_weights(log_prob, target_log_prob, mask)
    for name, x in (("reward", reward), ("q", q), ("v", v)):
        check_axes(mask=(mask, "B T", bool), **{name: (x, "B T")})
        check_finite(name, x, mask)
    return _doubly_robust(reward, log_weight, q, v, mask, discount, poison)


@partial(jax.jit, static_argnames="kind")
def _importance_sampling(
    reward: ArrayLike,
    log_weight: Array,
    mask: ArrayLike,
    discount: Array,
    poison: ArrayLike,
    *,
    kind: Kind,
) -> OpeTerms:
    mask = jnp.asarray(mask)
    episode = jnp.any(mask, axis=1, keepdims=True)
    discounted = _discounted(reward, mask, discount)
    if "per_decision" not in kind:
        log_weight = log_weight[:, -1:]
        discounted = jnp.sum(discounted, axis=1, keepdims=True)
    if kind.startswith("weighted"):
        # A common factor cancels, and the largest weight becomes 1.
        largest = jnp.max(jnp.where(episode, log_weight, -jnp.inf), axis=0)
        log_weight -= jnp.where(jnp.isinf(largest), 0.0, largest)[None]
        weight = jnp.where(episode, jnp.exp(log_weight), 0.0)
        return OpeTerms(weight * discounted + poison, weight)
    weight = jnp.where(episode, jnp.exp(log_weight), 0.0)
    return _mean_of(jnp.sum(weight * discounted, axis=1) + poison, episode[:, 0])


@jax.jit
def _doubly_robust(
    reward: ArrayLike,
    log_weight: Array,
    q: ArrayLike,
    v: ArrayLike,
    mask: ArrayLike,
    discount: Array,
    poison: ArrayLike,
) -> OpeTerms:
    mask = jnp.asarray(mask)
    reward, q, v = (
        jnp.where(mask, jnp.asarray(x, jnp.float32), 0.0) for x in (reward, q, v)
    )
    after = jnp.pad(v[:, 1:], ((0, 0), (0, 1)))
    error = _discounted(reward + discount * after - q, mask, discount)
    corrected = v[:, 0] + jnp.sum(jnp.exp(log_weight) * error, axis=1)
    return _mean_of(corrected + poison, jnp.any(mask, axis=1))


def _discounted(x: ArrayLike, mask: Array, discount: Array) -> Array:
    """`[B, T]`: `discount^t x_t`, 0 in padding."""
    power = discount ** jnp.arange(mask.shape[1], dtype=jnp.float32)
    return jnp.where(mask, jnp.asarray(x, jnp.float32), 0.0) * power[None]


def _mean_of(x: Array, episode: Array) -> OpeTerms:
    """The plain mean of `x` `[B]` over the rows that are episodes."""
    return OpeTerms(
        jnp.where(episode, x, 0.0)[:, None], episode.astype(jnp.float32)[:, None]
    )


def _discount(discount: ArrayLike) -> tuple[Array, ArrayLike]:
    in_range = (discount, lambda v: (v >= 0) & (v <= 1), "in [0, 1]")
    return jnp.asarray(discount, jnp.float32), check_settings(discount=in_range)

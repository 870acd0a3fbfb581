"""The value of a policy by regression: fitted Q evaluation with linear features.

Symbols: `B` episodes, `T` steps, `F` features, `A` actions; `phi` the features of a
state, `pi` the target policy. Q has weights of its own for every action. Regressions
are ridge regressions with a ridge that only settles what the log leaves open: with
one-hot features the answer is that of tables of counts. Value after the end of an
episode is 0, whether it terminated or ran out of budget: where the value depends on how
much budget is left, the features have to tell.
"""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import lax

from jerp.estimators.ope_terms import OpeTerms
from jerp.estimators.regression import Regression, fits_of, regression
from jerp.ops.checks import check_axes, check_settings, check_values
from jerp.typing import Array, ArrayLike

__all__ = ["FittedQ", "fitted_q_evaluation"]

EXACT = lax.Precision.HIGHEST


class FittedQ(NamedTuple):
    """A model of the values of a target policy, and its estimate.

    Attributes:
      q: `[B, T]` float32, of the state and the action taken; 0 in padding. With folds,
        fitted without the row's own fold.
      v: `[B, T]` float32, of the state, `sum_a pi(a | s) q(s, a)`; as q.
      terms: one term an episode; their mean is the estimate of the fit to all episodes,
        their spread that of the estimate (see `fitted_q_evaluation`).
    """

    q: Array
    v: Array
    terms: OpeTerms


def fitted_q_evaluation(
    features: ArrayLike,
    action: ArrayLike,
    reward: ArrayLike,
    target_log_probs: ArrayLike,
    mask: ArrayLike,
    *,
    fold: ArrayLike | None = None,
    num_folds: int | None = None,
    discount: ArrayLike = 1.0,
    ridge: ArrayLike = 1e-6,
) -> FittedQ:
    """Fitted Q evaluation, backwards from the last step, with linear features.

        w_0 = 0
        w_k[a] = (sum phi phi' + ridge I)^-1 sum phi (r + discount V_{k-1}(s')),
                 sums over the steps with action a,  V_k(s) = sum_a pi(a|s) w_k[a] . phi
        V = mean_e V_T(s_0)

    Every episode's term is V plus B times the derivative of V by how often that episode
    counts, its first state and its part in all regressions included. Resampling terms
    is the infinitesimal jackknife's bootstrap: that of the whole fit, to first order.

    Args:
      features: `[B, T, F]` float32, of the state that was acted in; a constant among
        them, unless they are one-hot. Padding may hold anything.
      action: `[B, T]` int32 in [0, A).
      reward: `[B, T]` float32.
      target_log_probs: `[B, T, A]` float32, log pi of all actions; what is illegal has
        probability 0.
      mask: `[B, T]` bool, a prefix in every row, all False for invalid episodes.
      fold: `[B]` int32 in [0, num_folds), the same for all episodes of a task. q and v
        of an episode are then by a fit without its fold, so that they may correct it in
        `doubly_robust`; `terms` are of the fit to all episodes.
      num_folds: static; with `fold`.
      discount: in [0, 1].
      ridge: > 0, as a share of the mean square of the features of an action.

    Returns:
      `FittedQ`. What the log says nothing of has value 0 in tables.

    Raises:
      InputError: actions, probabilities or numbers that are seen not to be such.
        `ShapeError`, one of them: other axes. Under jit the answer is NaN.

    Deviations: one regression over all steps, repeated T times, where the paper
      regresses at every step of its own; the same where features tell the step.

    Reference: Le, Voloshin and Yue, "Batch policy learning under constraints", ICML
      2019, algorithm 3; Duan, Jia and Wang, "Minimax-optimal off-policy evaluation with
      linear function approximation", ICML 2020; Efron, "The jackknife, the bootstrap
      and other resampling plans" (1982), chapter 6, for the terms.

    Example:
      >>> features, action = jnp.ones((4, 1, 1)), jnp.array([[0], [0], [1], [1]])
      >>> reward = jnp.array([[0.0], [0.5], [1.0], [1.0]])
      >>> target = jnp.log(jnp.full((4, 1, 2), 0.5))
      >>> f = fitted_q_evaluation(
      ...     features, action, reward, target, jnp.ones((4, 1), bool)
      ... )
      >>> round(float(f.terms.value()), 4), f.q[:, 0].round(4).tolist()
      (0.625, [0.25, 0.25, 1.0, 1.0])
    """
    settings = check_settings(
        discount=(discount, lambda v: (v >= 0) & (v <= 1), "in [0, 1]"),
        ridge=(ridge, lambda v: v > 0, "> 0"),
    )
    check_axes(
        target_log_probs=(target_log_probs, "B T A"), features=(features, "B T F")
    )
    num_actions = jnp.shape(target_log_probs)[-1]
    at_most_0 = (lambda v: v <= 1e-5), "log-probabilities, at most 0"
    real = jnp.broadcast_to(jnp.asarray(mask)[..., None], jnp.shape(target_log_probs))
    check_values("target_log_probs", target_log_probs, *at_most_0, mask=real)
    made = regression(
        features,
        action,
        reward,
        mask,
        fold=fold,
        num_folds=num_folds,
        num_actions=num_actions,
        ridge=ridge,
    )
    return fitted_q(
        made, jnp.asarray(target_log_probs), jnp.asarray(discount + settings)
    )


@jax.jit
def fitted_q(made: Regression, target_log_probs: Array, discount: Array) -> FittedQ:
    """The part of `fitted_q_evaluation` that a target policy enters.

    Args:
      made: from `regression`.
      target_log_probs: `[B, T, A]` float32.
      discount: `[]` float32 in [0, 1].

    Returns:
      `FittedQ`.

    Example:
      >>> from jerp.estimators.regression import regression
      >>> one = jnp.ones((2, 1))
      >>> made = regression(
      ...     one[..., None], jnp.array([[0], [1]]), one, one > 0, num_actions=2
      ... )
      >>> f = fitted_q(made, jnp.log(jnp.full((2, 1, 2), 0.5)), jnp.float32(1))
      >>> f.v.round(4).tolist()
      [[1.0], [1.0]]
    """
    mask, num_steps = made.mask, made.mask.shape[1]
    num_actions, num_features = made.inverse.shape[1:3]
    target = jnp.where(mask[..., None], jnp.exp(target_log_probs), 0.0)
    after = jnp.pad(target[:, 1:], ((0, 0), (0, 1), (0, 0)))
    after = made.blocks.rows(after.reshape(mask.size, -1))
    # [blocks, rows, A F]: what the next state's value is linear in.
    ahead = (after[..., None] * made.after[..., None, :]).reshape(*after.shape[:2], -1)
    moment = made.blocks.products(made.now, ahead).reshape(
        -1, num_actions, num_features, num_actions * num_features
    )
    moment = discount * fits_of(moment, made.inverse.shape[0] > 1)

    def backup(w: Array, _: None) -> tuple[Array, tuple[Array, Array]]:
        ahead = w.reshape(w.shape[0], -1)
        total = made.rewarded + jnp.einsum(
            "jafg,jg->jaf", moment, ahead, precision=EXACT
        )
        fresh = jnp.einsum("jafg,jag->jaf", made.inverse, total, precision=EXACT)
        return fresh, (ahead[-1], fresh[-1])

    w, (before, fitted) = lax.scan(
        backup, jnp.zeros_like(made.rewarded), None, length=num_steps
    )
    values = jnp.einsum("btf,baf->bta", made.features, w[made.fit], precision=EXACT)
    action = jnp.where(mask, made.action, 0)[..., None]
    first = target[:, 0, :, None] * made.features[:, 0, None]
    influence = _influence(made, first, ahead, moment[-1], discount * before, fitted)
    episode = mask[:, 0]
    start = jnp.einsum("baf,af->b", first, w[-1], precision=EXACT)
    terms = jnp.where(episode, start + influence, 0.0)
    return FittedQ(
        q=jnp.take_along_axis(values, action, axis=-1)[..., 0],
        v=jnp.sum(target * values, axis=-1),
        terms=OpeTerms(terms[:, None], episode.astype(jnp.float32)[:, None]),
    )


def _influence(
    made: Regression,
    first: Array,
    ahead: Array,
    moment: Array,
    before: Array,
    fitted: Array,
) -> Array:
    """`[B]`: B times the derivative of V by an episode's count in the regressions.

        sum_k u_k . sum_t phi (r + discount V_{k-1}(s') - Q_k(s, a))
        u_k = inverse lambda_k,  lambda_T = dV / dw_T,  lambda_{k-1} = moment' u_k

    `before` `[T, A F]` is discount w_{k-1}, `fitted` `[T, A, F]` is w_k, both of the
    fit to all.
    """
    episode = made.mask[:, 0]
    number = jnp.maximum(jnp.sum(episode, dtype=jnp.float32), 1.0)

    def backward(slope: Array, _: None) -> tuple[Array, Array]:
        u = jnp.einsum("afg,ag->af", made.inverse[-1], slope, precision=EXACT)
        back = jnp.einsum("afg,af->g", moment, u, precision=EXACT)
        return back.reshape(slope.shape), u

    _, u = lax.scan(
        backward, jnp.sum(first, axis=0) / number, None, length=before.shape[0]
    )
    action = made.blocks.segment % made.inverse.shape[1]
    u, fitted = u[::-1][:, action], fitted[:, action]
    lever = jnp.einsum("srf,ksf->srk", made.now, u, precision=EXACT)
    error = (
        made.reward[..., None]
        + jnp.einsum("srg,kg->srk", ahead, before, precision=EXACT)
        - jnp.einsum("srf,ksf->srk", made.now, fitted, precision=EXACT)
    )
    steps = made.blocks.scattered(jnp.sum(lever * error, axis=-1))
    influence = number * jnp.sum(steps.reshape(made.mask.shape), axis=1)
    # All together they are 0 but for the ridge.
    mean = jnp.sum(influence) / number
    return jnp.where(episode, influence - mean, 0.0)

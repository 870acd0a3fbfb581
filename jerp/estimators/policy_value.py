"""What target policies are worth, estimated from one log of episodes, with refusals.

Puts the parts together: estimators of `jerp.estimators.ope` and `fitted_q`, the overlap
that they rest on, and intervals by resampling tasks. Many target policies are evaluated
in one program, with the same resamples. Symbols: `C` policies, `B` episodes, `T` steps,
`N` tasks, `F` features, `A` actions.
"""

from __future__ import annotations

from functools import partial
from typing import cast

import jax
import jax.numpy as jnp
from jax import lax

from jerp.estimators.arguments import check_resampling
from jerp.estimators.episode_weights import check_probabilities
from jerp.estimators.fitted_q import fitted_q
from jerp.estimators.ope import Kind, doubly_robust, importance_sampling
from jerp.estimators.ope_methods import (
    METHODS,
    MODELLED,
    Limits,
    LowerBound,
    check_methods,
)
from jerp.estimators.ope_summary import PolicyEvaluation, summarise
from jerp.estimators.ope_terms import OpeTerms
from jerp.estimators.overlap import Overlap, policy_overlap, refusal
from jerp.estimators.regression import Regression, regression
from jerp.estimators.resampling import weighted_mean
from jerp.ops.checks import (
    check_axes,
    check_count,
    check_ids,
    check_settings,
    check_values,
)
from jerp.typing import Array, ArrayLike, Key

__all__ = ["METHODS", "evaluate_policies"]


def evaluate_policies(
    key: Key,
    features: ArrayLike | None,
    action: ArrayLike,
    reward: ArrayLike,
    log_prob: ArrayLike | None,
    target_log_probs: ArrayLike,
    mask: ArrayLike,
    task_id: ArrayLike,
    *,
    num_tasks: int,
    methods: tuple[str, ...] = METHODS,
    discount: ArrayLike = 1.0,
    ridge: ArrayLike = 1e-6,
    num_folds: int = 5,
    min_effective: ArrayLike = 50.0,
    min_support: ArrayLike = 0.95,
    large_ratio: ArrayLike = 10.0,
    level: float = 0.95,
    interval: Limits = "studentized",
    lower_bound: LowerBound = "bootstrap",
    truncation: ArrayLike = 2.0,
    num_resamples: int = 2000,
) -> PolicyEvaluation:
    """Estimates the values of policies that did not log the episodes, or refuses to.

        V(pi) = E[ sum_t discount^t r_t ]  of an episode of a task like those logged

    Every episode counts once, so that tasks weigh as they were logged. Intervals draw
    whole tasks, with the same resamples for all policies and methods; of the doubly
    robust estimate with its model held fixed, of fitted Q evaluation with the fit
    (see `jerp.fitted_q_evaluation`). The model that corrects an episode was fitted
    without its task: task i is in fold `i % num_folds`.

    Args:
      key: consumed.
      features: `[B, T, F]` float32, for fitted Q and doubly robust, a constant among
        them unless they are one-hot; None without either.
      action: `[B, T]` int32.
      reward: `[B, T]` float32.
      log_prob: `[B, T]` float32, the behaviour's, of the action taken.
      target_log_probs: `[C, B, T, A]` float32, the policies', of all actions; -inf, or
        what `exp` makes 0 of, for those never taken.
      mask: `[B, T]` bool, a prefix in every row, all False for invalid episodes (see
        `jerp.trajectory.valid_episodes`), which are counted.
      task_id: `[B]` int32 in [0, num_tasks).
      num_tasks: N, static.
      methods: of `METHODS`, static.
      discount: in [0, 1].
      ridge: see `jerp.fitted_q_evaluation`.
      num_folds: static, at least 2.
      min_effective: floor of the effective sample size, see `jerp.refusal`.
      min_support: least share of a policy's episodes that the behaviour could produce.
      large_ratio: see `jerp.policy_overlap`.
      level: of the two-sided intervals and of the one-sided lower bound.
      interval: "studentized" (`jerp.estimators.studentized`, symmetric for what rests
        on a model, because resamples do not show the skew of its few large
        corrections), or "percentile" or "bca" of `jerp.bootstrap_interval`, which are
        too narrow where weights have a long tail; docs/ope.md has what they hold.
      lower_bound: "bootstrap", or "bernstein": `jerp.bernstein_lower_bound`, for the
        methods "ordinary" and "per_decision" alone and rewards of at least 0.
      truncation: of "bernstein".
      num_resamples: R.

    Returns:
      `PolicyEvaluation`.

    Raises:
      InputError: no behaviour probabilities, or numbers that are seen not to be what
        they should; under jit these are refused as `UNDEFINED`. `ShapeError`, one of
        them: other axes.
      UnknownNameError: another method, interval or bound.
      ConfigError: a bound that a method does not have, or a model without features.

    Reference: see `jerp.importance_sampling`, `jerp.fitted_q_evaluation`,
      `jerp.doubly_robust`, `jerp.policy_overlap`.

    Example:
      >>> action = jnp.tile(jnp.array([[0], [1]]), (100, 1))
      >>> log_prob = jnp.log(jnp.full((200, 1), 0.5))
      >>> target = jnp.tile(jnp.log(jnp.array([0.25, 0.75])), (1, 200, 1, 1))
      >>> e = evaluate_policies(
      ...     jax.random.key(0), None, action, action * 1.0, log_prob, target,
      ...     jnp.ones((200, 1), bool), jnp.arange(200) % 20, num_tasks=20,
      ...     methods=("ordinary",),
      ... )
      >>> float(e.estimates["ordinary"].point[0]), float(e.behaviour.point)
      (0.75, 0.5)
      >>> round(float(e.overlap.effective_sample_size[0]), 2)
      160.0
    """
    check_methods(methods, features, lower_bound, interval)
    check_resampling(key, weighted_mean, num_resamples=num_resamples, level=level)
    check_count("num_tasks", num_tasks)
    check_axes(
        target_log_probs=(target_log_probs, "C B T A"),
        mask=(mask, "B T", bool),
        action=(action, "B T", int),
        task_id=(task_id, "B", int),
    )
    num_actions = jnp.shape(target_log_probs)[-1]
    check_ids("action", action, mask, size=num_actions)
    episode = jnp.any(jnp.asarray(mask), axis=1)
    check_ids("task_id", task_id, episode, size=num_tasks)
    check_probabilities(log_prob, mask)
    is_log_prob = (lambda v: v <= 1e-5), "log-probabilities, at most 0"
    real = jnp.asarray(mask)[None, :, :, None]
    check_values("target_log_probs", target_log_probs, *is_log_prob, mask=real)
    if lower_bound == "bernstein":
        check_values("reward", reward, lambda v: v >= 0, ">= 0", mask=mask)
    poison = check_settings(
        discount=(discount, lambda v: (v >= 0) & (v <= 1), "in [0, 1]"),
        ridge=(ridge, lambda v: v > 0, "> 0"),
    )
    settings = (discount + poison, ridge, min_effective, min_support, large_ratio)
    return _evaluate(
        key,
        features if set(methods) & {*MODELLED} else None,
        (action, reward, log_prob, target_log_probs, mask, task_id),
        settings,
        truncation,
        num_tasks=num_tasks,
        methods=tuple(methods),
        num_folds=num_folds,
        level=level,
        interval=interval,
        lower_bound=lower_bound,
        num_resamples=num_resamples,
    )


@partial(
    jax.jit,
    static_argnames=(
        *("num_tasks", "methods", "num_folds", "level", "interval", "lower_bound"),
        "num_resamples",
    ),
)
def _evaluate(
    key: Key,
    features: Array | None,
    log: tuple[Array, ...],
    settings: tuple[ArrayLike, ...],
    truncation: ArrayLike,
    *,
    num_tasks: int,
    methods: tuple[str, ...],
    num_folds: int,
    level: float,
    interval: Limits,
    lower_bound: LowerBound,
    num_resamples: int,
) -> PolicyEvaluation:
    action, reward, log_prob, target_log_probs, mask, task_id = log
    discount, ridge, min_effective, min_support, large_ratio = settings
    model = None
    if features is not None:
        model = regression(
            features,
            action,
            reward,
            mask,
            num_actions=target_log_probs.shape[-1],
            fold=task_id % num_folds,
            num_folds=num_folds,
            ridge=ridge,
        )

    def by_task(terms: OpeTerms) -> OpeTerms:
        return jax.tree.map(lambda x: jax.ops.segment_sum(x, task_id, num_tasks), terms)

    def one(target: Array) -> tuple[tuple[OpeTerms, ...], Overlap]:
        steps = (reward, log_prob, mask)
        terms, chosen = _terms(steps, action, target, model, methods, discount)
        overlap = policy_overlap(log_prob, chosen, mask, large_ratio=large_ratio)
        return tuple(map(by_task, terms)), overlap

    terms, overlap = lax.map(one, target_log_probs)
    logged = by_task(
        importance_sampling(reward, log_prob, log_prob, mask, discount=discount)
    )
    has_episodes = logged.denominator[:, 0] > 0
    reason = refusal(
        overlap,
        jnp.sum(has_episodes),
        min_effective=min_effective,
        min_support=min_support,
    )
    estimates, behaviour = summarise(
        key,
        jax.tree.map(lambda x: jnp.moveaxis(x, 0, 1), terms),
        logged,
        reason,
        level=level,
        interval=interval,
        symmetric=tuple(name in MODELLED for name in methods),
        lower_bound=lower_bound,
        truncation=truncation,
        num_resamples=num_resamples,
    )
    count = jnp.sum(jnp.any(mask, axis=1), dtype=jnp.int32)
    excluded = mask.shape[0] - count
    return PolicyEvaluation(
        estimates=dict(zip(methods, estimates, strict=True)),
        overlap=overlap,
        behaviour=behaviour.replace(num_values=count, num_excluded=excluded),
    )


def _terms(
    steps: tuple[Array, Array, Array],
    action: Array,
    target: Array,
    model: Regression | None,
    methods: tuple[str, ...],
    discount: ArrayLike,
) -> tuple[list[OpeTerms], Array]:
    """Terms of each method for one policy, and log pi of the actions taken."""
    reward, log_prob, mask = steps
    taken = jnp.where(mask, action, 0)[..., None]
    chosen = jnp.take_along_axis(target, taken, axis=-1)[..., 0]
    fit = None if model is None else fitted_q(model, target, jnp.asarray(discount))
    terms = []
    for name in methods:
        if fit is None or name not in MODELLED:
            kind = cast(Kind, name)
            terms.append(
                importance_sampling(
                    reward, log_prob, chosen, mask, kind=kind, discount=discount
                )
            )
        elif name == "fitted_q":
            terms.append(fit.terms)
        else:
            terms.append(
                doubly_robust(
                    reward, log_prob, chosen, fit.q, fit.v, mask, discount=discount
                )
            )
    return terms, chosen

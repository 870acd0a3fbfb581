"""Advantage-weighted regression: weights, losses, the paper's task baseline.

Supervised learning of the actions in a buffer, each weighed by `exp(advantage /
temperature)`. Weights are constants: no gradient flows through them. Temperature
infinity is behaviour cloning. Arrays are `[...]` with a mask of the same shape, True
for real entries of valid episodes; nothing divides by the padded size.
"""

from __future__ import annotations

import chex
import jax.numpy as jnp
from jax import lax

from jerp.objectives.value import value_loss
from jerp.ops.checks import check_any, check_finite, check_settings, concrete
from jerp.ops.masked import masked_sum
from jerp.ops.masked import standardize as standardized
from jerp.ops.segments import dense_group_ids, group_deviations, group_sum, of_group
from jerp.records import LossOutput, WeightedMean
from jerp.typing import Array, ArrayLike

__all__ = [
    "awr_policy_loss",
    "awr_value_loss",
    "awr_weights",
    "effective_sample_size",
    "task_mean_baseline",
    "weighted_policy_loss",
]


def awr_weights(
    advantage: Array,
    mask: Array,
    *,
    temperature: ArrayLike = 1.0,
    min_weight: ArrayLike = 0.0,
    max_weight: ArrayLike = 20.0,
    standardize: bool = False,
) -> Array:
    """Exponentiated advantage weights of AWR.

        w = clip(exp(A / temperature), min_weight, max_weight)

    The exponent is clipped before `exp`, which therefore cannot overflow.

    Args:
      advantage: `[...]` float32, already baselined. Padding may hold anything.
      mask: `[...]` bool.
      temperature: > 0; `beta` in the paper. Smaller is greedier, infinity gives 1.
      min_weight: at least 0; 0.1 in arXiv:2607.05458.
      max_weight: above `min_weight`; 10 in arXiv:2607.05458.
      standardize: scale `A` to mean 0 and standard deviation 1 over the real entries
        first. Weights then do not depend on the scale of rewards.

    Returns:
      `[...]` float32, 0 where `mask` is False. Not normalised to mean 1.

    Raises:
      InputError: a NaN or infinite advantage, an all-masked batch or a bad bound, where
        Python can see it. Under jit a NaN advantage has weight NaN, and all have it if
        `standardize`.

    Deviations: the released code of arXiv:1910.00177 standardises over the buffer and
    has temperature 1: `standardize=True`. The default is the paper's form.

    Reference: Peng et al., "Advantage-Weighted Regression", arXiv:1910.00177, eq. 10.

    Example:
      >>> a = jnp.array([0.0, 1e6, -1e6])
      >>> awr_weights(a, jnp.ones(3, bool), temperature=0.2, min_weight=0.5).tolist()
      [1.0, 20.0, 0.5]
    """
    chex.assert_equal_shape([advantage, mask])
    poison = _check_bounds(temperature, min_weight, max_weight)
    check_finite("advantage", advantage, mask)
    check_any("mask", mask)
    advantage = jnp.asarray(advantage, jnp.float32)
    if standardize:
        advantage = standardized(advantage, mask)
    exponent = jnp.where(mask, advantage, 0) / temperature
    ceiling = jnp.log(max_weight)
    weight = jnp.exp(jnp.minimum(exponent, ceiling))
    # Not where it is below: a NaN would then weigh the most.
    weight = jnp.where(exponent >= ceiling, max_weight, weight)
    weight = jnp.maximum(weight, min_weight) + poison
    return lax.stop_gradient(jnp.where(mask, weight, 0))


def weighted_policy_loss(log_prob: Array, weight: Array, mask: Array) -> LossOutput:
    """Weighted negative log-likelihood, averaged over the real entries.

        L = - sum_i m_i w_i log pi(a_i | s_i) / sum_i m_i

    Args:
      log_prob: `[...]` float, of the actions in the buffer under the policy that
        learns. Padding may hold anything.
      weight: `[...]` float constants.
      mask: `[...]` bool.

    Returns:
      The loss, and as metric the plain `negative_log_likelihood`, in float32.

    Raises:
      InputError: a NaN or infinite real entry or an all-masked batch, where Python can
        see it. Under jit a NaN makes the total NaN, and nothing real gives total and
        weight 0.

    Example:
      >>> log_prob, mask = jnp.array([-1.0, -3.0]), jnp.ones(2, bool)
      >>> loss = weighted_policy_loss(log_prob, jnp.array([2.0, 0.0]), mask).loss
      >>> float(loss.value())
      1.0
    """
    chex.assert_equal_shape([log_prob, weight, mask])
    check_finite("log_prob", log_prob, mask)
    check_finite("weight", weight, mask)
    check_any("mask", mask)
    log_prob = jnp.where(mask, jnp.asarray(log_prob, jnp.float32), 0)
    weight = lax.stop_gradient(jnp.where(mask, jnp.asarray(weight, jnp.float32), 0))
    count = jnp.sum(mask, dtype=jnp.float32)
    return LossOutput(
        loss=WeightedMean(total=-jnp.sum(weight * log_prob), weight=count),
        metrics={
            "negative_log_likelihood": WeightedMean(
                total=-jnp.sum(log_prob), weight=count
            )
        },
    )


def awr_policy_loss(
    log_prob: Array,
    advantage: Array,
    mask: Array,
    *,
    temperature: ArrayLike = 1.0,
    min_weight: ArrayLike = 0.0,
    max_weight: ArrayLike = 20.0,
    standardize: bool = False,
) -> LossOutput:
    """AWR's policy loss: `weighted_policy_loss` with `awr_weights`.

        L = - mean(w log pi(a | s)),   w = awr_weights(A)

    Standardising and clipping see what they are given: with minibatches compute the
    weights once over the buffer and use `weighted_policy_loss`.

    Args:
      log_prob: `[...]` float32, of the actions in the buffer.
      advantage: `[...]` float32.
      mask: `[...]` bool.
      temperature: see `awr_weights`, like the other keywords.
      min_weight: lower bound of the weights.
      max_weight: upper bound of the weights.
      standardize: the released code's scaling.

    Returns:
      The loss; metrics `weight` and `negative_log_likelihood`.

    Example:
      >>> log_prob, mask = jnp.array([-1.0, -3.0]), jnp.ones(2, bool)
      >>> out = awr_policy_loss(log_prob, jnp.zeros(2), mask)
      >>> float(out.loss.value()), float(out.metrics["weight"].value())
      (2.0, 1.0)
    """
    weight = awr_weights(
        advantage,
        mask,
        temperature=temperature,
        min_weight=min_weight,
        max_weight=max_weight,
        standardize=standardize,
    )
    output = weighted_policy_loss(log_prob, weight, mask)
    mean_weight = WeightedMean(total=jnp.sum(weight), weight=output.loss.weight)
    return output.replace(metrics={**output.metrics, "weight": mean_weight})


def awr_value_loss(value: Array, target: Array, mask: Array) -> LossOutput:
    """Squared error of a value function, averaged over the real entries.

        L = sum_i m_i (V_i - G_i)^2 / (2 sum_i m_i)

    Args:
      value: `[...]` float32, predictions.
      target: `[...]` float32, returns; no gradient flows through them.
      mask: `[...]` bool.

    Returns:
      The loss; no metrics. `value_loss` has them, and a clip.

    Deviations: the released code regresses values divided by `1 / (1 - discount)`,
    which episodes of ten steps without discount do not need.

    Reference: arXiv:1910.00177, eq. 8 (there without the factor 1/2).

    Example:
      >>> v, g = jnp.array([1.0, 9.0]), jnp.array([3.0, 0.0])
      >>> float(awr_value_loss(v, g, jnp.array([True, False])).loss.value())
      2.0
    """
    return value_loss(value, target, mask).replace(metrics={})


def task_mean_baseline(
    returns: Array, task_id: Array, mask: Array, *, leave_one_out: bool = False
) -> Array:
    """Mean return of each episode's task.

        b_i = mean {G_j : task_j = task_i, m_j}

    Args:
      returns: `[B]` float32, one an episode.
      task_id: `[B]` int32, any numbers.
      mask: `[B]` bool, True for valid episodes; others enter no mean.
      leave_one_out: leave the episode's own return out. An episode alone with its task
        then has its own return as baseline: advantage 0 either way.

    Returns:
      `[B]` float32, 0 where `mask` is False. Where all returns of a task are equal it
      is exactly that return.

    Raises:
      InputError: a NaN or infinite return, or an all-masked batch, where Python can see
        it. Under jit a NaN reaches the baselines of its own task alone.

    Deviations: none by default; the own return included shrinks every advantage by
    (n - 1) / n, which `leave_one_out` undoes.

    Reference: arXiv:2607.05458 and its released code.

    Example:
      >>> g, task = jnp.array([1.0, 0.0, 0.5]), jnp.array([7, 7, 3])
      >>> task_mean_baseline(g, task, jnp.ones(3, bool)).tolist()
      [0.5, 0.5, 0.5]
    """
    chex.assert_rank([returns, task_id, mask], 1)
    chex.assert_equal_shape([returns, task_id, mask])
    check_finite("returns", returns, mask)
    check_any("mask", mask)
    returns = jnp.where(mask, jnp.asarray(returns, jnp.float32), 0)
    task = dense_group_ids(task_id, mask=mask).index
    size = returns.shape[0]
    deviation = group_deviations(returns, task, mask, num_groups=size)
    if leave_one_out:
        episodes = group_sum(jnp.ones(size), task, mask, num_groups=size)
        count = of_group(episodes, task, mask)
        deviation = deviation * (count / jnp.maximum(count - 1, 1))
    return jnp.where(mask, returns - deviation, 0)


def effective_sample_size(weight: Array, mask: Array) -> Array:
    """How many equally weighed samples would say as much (Kish).

        ESS = (sum w)^2 / sum w^2

    Args:
      weight: `[...]` float32, at least 0.
      mask: `[...]` bool.

    Returns:
      `[]` float32, between 1 and the number of real entries; 0 without weight, NaN
      where a real weight is.

    Example:
      >>> w = jnp.array([2.0, 2.0, 0.0])
      >>> float(effective_sample_size(w, jnp.ones(3, bool)))
      2.0
    """
    weight = jnp.where(mask, jnp.asarray(weight, jnp.float32), 0)
    total, squares = masked_sum(weight, mask), masked_sum(jnp.square(weight), mask)
    return total**2 / jnp.where(squares == 0, 1, squares)


def _check_bounds(
    temperature: ArrayLike, min_weight: ArrayLike, max_weight: ArrayLike
) -> ArrayLike:
    return check_settings(
        temperature=(temperature, lambda v: v > 0, "> 0"),
        min_weight=(min_weight, lambda v: v >= 0, ">= 0"),
        max_weight=(
            max_weight if concrete(min_weight) is not None else None,
            lambda v: v > min_weight,
            f"> min_weight = {min_weight}",
        ),
    )

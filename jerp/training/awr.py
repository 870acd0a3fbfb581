"""Offline advantage-weighted regression of a harness controller.

Two settings. "trajectory" is that of arXiv:2607.05458: every step inherits the weight
of its episode's return against the mean return of its task. "step" is AWR proper
(arXiv:1910.00177): TD(lambda) returns against a learned state value. Temperature
infinity is behaviour cloning. Training is a pure function, masks illegal actions as
sampling does, leaves INFRASTRUCTURE episodes out, and vmaps over keys and `AwrHyper`.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import partial
from typing import NamedTuple, cast

import chex
import jax
import jax.numpy as jnp
import optax

from jerp.harness.actions import NUM_ACTIONS
from jerp.models.controller import (
    Controller,
    Params,
    init_policy,
    init_value,
    log_probs,
    state_values,
)
from jerp.objectives.awr import (
    awr_value_loss,
    awr_weights,
    effective_sample_size,
    task_mean_baseline,
    weighted_policy_loss,
)
from jerp.ops.masked import categorical_entropy, masked_mean, masked_sum
from jerp.ops.returns import discounted_returns, lambda_returns
from jerp.records import LossOutput, WeightedMean
from jerp.training.awr_settings import AwrConfig, AwrHyper, hyper_grid
from jerp.training.minibatches import minimize, real_rows_first
from jerp.training.state import TrainState
from jerp.trajectory import Trajectory, valid_episodes
from jerp.typing import Array, ArrayLike, Key

__all__ = ["AwrConfig", "AwrHyper", "Metrics", "Train", "hyper_grid", "make_awr"]

Metrics = dict[str, Array]
Train = Callable[[Key, AwrHyper, Trajectory], tuple[TrainState, Metrics]]


def make_awr(config: AwrConfig | None = None) -> Train:
    """The training function of a setting.

    With `advantage="step"` the order is that of the released AWR code: targets from the
    current value, value updates, targets again, then the policy. The buffer being
    fixed, targets are renewed before every value epoch.

    Args:
      config: static part; the paper's setting by default.

    Returns:
      `train(key, hyper, data) -> (TrainState, metrics)`, pure. `key` is consumed. Seeds
      and hyper-parameters in one compilation:

          over_seeds = jax.vmap(make_awr(), in_axes=(0, None, None))
          grid = jax.jit(jax.vmap(over_seeds, in_axes=(None, 0, None)))
          state, metrics = grid(keys, hyper_grid(temperature=[0.1, 0.2]), data)

      `state.params` is what `controller_policy` takes. Metrics: by epoch `policy_loss`,
      `negative_log_likelihood`, `entropy` and, with "step", `value_loss`; `weight`
      (`[B]` of the episodes, with "step" `[B, T]`), its mean, the shares at its bounds
      and its effective sample size; `num_episodes` and `num_steps` learned from.
    """
    config = AwrConfig() if config is None else config

    def train(
        key: Key, hyper: AwrHyper, data: Trajectory
    ) -> tuple[TrainState, Metrics]:
        if data.log_prob is None:
            warnings.warn(
                "trajectory.log_prob is None: learning goes on, but nothing learned "
                "from this buffer can be evaluated off-policy",
                stacklevel=2,
            )
        return _train(config, key, hyper, data)

    return train


class _Keys(NamedTuple):
    """One stream a consumer, so that a new one does not shift the others."""

    policy_init: Key
    policy_order: Key
    value_init: Key
    value_order: Key
    later: Key


class _PolicyRows(NamedTuple):
    """Steps that the policy learns from, `[B, T, ...]` or `[N, ...]`."""

    feature: Array
    action: Array
    legal: Array
    weight: Array


def _train(
    config: AwrConfig, key: Key, hyper: AwrHyper, data: Trajectory
) -> tuple[TrainState, Metrics]:
    """See `make_awr`."""
    chex.assert_rank([data.observation, data.final_observation], [3, 2])
    keys = _Keys(*jax.random.split(key, len(_Keys._fields)))
    valid = valid_episodes(data)
    mask = data.mask & valid[:, None]
    value_params: Params = {}
    metrics: Metrics = {}
    if config.advantage == "step":
        value_params, metrics["value_loss"] = _fit_value(
            config, keys, hyper, data, mask
        )
        returns, value = _returns_and_values(value_params, hyper, data, mask)
        advantage, counts = returns - value, mask
    else:
        advantage, counts = _task_advantage(config, hyper, data, mask), valid
    weight = awr_weights(
        advantage,
        counts,
        temperature=hyper.temperature,
        min_weight=hyper.min_weight,
        max_weight=hyper.max_weight,
        standardize=config.standardize,
    )
    params, opt_state, curves = _fit_policy(config, keys, hyper, data, mask, weight)
    metrics |= curves | _weight_metrics(weight, counts, hyper)
    metrics |= {"num_episodes": jnp.sum(valid), "num_steps": jnp.sum(mask)}
    state = TrainState(
        params={**params, **value_params},
        opt_state=opt_state,
        step=config.epochs * -(-metrics["num_steps"] // config.batch_size),
        key=keys.later,
    )
    return state, metrics


def _task_advantage(
    config: AwrConfig, hyper: AwrHyper, data: Trajectory, mask: Array
) -> Array:
    """`[B]` returns minus their task's mean."""
    returns_of = partial(discounted_returns, discount=hyper.discount)
    returns = jax.vmap(returns_of)(data.reward, mask)[:, 0]
    return returns - task_mean_baseline(
        returns,
        data.task_id,
        valid_episodes(data),
        leave_one_out=config.leave_one_out,
    )


def _returns_and_values(
    params: Params, hyper: AwrHyper, data: Trajectory, mask: Array
) -> tuple[Array, Array]:
    """`[B, T]` TD(lambda) returns and state values, 0 in padding."""

    def returns_of(reward, value, terminated, truncated, mask, bootstrap_value):
        return lambda_returns(
            reward,
            value,
            terminated,
            truncated,
            mask,
            discount=hyper.discount,
            lambda_=hyper.lambda_,
            bootstrap_value=bootstrap_value,
        )

    value = jnp.where(mask, state_values(params, _features(data)), 0)
    end_value = state_values(params, cast(Array, data.final_observation))
    returns = jax.vmap(returns_of)(
        data.reward, value, data.terminated, data.truncated, mask, end_value
    )
    return returns, value


def _fit_value(
    config: AwrConfig, keys: _Keys, hyper: AwrHyper, data: Trajectory, mask: Array
) -> tuple[Params, Array]:
    """Regresses values on returns; also the loss of each epoch."""
    model = Controller(hidden_size=config.hidden_size)
    feature = real_rows_first(_features(data), mask)

    def rows_of(params: Params) -> tuple[Array, Array]:
        target, _ = _returns_and_values(params, hyper, data, mask)
        return feature, real_rows_first(target, mask)

    def loss_fn(
        params: Params, rows: tuple[Array, Array], mask: Array, key: Key
    ) -> LossOutput:
        del key
        feature, target = rows
        return awr_value_loss(state_values(params, feature), target, mask)

    params, _, output = minimize(
        keys.value_order,
        init_value(keys.value_init, model, feature.shape[-1]),
        rows_of,
        jnp.sum(mask),
        loss_fn=loss_fn,
        optimizer=_adam(hyper.value_learning_rate),
        epochs=config.value_epochs,
        batch_size=config.batch_size,
    )
    return params, output.loss.value()


def _fit_policy(
    config: AwrConfig,
    keys: _Keys,
    hyper: AwrHyper,
    data: Trajectory,
    mask: Array,
    weight: Array,
) -> tuple[Params, optax.OptState, Metrics]:
    """Weighted regression on the buffer's actions; also its curves by epoch."""
    steps = _policy_rows(data, weight)
    rows = real_rows_first(steps, mask)
    num_features, num_actions = rows.feature.shape[-1], rows.legal.shape[-1]
    model = Controller(hidden_size=config.hidden_size, num_actions=num_actions)
    params, opt_state, output = minimize(
        keys.policy_order,
        init_policy(keys.policy_init, model, num_features),
        lambda params: rows,
        jnp.sum(mask),
        loss_fn=partial(_policy_loss, entropy_weight=hyper.entropy_weight),
        optimizer=_adam(hyper.learning_rate),
        epochs=config.epochs,
        batch_size=config.batch_size,
    )
    curves = {name: metric.value() for name, metric in output.metrics.items()}
    return params, opt_state, {"policy_loss": output.loss.value(), **curves}


def _policy_loss(
    params: Params,
    rows: _PolicyRows,
    mask: Array,
    key: Key,
    *,
    entropy_weight: ArrayLike,
) -> LossOutput:
    """Weighted negative log-likelihood minus the entropy bonus."""
    del key
    log_prob = log_probs(params, rows.feature, rows.legal)
    taken = jnp.arange(rows.legal.shape[-1])[None] == rows.action[:, None]
    output = weighted_policy_loss(
        jnp.sum(jnp.where(taken, log_prob, 0), axis=-1), rows.weight, mask
    )
    entropy = output.loss.replace(total=masked_sum(categorical_entropy(log_prob), mask))
    total = output.loss.total - entropy_weight * entropy.total
    return LossOutput(
        loss=WeightedMean(total=total, weight=output.loss.weight),
        metrics={**output.metrics, "entropy": entropy},
    )


def _policy_rows(data: Trajectory, weight: Array) -> _PolicyRows:
    legal = data.legal
    if legal is None:
        legal = jnp.ones((*data.action.shape, NUM_ACTIONS), bool)
    if weight.ndim == 1:
        weight = jnp.broadcast_to(weight[:, None], data.action.shape)
    return _PolicyRows(_features(data), data.action, legal, weight)


def _features(data: Trajectory) -> Array:
    return cast(Array, data.observation)


def _adam(learning_rate: ArrayLike) -> optax.GradientTransformation:
    """Adam over one flat vector: few long fused loops instead of many short ones."""
    return optax.flatten(optax.adam(jnp.asarray(learning_rate)))


def _weight_metrics(weight: Array, counts: Array, hyper: AwrHyper) -> Metrics:
    at_min = (weight <= hyper.min_weight).astype(weight.dtype)
    at_max = (weight >= hyper.max_weight).astype(weight.dtype)
    return {
        "weight": weight,
        "weight_mean": masked_mean(weight, counts),
        "share_at_min": masked_mean(at_min, counts),
        "share_at_max": masked_mean(at_max, counts),
        "effective_sample_size": effective_sample_size(weight, counts),
    }

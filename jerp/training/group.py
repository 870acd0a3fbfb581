"""Policy-gradient training of policies over whole episodes, as one pure step.

`make_group_step(config, policy)` gives `init` and `step`; a step takes a batch of
episodes that the policy played and makes `epochs * minibatches` updates. Nothing is
drawn but the order of minibatches, nothing is read or written: whoever owns the loop
plays the episodes. Both go through jit and vmap: seeds and hyper-parameters share a
compilation. Losses are sums and weights, so that the parts of a minibatch add up to
exactly the loss of the whole.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import optax
from flax import struct
from jax import lax

from jerp.errors import ConfigError
from jerp.models.policy import SequencePolicy
from jerp.objectives.aggregate import aggregate_loss
from jerp.objectives.clipped import clipped_policy_loss
from jerp.records import LossOutput, WeightedMean
from jerp.training.decisions import decisions, flat_decisions, sampler_gap
from jerp.training.frozen import beside_frozen
from jerp.training.group_advantage import step_advantage
from jerp.training.group_settings import GroupConfig, GroupHyper
from jerp.training.minibatches import shuffled_rows
from jerp.training.sharding import split_batch
from jerp.training.state import TrainState
from jerp.trajectory import Trajectory
from jerp.typing import Array, Key

__all__ = ["GroupBatch", "Init", "Step", "group_loss", "make_group_step"]

Init = Callable[[Key, GroupHyper, Any], TrainState]
Step = Callable[..., tuple[TrainState, dict[str, Array]]]


class GroupBatch(struct.PyTreeNode):
    """Episodes with all that the loss takes as given.

    Attributes:
      data: the episodes.
      advantage: `[B, T]` float32.
      kept: `[B]` bool, episodes that enter the loss.
      old: of the policy before the first update; None where the batch sees a single
        update, whose ratio is 1.
      target: `[B, T]` float32 for the value head, or None.
      reference_log_prob: under the policy to stay near to, or None.
    """

    data: Trajectory
    advantage: Array
    kept: Array
    old: Array | None = None
    target: Array | None = None
    reference_log_prob: Array | None = None


def make_group_step(config: GroupConfig, policy: SequencePolicy) -> tuple[Init, Step]:
    """The training functions of an algorithm for a policy.

    Args:
      config: static part, see `jerp.training.group_settings.algorithm`.
      policy: what is trained; "gae" needs one with a value head.

    Returns:
      `init(key, hyper, params) -> TrainState`; `key` is consumed.
      `step(state, hyper, data, reference=None, frozen=None) -> (TrainState, metrics)`,
      with `reference` the parameters of a policy to stay near to, and `frozen`
      entries of the policy's dict of parameters that are not trained, such as the
      decoder beside adapters: no gradient and no optimizer state is made for them.
      Metrics: numbers of
      `step_advantage` and of `jerp.clipped_policy_loss`, `entropy`, `loss`,
      `grad_norm`, and `sampler_gap`, the largest difference between the
      log-probabilities that the episodes were sampled with and those of training under
      the same parameters: those before the first update.

    Raises:
      ConfigError: when a step is traced: "gae" without a value head, or episodes that
        minibatches and microbatches do not divide.
    """

    def init(key: Key, hyper: GroupHyper, params: Any) -> TrainState:
        opt_state = _optimizer(hyper).init(params)
        return TrainState(params, opt_state, jnp.zeros((), jnp.int32), key)

    return init, partial(_step, config, policy)


def group_loss(
    config: GroupConfig,
    policy: SequencePolicy,
    hyper: GroupHyper,
    params: Any,
    batch: GroupBatch,
) -> tuple[LossOutput, Array]:
    """Clipped policy loss, less the entropy bonus, plus the value head's loss.

        L = L_clip + kl_weight KL - entropy_weight H + value_weight (V - target)^2 / 2

    all aggregated alike, so that sums over parts of a batch are those of the batch. Of
    tokens only those count that had an alternative; the value of a step counts with
    each of its own.

    Args:
      config: see `GroupConfig`.
      policy: evaluates the episodes under `params`.
      hyper: see `GroupHyper`.
      params: what the gradient is of.
      batch: constants of the loss.

    Returns:
      `LossOutput`, and the largest distance `[]` from the sampler's log-probabilities.
    """
    found = policy.evaluate(params, batch.data)
    flat = partial(flat_decisions, like=found.log_prob)
    mask = decisions(batch.data) & batch.kept[:, None]
    mask = mask if found.choice is None else mask & flat(found.choice)
    constant = hyper.constant if config.aggregation == "sum_over_constant" else None
    aggregate = partial(
        aggregate_loss, mask=mask, aggregation=config.aggregation, constant=constant
    )
    log_prob, reference = flat(found.log_prob), batch.reference_log_prob
    output = clipped_policy_loss(
        log_prob,
        lax.stop_gradient(log_prob) if batch.old is None else flat(batch.old),
        flat(batch.advantage),
        mask,
        clip_low=hyper.clip_low,
        clip_high=hyper.clip_high,
        form=config.form,
        ratio=config.ratio,
        reference_log_prob=None if reference is None else flat(reference),
        kl_weight=0.0 if reference is None else hyper.kl_weight,
        aggregation=config.aggregation,
        constant=constant,
    )
    entropy = aggregate(jnp.where(mask, flat(found.entropy), 0.0))
    total = output.loss.total - hyper.entropy_weight * entropy.total
    metrics = {**output.metrics, "entropy": entropy}
    if batch.target is not None:
        error = jnp.square(jnp.asarray(found.value) - batch.target) / 2
        metrics["value_loss"] = aggregate(jnp.where(mask, flat(error), 0.0))
        total += hyper.value_weight * metrics["value_loss"].total
    loss = WeightedMean(total, output.loss.weight)
    return LossOutput(loss, metrics), sampler_gap(batch.data, log_prob)


def _step(
    config: GroupConfig,
    policy: SequencePolicy,
    state: TrainState,
    hyper: GroupHyper,
    data: Trajectory,
    reference: Any = None,
    frozen: Mapping[str, Any] | None = None,
) -> tuple[TrainState, dict[str, Array]]:
    """See `make_group_step`."""
    policy = beside_frozen(policy, frozen)
    updates = config.epochs * config.minibatches
    # The ratio of a single update is 1, whatever the policy was before it.
    single = updates == 1 and config.advantage != "gae"
    evaluated = partial(_evaluated, config, policy)
    old, value = (None, None) if single else evaluated(state.params, data)
    if config.advantage == "gae" and value is None:
        raise ConfigError("advantage: 'gae' needs a policy with a value head, got none")
    advantage = step_advantage(config, hyper, data, value)
    batch = GroupBatch(
        data=data,
        advantage=advantage.value,
        kept=advantage.kept,
        old=old,
        target=advantage.target,
        reference_log_prob=None if reference is None else evaluated(reference, data)[0],
    )
    batch = lax.stop_gradient(batch)
    passes = state.step // config.minibatches

    def epoch(carry: Any, number: Array) -> tuple[Any, Any]:
        parts = _minibatches(jax.random.fold_in(state.key, number), batch, config)
        return lax.scan(partial(_update, config, policy, hyper), carry, parts)

    (params, opt_state), (output, norm, gap) = lax.scan(
        epoch, (state.params, state.opt_state), passes + jnp.arange(config.epochs)
    )
    if old is not None:
        gap = sampler_gap(data, flat_decisions(old, like=old))
    output = jax.tree.map(jnp.sum, output)
    metrics = {name: metric.value() for name, metric in output.metrics.items()}
    metrics |= advantage.metrics
    metrics |= {"loss": output.loss.value(), "grad_norm": jnp.mean(norm)}
    metrics["sampler_gap"] = jnp.max(gap)
    return TrainState(params, opt_state, state.step + updates, state.key), metrics


def _evaluated(
    config: GroupConfig, policy: SequencePolicy, params: Any, data: Trajectory
) -> tuple[Array, Array | None]:
    """Log-probabilities and values, in parts as large as those of an update.

    A part takes every n-th episode: on a mesh each device then has its share of every
    part, and nothing is sent.
    """
    rows = data.mask.shape[0]
    number = math.prod(_parts(config, rows))

    def evaluate(part: Trajectory) -> tuple[Array, Array | None]:
        found = policy.evaluate(params, part)
        return found.log_prob, found.value

    parts = jax.tree.map(
        lambda x: x.reshape(-1, number, *x.shape[1:]).swapaxes(0, 1), data
    )
    found = lax.map(evaluate, split_batch(parts, axis=1))
    found = jax.tree.map(lambda x: x.swapaxes(0, 1).reshape(rows, *x.shape[2:]), found)
    return split_batch(found)


def _update(
    config: GroupConfig,
    policy: SequencePolicy,
    hyper: GroupHyper,
    carry: tuple[Any, Any],
    parts: GroupBatch,
) -> tuple[tuple[Any, Any], tuple[LossOutput, Array, Array]]:
    """One update from a minibatch whose parts `[microbatches, b, ...]` are added up.

    A minibatch in which nothing counts, such as one of dead groups, is no update.
    """
    params, opt_state = carry

    def total(params: Any, part: GroupBatch) -> tuple[Array, Any]:
        output, gap = group_loss(config, policy, hyper, params, part)
        return output.loss.total, (output, gap)

    def add(total_gradient: Any, part: GroupBatch) -> tuple[Any, Any]:
        gradient, found = jax.grad(total, has_aux=True)(params, part)
        return jax.tree.map(jnp.add, total_gradient, gradient), found

    zeros = jax.tree.map(jnp.zeros_like, params)
    gradient, (output, gap) = lax.scan(add, zeros, parts)
    output = jax.tree.map(jnp.sum, output)
    weight = output.loss.weight
    gradient = jax.tree.map(lambda g: g / jnp.where(weight > 0, weight, 1.0), gradient)
    change, moments = _optimizer(hyper).update(gradient, opt_state, params)
    # A gradient of 0 would still be a step, by the momentum of those before it.
    carry = jax.tree.map(
        partial(jnp.where, weight > 0),
        (optax.apply_updates(params, change), moments),
        carry,
    )
    return carry, (output, optax.tree.norm(gradient), jnp.max(gap))


def _optimizer(hyper: GroupHyper) -> optax.GradientTransformation:
    return optax.chain(
        optax.clip_by_global_norm(hyper.max_grad_norm),  # pyright: ignore
        optax.adam(jnp.asarray(hyper.learning_rate)),
    )


def _minibatches(key: Key, batch: GroupBatch, config: GroupConfig) -> GroupBatch:
    """Leaves `[minibatches, microbatches, b, ...]`, in random order if there are many.

    A single minibatch keeps its order: its loss is the same in any.
    """
    rows = batch.kept.shape[0]
    parts = _parts(config, rows)
    if config.minibatches > 1:
        order = shuffled_rows(key, rows, jnp.int32(rows))
        batch = jax.tree.map(lambda x: x[order], batch)
    batch = jax.tree.map(lambda x: x.reshape(*parts, -1, *x.shape[1:]), batch)
    return split_batch(batch, axis=2)


def _parts(config: GroupConfig, rows: int) -> tuple[int, int]:
    """How many minibatches, and parts of each."""
    parts = (config.minibatches, config.microbatches)
    if rows % math.prod(parts):
        raise ConfigError(
            f"minibatches * microbatches: expected a divisor of {rows} episodes, got "
            f"{parts[0]} * {parts[1]}"
        )
    return parts

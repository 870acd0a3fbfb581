"""What each step of a batch of episodes is held to have been worth.

Penalties are taken from the rewards here, and nowhere else: a trajectory keeps the
world's own. Invalid episodes enter no group and no mean.
"""

from __future__ import annotations

from functools import partial

import jax
import jax.numpy as jnp
from flax import struct

from jerp.advantages.gigpo import gigpo_advantages
from jerp.advantages.group import group_relative_advantages
from jerp.errors import ConfigError
from jerp.objectives.length import overlong_penalty
from jerp.ops.masked import masked_mean
from jerp.ops.returns import gae
from jerp.ops.segments import group_max, group_sum
from jerp.training.group_settings import GroupConfig, GroupHyper
from jerp.trajectory import Trajectory, valid_episodes
from jerp.typing import Array

__all__ = ["StepAdvantage", "live_groups", "penalised_reward", "step_advantage"]


class StepAdvantage(struct.PyTreeNode):
    """Advantages of a batch, and what they rest on.

    Attributes:
      value: `[B, T]` float32, 0 in padding.
      kept: `[B]` bool, episodes that enter the loss.
      target: `[B, T]` float32, of a value head; None without one.
      dead: `[G]` bool, groups that teach nothing: their returns are all equal, and of
        "gigpo" and "one_anchor" every advantage of their steps is 0 besides, for equal
        returns that came at different times tell steps apart.
      metrics: by name a number: `dead_share`, `return_mean`, and of "gigpo" what the
        anchors cover.
    """

    value: Array
    kept: Array
    target: Array | None
    dead: Array
    metrics: dict[str, Array]


def penalised_reward(data: Trajectory, hyper: GroupHyper) -> Array:
    """What steps brought, less what they are fined.

        r_t - step_penalty - invalid_penalty [action not legal] + [t is last] p(n)

    with `p` the over-long penalty of the episode's length `n`: the tokens that the
    policy generated, or its steps where it generates none.

    Args:
      data: `[B, T]` episodes.
      hyper: see `GroupHyper`.

    Returns:
      `[B, T]` float32, 0 in padding.

    Deviations: DAPO fines the one reward of an answer; here an episode has many, and
    the last one is fined.

    Reference: DAPO, arXiv:2503.14476, eq. 13, for the length.

    Example:
      >>> from jerp.training.group_settings import GroupHyper
      >>> from types import SimpleNamespace
      >>> steps = SimpleNamespace(
      ...     reward=jnp.array([[0.0, 1.0]]), mask=jnp.ones((1, 2), bool),
      ...     action=jnp.array([[0, 1]]),
      ...     legal=jnp.array([[[True, True], [True, False]]]), token_mask=None,
      ... )
      >>> hyper = GroupHyper(step_penalty=0.25, invalid_penalty=0.5)
      >>> penalised_reward(steps, hyper).tolist()
      [[-0.25, 0.25]]
      >>> long = GroupHyper(max_length=3.0, length_buffer=2.0)
      >>> penalised_reward(steps, long).tolist()
      [[0.0, 0.5]]
    """
    penalty = jnp.asarray(hyper.step_penalty, jnp.float32)
    if data.legal is not None:
        action = jnp.where(data.mask, data.action, 0)[..., None]
        legal = jnp.take_along_axis(data.legal, action, axis=-1)[..., 0]
        penalty = penalty + jnp.where(legal, 0.0, hyper.invalid_penalty)
    reward = jnp.where(data.mask, data.reward - penalty, 0.0)
    steps = jnp.arange(data.mask.shape[1])[None]
    last = steps == jnp.sum(data.mask, axis=1, keepdims=True) - 1
    overlong = overlong_penalty(
        _lengths(data), max_length=hyper.max_length, buffer=hyper.length_buffer
    )
    return reward + jnp.where(last, overlong[:, None], 0.0)


def _lengths(data: Trajectory) -> Array:
    """`[B]` int32: tokens that the policy generated, else steps."""
    if data.token_mask is None:
        return jnp.sum(data.mask, axis=1, dtype=jnp.int32)
    generated = data.token_mask & data.mask[..., None]
    return jnp.sum(generated, axis=(1, 2), dtype=jnp.int32)


def step_advantage(
    config: GroupConfig, hyper: GroupHyper, data: Trajectory, value: Array | None
) -> StepAdvantage:
    """Advantages by `config.advantage`.

    Args:
      config: see `GroupConfig`.
      hyper: see `GroupHyper`.
      data: episodes with `group_id` in [0, G).
      value: `[B, T]` float32 of the states, for "gae" alone.

    Returns:
      `StepAdvantage`.
    """
    valid = valid_episodes(data)
    mask = data.mask & valid[:, None]
    reward = jnp.where(mask, penalised_reward(data, hyper), 0.0)
    returns = jnp.sum(reward, axis=1)
    metrics = {"return_mean": masked_mean(returns, valid)}
    target, dead = None, jnp.zeros(config.num_groups, bool)
    if config.advantage == "return":
        steps = jnp.where(mask, returns[:, None], 0.0)
    elif config.advantage == "gae":
        steps, target = _generalised(hyper, data, reward, value, mask)
    elif config.advantage == "group":
        found = group_relative_advantages(
            returns,
            data.group_id,
            valid,
            num_groups=config.num_groups,
            baseline=config.baseline,
            scale=config.scale,
        )
        steps, dead = jnp.where(mask, found.value[:, None], 0.0), found.dead
    else:
        steps, dead, coverage = _by_state(config, hyper, data, reward, mask)
        metrics |= coverage
    kept = valid & ~dead[data.group_id] if config.drop_dead else valid
    if config.advantage not in ("return", "gae"):
        metrics["dead_share"] = jnp.mean(dead.astype(jnp.float32))
    return StepAdvantage(steps, kept, target, dead, metrics)


def live_groups(config: GroupConfig, hyper: GroupHyper, data: Trajectory) -> Array:
    """Groups of which something can be learned, what they are fined included.

    Args:
      config: see `GroupConfig`.
      hyper: see `GroupHyper`.
      data: episodes with `group_id` in [0, G).

    Returns:
      `[G]` bool; a group that nobody answered is not live.

    Raises:
      ConfigError: an algorithm that compares no groups.
    """
    if config.advantage in ("return", "gae"):
        raise ConfigError(
            f"advantage: {config.advantage!r} compares no groups: none is dead; use "
            "'group', 'gigpo' or 'one_anchor'"
        )
    valid = valid_episodes(data)
    answered = group_sum(
        valid.astype(jnp.int32),
        data.group_id,
        jnp.ones_like(valid),
        num_groups=config.num_groups,
    )
    return (answered > 0) & ~step_advantage(config, hyper, data, None).dead


def _by_state(
    config: GroupConfig, hyper: GroupHyper, data: Trajectory, reward: Array, mask: Array
) -> tuple[Array, Array, dict[str, Array]]:
    """GiGPO, or its control in which all states of a group are one.

    A group is dead if no step of it has an advantage, of its episode or of its own.
    """
    one = config.advantage == "one_anchor"
    found = gigpo_advantages(
        reward,
        mask,
        data.group_id,
        data.group_id,
        jnp.zeros_like(data.anchor) if one else data.anchor,
        num_groups=config.num_groups,
        discount=hyper.discount,
        step_weight=hyper.step_weight,
        episode_scale=config.scale,
        step_scale=config.step_scale,
    )
    coverage = {
        "anchor_groups": found.coverage.groups.astype(jnp.float32),
        "anchor_size_mean": found.coverage.size_mean,
        "anchor_singletons": found.coverage.singleton_share,
    }
    largest = group_max(
        jnp.max(jnp.abs(found.total), axis=1),
        data.group_id,
        jnp.any(mask, axis=1),
        num_groups=config.num_groups,
        empty=-1.0,
    )
    return found.total, largest == 0, coverage


def _generalised(
    hyper: GroupHyper, data: Trajectory, reward: Array, value: Array | None, mask: Array
) -> tuple[Array, Array]:
    """GAE standardised over the batch, and the targets of the value.

    An episode cut by its budget is taken as one that ended: the state after it is not
    one that the policy was shown.
    """
    assert value is not None  # make_group_step sees to it
    value = jnp.where(mask, value, 0.0)
    estimate = partial(
        gae, discount=hyper.discount, lambda_=hyper.lambda_, bootstrap_value=0.0
    )
    raw = jax.vmap(estimate)(reward, value, data.terminated, data.truncated, mask)
    mean = masked_mean(raw, mask)
    spread = jnp.sqrt(masked_mean((raw - mean) ** 2, mask))
    return jnp.where(mask, (raw - mean) / (spread + 1e-6), 0.0), raw + value

"""Group-in-group advantages: of the episode, and of the step among equal states.

`B` episodes of `T` padded steps. The episode term compares whole episodes of one
comparison group, as GRPO does; the step term compares what followed after the same
state of the same task, whichever episode and time it was met in. States are compared
by (task, anchor), never by anchor alone. Advantages are constants.
"""

from __future__ import annotations

from typing import Literal, get_args

import chex
import jax
import jax.numpy as jnp
from flax import struct
from jax import lax

from jerp.advantages.group import Scale, group_relative_advantages
from jerp.ops.checks import check_choice, check_finite, check_prefix, check_values
from jerp.ops.masked import masked_sum
from jerp.ops.returns import discounted_returns
from jerp.ops.segments import dense_group_ids, group_sum
from jerp.typing import Array, ArrayLike

__all__ = ["AnchorCoverage", "GigpoAdvantages", "Weighting", "gigpo_advantages"]

Weighting = Literal["trajectory", "step"]


class AnchorCoverage(struct.PyTreeNode):
    """How often states repeat: without repetition GiGPO is GRPO.

    Attributes:
      groups: `[]` int32, distinct (task, anchor) pairs among the real steps.
      size_min: `[]` int32, steps of the smallest group; 0 without steps.
      size_mean: `[]` float32.
      size_max: `[]` int32.
      singleton_share: `[]` float32, groups of one step among all groups; NaN without
        steps.
    """

    groups: Array
    size_min: Array
    size_mean: Array
    size_max: Array
    singleton_share: Array


class GigpoAdvantages(struct.PyTreeNode):
    """Advantages of steps.

    Attributes:
      total: `[B, T]` float32, `episode + step_weight * step`; 0 in padding.
      episode: `[B, T]` float32, the same for all steps of an episode; 0 in padding.
      step: `[B, T]` float32; 0 in padding and for states met once.
      coverage: see `AnchorCoverage`.
      dead: `[G]` bool and dead_share `[]` float32, of the episode groups: see
        `GroupAdvantages`.
      num_invalid: `[]` int32, real steps with a NaN or infinite reward, and episodes
        with an id out of range. They make their groups NaN.
    """

    total: Array
    episode: Array
    step: Array
    coverage: AnchorCoverage
    dead: Array
    dead_share: Array
    num_invalid: Array


def gigpo_advantages(
    reward: Array,
    mask: Array,
    group_id: Array,
    task_id: Array,
    anchor: Array,
    *,
    num_groups: int,
    discount: ArrayLike = 0.95,
    step_weight: ArrayLike = 1.0,
    episode_scale: Scale = "std",
    step_scale: Scale = "std",
    weighting: Weighting = "trajectory",
    ddof: int = 0,
    epsilon: ArrayLike = 1e-6,
) -> GigpoAdvantages:
    """Group-in-group policy optimisation's advantages.

        A_it   = A^E_i + step_weight A^S_it
        A^E_i  = (R_i - mean_g R) / s_g,          R_i = sum_t r_it
        A^S_it = (G_it - mean_a G) / s_a,         G_it = sum_{k>=t} discount^(k-t) r_ik

    over the episodes of comparison group `g`, and over all steps with the task and
    anchor `a` of step (i, t), several of one episode included. `s = std + epsilon` or
    1, as `group_relative_advantages` has it. With `step_weight=0` this is GRPO.

    Args:
      reward: `[B, T]` float, of each step: a terminal reward stands on the last real
        step alone, where it counts once. Padding may hold anything, NaN included.
      mask: `[B, T]` bool, a prefix in every row. All False for an episode without an
        answer.
      group_id: `[B]` int32 in [0, G), comparison group of the episode.
      task_id: `[B]` int32, any numbers.
      anchor: `[B, T]` int32, equal iff the same state: see `anchor_ids`.
      num_groups: G, static.
      discount: `gamma`, in [0, 1], of the step term.
      step_weight: `omega`; 1 in the paper.
      episode_scale: scale of the episode term, see `group_relative_advantages`.
      step_scale: scale of the step term.
      weighting: "trajectory" counts each episode once in its group's mean and standard
        deviation; "step" counts it once a step, so that long episodes weigh more. With
        "step" `episode_scale` must be "std", "max" or "none".
      ddof: of the standard deviations at both levels.
      epsilon: at least 0, added outside the root.

    Returns:
      `GigpoAdvantages`. Steps whose state was met once, and steps of equal `G`, have
      step term exactly 0; an episode alone in its group has episode term 0.

    Raises:
      InputError: mask no prefix, a NaN reward, an id out of range, an all-masked batch,
        where Python can see it. Under jit the affected groups are NaN and counted.

    Deviations: the released code (verl-agent) weighs by step, has `ddof=1`, gives a
      group of one episode its raw return, and lets batch padding enter the statistics.
      `weighting="step", ddof=1` selects the first two.

    Reference: Feng et al., "Group-in-Group Policy Optimization", arXiv:2505.10978,
      eq. 3 to 8.

    Example:
      >>> reward = jnp.array([[0.0, 1.0], [0.0, 0.0]])
      >>> a = gigpo_advantages(
      ...     reward,
      ...     jnp.ones((2, 2), bool),
      ...     jnp.array([0, 0]),
      ...     jnp.array([5, 5]),
      ...     jnp.array([[0, 1], [0, 2]]),
      ...     num_groups=1,
      ...     discount=0.5,
      ...     episode_scale="none",
      ...     step_scale="none",
      ... )
      >>> a.episode.tolist(), a.step.tolist()
      ([[0.5, 0.5], [-0.5, -0.5]], [[0.25, 0.0], [-0.25, 0.0]])
    """
    chex.assert_rank([reward, mask, anchor, group_id, task_id], [2, 2, 2, 1, 1])
    chex.assert_equal_shape([reward, mask, anchor])
    chex.assert_equal_shape_prefix([reward, group_id, task_id], 1)
    check_choice("weighting", weighting, get_args(Weighting))
    check_values("discount", discount, lambda v: (v >= 0) & (v <= 1), "in [0, 1]")
    check_prefix("mask", mask)
    check_finite("reward", reward, mask)
    reward = jnp.where(mask, reward, 0).astype(jnp.float32)
    length = jnp.sum(mask, axis=1)
    episode = group_relative_advantages(
        masked_sum(reward, mask, axis=1),
        group_id,
        length > 0,
        num_groups=num_groups,
        scale=episode_scale,
        ddof=ddof,
        epsilon=epsilon,
        weight=length.astype(jnp.float32) if weighting == "step" else None,
    )
    step, coverage = _step_term(
        reward, mask, task_id, anchor, discount, step_scale, ddof, epsilon
    )
    broadcast = jnp.broadcast_to(episode.value[:, None], mask.shape)
    episode_term = jnp.where(mask, broadcast, 0)
    return GigpoAdvantages(
        total=lax.stop_gradient(episode_term + step_weight * step),
        episode=episode_term,
        step=step,
        coverage=coverage,
        dead=episode.dead,
        dead_share=episode.dead_share,
        num_invalid=episode.num_invalid,
    )


def _step_term(
    reward: Array,
    mask: Array,
    task_id: Array,
    anchor: Array,
    discount: ArrayLike,
    scale: Scale,
    ddof: int,
    epsilon: ArrayLike,
) -> tuple[Array, AnchorCoverage]:
    """Step advantages `[B, T]`, and how the states repeat."""
    returns_of = jax.vmap(lambda r, m: discounted_returns(r, m, discount=discount))
    real = mask.ravel()
    task = jnp.broadcast_to(task_id[:, None], mask.shape).ravel()
    group = dense_group_ids(task, anchor.ravel(), mask=real)
    relative = group_relative_advantages(
        returns_of(reward, mask).ravel(),
        group.index,
        real,
        num_groups=real.size,
        scale=scale,
        ddof=ddof,
        epsilon=epsilon,
    )
    size = group_sum(
        jnp.ones(real.shape, jnp.int32), group.index, real, num_groups=real.size
    )
    real_group = jnp.arange(real.size) < group.count
    count = group.count.astype(jnp.float32)
    coverage = AnchorCoverage(
        groups=group.count,
        size_min=jnp.min(jnp.where(size > 0, size, real.size), initial=real.size),
        size_mean=jnp.sum(size) / jnp.maximum(count, 1),
        size_max=jnp.max(size, initial=0),
        singleton_share=jnp.sum(real_group & (size == 1)) / count,
    )
    return relative.value.reshape(mask.shape), coverage

"""Group-in-group advantages: of the episode, and of the step among equal states.

`B` episodes of `T` padded steps. The episode term compares whole episodes of one
comparison group, as GRPO does; the step term compares what followed after the same
state of the same task, whichever episode and time it was met in. States are compared
by (task, anchor), never by anchor alone. Advantages are constants.
"""

from __future__ import annotations

from functools import partial
from typing import Literal, get_args

import jax
import jax.numpy as jnp
from flax import struct
from jax import lax

from jerp.advantages.coverage import AnchorCoverage, anchor_coverage
from jerp.advantages.group import Scale, group_relative_advantages
from jerp.errors import ConfigError
from jerp.ops.checks import (
    check_any,
    check_axes,
    check_choice,
    check_count,
    check_finite,
    check_ids,
    check_prefix,
    check_settings,
    check_values,
)
from jerp.ops.compensated import compensated_returns
from jerp.ops.segments import dense_group_ids, group_max, of_group
from jerp.typing import Array, ArrayLike

__all__ = ["GigpoAdvantages", "Weighting", "gigpo_advantages"]

Weighting = Literal["trajectory", "step"]


class GigpoAdvantages(struct.PyTreeNode):
    """Advantages of steps.

    Attributes:
      total: `[B, T]` float32, `episode + step_weight * step`; 0 in padding.
      episode: `[B, T]` float32, the same for all steps of an episode; 0 in padding.
      step: `[B, T]` float32; 0 in padding and for states met once.
      coverage: see `AnchorCoverage`.
      dead: `[G]` bool and dead_share `[]` float32, of the episode groups: see
        `GroupAdvantages`.
      num_invalid: `[]` int32, episodes with a NaN or infinite reward or return, with a
        mask that is no prefix, or with an id out of range. Every step of their
        comparison groups is NaN in `episode` and `total`; in `step` every group that
        holds a return that is no number (the returns at and before such a reward, all
        of a mask with a hole). An id out of range makes NaN only the `episode` and
        `total` of its own episode, whose step returns count.
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
      reward: `[B, T]` float, what each step itself was paid. A terminal reward stands
        on the last real step alone: an episode's return repeated on every step cannot
        be told from dense rewards, and would count once a step. Padding may hold
        anything, NaN included.
      mask: `[B, T]` bool, a prefix in every row. All False for an episode without an
        answer (`Outcome.INFRASTRUCTURE`), which then enters nothing.
      group_id: `[B]` int32 in [0, G), comparison group of the episode.
      task_id: `[B]` int32, any numbers.
      anchor: `[B, T]` int32, at least 0, equal iff the same state: see `anchor_ids`,
        whose padding of -1 is refused in a real step.
      num_groups: G, static.
      discount: `gamma`, in [0, 1], of the step term.
      step_weight: `omega`, at least 0; 1 in the paper.
      episode_scale: scale of the episode term, see `group_relative_advantages`.
      step_scale: scale of the step term.
      weighting: "trajectory" counts each episode once in its group's mean and standard
        deviation; "step" counts it once a step, so that long episodes weigh more. With
        "step" `episode_scale` must be "std", "max" or "none".
      ddof: of the standard deviations at both levels.
      epsilon: at least 0, added outside the root.

    Returns:
      `GigpoAdvantages`. Steps whose state was met once have step term exactly 0, an
      episode alone in its group has episode term exactly 0, and so have groups of equal
      returns. Sums of several rewards are carried to twice the digits, and count as
      equal where they differ by at most 2^-22 of the sum of the rewards' sizes, for
      which rounding the rewards to float32 can account.

    Raises:
      InputError: mask no prefix, a NaN reward, an id out of range, an all-masked batch,
        where Python can see it. Under jit such episodes are NaN, with their groups,
        and counted.
      ConfigError: `weighting="step"` with `episode_scale="batch_std"`.

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
    check_axes(
        reward=(reward, "B T"),
        mask=(mask, "B T", bool),
        group_id=(group_id, "B", int),
        task_id=(task_id, "B", int),
        anchor=(anchor, "B T", int),
    )
    poison = _check_settings(
        discount, step_weight, episode_scale, step_scale, weighting, epsilon
    )
    reward, mask, group_id, task_id, anchor = map(
        jnp.asarray, (reward, mask, group_id, task_id, anchor)
    )
    check_prefix("mask", mask)
    check_any("mask", mask)
    check_finite("reward", reward, mask)
    check_count("num_groups", num_groups)
    check_ids("group_id", group_id, jnp.any(mask, axis=1), size=num_groups)
    check_values("anchor", anchor, lambda v: v >= 0, ">= 0 in real steps", mask=mask)
    return _advantages(
        reward,
        mask,
        group_id,
        task_id,
        anchor,
        discount + poison,
        step_weight + poison,
        epsilon + poison,
        num_groups=num_groups,
        episode_scale=episode_scale,
        step_scale=step_scale,
        weighting=weighting,
        ddof=ddof,
    )


# Compiled here too, so that a call from a notebook is one program and not a hundred.
@partial(
    jax.jit,
    static_argnames=("num_groups", "episode_scale", "step_scale", "weighting", "ddof"),
)
def _advantages(
    reward: Array,
    mask: Array,
    group_id: Array,
    task_id: Array,
    anchor: Array,
    discount: ArrayLike,
    step_weight: ArrayLike,
    epsilon: ArrayLike,
    *,
    num_groups: int,
    episode_scale: Scale,
    step_scale: Scale,
    weighting: Weighting,
    ddof: int,
) -> GigpoAdvantages:
    """The advantages, once all that can be seen has been checked."""
    holes = jnp.any(mask[:, 1:] & ~mask[:, :-1], axis=1, keepdims=True)
    reward = jnp.where(mask, jnp.where(holes, jnp.nan, reward), 0).astype(jnp.float32)
    length = jnp.sum(mask, axis=1)
    group = (group_id, length > 0)
    returns, error = (x[:, 0] for x in _returns(reward, 1.0))
    episode = group_relative_advantages(
        _settled(returns, error, *group, num_groups),
        *group,
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
    task = jnp.broadcast_to(task_id[:, None], mask.shape).ravel()
    real = mask.ravel()
    ids = dense_group_ids(task, anchor.ravel(), mask=real)
    group = (ids.index, real)
    returns, error = _returns(reward, discount)
    relative = group_relative_advantages(
        _settled(returns.ravel(), error.ravel(), *group, real.size),
        *group,
        num_groups=real.size,
        scale=scale,
        ddof=ddof,
        epsilon=epsilon,
    )
    return relative.value.reshape(mask.shape), anchor_coverage(ids, real)


def _returns(reward: Array, discount: ArrayLike) -> tuple[Array, Array]:
    """Returns `[B, T]` and by how much rounding may have moved them.

    Rewards that were rounded to float32 move their sum by up to 2^-24 of the sum of
    their sizes, and rounding the sum as much again. A single reward is compared as it
    is.
    """
    returns = compensated_returns(reward, discount=discount)
    size = compensated_returns(jnp.abs(reward), discount=discount)
    terms = jnp.cumsum((reward != 0)[:, ::-1], axis=1)[:, ::-1]
    return returns, jnp.where(terms > 1, 2.0**-23 * size, 0)


def _settled(
    returns: Array, error: Array, group_id: Array, mask: Array, num_groups: int
) -> Array:
    """Returns `[N]`, made equal in groups in which rounding alone may tell them apart.

    A return that is no number settles nothing: it stays, to be counted as invalid.
    """
    largest = partial(
        group_max, group_id=group_id, mask=mask, num_groups=num_groups, empty=-jnp.inf
    )
    top, bottom, most = largest(returns), -largest(-returns), 2 * largest(error)
    same = (top - bottom <= most) & jnp.isfinite(most)
    return jnp.where(
        of_group(same, group_id, mask), of_group(top, group_id, mask), returns
    )


def _check_settings(
    discount: ArrayLike,
    step_weight: ArrayLike,
    episode_scale: str,
    step_scale: str,
    weighting: str,
    epsilon: ArrayLike,
) -> ArrayLike:
    check_choice("weighting", weighting, get_args(Weighting))
    check_choice("episode_scale", episode_scale, get_args(Scale))
    check_choice("step_scale", step_scale, get_args(Scale))
    if weighting == "step" and episode_scale == "batch_std":
        raise ConfigError(
            'weighting="step" weighs within groups, and episode_scale="batch_std" is '
            'not of a group: choose weighting="trajectory", or the scale "std", "max" '
            'or "none"'
        )
    return check_settings(
        epsilon=(epsilon, lambda v: v >= 0, ">= 0"),
        discount=(discount, lambda v: (v >= 0) & (v <= 1), "in [0, 1]"),
        step_weight=(
            step_weight,
            lambda v: (v >= 0) & (v < jnp.inf),
            "a finite number >= 0",
        ),
    )

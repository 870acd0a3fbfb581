"""Advantages of rollouts relative to the other rollouts of their group.

`N` rollouts in `G` groups, usually one group a task. Each variant of the literature is
a baseline (what is subtracted) and a scale (what is divided by). Groups from which
nothing can be learned, of one rollout or of equal returns, give exactly 0 and are
counted as dead. Advantages are constants: no gradient flows through them.
"""

from __future__ import annotations

from functools import partial
from typing import Any, Literal, get_args

import jax
import jax.numpy as jnp
from flax import struct
from jax import lax

from jerp.errors import ConfigError
from jerp.ops.checks import (
    check_any,
    check_axes,
    check_choice,
    check_count,
    check_ids,
    check_settings,
    check_values,
)
from jerp.ops.segments import (
    group_deviations,
    group_max,
    group_stats,
    group_sum,
    of_group,
)
from jerp.typing import Array, ArrayLike

__all__ = ["Baseline", "GroupAdvantages", "Scale", "group_relative_advantages"]

Baseline = Literal["mean", "leave_one_out", "second_best"]
Scale = Literal["std", "batch_std", "max", "none"]

_LARGEST = 1e30
"""Sums of 16 million returns of this size stay finite."""
_SIZES = "finite numbers of at most 1e30 in size where mask is True"


class GroupAdvantages(struct.PyTreeNode):
    """Advantages and what their groups were like.

    Attributes:
      value: `[N]` float32, 0 for masked rows.
      dead: `[G]` bool, has rollouts and all their advantages are exactly 0: fewer than
        `min_group_size`, equal returns, or no single best one with "second_best".
      dead_share: `[]` float32, dead groups among those with rollouts and none of them
        invalid; NaN without any.
      num_invalid: `[]` int32, real rows with a NaN or infinite return, a weight that is
        none or an id out of range. Their advantage is NaN, and so is that of every row
        in their group; none of these rows enters "batch_std".
    """

    value: Array
    dead: Array
    dead_share: Array
    num_invalid: Array


def group_relative_advantages(
    returns: Array,
    group_id: Array,
    mask: Array,
    *,
    num_groups: int,
    baseline: Baseline = "mean",
    scale: Scale = "std",
    ddof: int = 0,
    epsilon: ArrayLike = 1e-6,
    min_group_size: int = 2,
    weight: Array | None = None,
) -> GroupAdvantages:
    """Return of each rollout relative to its group.

        A_i = d_i / (s + epsilon)

        baseline "mean":          d_i = R_i - mean_g
                 "leave_one_out": d_i = R_i - mean of the others
                                      = n / (n - 1) (R_i - mean_g)
                 "second_best":   d_i = R_i - second largest R of the group, for the
                                  best rollout; 0 for all others
        scale    "std":           s = std_g, of the returns in the group
                 "batch_std":     s = std of all real returns in the batch
                 "max":           s = max_g |d|
                 "none":          A_i = d_i

    | variant | keywords |
    | --- | --- |
    | GRPO | the defaults; verl's code has `ddof=1` |
    | Dr.GRPO | `scale="none"` |
    | RLOO | `baseline="leave_one_out", scale="none"` |
    | GRPO with the batch's scale | `scale="batch_std"` |
    | pass@k GRPO | `baseline="second_best"`, with `scale="std", ddof=1` or `"none"` |

    Args:
      returns: `[N]` float, one a rollout, at most 1e30 in size. Masked rows may hold
        anything, NaN included.
      group_id: `[N]` int32 in [0, G).
      mask: `[N]` bool, False for padding and for rollouts without an answer
        (`Outcome.INFRASTRUCTURE`).
      num_groups: G, static; groups without rows are allowed.
      baseline: see above.
      scale: see above.
      ddof: 0 divides squares by n, 1 by n - 1; of "std" and "batch_std". Static.
      epsilon: at least 0, added outside the root.
      min_group_size: at least 2; smaller groups give 0.
      weight: `[N]` float32, positive and at least `ddof`: how often each return counts
        in the group's mean and standard deviation. None counts all once. Only with
        `baseline="mean"`, and not with "batch_std".

    Returns:
      `GroupAdvantages`. In dead groups the value is exactly 0.

    Raises:
      InputError: an id out of range, a NaN or infinite return, a bad weight, an
        all-masked batch or a number out of range, where Python can see it. Under jit
        such rows are NaN and counted, and `dead_share` is NaN without real rows.
      ConfigError: `weight` with a baseline or scale that has no use for it.
      UnknownNameError: an unknown baseline or scale.

    Deviations: the GRPO paper writes "std" and gives no ddof: 0 here, as in JERP. Codes
      divide a group of equal returns by `epsilon` alone and so blow up float32 rounding
      (twenty returns of 9.9 give -0.48 each in verl), and verl gives a group of one
      its raw return; both are 0 here. "max" is this library's reading: no paper gives
      its formula.

    Reference: GRPO, Shao et al., arXiv:2402.03300, section 4.1; Dr.GRPO, Liu et al.,
      arXiv:2503.20783; RLOO, Ahmadian et al., arXiv:2402.14740; JERP, arXiv:2606.27136,
      eq. 19.

    Example:
      >>> r, g = jnp.array([1.0, 0.0, 0.5, 0.5]), jnp.array([0, 0, 1, 1])
      >>> a = group_relative_advantages(
      ...     r, g, jnp.ones(4, bool), num_groups=2, epsilon=0.0
      ... )
      >>> a.value.tolist(), a.dead.tolist(), float(a.dead_share)
      ([1.0, -1.0, 0.0, 0.0], [False, True], 0.5)
    """
    check_axes(
        returns=(returns, "N"), group_id=(group_id, "N", int), mask=(mask, "N", bool)
    )
    returns = jnp.asarray(returns, jnp.float32)
    group_id, mask = jnp.asarray(group_id), jnp.asarray(mask)
    weight = None if weight is None else jnp.asarray(weight, jnp.float32)
    poison = _check_settings(baseline, scale, ddof, epsilon, min_group_size, num_groups)
    _check_weight(weight, mask, baseline, scale, ddof)
    check_values("returns", returns, _is_return, _SIZES, mask=mask)
    check_ids("group_id", group_id, mask, size=num_groups)
    check_any("mask", mask)
    return _relative(
        returns,
        group_id,
        mask,
        weight,
        epsilon + poison,
        num_groups=num_groups,
        baseline=baseline,
        scale=scale,
        ddof=ddof,
        min_group_size=min_group_size,
    )


# Compiled here too, so that a call from a notebook is one program and not a hundred.
@partial(
    jax.jit,
    static_argnames=("num_groups", "baseline", "scale", "ddof", "min_group_size"),
)
def _relative(
    returns: Array,
    group_id: Array,
    mask: Array,
    weight: Array | None,
    epsilon: ArrayLike,
    *,
    num_groups: int,
    baseline: str,
    scale: str,
    ddof: int,
    min_group_size: int,
) -> GroupAdvantages:
    """The advantages, once all that can be seen has been checked."""
    group_id = group_id.astype(jnp.int32)  # G may be no number of a narrower type
    good = _is_return(returns) & (group_id >= 0) & (group_id < num_groups)
    if weight is not None:
        good = good & _is_weight(weight, ddof)
    invalid = mask & ~good
    broken = group_sum(invalid.astype(jnp.int32), group_id, mask, num_groups=num_groups)
    known = mask & good & (of_group(broken, group_id, mask) == 0)
    rows = (jnp.where(known, returns, 0), group_id, known)
    stats = group_stats(*rows, num_groups=num_groups, ddof=ddof, weight=weight)
    difference = _differences(*rows, stats.count, baseline, weight)
    size = jnp.abs(difference)
    largest = group_max(size, group_id, known, num_groups=num_groups, empty=0.0)
    dead = stats.dead | (stats.count < min_group_size) | (largest == 0)
    dead = dead & (stats.count > 0)
    alive = known & ~of_group(dead, group_id, known)
    divisor = _divisor(*rows, stats.std, largest, scale, ddof, epsilon)
    value = jnp.where(alive, difference / jnp.where(alive, divisor, 1), 0)
    return GroupAdvantages(
        value=lax.stop_gradient(jnp.where(mask & ~known, jnp.nan, value)),
        dead=dead,
        dead_share=jnp.sum(dead) / jnp.sum(stats.count > 0),
        num_invalid=jnp.sum(invalid, dtype=jnp.int32),
    )


def _differences(
    returns: Array,
    group_id: Array,
    mask: Array,
    count: Array,
    baseline: str,
    weight: Array | None,
) -> Array:
    """Returns minus the baseline, `[N]`."""
    num_groups = count.shape[0]
    if baseline == "second_best":
        return _lead_of_the_best(returns, group_id, mask, num_groups)
    difference = group_deviations(
        returns, group_id, mask, num_groups=num_groups, weight=weight
    )
    if baseline == "leave_one_out":
        number = of_group(count, group_id, mask).astype(jnp.float32)
        difference = difference * (number / jnp.maximum(number - 1, 1))
    return difference


def _lead_of_the_best(
    returns: Array, group_id: Array, mask: Array, num_groups: int
) -> Array:
    """Lead over the second best for the best rollout of each group, 0 for the others.

    Ties at the top lead by 0, so it does not matter which of them is the best.
    """

    def best_of(x: Array) -> Array:
        best = group_max(x, group_id, mask, num_groups=num_groups, empty=-jnp.inf)
        return of_group(best, group_id, mask)

    is_best = mask & (returns == best_of(returns))
    bests = group_sum(is_best.astype(jnp.int32), group_id, mask, num_groups=num_groups)
    second = best_of(jnp.where(is_best, -jnp.inf, returns))
    # Without a second there is nobody to lead: the group is of one, or of equals.
    leads = is_best & (of_group(bests, group_id, mask) == 1) & (second > -jnp.inf)
    return jnp.where(leads, returns - jnp.where(leads, second, 0), 0)


def _divisor(
    returns: Array,
    group_id: Array,
    mask: Array,
    std: Array,
    largest: Array,
    scale: str,
    ddof: int,
    epsilon: ArrayLike,
) -> Array:
    """What each row is divided by, `[N]`; positive in groups that are alive."""
    if scale == "none":
        return jnp.ones_like(returns)
    if scale == "batch_std":
        one_group = jnp.zeros_like(group_id)
        std = group_stats(returns, one_group, mask, num_groups=1, ddof=ddof).std
        return of_group(std, one_group, mask) + epsilon
    return of_group(largest if scale == "max" else std, group_id, mask) + epsilon


def _is_return(returns: Any) -> Any:
    return abs(returns) <= _LARGEST


def _is_weight(weight: Any, ddof: int) -> Any:
    return (weight > 0) & (weight >= ddof) & (weight < jnp.inf)


def _check_settings(
    baseline: str,
    scale: str,
    ddof: int,
    epsilon: ArrayLike,
    min_group_size: int,
    num_groups: int,
) -> ArrayLike:
    check_choice("baseline", baseline, get_args(Baseline))
    check_choice("scale", scale, get_args(Scale))
    check_count("num_groups", num_groups)
    check_count("min_group_size", min_group_size, least=2)
    return check_settings(
        ddof=(ddof, lambda v: (v == 0) | (v == 1), "0 or 1"),
        epsilon=(epsilon, lambda v: v >= 0, ">= 0"),
    )


def _check_weight(
    weight: Array | None, mask: Array, baseline: str, scale: str, ddof: int
) -> None:
    if weight is None:
        return
    check_axes(mask=(mask, "N"), weight=(weight, "N"))
    if baseline != "mean" or scale == "batch_std":
        raise ConfigError(
            'weight: expected baseline="mean" and a scale within the group, got '
            f"baseline={baseline!r}, scale={scale!r}"
        )
    expected = f"finite, positive and >= ddof = {ddof} where mask is True"
    check_values("weight", weight, lambda v: _is_weight(v, ddof), expected, mask=mask)

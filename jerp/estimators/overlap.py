"""Whether a log can answer for a policy: effective sample size, overlap, refusals.

Importance weights have mean 1 where the behaviour could do all that the target does.
Below 1 the rest of the target's episodes cannot be in the log, at any size of it; above
1 the logged probabilities are not those of the policy that acted. Symbols as in
`jerp.estimators.ope`.
"""

from __future__ import annotations

from enum import IntEnum

import jax
import jax.numpy as jnp
from flax import struct

from jerp.errors import InputError
from jerp.estimators.episode_weights import check_probabilities, log_weights
from jerp.ops.checks import check_settings
from jerp.ops.masked import masked_mean
from jerp.typing import Array, ArrayLike

__all__ = ["Overlap", "Refusal", "explain_refusal", "policy_overlap", "refusal"]

NUM_ERRORS_BELOW, NUM_ERRORS_ABOVE = 2.0, 3.0
"""Standard errors by which the mean weight has to miss 1 to count as missing it. Above
it three, because weights are skewed to that side."""

MIN_TASKS = 4
"""With three, one resample in nine draws the same task every time, and has no spread
to measure anything by."""


class Refusal(IntEnum):
    """Why there is no estimate, or no interval; `explain_refusal` has the words.

    `FEW_TASKS` withholds the interval and the lower bound alone, the others everything.
    """

    NONE = 0
    NO_EPISODES = 1
    UNDEFINED = 2
    UNSUPPORTED = 3
    PROBABILITIES = 4
    SAMPLE_SIZE = 5
    FEW_TASKS = 6


class Overlap(struct.PyTreeNode):
    """How far a log covers what a target policy does; leaves `[]` float32.

    Attributes:
      num_episodes: with at least one real step.
      effective_sample_size: equally weighed episodes that would say as much,
        `(sum rho)^2 / sum rho^2`; 0 where every weight is 0.
      mean_weight: of whole episodes: estimates the share of the target's episodes that
        the behaviour could have produced, without bias; may exceed 1 by chance.
      mean_weight_error: its standard error.
      max_weight: the largest weight of an episode.
      supported_mass: mean ratio of a step: estimates the share of the target's
        probability, in the states logged, on actions that the behaviour could take.
      large_ratio_share: share of steps whose ratio exceeds `large_ratio`.
    """

    num_episodes: Array
    effective_sample_size: Array
    mean_weight: Array
    mean_weight_error: Array
    max_weight: Array
    supported_mass: Array
    large_ratio_share: Array


def policy_overlap(
    log_prob: ArrayLike | None,
    target_log_prob: ArrayLike,
    mask: ArrayLike,
    *,
    large_ratio: ArrayLike = 10.0,
) -> Overlap:
    """Effective sample size and overlap of a target policy with a log.

        ESS = (sum_e rho)^2 / sum_e rho^2,  rho = prod_t pi(a_t | s_t) / b(a_t | s_t)

    Only the probabilities of the actions taken are needed: over the actions that b
    draws, the mean of pi / b is the sum of pi where b > 0.

    Args:
      log_prob: `[B, T]` float32, log b of the action taken.
      target_log_prob: `[B, T]` float32, log pi of the same action; -inf allowed.
      mask: `[B, T]` bool, a prefix in every row, all False for invalid episodes.
      large_ratio: from which a step's ratio counts as large, > 0.

    Returns:
      `Overlap`.

    Raises:
      InputError: see `jerp.estimators.ope.importance_sampling`.

    Reference: Kong, "A note on importance sampling using standardized weights" (1992),
      for the effective sample size.

    Example:
      >>> b, pi = jnp.log(jnp.array([[[0.5], [0.5]], [[1.0], [0.0]]]))
      >>> o = policy_overlap(b, pi, jnp.ones((2, 1), bool))
      >>> [float(x) for x in (o.effective_sample_size, o.mean_weight, o.max_weight)]
      [1.0, 1.0, 2.0]
    """
    poison = check_settings(large_ratio=(large_ratio, lambda v: v > 0, "> 0"))
    log_weight = log_weights(log_prob, target_log_prob, mask)
    behaviour = check_probabilities(log_prob, mask)
    difference = jnp.asarray(target_log_prob, jnp.float32) - behaviour
    return _overlap(log_weight, difference, mask, large_ratio, poison)


def refusal(
    overlap: Overlap,
    num_tasks: ArrayLike,
    *,
    min_effective: ArrayLike = 50.0,
    min_support: ArrayLike = 0.95,
) -> Array:
    """Which reason there is to refuse, the first that holds.

        NO_EPISODES    no real step
        UNDEFINED      a weight is no number
        UNSUPPORTED    mean weight + 2 errors < min_support
        PROBABILITIES  mean weight - 3 errors > 1 / min_support
        SAMPLE_SIZE    effective sample size < min_effective
        FEW_TASKS      fewer than four tasks

    Args:
      overlap: of the policy.
      num_tasks: `[]` int, tasks with an episode.
      min_effective: floor of the effective sample size; docs/ope.md has what intervals
        hold above it, and where it is not enough.
      min_support: in (0, 1], the share of the target's episodes that the behaviour has
        to be able to produce.

    Returns:
      `[]` int32, a `Refusal`.

    Raises:
      InputError: a floor out of range; under jit that refuses as `UNDEFINED`.

    Example:
      >>> b, pi = jnp.log(jnp.array([[[0.5], [0.5]], [[1.0], [0.0]]]))
      >>> o = policy_overlap(b, pi, jnp.ones((2, 1), bool))
      >>> Refusal(int(refusal(o, 9))).name, Refusal(int(refusal(o, 9, min_effective=1)))
      ('SAMPLE_SIZE', <Refusal.NONE: 0>)
    """
    poison = check_settings(
        min_effective=(min_effective, lambda v: v >= 0, "at least 0"),
        min_support=(min_support, lambda v: (v > 0) & (v <= 1), "in (0, 1]"),
    )
    mean = overlap.mean_weight
    # One episode has a weight and no error.
    error = jnp.nan_to_num(overlap.mean_weight_error)
    too_large = (mean - NUM_ERRORS_ABOVE * error) * min_support > 1
    found = (
        (Refusal.NO_EPISODES, overlap.num_episodes == 0),
        (Refusal.UNDEFINED, jnp.isnan(overlap.effective_sample_size + poison)),
        (Refusal.UNSUPPORTED, mean + NUM_ERRORS_BELOW * error < min_support),
        (Refusal.PROBABILITIES, too_large & jnp.isfinite(mean)),
        (Refusal.SAMPLE_SIZE, overlap.effective_sample_size < min_effective),
        (Refusal.FEW_TASKS, jnp.asarray(num_tasks) < MIN_TASKS),
    )
    reason = jnp.full(jnp.shape(mean), Refusal.NONE, jnp.int32)
    for code, holds in reversed(found):
        reason = jnp.where(holds, jnp.int32(code), reason)
    return reason


def explain_refusal(reason: int, overlap: Overlap) -> str:
    """A `Refusal` in words, for one policy, on the host; empty for none.

    Args:
      reason: a `Refusal`.
      overlap: leaves `[]`, of the policy that was refused.

    Returns:
      One sentence that says what to do.

    Raises:
      InputError: no `Refusal`.

    Example:
      >>> b = jnp.log(jnp.full((4, 1), 0.5))
      >>> o = policy_overlap(b, b, jnp.ones((4, 1), bool))
      >>> explain_refusal(Refusal.FEW_TASKS, o)
      'fewer than 4 tasks say too little of the spread between tasks: log more'
    """
    if reason not in [*Refusal]:
        raise InputError(
            f"reason: expected one of {[*map(int, Refusal)]}, got {reason}"
        )
    mean, size = float(overlap.mean_weight), float(overlap.effective_sample_size)
    number = int(overlap.num_episodes)
    return {
        Refusal.NONE: "",
        Refusal.NO_EPISODES: "no valid episode: log some",
        Refusal.UNDEFINED: "a probability or reward is no number: correct the log",
        Refusal.UNSUPPORTED: (
            f"the behaviour could have produced {max(mean, 0.0):.0%} of the episodes "
            "of this policy: explore more while logging"
        ),
        Refusal.PROBABILITIES: (
            f"the weights average {mean:.3g} and not 1: the logged probabilities are "
            "not those of the policy that acted, or this policy learned the very "
            "episodes by heart; use others"
        ),
        Refusal.SAMPLE_SIZE: (
            f"the {number} episodes weigh as much as {size:.1f} of this policy's own: "
            "log more, explore more, or evaluate a policy nearer to the behaviour"
        ),
        Refusal.FEW_TASKS: (
            f"fewer than {MIN_TASKS} tasks say too little of the spread between tasks: "
            "log more"
        ),
    }[Refusal(reason)]


@jax.jit
def _overlap(
    log_weight: Array,
    difference: Array,
    mask: ArrayLike,
    large_ratio: ArrayLike,
    poison: ArrayLike,
) -> Overlap:
    mask = jnp.asarray(mask)
    episode = jnp.any(mask, axis=1)
    number = jnp.sum(episode, dtype=jnp.float32)
    total = jnp.where(episode, log_weight[:, -1], -jnp.inf)
    # Scaled to a largest of 1, so that no square overflows.
    largest = jnp.max(total, initial=-jnp.inf)
    scale = jnp.exp(largest)
    scaled = jnp.exp(total - jnp.where(jnp.isneginf(largest), 0.0, largest))
    squares = jnp.sum(scaled**2)
    mean = jnp.sum(scaled) / number
    deviation = jnp.where(episode, scaled - mean, 0.0)
    error = jnp.sqrt(jnp.sum(deviation**2) / (number * (number - 1)))
    ratio = jnp.exp(jnp.where(mask, difference, 0.0))
    return Overlap(
        num_episodes=number,
        effective_sample_size=jnp.sum(scaled) ** 2
        / jnp.where(squares == 0, 1, squares),
        mean_weight=mean * scale,
        mean_weight_error=error * scale,
        max_weight=scale,
        supported_mass=masked_mean(ratio, mask),
        large_ratio_share=masked_mean((ratio > large_ratio) + poison, mask),
    )

"""The reward aggregate of the Harness MDP and its three penalties.

All terms are in [0, 1]. jerp trains on the rubric score alone, as the paper's driver
does: the aggregate with every other weight 0. The full aggregate is for reports and
ablations. Scores of format, of verification and of the task itself come from a domain's
verifier; nothing here reads text.

Reference: arXiv 2607.05458 and its released code.
"""

from __future__ import annotations

import jax.numpy as jnp
from flax import struct

from jerp.typing import Array, ArrayLike

__all__ = [
    "RewardTerms",
    "aggregate_reward",
    "cost_penalty",
    "early_penalty",
    "error_penalty",
]


class RewardTerms(struct.PyTreeNode):
    """What an episode earned and what it is charged, each `[...]` in [0, 1].

    Attributes:
      rubric: weighted share of the rubric that holds.
      verify: outcome of verification.
      format: how well the asked format was kept.
      task: the task's own success measure.
      error, cost, early: penalties, see the functions of this module.
    """

    rubric: ArrayLike
    verify: ArrayLike = 0.0
    format: ArrayLike = 0.0
    task: ArrayLike = 0.0
    error: ArrayLike = 0.0
    cost: ArrayLike = 0.0
    early: ArrayLike = 0.0


def aggregate_reward(
    terms: RewardTerms,
    *,
    verify_weight: ArrayLike = 0.2,
    format_weight: ArrayLike = 0.1,
    task_weight: ArrayLike = 0.2,
    error_weight: ArrayLike = 0.25,
    cost_weight: ArrayLike = 0.05,
    early_weight: ArrayLike = 0.1,
) -> Array:
    """Weighted sum of an episode's reward terms.

        R = R_rubric + .20 R_verify + .10 R_format + .20 R_task
            - .25 P_error - .05 P_cost - .10 P_early

    Args:
      terms: `[...]` each.
      verify_weight: of `terms.verify`.
      format_weight: of `terms.format`.
      task_weight: of `terms.task`.
      error_weight: charged for `terms.error`.
      cost_weight: charged for `terms.cost`.
      early_weight: charged for `terms.early`.

    Returns:
      `[...]` float32. Not in [0, 1]: with the paper's weights from -.4 to 1.5.

    Example:
      >>> float(aggregate_reward(RewardTerms(rubric=0.5)))
      0.5
    """
    gain = (
        verify_weight * jnp.asarray(terms.verify)
        + format_weight * jnp.asarray(terms.format)
        + task_weight * jnp.asarray(terms.task)
    )
    charge = (
        error_weight * jnp.asarray(terms.error)
        + cost_weight * jnp.asarray(terms.cost)
        + early_weight * jnp.asarray(terms.early)
    )
    return jnp.asarray(terms.rubric) + gain - charge


def error_penalty(num_errors: ArrayLike, max_steps: ArrayLike) -> Array:
    """Errors as a share of the step budget.

        P_error = clip(errors / max_steps, 0, 1)

    Args:
      num_errors: `[...]`, steps that ended in an error observation.
      max_steps: `[...]`, the step budget; no budget, no penalty.

    Returns:
      `[...]` float32 in [0, 1].

    Example:
      >>> float(error_penalty(2, 8))
      0.25
    """
    return _clipped_share(num_errors, max_steps)


def cost_penalty(cost: ArrayLike, budget: ArrayLike) -> Array:
    """Cost as a share of its budget.

        P_cost = clip(cost / budget, 0, 1)

    Args:
      cost: `[...]`, in the units of `budget`.
      budget: `[...]`; no budget, no penalty.

    Returns:
      `[...]` float32 in [0, 1].

    Example:
      >>> float(cost_penalty(2.0, 0.5))
      1.0
    """
    return _clipped_share(cost, budget)


def early_penalty(
    information_coverage: ArrayLike,
    rubric_coverage: ArrayLike,
    *,
    min_information: ArrayLike = 0.5,
    min_rubric: ArrayLike = 0.6,
) -> Array:
    """Whether an episode submitted before it knew enough.

        P_early = 1 if information coverage < .5 or rubric coverage < .6, else 0

    Args:
      information_coverage: `[...]` in [0, 1], of what the task needs to be known.
      rubric_coverage: `[...]` in [0, 1], at the last check.
      min_information: the least information that is no early submit.
      min_rubric: the least coverage that is no early submit.

    Returns:
      `[...]` float32, 0 or 1.

    Example:
      >>> float(early_penalty(0.5, 0.6)), float(early_penalty(0.49, 0.9))
      (0.0, 1.0)
    """
    # In float32 on both sides, or a float64 input of .6 would lie below the threshold.
    information = jnp.asarray(information_coverage, jnp.float32)
    rubric = jnp.asarray(rubric_coverage, jnp.float32)
    early = (information < min_information) | (rubric < min_rubric)
    return early.astype(jnp.float32)


def _clipped_share(part: ArrayLike, whole: ArrayLike) -> Array:
    part, whole = jnp.asarray(part, jnp.float32), jnp.asarray(whole, jnp.float32)
    share = part / jnp.where(whole > 0, whole, 1.0)
    return jnp.where(whole > 0, jnp.clip(share, 0.0, 1.0), 0.0)

"""What a drafted skill earned: its form, what its runs came to, its reasoning.

Symbols: `N` drafts, each executed `n` times. Nothing judges a skill but the verifier of
the task. A draft none of whose runs was answered earned nothing and lost nothing: it
has no reward, and is in no group.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import optax
from flax import struct

from jerp.ops.checks import check_axes, check_count, check_settings, check_values
from jerp.skills.retention import checked_outcome, failed
from jerp.typing import Array, ArrayLike, Outcome

__all__ = ["SkillReward", "format_schedule", "skill_reward"]


class SkillReward(struct.PyTreeNode):
    """The reward of every draft and its terms before they are weighted.

    Attributes:
      total: `[N]` float32; NaN where not `valid`.
      format: `[N]` float32, 1 for a draft that parsed.
      task: `[N]` float32, share of successes; NaN where not `valid`.
      length: `[N]` float32, of the reasoning.
      valid: `[N]` bool, False for a draft whose runs nobody answered: leave it out of
        every mean, group and gradient.
    """

    total: Array
    format: Array
    task: Array
    length: Array
    valid: Array


def skill_reward(
    parsed: ArrayLike,
    outcome: ArrayLike,
    reasoning_tokens: ArrayLike,
    *,
    reasoning_budget: ArrayLike = 256,
    format_weight: ArrayLike = 1.0,
    task_weight: ArrayLike = 1.0,
    length_weight: ArrayLike = 1.0,
) -> SkillReward:
    """Reward of drafts by their form, the outcomes of their runs and their reasoning.

        R = (w_f R_fmt + w_t R_task + w_l R_len) / 3
        R_fmt  = [the draft parsed]
        R_task = successes / (successes + failures);  0 for a draft that did not parse
        R_len  = 0 for no reasoning, else clip(2 - tokens / budget, 0, 1)

    A run that nobody answered is neither success nor failure.

    Args:
      parsed: `[N]` bool. What did not parse is never executed.
      outcome: `[N, n]` int32, see `Outcome`; may hold anything for what did not parse.
      reasoning_tokens: `[N]` int32, >= 0, of the reasoning block.
      reasoning_budget: > 0, tokens that cost nothing; twice as many earn nothing.
      format_weight: >= 0, such as `format_schedule` gives at a step.
      task_weight: >= 0.
      length_weight: >= 0.

    Returns:
      `SkillReward`. Gradients flow to the weights and the budget alone.

    Raises:
      InputError: a number that is seen to be out of range; under jit it makes NaN.
        `ShapeError`, one of them: other axes or types.

    Deviations: the paper gives neither its budget nor the shape of the penalty: full up
      to the budget, then falling in a straight line, is a choice. That the task's term
      is a mean over the runs is the plain reading of "aggregated". That lost runs are
      left out is of this library.

    Reference: Peng et al., "WER", arXiv:2608.17587, eq. 4.

    Example:
      >>> reward = skill_reward(
      ...     jnp.array([True, True, False]),
      ...     jnp.array([[1, 0], [4, 4], [0, 0]]),
      ...     jnp.array([256, 256, 384]),
      ... )
      >>> [round(x, 3) for x in reward.total.tolist()], reward.valid.tolist()
      ([0.833, nan, 0.167], [True, False, True])
    """
    check_axes(
        parsed=(parsed, "N", bool),
        outcome=(outcome, "N M", int),
        reasoning_tokens=(reasoning_tokens, "N", int),
    )
    outcome = checked_outcome(outcome, parsed)
    check_values("reasoning_tokens", reasoning_tokens, lambda v: v >= 0, ">= 0")
    weights = {
        "format_weight": format_weight,
        "task_weight": task_weight,
        "length_weight": length_weight,
    }
    check_axes(
        reasoning_budget=(reasoning_budget, ""),
        **{name: (w, "") for name, w in weights.items()},
    )
    poison = check_settings(
        reasoning_budget=(reasoning_budget, _positive, "> 0 and finite"),
        **{name: (w, _not_negative, ">= 0 and finite") for name, w in weights.items()},
    )
    return _skill_reward(
        jnp.asarray(parsed),
        outcome,
        jnp.asarray(reasoning_tokens),
        jnp.asarray(reasoning_budget, jnp.float32),
        [jnp.asarray(w, jnp.float32) for w in weights.values()],
        jnp.asarray(poison, jnp.float32),
    )


def format_schedule(
    num_steps: int, *, start: float = 1.0, end: float = 0.0
) -> optax.Schedule:
    """Weight of the format's term by step: a straight line, then constant.

        w_f(i) = start + (end - start) min(i / num_steps, 1)

    Args:
      num_steps: at which `end` is reached, such as all steps of a training.
      start: at step 0.
      end: at `num_steps` and later.

    Returns:
      A schedule: a function of the step.

    Raises:
      InputError: a number of steps below 1.

    Deviations: the paper anneals this weight downward and does not say how.

    Reference: Peng et al., "WER", arXiv:2608.17587, the format's term of eq. 4.

    Example:
      >>> weight = format_schedule(100)
      >>> [float(weight(step)) for step in (0, 50, 100, 200)]
      [1.0, 0.5, 0.0, 0.0]
    """
    check_count("num_steps", num_steps)
    check_settings(start=(start, _not_negative, ">= 0 and finite"))
    check_settings(end=(end, _not_negative, ">= 0 and finite"))
    return optax.linear_schedule(start, end, num_steps)


@jax.jit
def _skill_reward(
    parsed: Array,
    outcome: Array,
    tokens: Array,
    budget: Array,
    weights: list[Array],
    poison: Array,
) -> SkillReward:
    successes = jnp.sum(outcome == Outcome.SUCCESS, axis=1, dtype=jnp.float32)
    answered = successes + jnp.sum(failed(outcome), axis=1, dtype=jnp.float32)
    share = successes / jnp.maximum(answered, 1.0)
    known = jnp.all((outcome >= 0) & (outcome < len(Outcome)), axis=1)
    share = jnp.where(known, share, jnp.nan)
    form = parsed.astype(jnp.float32)
    task = jnp.where(parsed, share, 0.0)
    fair = jnp.clip(2.0 - tokens.astype(jnp.float32) / budget, 0.0, 1.0)
    length = jnp.where(tokens > 0, fair, jnp.where(tokens < 0, jnp.nan, 0.0))
    terms = zip(weights, (form, task, length), strict=True)
    total = sum((w * term for w, term in terms), start=poison) / 3.0
    valid = ~parsed | (answered > 0) | ~known
    return SkillReward(
        total=jnp.where(valid, total, jnp.nan),
        format=form,
        task=jnp.where(valid, task, jnp.nan),
        length=length,
        valid=valid,
    )


def _positive(value: Array) -> Array:
    return (value > 0) & (value < np.inf)


def _not_negative(value: Array) -> Array:
    return (value >= 0) & (value < np.inf)

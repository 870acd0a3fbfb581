"""Absorption: has a policy made a rule its own, so that it needs it in no prompt?

Two measures. What success is lost if the rule is taken out of the prompt, with an
interval over tasks; and how probable the policy makes what the rule says when it is not
told, against the time when the rule was new. Symbols: `N` episodes in pairs, `S`
states, `R` rules, `A` actions. The method's paper claims absorption and measures none.
"""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jerp.errors import InputError
from jerp.estimators.intervals import paired_difference
from jerp.ops.checks import (
    check_axes,
    check_settings,
    check_values,
    concrete,
)
from jerp.records import Interval
from jerp.typing import Array, ArrayLike, Key

__all__ = [
    "RuleLogProb",
    "absorbed",
    "absorption_gain",
    "removal_loss",
    "rule_log_prob",
]


class RuleLogProb(NamedTuple):
    """How probable a policy makes what rules say.

    Attributes:
      mean: `[R]` float32, log-probability; NaN for a rule without a state.
      weight: `[R]` float32, the weight of the states it is the mean over.
    """

    mean: Array
    weight: Array


def removal_loss(
    key: Key,
    with_rule: ArrayLike,
    without_rule: ArrayLike,
    task: ArrayLike,
    *,
    mask: ArrayLike | None = None,
    num_resamples: int = 2000,
    level: float = 0.95,
) -> Interval:
    """Success lost by taking a rule out of the prompt, with an interval over tasks.

        loss = mean_i (y_i with the rule - y_i without it)

    Args:
      key: consumed.
      with_rule: `[N]` float32, success (or score) with the whole working set.
      without_rule: `[N]` float32, of the same task and seed without the rule alone. A
        pair with a NaN on either side, an episode nobody answered, is left out.
      task: `[N]` int32, equal iff same task: tasks are resampled whole.
      mask: `[N]` bool, False leaves a pair out, such as one whose working set never had
        the rule.
      num_resamples: see `bootstrap_interval`.
      level: of the two-sided interval.

    Returns:
      `Interval`: positive where the policy still needs the rule. NaN where no pair is
      left, and NaN limits with fewer than two tasks.

    Raises:
      InputError, ShapeError: see `paired_difference`.

    Deviations: the paper has no such measure.

    Example:
      >>> told = jnp.array([1.0, 1.0, 1.0, 0.0])
      >>> alone = jnp.array([1.0, 0.0, 1.0, 0.0])
      >>> loss = removal_loss(jax.random.key(0), told, alone, jnp.array([0, 0, 1, 1]))
      >>> float(loss.point), float(loss.low), float(loss.high)
      (0.25, 0.0, 0.5)
    """
    return paired_difference(
        key,
        with_rule,
        without_rule,
        cluster=task,
        mask=mask,
        num_resamples=num_resamples,
        level=level,
    )


def absorbed(loss: Interval, *, margin: ArrayLike = 0.02) -> Array:
    """Which rules the policy no longer needs.

        absorbed = high(loss) + 3 / n < margin,    n tasks

    Resampling knows of nothing that was not seen: where no task differs its interval is
    [0, 0], however few there are. Yet if none of n tasks is lost, up to 3 / n of all
    may be, at 95% (the rule of three), so that much is added: fewer than 151 tasks can
    never show that less than 2 points are lost.

    Args:
      loss: of `removal_loss`, any shape: one rule, or several by `jax.vmap`.
      margin: of success, > 0. By default 2 points.

    Returns:
      bool in the shape of the interval. False where the limit is NaN: what was not
      measured is not absorbed.

    Raises:
      InputError: a margin out of range, or an interval that does not say how many tasks
        it is over.

    Deviations: the upper limit of a two-sided 95% interval lies above 97.5% of the
      resamples. The one-sided 95% bound is that of `removal_loss(level=0.9)`. A rule
      that never did anything is absorbed as well: compare with the policy that the rule
      was written for.

    Reference: Hanley and Lippman-Hand, "If nothing goes wrong, is everything all
      right?", 1983, for the rule of three.

    Example:
      >>> same = jnp.ones(151)
      >>> loss = removal_loss(jax.random.key(0), same, same, jnp.arange(151))
      >>> bool(absorbed(loss)), bool(absorbed(loss, margin=0.01))
      (True, False)
    """
    poison = check_settings(margin=(margin, lambda v: v > 0, "> 0"))
    if loss.num_clusters is None:
        raise InputError(
            "loss: expected an interval with num_clusters, got None. Take it from "
            "removal_loss"
        )
    unseen = 3 / jnp.maximum(loss.num_clusters, 1)
    return loss.high + unseen < margin + poison


def rule_log_prob(
    log_prob: ArrayLike,
    follows: ArrayLike,
    applies: ArrayLike,
    *,
    weight: ArrayLike | None = None,
) -> RuleLogProb:
    """How probable a policy makes what rules say, in the states that they are about.

        l_r = sum_s w_s log(sum_{a follows r in s} pi(a | s)) / sum_s w_s,
          over the states s that r applies to

    Args:
      log_prob: `[S, A]` float32, the policy's, without the rule in its prompt.
      follows: `[S, R, A]` bool, the legal actions that do what the rule says.
      applies: `[S, R]` bool, the rule is about the state. A state in which no action
        follows it is left out. Where it is False, the others may hold anything.
      weight: `[S]` float32, at least 0; None weighs all states alike.

    Returns:
      `RuleLogProb`, at most 0, and NaN for a rule without a state that weighs. -inf
      where the policy excludes what the rule says.

    Raises:
      ShapeError: other axes or types.
      InputError: a log-probability above 0, or a weight that is negative or not finite,
        where Python can see it (under jit they make NaN).

    Deviations: the paper has no such measure. The sum over actions comes first: a rule
      leaves open which cabinet is opened.

    Example:
      >>> log_prob = jnp.log(jnp.array([[0.5, 0.25, 0.25], [0.1, 0.8, 0.1]]))
      >>> follows = jnp.array([[[True, True, False]], [[False, True, False]]])
      >>> found = rule_log_prob(log_prob, follows, jnp.array([[True], [False]]))
      >>> round(float(jnp.exp(found.mean[0])), 4), found.weight.tolist()
      (0.75, [1.0])
    """
    log_prob, follows = jnp.asarray(log_prob), jnp.asarray(follows)
    weight = jnp.ones(log_prob.shape[:1]) if weight is None else jnp.asarray(weight)
    check_axes(
        log_prob=(log_prob, "S A"),
        follows=(follows, "S R A", bool),
        applies=(applies, "S R", bool),
        weight=(weight, "S"),
    )
    told, about = concrete(follows), concrete(applies)
    if told is not None and about is not None:
        asked = np.any(told & about[..., None], axis=1)
        check_values("log_prob", log_prob, _is_log_prob, "at most 0", mask=asked)
        asked = np.any(about, axis=1)
        check_values("weight", weight, _is_weight, "finite and >= 0", mask=asked)
    return _rule_log_prob(log_prob, follows, applies, weight)


@jax.jit
def _rule_log_prob(
    log_prob: Array, follows: Array, applies: Array, weight: Array
) -> RuleLogProb:
    states = applies & jnp.any(follows, axis=-1)
    log_prob = jnp.where(_is_log_prob(log_prob), log_prob, jnp.nan)[:, None, :]
    counted = follows & states[..., None]
    followed = jax.nn.logsumexp(
        jnp.where(counted, log_prob.astype(jnp.float32), -jnp.inf), axis=-1
    )
    # Rounding makes the sum of all probabilities more than 1.
    followed = jnp.minimum(followed, 0)
    weight = jnp.where(_is_weight(weight), weight, jnp.nan).astype(jnp.float32)
    # A state that weighs nothing must not matter, and 0 times infinity would.
    states &= weight[:, None] != 0
    heavy = jnp.where(states, weight[:, None], 0)
    total = jnp.sum(heavy, axis=0)
    value = jnp.sum(heavy * jnp.where(states, followed, 0), axis=0)
    mean = jnp.where(total != 0, value / jnp.where(total != 0, total, 1), jnp.nan)
    return RuleLogProb(mean=mean, weight=total)


def absorption_gain(now: ArrayLike, at_birth: ArrayLike) -> Array:
    """How much more probable what a rule says has become since the rule was new.

        gain_r = l_r now - l_r at birth

    Args:
      now: `[R]` float32, mean of `rule_log_prob` of the policy as it is.
      at_birth: `[R]` float32, of the policy that the rule was written for. Over other
        states it would tell of the states as well: keep those of its birth.

    Returns:
      `[R]` float32, in nats; NaN where either is, and where both exclude it.

    Raises:
      ShapeError: not of one length.

    Example:
      >>> absorption_gain(jnp.array([-0.5, -1.0]), jnp.array([-2.0, jnp.nan])).tolist()
      [1.5, nan]
    """
    now, at_birth = jnp.asarray(now, jnp.float32), jnp.asarray(at_birth, jnp.float32)
    check_axes(now=(now, "R"), at_birth=(at_birth, "R"))
    return now - at_birth


def _is_log_prob(v):
    return v <= 1e-4  # of float32 sums


def _is_weight(v):
    return (v >= 0) & (v < np.inf)

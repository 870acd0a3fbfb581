"""Controllers that nothing was learned for: what a learned controller must beat.

Every policy here is a `jerp.typing.PolicyFn`: pure, unbatched, jittable, `params` is
ignored, and the log-probability is that of the distribution really sampled from, so
that the behaviour policy can be evaluated off-policy. Illegal actions have probability
exactly 0. A finished episode has no legal action: its action is padding.
"""

from __future__ import annotations

from collections.abc import Sequence

import jax
import jax.numpy as jnp

from jerp.errors import ConfigError
from jerp.harness.actions import ACTIONS, NUM_ACTIONS, Action
from jerp.harness.state import FEATURES
from jerp.typing import Array, ArrayTree, Key, PolicyFn

__all__ = [
    "BASE_SEQUENCES",
    "base_policy",
    "conditional_policy",
    "describe",
    "forced_check_policy",
    "perturbed_policy",
    "uniform_policy",
    "with_check",
]

BASE_SEQUENCES: dict[str, tuple[Action, ...]] = {
    "coding": (Action.OBSERVE, Action.DRAFT, Action.CALL_TOOL, Action.SUBMIT),
    "research": (Action.OBSERVE, Action.RETRIEVE, Action.DRAFT, Action.SUBMIT),
    "long-memory": (Action.OBSERVE, Action.RETRIEVE, Action.DRAFT, Action.SUBMIT),
    "multi-tool": (
        Action.OBSERVE,
        Action.RETRIEVE,
        Action.CALL_TOOL,
        Action.CALL_TOOL,
        Action.DRAFT,
        Action.SUBMIT,
    ),
    "knowledge-work": (Action.OBSERVE, Action.RETRIEVE, Action.DRAFT, Action.SUBMIT),
    "planning": (
        Action.OBSERVE,
        Action.RETRIEVE,
        Action.CALL_TOOL,
        Action.DRAFT,
        Action.SUBMIT,
    ),
    **dict.fromkeys(
        ("dbbench", "humaneval"),
        (Action.OBSERVE, Action.DRAFT, Action.CALL_TOOL, Action.SUBMIT),
    ),
    # Goes on from the end: drafts, and calls or submits, until the episode is over.
    **dict.fromkeys(
        ("bfcl", "tau2-airline", "tau2-retail", "tau2-telecom"),
        (Action.OBSERVE, Action.DRAFT, Action.CALL_TOOL, Action.SUBMIT),
    ),
    "simulated": (Action.OBSERVE, Action.RETRIEVE, Action.DRAFT, Action.SUBMIT),
}
"""What each domain's harness does without a controller; no check in it."""

_PROGRESS = FEATURES.index("progress")
_HAS_DRAFT = FEATURES.index("has_draft")
_MISSING = FEATURES.index("missing_share")
_COST = FEATURES.index("cost_share")
_REMAINING = FEATURES.index("remaining")
_SUPPORT = FEATURES.index("support")
_LAST_CHECK = FEATURES.index("last:check")
_LAST_TOOL = FEATURES.index("last:call-tool")


def describe(sequence: Sequence[int]) -> str:
    """The sequence in words, for tables and reports.

    Args:
      sequence: actions in order.

    Returns:
      Names joined by arrows.

    Example:
      >>> describe(BASE_SEQUENCES["coding"])
      'observe > draft > call-tool > submit'
    """
    return " > ".join(ACTIONS[action] for action in sequence)


def with_check(sequence: Sequence[int]) -> tuple[Action, ...]:
    """The sequence with a check before its last submit.

    Args:
      sequence: actions in order, a submit among them.

    Returns:
      One action more.

    Example:
      >>> describe(with_check(BASE_SEQUENCES["research"]))
      'observe > retrieve > draft > check > submit'
    """
    actions = _checked(sequence)
    last = len(actions) - 1 - actions[::-1].index(Action.SUBMIT)
    return (*actions[:last], Action.CHECK, *actions[last:])


def base_policy(sequence: Sequence[int], *, max_steps: int = 10) -> PolicyFn:
    """The fixed sequence, one action a step.

    At step t it takes `sequence[t]`, after the end the last one; if that is illegal,
    the next legal one in cyclic order; if none of the sequence is legal, the first
    legal action in the order of `ACTIONS`.

    Args:
      sequence: actions in order, a submit among them.
      max_steps: step budget by which the domain divides `progress`.

    Returns:
      A deterministic policy: log-probability 0.
    """
    actions = _checked(sequence)

    def policy(params: ArrayTree, key: Key, observation: Array, legal: Array):
        del params, key
        action = _sequence_action(actions, observation, legal, max_steps)
        return action, jnp.zeros((), jnp.float32)

    return policy


def forced_check_policy(sequence: Sequence[int], *, max_steps: int = 10) -> PolicyFn:
    """The base policy on `with_check(sequence)`: always checks before it submits."""
    return base_policy(with_check(sequence), max_steps=max_steps)


def perturbed_policy(
    sequence: Sequence[int], *, epsilon: float, max_steps: int = 10
) -> PolicyFn:
    """The base policy with a share of uniform exploration: the behaviour policy.

        pi(a) = (1 - epsilon) [a = base] + epsilon [a legal] / (number legal)

    Args:
      sequence: actions in order, a submit among them.
      epsilon: in [0, 1]; 0.25 in arXiv 2607.05458.
      max_steps: see `base_policy`.

    Returns:
      A policy whose log-probability is log pi(a), the base action's included.
    """
    actions = _checked(sequence)
    if not 0 <= epsilon <= 1:
        raise ConfigError(f"epsilon: expected in [0, 1], got {epsilon}")

    def policy(params: ArrayTree, key: Key, observation: Array, legal: Array):
        del params
        base = _sequence_action(actions, observation, legal, max_steps)
        certain = (jnp.arange(NUM_ACTIONS) == base).astype(jnp.float32)
        return _sample(key, (1 - epsilon) * certain + epsilon * _uniform(legal))

    return policy


def uniform_policy() -> PolicyFn:
    """Every legal action with the same probability.

    pi(a) = [a legal] / (number legal)
    """

    def policy(params: ArrayTree, key: Key, observation: Array, legal: Array):
        del params, observation
        return _sample(key, _uniform(legal))

    return policy


def conditional_policy(sequence: Sequence[int], *, max_steps: int = 10) -> PolicyFn:
    """A rule that a person would write: check when unverified, revise after a failure.

    It revises if the check or tool call just made found something wrong and a revision
    is legal. Where the base policy would submit, it checks first if a check is legal,
    nothing says yet that the draft is right (`support` below 1) and budget remains.
    Otherwise it follows the base policy. A revision, too, needs budget: at least two
    steps, so that a submit still fits, and cost below its budget. Reads nothing but
    features and mask.

    Args:
      sequence: actions in order, a submit among them.
      max_steps: see `base_policy`.

    Returns:
      A deterministic policy: log-probability 0.

    Deviations: no baseline of arXiv 2607.05458, whose readers missed it.
    """
    actions = _checked(sequence)

    def policy(params: ArrayTree, key: Key, observation: Array, legal: Array):
        del params, key
        x = observation
        base = _sequence_action(actions, x, legal, max_steps)
        # Half a step of slack: the feature is a rounded quotient.
        budget = (x[_REMAINING] * max_steps > 1.5) & (x[_COST] < 1.0)
        missing = (x[_LAST_CHECK] > 0) & (x[_MISSING] > 0)
        failing = (x[_LAST_TOOL] > 0) & (x[_SUPPORT] >= 0) & (x[_SUPPORT] < 1)
        revise = legal[Action.REVISE] & (missing | failing) & budget
        unverified = legal[Action.CHECK] & (x[_HAS_DRAFT] > 0) & (x[_SUPPORT] < 1)
        check = (base == Action.SUBMIT) & unverified & budget
        action = jnp.where(
            revise, Action.REVISE, jnp.where(check, Action.CHECK, base)
        ).astype(jnp.int32)
        return action, jnp.zeros((), jnp.float32)

    return policy


def _checked(sequence: Sequence[int]) -> tuple[Action, ...]:
    actions = tuple(Action(action) for action in sequence)
    if Action.SUBMIT not in actions:
        raise ConfigError(
            f"sequence: expected a submit in it, got ({describe(actions)}); "
            f"without one no episode ends by itself"
        )
    return actions


def _sequence_action(
    actions: tuple[Action, ...], observation: Array, legal: Array, max_steps: int
) -> Array:
    """`[]` int32, see `base_policy`."""
    order = jnp.array(actions, jnp.int32)
    length = len(actions)
    step = jnp.round(observation[_PROGRESS] * max_steps).astype(jnp.int32)
    distance = (jnp.arange(length) - jnp.minimum(step, length - 1)) % length
    distance = jnp.where(legal[order], distance, length)
    nearest = jnp.argmin(distance)
    first_legal = jnp.argmax(legal).astype(jnp.int32)
    return jnp.where(distance[nearest] < length, order[nearest], first_legal)


def _uniform(legal: Array) -> Array:
    # Padding without a legal action is uniform over all, so that it stays finite.
    allowed = jnp.where(jnp.any(legal), legal, True).astype(jnp.float32)
    return allowed / jnp.sum(allowed)


def _sample(key: Key, probability: Array) -> tuple[Array, Array]:
    log_probability = jnp.log(probability)
    action = jax.random.categorical(key, log_probability).astype(jnp.int32)
    return action, log_probability[action]

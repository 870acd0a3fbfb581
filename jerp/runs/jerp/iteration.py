"""The compiled parts of an iteration: fix working sets, play and learn, revise.

Each is a function of the key, the number of the iteration and the state alone. What a
reflector needs in between comes back to the host.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import jax
import numpy as np

from jerp.envs.rule_language import RuleLanguage, read_sentence, sentence
from jerp.errors import InputError
from jerp.rules.book import RuleBook
from jerp.rules.edits import RuleEdits
from jerp.rules.pool import RulePool
from jerp.rules.selection import leave_out
from jerp.runs.policy.groups import Play, PolicyTask, play_batch
from jerp.runs.policy.iterations import (
    LEARN,
    episode_metrics,
    stream_of,
    whole_params,
)
from jerp.training.group_settings import GroupHyper
from jerp.training.joint import (
    JointState,
    JointStep,
    Revised,
    RuleConfig,
    make_joint_step,
)
from jerp.trajectory import Trajectory
from jerp.typing import Array, Key

__all__ = [
    "Given",
    "Plan",
    "play_and_learn",
    "revise",
    "rule_table",
    "shown_rules_of",
    "working_sets",
]

LEAVE_OUT = LEARN + 1
"""Stream of random keys of a run, beside those of the policy's part."""

_LEAST_TEXTS = 256
"""Rows of a table; it doubles, so that few shapes are compiled."""

_Played = tuple[JointState, dict[str, Array], Trajectory]


@dataclass(frozen=True)
class Plan:
    """What is static.

    Attributes:
      task: what is trained, in what, how.
      rules: of the pure steps.
      learn_policy: whether the policy is trained.
    """

    task: PolicyTask
    rules: RuleConfig
    learn_policy: bool

    @property
    def step(self) -> JointStep:
        """The pure functions."""
        task, learns = self.task, self.learn_policy
        return make_joint_step(
            task.config, task.policy, self.rules, learn_policy=learns
        )


class Given(NamedTuple):
    """What no iteration changes, or the host alone.

    Attributes:
      key: of the run.
      hyper: of the algorithm.
      env_params: leaves `[N, ...]`.
      task_key: `[N]` int32.
      reference: parameters to stay near to, or None.
      frozen: entries of the parameters that are not trained, or None; the table of
        rules, which the host extends, is one.
    """

    key: Key
    hyper: GroupHyper
    env_params: Any
    task_key: Array
    reference: Any
    frozen: Mapping[str, Any] | None


@partial(jax.jit, static_argnames="plan")
def working_sets(plan: Plan, pool: RulePool, task_key: Array) -> Array | None:
    """`[N, R]` rule ids of all tasks, fixed before any episode is played."""
    return plan.step.working_set(pool, task_key)


@partial(jax.jit, static_argnames="plan")
def shown_rules_of(plan: Plan, key: Key, number: Any, working_set: Array) -> Array:
    """`[N, R]`, what is left of working sets in the prompts of one iteration."""
    # Not of the iteration's own key: that one is split for the tasks and episodes, and
    # what is split off may be what is folded in.
    stream = jax.random.fold_in(jax.random.fold_in(key, LEAVE_OUT), number)
    return leave_out(stream, working_set, rate=plan.rules.rule_dropout)


def play_and_learn(
    play: Play | None,
    plan: Plan,
    given: Given,
    state: JointState,
    working_set: Array | None,
    number: int,
) -> _Played:
    """Groups of episodes, and the update from them; `state` is consumed.

    Args:
      play: plays from the host; None plays inside the compiled program.
      plan: static.
      given: see `Given`.
      state: before.
      working_set: `[N, R]` of all tasks; None for a policy without rules.
      number: of the iteration.

    Returns:
      The state with the pool as it was, metrics, and the episodes `[B, T]`.
    """
    if play is None:
        return _compiled(plan, given, state, working_set, np.int32(number))
    data, played = _played(play, plan, given, state, working_set, np.int32(number))
    state, metrics = _learned(plan, given, state, data)
    return state, {**metrics, **played}, data


@partial(jax.jit, static_argnames="plan")
def revise(
    plan: Plan,
    pool: RulePool,
    task_key: Array,
    data: Trajectory,
    edits: RuleEdits,
    number: Any,
) -> Revised:
    """See `make_joint_step`; `task_key` is `[N]`, of the tasks."""
    return plan.step.revise(pool, task_key[data.task_id], data, edits, number)


def rule_table(language: RuleLanguage, book: RuleBook) -> np.ndarray:
    """`[M, 2]` int32, situation and move of every rule of the book, by its id.

    M is a power of two, so that a book that grows seldom is of another shape; numbers
    of no text are (0, 0).

    Raises:
      InputError: a text that is in other words: the policy could not read it.
    """
    size = _LEAST_TEXTS
    while size < len(book):
        size *= 2
    table = np.zeros((size, 2), np.int32)
    for number, text in enumerate(book.texts):
        said = read_sentence(language, text)
        if said is None:
            raise InputError(
                f"rule {number}: expected words of the policy's language, such as "
                f"{sentence(language, 1, 1)!r}, got {text!r}"
            )
        table[number] = said
    return table


@partial(jax.jit, static_argnames="plan", donate_argnames="state")
def _compiled(
    plan: Plan,
    given: Given,
    state: JointState,
    working_set: Array | None,
    number: Any,
) -> _Played:
    data, played = _played(None, plan, given, state, working_set, number)
    state, metrics = _update(plan, given, state, data)
    return state, {**metrics, **played}, data


def _played(
    play: Play | None,
    plan: Plan,
    given: Given,
    state: JointState,
    working_set: Array | None,
    number: Any,
) -> tuple[Trajectory, dict[str, Array]]:
    whole = whole_params(state.train, given.frozen)
    return play_batch(
        stream_of(given.key, number),
        *(plan.task, given.hyper, given.env_params, whole),
        play=play,
        working_set=working_set,
    )


def _update(
    plan: Plan, given: Given, state: JointState, data: Trajectory
) -> tuple[JointState, dict[str, Array]]:
    metrics, learn = {}, plan.step.learn
    if learn is not None:
        state, metrics = learn(state, given.hyper, data, given.reference, given.frozen)
    return state, metrics | episode_metrics(data)


_learned = jax.jit(_update, static_argnames="plan", donate_argnames="state")

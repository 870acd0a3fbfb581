"""Episodes of a pure JAX world, step by step from the host, in words if they are asked.

The arguments, random numbers and result are those of `jerp.rollout.scan.rollout`: with
the same observations the episodes are the same. Here each step is two compiled calls,
one of the policy and one of all worlds, and between them a text may be made that no
compiled program could. It is what real models read; where a world's own fields or
tokens do, the compiled loop is many times faster.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jerp.bridge.world_text import TextView
from jerp.envs.base import Environment, TimeStep
from jerp.errors import ConfigError, InputError
from jerp.models.policy import Acted, SequencePolicy
from jerp.ops.checks import check_count
from jerp.rollout.episodes import (
    Now,
    Seat,
    StepRecord,
    begun_memory,
    finish_episodes,
    keys_at,
    start_episodes,
    step_episodes,
    working_sets_of,
)
from jerp.rollout.scan import batched
from jerp.trajectory import Trajectory
from jerp.typing import Array, Key, Outcome, PolicyFn

__all__ = ["Replay", "play_worlds", "texts_of_rules"]

BUCKET = 16
"""Texts of a batch are padded to this times a power of two: few shapes to compile."""


class Replay(NamedTuple):
    """A `SequencePolicy` that does again what is written: parameters are `[B, T]`.

    With it episodes that were played elsewhere are seen through another view.
    """

    def start(self, params: Array, batch_size: int) -> Array:
        """The step number."""
        return jnp.zeros((), jnp.int32)

    def act(
        self, params: Array, memory: Array, keys: Key, observation: Any, legal: Array
    ) -> tuple[Array, Acted]:
        """The action that comes next, with log-probability 0."""
        action = params[:, memory]
        return memory + 1, Acted(action, jnp.zeros(action.shape))


def play_worlds(
    key: Key,
    env: Environment,
    env_params: Any,
    policy: PolicyFn | SequencePolicy,
    params: Any,
    *,
    num_steps: int,
    batch_size: int,
    shared_start: bool = False,
    view: TextView | None = None,
    working_set: Array | None = None,
    rule_texts: Sequence[str] | None = None,
) -> Trajectory:
    """Plays `batch_size` episodes of at most `num_steps` steps from the host.

    Args:
      key: consumed.
      env: a world.
      env_params: leaves `[N, ...]`, one row a task.
      policy: see `rollout`.
      params: of the policy.
      num_steps: T.
      batch_size: B.
      shared_start: see `rollout`.
      view: shows states as text; then observations are a dict of `tokens` `[B, T, L_o]`
        and `actions` `[B, T, A, L_a]`, as `jerp.models.token_policy.TokenPolicy` reads
        them. None shows what the world shows.
      working_set: see `rollout`. A view shows the texts of the rules, and the policy
        reads them there; without one the policy is given their ids. A rule for which a
        view has no room is not in the episode's working set.
      rule_texts: by rule id, as `RuleBook.texts` has them, for a view.

    Returns:
      See `rollout`; arrays of NumPy. An episode for whose next step the policy's memory
      is too small ends there, truncated: a log-probability that is NaN says so.

    Raises:
      ConfigError: rules for a policy that reads none, or for a view without their
        texts.
      InputError: a memory too small for a first step, too many texts that were cut, a
        rule without a text, or no steps, tasks or episodes.
    """
    check_count("num_steps", num_steps)
    seat, now = _start(
        key, env, env_params, batch_size=batch_size, shared_start=shared_start
    )
    actor = batched(policy)
    rules = working_sets_of(seat, env_params, working_set)
    # Who is shown texts is not given numbers.
    given, texts = rules, None
    if rules is not None and view is not None:
        given, texts = None, texts_of_rules(rules, rule_texts)
    shown = _Shown(view, jax.device_get(seat.tasks), texts)
    rules = shown.kept(now, rules)
    begun = begun_memory(actor, params, batch_size, given)
    # Copied, because it is consumed: it may be arrays of the caller's parameters.
    memory = jax.tree.map(jnp.copy, begun)
    records: list[StepRecord] = []
    for t in range(num_steps):
        seen = shown.see(now, first=t == 0)
        memory, acted = _act(
            actor, params, memory, seat, shown.cut(seen), now[1].legal, np.int32(t)
        )
        acted = jax.device_get(acted)
        full = np.isnan(acted.log_prob) & ~np.asarray(_ended(now[1]))
        if full.any():
            _check_params(params)
            now = _out_of_memory(records, now, full, t)
        after = _step(env, seat, now, acted.action, np.int32(t))
        before = now[1].replace(observation=seen)
        records.append(jax.device_get(StepRecord(before, acted, after[1])))
        now = after
        if np.asarray(_ended(now[1])).all():
            break
    last = now[1].replace(observation=shown.see(now, first=False))
    if view is not None:
        view.check_cuts()
    records += [_nothing(records[-1], last)] * (num_steps - len(records))
    record = jax.tree.map(lambda *xs: np.stack(xs, axis=1), *records)
    return jax.device_get(_finish(seat, record, last, working_set=rules))


def texts_of_rules(
    working_set: Array, texts: Sequence[str] | None
) -> tuple[tuple[str, ...], ...]:
    """The texts of `B` working sets `[B, R]`, best first.

    Args:
      working_set: rule ids, -1 for none.
      texts: by rule id.

    Raises:
      ConfigError: no texts.
      InputError: a rule without one.
    """
    if texts is None:
        raise ConfigError(
            "rule_texts: expected the texts of the rules in `working_set`, which are "
            "to be read, got None"
        )
    ids = np.asarray(working_set)
    if ids.size and ids.max() >= len(texts):
        raise InputError(
            f"rule_texts: expected a text for every rule in `working_set`, got "
            f"{len(texts)} and rule {ids.max()}"
        )
    rows: list[list[int]] = ids.tolist()
    return tuple(tuple(texts[rule] for rule in row if rule >= 0) for row in rows)


class _Shown:
    """What the policy is shown of worlds, which say by themselves, or in words."""

    def __init__(
        self,
        view: TextView | None,
        tasks: Any,
        rules: Sequence[Sequence[str]] | None,
    ):
        self.view, self.tasks, self.rules = view, tasks, rules
        self.actions = None if view is None else view.actions(tasks)

    def see(self, now: Now, *, first: bool) -> Any:
        """Observations, padded to their full length."""
        if self.view is None or self.actions is None:
            return now[1].observation
        states, legal = jax.device_get((now[0], now[1].legal))
        self.view.check_distinct(self.actions, legal, self.tasks)
        tokens = self.view.observations(
            states, self.tasks, first=first, rules=self.rules
        )
        return {"tokens": tokens, "actions": self.actions}

    def kept(self, now: Now, working_set: Array | None) -> Any:
        """Working sets without the rules for which there is no room."""
        if working_set is None or self.view is None or self.rules is None:
            return working_set
        states = jax.device_get(now[0])
        number = self.view.num_fitting(states, self.tasks, self.rules)
        ids = np.asarray(working_set)
        real = ids >= 0
        fits = real & (real.cumsum(axis=1) <= number[:, None])
        return np.where(fits, ids, np.int32(-1))

    def cut(self, seen: Any) -> Any:
        """The same without most of the padding."""
        if self.view is None:
            return seen
        longest = (seen["tokens"] != 0).sum(axis=1).max()
        size = BUCKET
        while size < longest:
            size *= 2
        return {**seen, "tokens": seen["tokens"][:, :size]}


@partial(jax.jit, static_argnames="policy", donate_argnames="memory")
def _act(
    policy: SequencePolicy,
    params: Any,
    memory: Any,
    seat: Seat,
    observation: Any,
    legal: Array,
    t: Array,
) -> tuple[Any, Acted]:
    keys = keys_at(seat.policy_keys, t)
    return policy.act(params, memory, keys, observation, legal)


_start = jax.jit(start_episodes, static_argnames=("env", "batch_size", "shared_start"))
_step = jax.jit(step_episodes, static_argnames="env")
_finish = jax.jit(finish_episodes)


def _ended(now: TimeStep) -> Array:
    return now.terminated | now.truncated


def _check_params(params: Any) -> None:
    """NaN says that a memory is full, unless it comes from the parameters."""
    leaves = jax.tree.leaves(params)
    numbers = [x for x in leaves if jnp.issubdtype(x.dtype, jnp.inexact)]
    if not all(bool(jnp.isfinite(x).all()) for x in numbers):
        raise InputError(
            "params: expected finite numbers, got NaN or infinite ones, with which no "
            "action can be drawn"
        )


def _out_of_memory(
    records: list[StepRecord], now: Now, full: np.ndarray, t: int
) -> Now:
    """Ends episodes with the step before, of which the record is changed."""
    if t == 0:
        raise InputError(
            f"policy: its memory is too small for the first step of {full.sum()} of "
            f"{full.size} episodes; expected room for a task's text and one action"
        )
    *_, (before, acted, after) = records
    after = after.replace(truncated=after.truncated | full)
    records[-1] = StepRecord(before, acted, after)
    state, step = now
    ended = step.replace(
        truncated=np.asarray(step.truncated) | full,
        legal=np.asarray(step.legal) & ~full[:, None],
        outcome=np.where(full, np.int32(Outcome.TRUNCATED), step.outcome),
        score=np.where(full, np.float32(0), step.score),
    )
    return state, ended


def _nothing(record: StepRecord, last: TimeStep) -> StepRecord:
    """A step in which all episodes had ended."""
    return StepRecord(jax.device_get(last), record.acted, record.after)

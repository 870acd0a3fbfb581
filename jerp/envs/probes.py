"""Probe worlds: each isolates one thing that a learner must get right.

Two actions, episodes of fixed length, a reward at the last step alone. A learner that
fails on one of them has the fault that its name says: `action` tests the policy
gradient, `matching` the use of the observation, `delayed` credit over time, `observed`
the value of an observation that no action changes, `constant` that nothing is learned
from nothing. The probes are tasks of one world.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

import jax
import jax.numpy as jnp
from flax import struct

from jerp.envs.base import Observation, TimeStep
from jerp.errors import UnknownNameError
from jerp.typing import USAGE_KINDS, Array, Key, Outcome

__all__ = ["PROBES", "Probe", "ProbeParams", "ProbeState", "probe_params"]

PROBES = ("constant", "action", "matching", "delayed", "observed")
"""Rewarded: always; a last action of 1; a last action equal to the cue; a first action
of 1; always, but by half where the cue is 0. That is reward now, by action, by action
and observation both, later, and by observation."""

WORDS = ("", "dark", "light", "zero", "one")
"""Of observations, the cues 0 and 1, and of actions."""

NUM_ACTIONS = 2


class ProbeParams(struct.PyTreeNode):
    """One task; leaves `[]`, or `[N]` for `N` tasks.

    Attributes:
      kind: int32, index in `PROBES`.
      scale: float32, what a rewarded step brings.
    """

    kind: Array
    scale: Array


class ProbeState(struct.PyTreeNode):
    """One episode in progress; leaves `[]`.

    Attributes:
      step: int32.
      cue: int32, 0 or 1, seen by the policy.
      first: int32, the first action; -1 before it.
      paid: float32, the reward of the last step; 0 before it.
    """

    step: Array
    cue: Array
    first: Array
    paid: Array


def probe_params(*kinds: str) -> ProbeParams:
    """One task a name, with rewards of 1.

    Raises:
      UnknownNameError: a name is not in `PROBES`.
    """
    for kind in kinds:
        if kind not in PROBES:
            raise UnknownNameError("probe", kind, PROBES)
    return ProbeParams(
        kind=jnp.asarray([PROBES.index(kind) for kind in kinds], jnp.int32),
        scale=jnp.ones(len(kinds)),
    )


@dataclass(frozen=True)
class Probe:
    """The probe world, a `World`.

    Features `[3]`: cue is 0, cue is 1, share of steps done; the field, and the token,
    are the cue alone.

    Attributes:
      num_steps: length of every episode.
      observation: what time steps hold: the features, or as other worlds have it.
    """

    num_steps: int = 2
    observation: Literal["features", "fields", "tokens"] = "features"

    num_actions: ClassVar[int] = NUM_ACTIONS
    field_sizes: ClassVar[tuple[int, ...]] = (3,)
    vocabulary: ClassVar[tuple[str, ...]] = WORDS
    num_observation_tokens: ClassVar[int] = 1
    num_action_tokens: ClassVar[int] = 1

    def reset(self, key: Key, params: ProbeParams) -> tuple[ProbeState, TimeStep]:
        """Draws the cue."""
        state = ProbeState(
            step=jnp.zeros((), jnp.int32),
            cue=jax.random.bernoulli(key).astype(jnp.int32),
            first=jnp.full((), -1, jnp.int32),
            paid=jnp.zeros(()),
        )
        return state, self._time_step(state, params, jnp.zeros(()))

    def step(
        self, key: Key, state: ProbeState, action: Array, params: ProbeParams
    ) -> tuple[ProbeState, TimeStep]:
        """Counts the step and rewards the last one."""
        del key
        action, live = jnp.asarray(action, jnp.int32), state.step < self.num_steps
        after = state.replace(
            step=state.step + live,
            first=jnp.where(state.step == 0, action, state.first),
        )
        last = live & (after.step >= self.num_steps)
        reward = jnp.where(last, self._pay(after, action, params), 0.0)
        after = after.replace(paid=after.paid + reward)
        return after, self._time_step(after, params, reward)

    def admissible(self, state: ProbeState, params: ProbeParams) -> Array:
        """`[2]` bool: both, until the end."""
        del params
        return jnp.broadcast_to(state.step < self.num_steps, NUM_ACTIONS)

    def anchor(self, state: ProbeState, params: ProbeParams) -> Array:
        """`[]` int32: the cue and the first action."""
        del params
        return (state.first + 1) * 2 + state.cue

    def observe(self, state: ProbeState, params: ProbeParams) -> Observation:
        """The cue."""
        del params
        seen = 1 + state.cue[None]
        return Observation(fields=seen, tokens=seen)

    def action_tokens(self, params: ProbeParams) -> Array:
        """`[2, 1]` int32: zero, one."""
        del params
        return jnp.array([[WORDS.index("zero")], [WORDS.index("one")]], jnp.int32)

    def oracle(self, state: ProbeState, params: ProbeParams) -> Array:
        """`[]` int32: the cue if it is to be matched, else 1."""
        matching = params.kind == PROBES.index("matching")
        return jnp.where(matching, state.cue, 1)

    def _pay(self, after: ProbeState, action: Array, params: ProbeParams) -> Array:
        """What the last step brings."""
        half = jnp.where(after.cue == 1, 1.0, 0.5)
        share = (1, action == 1, action == after.cue, after.first == 1, half)
        return jnp.stack([jnp.float32(x) for x in share])[params.kind] * params.scale

    def _time_step(
        self, state: ProbeState, params: ProbeParams, reward: Array
    ) -> TimeStep:
        ended = state.step >= self.num_steps
        seen, cue = self.observe(state, params), jnp.arange(2) == state.cue
        shown = {
            "features": jnp.append(1.0 * cue, state.step / self.num_steps),
            "fields": seen.fields,
            "tokens": seen.tokens,
        }
        outcome = jnp.where(state.paid > 0, Outcome.SUCCESS, Outcome.FAILURE)
        return TimeStep(
            observation=shown[self.observation],
            legal=self.admissible(state, params),
            reward=reward,
            terminated=ended,
            truncated=jnp.zeros((), bool),
            outcome=outcome.astype(jnp.int32),
            score=jnp.clip(state.paid, 0, 1),
            anchor=self.anchor(state, params),
            usage=jnp.zeros(len(USAGE_KINDS)),
        )

"""Probe worlds: each isolates one thing that a learner must get right.

Two actions, episodes of fixed length, a reward at the last step alone. A learner that
fails on one of them has the fault that its name says: `action` tests the policy
gradient, `matching` the use of the observation, `delayed` credit over time, `constant`
that nothing is learned from nothing. The probes are tasks of one world.
"""

from __future__ import annotations

from dataclasses import dataclass

import jax
import jax.numpy as jnp
from flax import struct

from jerp.envs.base import TimeStep
from jerp.errors import UnknownNameError
from jerp.typing import USAGE_KINDS, Array, Key, Outcome

__all__ = ["PROBES", "Probe", "ProbeParams", "ProbeState", "probe_params"]

PROBES = ("constant", "action", "matching", "delayed")
"""Rewarded: always; a last action of 1; a last action equal to the cue; a first action
of 1."""

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
    """

    step: Array
    cue: Array
    first: Array


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
    """The probe world. Observation `[3]`: cue is 0, cue is 1, share of steps done.

    Attributes:
      num_steps: length of every episode.
    """

    num_steps: int = 2

    def reset(self, key: Key, params: ProbeParams) -> tuple[ProbeState, TimeStep]:
        """Draws the cue."""
        state = ProbeState(
            step=jnp.zeros((), jnp.int32),
            cue=jax.random.bernoulli(key).astype(jnp.int32),
            first=jnp.full((), -1, jnp.int32),
        )
        return state, self._time_step(state, jnp.zeros(()))

    def step(
        self, key: Key, state: ProbeState, action: Array, params: ProbeParams
    ) -> tuple[ProbeState, TimeStep]:
        """Counts the step and rewards the last one."""
        del key
        first = jnp.where(state.step == 0, action, state.first)
        rewarded = jnp.stack(
            [jnp.ones((), bool), action == 1, action == state.cue, first == 1]
        )[params.kind]
        after = state.replace(step=state.step + 1, first=first)
        last = after.step >= self.num_steps
        return after, self._time_step(after, (last & rewarded) * params.scale)

    def _time_step(self, state: ProbeState, reward: Array) -> TimeStep:
        ended = state.step >= self.num_steps
        cue = (jnp.arange(2) == state.cue).astype(jnp.float32)
        outcome = jnp.where(reward > 0, Outcome.SUCCESS, Outcome.FAILURE)
        return TimeStep(
            observation=jnp.append(cue, state.step / self.num_steps),
            legal=jnp.broadcast_to(~ended, NUM_ACTIONS),
            reward=reward,
            terminated=ended,
            truncated=jnp.zeros((), bool),
            outcome=outcome.astype(jnp.int32),
            score=jnp.clip(reward, 0, 1),
            anchor=state.step * 6 + (state.first + 1) * 2 + state.cue,
            usage=jnp.zeros(len(USAGE_KINDS)),
        )

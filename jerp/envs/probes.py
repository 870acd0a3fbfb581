"""Probe worlds: each isolates one thing that a learner must get right.

Two actions, at most `num_steps` steps, all else constant. A learner that fails on one
of them has the fault that its name says: `action` tests the policy gradient, `matching`
the use of the observation, `delayed` credit over time, `constant` that nothing is
learned from nothing.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import jax
import jax.numpy as jnp
from flax import struct

from jerp.envs.base import TimeStep
from jerp.errors import UnknownNameError
from jerp.typing import USAGE_KINDS, Array, Key, Outcome

__all__ = ["PROBES", "Probe", "ProbeParams", "ProbeState", "probe_params"]

PROBES = ("constant", "action", "matching", "delayed")
NUM_ACTIONS = 2


class ProbeParams(struct.PyTreeNode):
    """One task; leaves `[]` float32, or `[N]` for `N` tasks.

    Attributes:
      scale: what a rewarded step brings.
    """

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


def probe_params(num_tasks: int = 1) -> ProbeParams:
    """`num_tasks` equal tasks with rewards of 1."""
    return ProbeParams(scale=jnp.ones(num_tasks))


@dataclass(frozen=True)
class Probe:
    """A probe world.

    Observation `[3]`: cue 0, cue 1, share of steps done.

    Attributes:
      kind: "constant" rewards every last step; "action" rewards action 1 at it;
        "matching" rewards the action that equals the cue; "delayed" rewards, at the
        last step, that the first action was 1.
      num_steps: length of every episode.
    """

    kind: Literal["constant", "action", "matching", "delayed"]
    num_steps: int = 1

    def __post_init__(self):
        if self.kind not in PROBES:
            raise UnknownNameError("probe", self.kind, PROBES)

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
        rewarded = {
            "constant": jnp.ones((), bool),
            "action": action == 1,
            "matching": action == state.cue,
            "delayed": first == 1,
        }[self.kind]
        after = state.replace(step=state.step + 1, first=first)
        last = after.step >= self.num_steps
        return after, self._time_step(after, (last & rewarded) * params.scale)

    def _time_step(self, state: ProbeState, reward: Array) -> TimeStep:
        ended = state.step >= self.num_steps
        cue = jnp.arange(NUM_ACTIONS) == state.cue
        done = jnp.append(cue.astype(jnp.float32), state.step / self.num_steps)
        return TimeStep(
            observation=done,
            legal=jnp.broadcast_to(~ended, NUM_ACTIONS),
            reward=reward,
            terminated=ended,
            truncated=jnp.zeros((), bool),
            outcome=jnp.where(reward > 0, Outcome.SUCCESS, Outcome.FAILURE).astype(
                jnp.int32
            ),
            score=jnp.clip(reward, 0, 1),
            anchor=state.step * NUM_ACTIONS + state.cue,
            usage=jnp.zeros(len(USAGE_KINDS)),
        )

"""The protocol of pure JAX worlds.

An environment is two pure functions of one episode, `reset` and `step`; loops vmap them
over a batch. Parameters are a pytree that describes one task, so tasks, too, can be
vmapped. There is no automatic reset: an episode that ended stays ended, and the loop
masks what follows. Worlds draw nothing and render no text.
"""

from __future__ import annotations

from typing import Any, Protocol

from flax import struct

from jerp.typing import Array, ArrayTree, Key

__all__ = ["Environment", "TimeStep"]


class TimeStep(struct.PyTreeNode):
    """What one episode shows before an action, and what the last action brought.

    Attributes:
      observation: tree of `[...]`, what the policy sees.
      legal: `[A]` bool; at least one until the episode ends, none after.
      reward: `[]` float32, of the last action; 0 at reset.
      terminated: `[]` bool, the last action ended the episode naturally.
      truncated: `[]` bool, the step budget ran out.
      outcome: `[]` int32, a `jerp.typing.Outcome`; meaningful at the end.
      score: `[]` float32 in [0, 1], the graded result; meaningful at the end.
      anchor: `[]` int32, equal iff same state of the same task, counters aside.
      usage: `[U]` float32, what the last action used, see `jerp.typing.USAGE_KINDS`.
    """

    observation: ArrayTree
    legal: Array
    reward: Array
    terminated: Array
    truncated: Array
    outcome: Array
    score: Array
    anchor: Array
    usage: Array


class Environment(Protocol):
    """A world; hashable, so that it can be a static argument of `jit`."""

    def reset(self, key: Key, params: Any) -> tuple[Any, TimeStep]:
        """Starts an episode of the task that `params` describes. Consumes `key`."""
        ...

    def step(
        self, key: Key, state: Any, action: Array, params: Any
    ) -> tuple[Any, TimeStep]:
        """The state and time step after `action` (`[]` int32). Consumes `key`."""
        ...

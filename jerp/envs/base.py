"""The protocol of pure JAX worlds.

An environment is two pure functions of one episode, `reset` and `step`; loops vmap them
over a batch. Parameters are a pytree that describes one task, so tasks, too, can be
vmapped. There is no automatic reset: an episode that ended stays ended, and the loop
masks what follows. Worlds render no text: that is done on the host, from their states.

A `World` is an environment that a language-model policy can live in: it says what can
be done, what a state is, and what is seen of it, as a few fields or as tokens.
"""

from __future__ import annotations

from typing import Any, Literal, Protocol

from flax import struct

from jerp.typing import Array, ArrayTree, Key

__all__ = [
    "Environment",
    "Observation",
    "RuleLanguage",
    "Split",
    "TimeStep",
    "View",
    "World",
    "WorldText",
]

View = Literal["fields", "tokens"]

Split = Literal["train", "seen", "unseen"]
"""Of a world's tasks, which share none: "seen" are other tasks of what was trained on,
"unseen" are tasks of what was not; each world says what that is."""


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
      anchor: `[]` or `[W]` int32, words that are equal, all of them, iff the state of
        the same task is, counters aside. A rollout numbers them.
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


class Observation(struct.PyTreeNode):
    """What is seen of a state, in both forms.

    Attributes:
      fields: `[F]` int32, small numbers of a meaning each; 0 is "nothing, or unknown".
      tokens: `[L]` int32 in the world's vocabulary, padded with 0 at the end.
    """

    fields: Array
    tokens: Array

    def shown(self, view: View) -> Array:
        """The form that a time step holds."""
        return self.fields if view == "fields" else self.tokens


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


class World(Environment, Protocol):
    """An environment for language-model policies.

    Attributes:
      num_actions: A, whatever the task; those that cannot be taken are masked.
      field_sizes: F sizes; field f takes values from 0 to `field_sizes[f] - 1`.
      vocabulary: of the tokens; the first is padding.
      num_observation_tokens, num_action_tokens: of one observation, one action.
      observation: which form `TimeStep.observation` holds.
    """

    @property
    def num_actions(self) -> int:
        """A."""
        ...

    @property
    def field_sizes(self) -> tuple[int, ...]:
        """F sizes."""
        ...

    @property
    def vocabulary(self) -> tuple[str, ...]:
        """Tokens as words."""
        ...

    @property
    def num_observation_tokens(self) -> int:
        """L of an observation."""
        ...

    @property
    def num_action_tokens(self) -> int:
        """L of an action."""
        ...

    @property
    def observation(self) -> View:
        """Form of what time steps show."""
        ...

    def admissible(self, state: Any, params: Any) -> Array:
        """`[A]` bool, what can be done; nothing once the episode ended."""
        ...

    def anchor(self, state: Any, params: Any) -> Array:
        """`[W]` int32, the state in words: exact, and without the step number."""
        ...

    def observe(self, state: Any, params: Any) -> Observation:
        """What the policy is shown."""
        ...

    def action_tokens(self, params: Any) -> Array:
        """`[A, L_a]` int32, what a policy writes to take each action of the task."""
        ...

    def oracle(self, state: Any, params: Any) -> Array:
        """`[]` int32, an action that leads to success from any state that allows it."""
        ...


class WorldText(Protocol):
    """A world in words, on the host.

    States and parameters are those of one episode, as NumPy arrays.
    """

    def task(self, state: Any, params: Any) -> str:
        """What is asked, and what does not change; said once."""
        ...

    def observation(self, state: Any, params: Any) -> str:
        """What is seen now."""
        ...

    def action(self, action: int, params: Any) -> str:
        """What an action does; no two actions that are admissible at once alike."""
        ...


class RuleLanguage(Protocol):
    """What rules of a world can say: "When SITUATION, MOVE."; hashable.

    See `jerp.envs.rule_language`.

    Attributes:
      situations: phrases that go after "When", without a comma; the first, of no
        situation, is empty.
      moves: phrases of what to do then, likewise.
    """

    @property
    def situations(self) -> tuple[str, ...]:
        """S phrases."""
        ...

    @property
    def moves(self) -> tuple[str, ...]:
        """M phrases."""
        ...

    def situation(self, state: Any, params: Any) -> Array:
        """`[]` int32 in [1, S), what a state is."""
        ...

    def move(self, action: Array, situation: Array, params: Any) -> Array:
        """`[]` int32 in [1, M), what an action does there."""
        ...

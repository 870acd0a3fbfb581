"""A small world whose tasks name their actions by words of their own."""

from dataclasses import dataclass
from typing import ClassVar

import jax
import jax.numpy as jnp
from flax import struct

from jerp.envs.base import Observation, TimeStep
from jerp.typing import USAGE_KINDS, Outcome

WORDS = 12
# "left", "left twice", "stay", "down": the first begins the second.
ACTIONS = ((5, 0), (5, 6), (7, 0), (8, 9))


class Row(struct.PyTreeNode):
    """One episode: the place, and how many steps were done."""

    place: jax.Array
    step: jax.Array


@dataclass(frozen=True)
class Line:
    """A line of places; each shows as many tokens as its number, the first none.

    Tasks name their actions by other words. An episode ends at place 3.
    """

    num_actions: ClassVar[int] = 4
    num_observation_tokens: ClassVar[int] = 3
    num_action_tokens: ClassVar[int] = 2
    vocabulary: ClassVar[tuple[str, ...]] = ("",) * WORDS
    field_sizes: ClassVar[tuple[int, ...]] = (4,)
    observation: ClassVar[str] = "tokens"

    def reset(self, key, params):
        return self._now(Row(jax.random.randint(key, (), 0, 3), jnp.int32(0)), params)

    def step(self, key, state, action, params):
        del key
        place = jnp.clip(state.place + jnp.array([1, 2, 0, -1])[action], 0, 3)
        return self._now(Row(place, state.step + 1), params)

    def admissible(self, state, params):
        del params
        return (jnp.arange(4) != state.place) & (state.place < 3)

    def observe(self, state, params):
        del params
        tokens = jnp.where(jnp.arange(3) < state.place, 1 + state.place, 0)
        return Observation(fields=state.place[None], tokens=tokens)

    def action_tokens(self, params):
        tokens = jnp.asarray(ACTIONS, jnp.int32)
        return tokens + jnp.where(tokens > 0, params, 0)

    def _now(self, state, params):
        return state, TimeStep(
            observation=self.observe(state, params).tokens,
            legal=self.admissible(state, params),
            reward=jnp.zeros(()),
            terminated=state.place == 3,
            truncated=jnp.zeros((), bool),
            outcome=jnp.int32(Outcome.SUCCESS),
            score=jnp.ones(()),
            anchor=state.place,
            usage=jnp.zeros(len(USAGE_KINDS)),
        )

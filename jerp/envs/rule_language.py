"""What rules of a world can say, and in which words: When SITUATION, MOVE.

A situation is what a step looks like from the point of view of what is asked, a move is
what an action does, both in general words, without the number of any thing: a rule then
holds in other tasks of its type. A step is in one situation, and an action makes one
move. Where a policy reads small integers, a rule is the pair of their numbers.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp

from jerp.envs.base import Observation, RuleLanguage, TimeStep, View, World
from jerp.typing import Array, Key

__all__ = ["Situated", "read_sentence", "sentence"]

_SENTENCE = re.compile(r"When (?P<situation>[^,]+), (?P<move>[^,]+)\.")


def sentence(language: RuleLanguage, situation: int, move: int) -> str:
    """A rule in words.

    Raises:
      IndexError: no such situation, or move.

    Example:
      >>> from types import SimpleNamespace
      >>> words = SimpleNamespace(situations=("", "it rains"), moves=("", "stay in"))
      >>> sentence(words, 1, 1)
      'When it rains, stay in.'
    """
    return f"When {language.situations[situation]}, {language.moves[move]}."


def read_sentence(language: RuleLanguage, text: str) -> tuple[int, int] | None:
    """The situation and the move of a sentence; None if the world has no such words.

    Example:
      >>> from types import SimpleNamespace
      >>> words = SimpleNamespace(situations=("", "it rains"), moves=("", "stay in"))
      >>> read_sentence(words, "When it rains, stay in.")
      (1, 1)
      >>> read_sentence(words, "Bring an umbrella.") is None
      True
    """
    found = _SENTENCE.fullmatch(text)
    if found is None:
        return None
    situation, move = found["situation"], found["move"]
    if situation not in language.situations or move not in language.moves:
        return None
    return language.situations.index(situation), language.moves.index(move)


@dataclass(frozen=True)
class Situated:
    """A world whose observations say, in one more field, which situation a step is.

    Tokens stay as they are: words say it already.

    Attributes:
      world: what is played.
      language: of its rules.
    """

    world: World
    language: RuleLanguage

    @property
    def num_actions(self) -> int:
        """A, of the world."""
        return self.world.num_actions

    @property
    def vocabulary(self) -> tuple[str, ...]:
        """The world's."""
        return self.world.vocabulary

    @property
    def num_observation_tokens(self) -> int:
        """The world's."""
        return self.world.num_observation_tokens

    @property
    def num_action_tokens(self) -> int:
        """The world's."""
        return self.world.num_action_tokens

    @property
    def observation(self) -> View:
        """The world's."""
        return self.world.observation

    @property
    def field_sizes(self) -> tuple[int, ...]:
        """The world's, and the number of situations."""
        return (*self.world.field_sizes, len(self.language.situations))

    def reset(self, key: Key, params: Any) -> tuple[Any, TimeStep]:
        """Starts an episode. Consumes `key`."""
        return self._shown(params, *self.world.reset(key, params))

    def step(
        self, key: Key, state: Any, action: Array, params: Any
    ) -> tuple[Any, TimeStep]:
        """Plays `action`. Consumes `key`."""
        return self._shown(params, *self.world.step(key, state, action, params))

    def observe(self, state: Any, params: Any) -> Observation:
        """The world's, with the situation as last field."""
        seen = self.world.observe(state, params)
        situation = self.language.situation(state, params)
        return seen.replace(fields=jnp.append(seen.fields, situation))

    def admissible(self, state: Any, params: Any) -> Array:
        """The world's."""
        return self.world.admissible(state, params)

    def anchor(self, state: Any, params: Any) -> Array:
        """The world's: a situation is told by the state."""
        return self.world.anchor(state, params)

    def action_tokens(self, params: Any) -> Array:
        """The world's."""
        return self.world.action_tokens(params)

    def oracle(self, state: Any, params: Any) -> Array:
        """The world's."""
        return self.world.oracle(state, params)

    def moves(self, action: Array, fields: Array, params: Any) -> Array:
        """`[B, T]` int32, the moves of actions `[B, T]` that fields `[B, T, F]` show.

        Args:
          action: of episodes; one below 0, which was none, makes move 0, "none".
          fields: what was seen at the time; the last says the situation.
          params: of the task of each, leaves `[B, ...]`.
        """
        steps = jax.vmap(self.language.move, (0, 0, None))
        found = jax.vmap(steps)(action, fields[..., -1], params)
        return jnp.where(action < 0, 0, found)

    def _shown(self, params: Any, state: Any, now: TimeStep) -> tuple[Any, TimeStep]:
        seen = self.observe(state, params)
        return state, now.replace(observation=seen.shown(self.world.observation))

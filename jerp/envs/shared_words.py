"""Worlds whose words are tokens of one vocabulary, so that one policy reads them all.

Every world numbers its own words from 0 on. A decoder that lives in several of them
needs one number a word: the union of their vocabularies, in which a word that two
worlds have is one token. What is played does not change, only how it is written.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import jax.numpy as jnp
import numpy as np

from jerp.envs.base import Observation, TimeStep, View, World
from jerp.errors import ConfigError
from jerp.typing import Array, Key

__all__ = ["SharedWords", "shared_vocabulary"]

_LISTED = 3
"""Words that an error names."""


def shared_vocabulary(*vocabularies: Sequence[str]) -> tuple[str, ...]:
    """The union of vocabularies: the first one's words, then what others have besides.

    Args:
      *vocabularies: of worlds; the first word of each is padding.

    Raises:
      ConfigError: no vocabulary, or two with different padding.

    Example:
      >>> shared_vocabulary(("", "go", "take"), ("", "search", "go"))
      ('', 'go', 'take', 'search')
    """
    paddings = {words[0] if words else None for words in vocabularies}
    if len(paddings) != 1 or None in paddings:
        raise ConfigError(
            "vocabularies: expected at least one, all with one first word, padding, "
            f"got first words {sorted(map(repr, paddings))}"
        )
    return tuple(dict.fromkeys(word for words in vocabularies for word in words))


@dataclass(frozen=True)
class SharedWords:
    """A `World` that shows tokens of a larger vocabulary than its own.

    Observations and actions are the world's tokens, renamed; all else is the world's.

    Attributes:
      world: what is played.
      vocabulary: of the tokens; has all words of the world, and padding first.
    """

    world: World
    vocabulary: tuple[str, ...]

    def __post_init__(self):
        own = self.world.vocabulary
        if self.vocabulary[:1] != own[:1]:
            raise ConfigError(
                f"vocabulary: expected the world's padding {own[0]!r} first, got "
                f"{self.vocabulary[:1]}; `shared_vocabulary` makes one"
            )
        known = {*self.vocabulary}
        missing = [word for word in own if word not in known]
        if missing:
            raise ConfigError(
                f"vocabulary: expected all {len(own)} words of the world, got none of "
                f"{', '.join(map(repr, missing[:_LISTED]))}"
                f"{', ...' * (len(missing) > _LISTED)}; `shared_vocabulary` makes one"
            )

    @property
    def num_actions(self) -> int:
        """A, the world's."""
        return self.world.num_actions

    @property
    def field_sizes(self) -> tuple[int, ...]:
        """The world's; fields are not renamed."""
        return self.world.field_sizes

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
        """Tokens, whatever the world alone would show."""
        return "tokens"

    def reset(self, key: Key, params: Any) -> tuple[Any, TimeStep]:
        """Starts an episode. Consumes `key`."""
        return self._shown(params, *self.world.reset(key, params))

    def step(
        self, key: Key, state: Any, action: Array, params: Any
    ) -> tuple[Any, TimeStep]:
        """Plays `action`. Consumes `key`."""
        return self._shown(params, *self.world.step(key, state, action, params))

    def admissible(self, state: Any, params: Any) -> Array:
        """`[A]` bool, the world's."""
        return self.world.admissible(state, params)

    def anchor(self, state: Any, params: Any) -> Array:
        """`[W]` int32, the world's."""
        return self.world.anchor(state, params)

    def observe(self, state: Any, params: Any) -> Observation:
        """What the world shows, its tokens renamed."""
        seen = self.world.observe(state, params)
        return seen.replace(tokens=self._renamed(seen.tokens))

    def action_tokens(self, params: Any) -> Array:
        """`[A, L_a]` int32, the world's, renamed."""
        return self._renamed(self.world.action_tokens(params))

    def oracle(self, state: Any, params: Any) -> Array:
        """`[]` int32, the world's."""
        return self.world.oracle(state, params)

    def _shown(self, params: Any, state: Any, now: TimeStep) -> tuple[Any, TimeStep]:
        return state, now.replace(observation=self.observe(state, params).tokens)

    def _renamed(self, tokens: Array) -> Array:
        number = {word: i for i, word in enumerate(self.vocabulary)}
        names = np.asarray([number[word] for word in self.world.vocabulary], np.int32)
        return jnp.asarray(names)[tokens]

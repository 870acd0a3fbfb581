"""A world that says with every observation what can be written, as token policies need.

Which tokens name an action may differ from task to task; a policy that writes actions
(`jerp.models.token_policy`) has to be told.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from jerp.envs.base import TimeStep, World
from jerp.typing import Array, Key

__all__ = ["WithActions"]


@dataclass(frozen=True)
class WithActions:
    """An `Environment` whose observations are a dict of two arrays.

    `tokens`, `[L_o]` int32, is what `world.observe` shows, and `actions`, `[A, L_a]`
    int32, is `world.action_tokens`. All else is the world's.

    Attributes:
      world: what is played.
    """

    world: World

    def reset(self, key: Key, params: Any) -> tuple[Any, TimeStep]:
        """Starts an episode. Consumes `key`."""
        return self._shown(params, *self.world.reset(key, params))

    def step(
        self, key: Key, state: Any, action: Array, params: Any
    ) -> tuple[Any, TimeStep]:
        """Plays `action`. Consumes `key`."""
        return self._shown(params, *self.world.step(key, state, action, params))

    def _shown(self, params: Any, state: Any, now: TimeStep) -> tuple[Any, TimeStep]:
        shown = {
            "tokens": self.world.observe(state, params).tokens,
            "actions": self.world.action_tokens(params),
        }
        return state, now.replace(observation=shown)

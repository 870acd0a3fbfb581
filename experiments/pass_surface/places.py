"""The worlds of the study in one vocabulary, and the decoder that lives in them.

Questions are asked in `lookup`; `tools` and `house` are there to see what training on
questions makes a policy forget. Parameters are the same tree for every world and every
budget of look-ups: what differs is how long an episode may be, and what may be written.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache, partial
from typing import Any

import jax
import numpy as np

from experiments.pass_surface.config import FAILURE, TRAINED_LIMIT
from jerp.envs.base import World
from jerp.envs.house import house_small
from jerp.envs.house_tasks import house_tasks
from jerp.envs.lookup import Lookup
from jerp.envs.lookup_tasks import lookup_tasks
from jerp.envs.shared_words import SharedWords, shared_vocabulary
from jerp.envs.tools import Tools
from jerp.envs.tools_tasks import tools_tasks
from jerp.models.presets import tiny_decoder
from jerp.models.token_policy import TokenPolicy
from jerp.typing import Key

__all__ = ["LOOKUP", "Place", "place_named"]

LOOKUP = Lookup(forced=True, observation="tokens")
"""At the cap one forced answer without look-ups: searches are inadmissible by then."""

HOUSE_STEPS, TOOLS_STEPS = 12, 16
"""Budgets of the other worlds, within which their oracles are done."""


@dataclass(frozen=True)
class Place:
    """Where episodes are played.

    Attributes:
      name: of the world.
      env: it, in the words of all.
      draw: `(key, number, split=) -> tasks`.
      num_steps: budget of an episode.
    """

    name: str
    env: SharedWords
    draw: Callable[..., Any]
    num_steps: int

    def tasks(self, key: Key, number: int, split: str) -> Any:
        """Tasks of a split, leaves `[number, ...]`."""
        return self.draw(key, number, split=split)

    def policy(
        self, *, num_steps: int | None = None, value: bool = False
    ) -> TokenPolicy:
        """The decoder, for episodes of at most `num_steps` steps.

        Args:
          num_steps: the place's own if None.
          value: with a value head.
        """
        actions = np.asarray(self.env.action_tokens(None)).tolist()
        return TokenPolicy(
            tiny_decoder(len(self.env.vocabulary)),
            self.env.num_observation_tokens,
            self.env.num_action_tokens,
            self.num_steps if num_steps is None else num_steps,
            actions=tuple(map(tuple, actions)),
            value=value,
        )


@cache
def place_named(world: str) -> Place:
    """The place of a world: "lookup", "tools" or "house".

    The same each time, so that programs are compiled once for all jobs of a process.
    """
    house = replace(house_small(), horizon=HOUSE_STEPS)
    worlds: dict[str, World] = {
        "lookup": LOOKUP,
        "tools": Tools(horizon=TOOLS_STEPS),
        "house": house,
    }
    lookup = partial(
        lookup_tasks, size=LOOKUP.size, limit=TRAINED_LIMIT, failure=FAILURE
    )
    draws = {
        # One program compiles faster than its many operations.
        "lookup": jax.jit(lookup, static_argnums=1, static_argnames="split"),
        "tools": tools_tasks,
        "house": partial(house_tasks, size=house.size),
    }
    steps = {"lookup": TRAINED_LIMIT + 1, "tools": TOOLS_STEPS, "house": HOUSE_STEPS}
    words = shared_vocabulary(*(one.vocabulary for one in worlds.values()))
    env = SharedWords(worlds[world], words)
    return Place(world, env, draws[world], steps[world])

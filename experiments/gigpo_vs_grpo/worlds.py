"""The worlds of the comparison, with a small decoder for each."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from jerp.envs.base import World
from jerp.envs.house import house_small
from jerp.envs.house_tasks import house_tasks
from jerp.envs.shop import Shop
from jerp.envs.shop_tasks import shop_tasks
from jerp.models.step_policy import StepPolicy, step_policy
from jerp.typing import Key

__all__ = ["WORLDS", "Place", "place_named"]

WORLDS: Mapping[str, tuple[int, ...]] = {"house": (10, 20, 30), "shop": (5, 10, 15)}
"""Worlds, and the horizons of their PASS@(k, T); the last one is the step budget."""


@dataclass(frozen=True)
class Place:
    """Where episodes are played.

    Attributes:
      env: the world.
      draw: `(key, number, split=) -> tasks`.
    """

    env: World
    draw: Any

    def tasks(self, key: Key, number: int, split: str) -> Any:
        """Tasks of a split, leaves `[number, ...]`."""
        return self.draw(key, number, split=split)

    def policy(self, *, value: bool = False) -> StepPolicy:
        """The decoder; with `value`, with a value head."""
        env = self.env
        steps: int = env.horizon  # pyright: ignore[reportAttributeAccessIssue]
        return step_policy(
            env.field_sizes, env.num_actions, num_steps=steps, value=value
        )


def place_named(world: str) -> Place:
    """The place of one of `WORLDS`."""
    if world == "house":
        house = house_small()
        return Place(house, partial(house_tasks, size=house.size))
    shop = Shop()
    return Place(shop, partial(shop_tasks, size=shop.size))

"""The worlds of the experiment, with words for rules and a small decoder for each."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, partial
from typing import Any

import jax
import numpy as np

from jerp.envs.house import house_small
from jerp.envs.house_rules import TASK_TYPES, HouseRules
from jerp.envs.house_tasks import house_tasks
from jerp.envs.house_things import HouseTask
from jerp.envs.rule_language import Situated
from jerp.envs.shop import Shop
from jerp.envs.shop_rules import SHOP_TYPES, ShopRules, shop_type
from jerp.envs.shop_tasks import shop_tasks
from jerp.models.step_policy import StepPolicy, step_policy
from jerp.typing import Array, Key

__all__ = ["NUM_RULES", "Place", "place_named"]

NUM_RULES = 8
"""R, rules in a prompt."""


@dataclass(frozen=True)
class Place:
    """Where episodes are played, and whose rules are learned.

    Attributes:
      name: of the world.
      env: says of every step which situation it is.
      types: names of the types of tasks; each has a pool.
      held: those whose own rules are never in a prompt of the demonstrations.
      draw: `(key, number, split=) -> tasks`.
      type_of: `tasks -> [N]` int32.
      horizon: step budget of an episode.
    """

    name: str
    env: Situated
    types: tuple[str, ...]
    held: tuple[int, ...]
    draw: Callable[..., Any]
    type_of: Callable[[Any], Array]
    horizon: int

    @property
    def rule_sizes(self) -> tuple[int, int]:
        """Situations and moves of the language."""
        language = self.env.language
        return len(language.situations), len(language.moves)

    def policy(self) -> StepPolicy:
        """The decoder, which reads rules before an episode."""
        return step_policy(
            self.env.field_sizes,
            self.env.num_actions,
            num_steps=self.horizon,
            rule_sizes=self.rule_sizes,
            num_rules=NUM_RULES,
        )

    def tasks(self, key: Key, number: int, split: str) -> Any:
        """Tasks of a split, leaves `[number, ...]`."""
        return self.draw(key, number, split=split)

    def keys_of(self, tasks: Any) -> np.ndarray:
        """`[N]` int32, the type of each task."""
        return np.asarray(self.type_of(tasks), np.int32)


@cache
def place_named(world: str) -> Place:
    """The place of a world: "house" or "shop".

    The same each time, so that programs are compiled once for all jobs of a process.
    """
    if world == "house":
        house = house_small()
        return Place(
            name=world,
            env=Situated(house, HouseRules(house.size)),
            types=TASK_TYPES,
            held=(HouseTask.HEAT, HouseTask.COOL),
            draw=partial(house_tasks, size=house.size),
            type_of=_house_type,
            horizon=house.horizon,
        )
    shop = Shop()
    return Place(
        name=world,
        env=Situated(shop, ShopRules(shop.size)),
        types=SHOP_TYPES,
        held=(len(SHOP_TYPES) - 2, len(SHOP_TYPES) - 1),
        draw=partial(shop_tasks, size=shop.size),
        type_of=jax.jit(jax.vmap(shop_type)),
        horizon=shop.horizon,
    )


def _house_type(tasks: Any) -> Array:
    return tasks.task

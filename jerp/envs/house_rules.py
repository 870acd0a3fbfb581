"""What rules of a household can say: when a hand is empty, or holds what is wanted.

What a task asks for is "what is wanted"; it is "ready" once it is treated as asked, and
of the tasks that ask for no treatment always, but to look at it: that is done under the
lamp. So the same words serve six types of tasks, and the one thing that a type has of
its own is where something is made ready: rules are kept by type.
"""

from __future__ import annotations

from dataclasses import dataclass

import jax.numpy as jnp

from jerp.envs.bits import has_bit
from jerp.envs.house_state import (
    Glance,
    HouseParams,
    HouseState,
    asked_treatment,
    glance,
)
from jerp.envs.house_things import (
    CLOSE,
    FRIDGE,
    LAMP,
    MICROWAVE,
    OPEN,
    PLACES,
    PUT,
    SINK,
    USE,
    HouseSize,
    HouseTask,
)
from jerp.typing import Array

__all__ = ["TASK_TYPES", "HouseRules"]

TASK_TYPES = ("pick", "look", "clean", "heat", "cool", "pick two")
"""By `HouseTask`; the keys of rule pools."""

_SITUATIONS = (
    "",
    "your hand is empty and what is wanted is within reach",
    "your hand is empty and what is wanted lies where it belongs",
    "your hand is empty and you stand before something closed",
    "your hand is empty and what is wanted is not in sight",
    "you hold something that is not wanted",
    "you hold what is wanted unready before a closed fridge",
    "you hold what is wanted unready before a closed microwave",
    "you hold what is wanted unready at the open fridge",
    "you hold what is wanted unready at the open microwave",
    "you hold what is wanted unready at the sink",
    "you hold what is wanted unready at the desk",
    "you hold what is wanted unready somewhere else",
    "you hold what is wanted ready where it belongs and it is closed",
    "you hold what is wanted ready where it belongs",
    "you hold what is wanted ready somewhere else",
)
(
    _REACH,
    _PLACED,
    _CLOSED,
    _SEARCH,
    _OTHER,
    _SHUT_FRIDGE,
    _SHUT_MICROWAVE,
    _AT_FRIDGE,
    _AT_MICROWAVE,
    _AT_SINK,
    _AT_LAMP,
    _UNREADY,
    _SHUT_GOAL,
    _AT_GOAL,
    _READY,
) = range(1, len(_SITUATIONS))

_MOVES = (
    "",
    *(f"go to a {place.name}" for place in PLACES),
    "go where it belongs",
    "take what is wanted",
    "take something else",
    "put it down",
    "open it",
    "close it",
    "use it",
)
_GO = 1
_BELONGS, _TAKE, _TAKE_OTHER, _VERB = (
    len(PLACES) + 1,
    len(PLACES) + 2,
    len(PLACES) + 3,
    len(PLACES) + 4,
)
assert (PUT, OPEN, CLOSE, USE) == (0, 1, 2, 3)  # the order of the last four moves


@dataclass(frozen=True)
class HouseRules:
    """A `jerp.envs.base.RuleLanguage` of homes of one size."""

    size: HouseSize

    @property
    def situations(self) -> tuple[str, ...]:
        """What a step can look like."""
        return _SITUATIONS

    @property
    def moves(self) -> tuple[str, ...]:
        """What an action can do."""
        return _MOVES

    def situation(self, state: HouseState, params: HouseParams) -> Array:
        """`[]` int32, see `situations`; a function of what is seen and asked."""
        now = glance(self.size, state, params)
        wanted = now.hand - 1 == params.goal_kind
        looks = params.task == HouseTask.LOOK
        asked = asked_treatment(params.task)
        ready = ((now.hand_treated & asked) == asked) & ~looks
        at_goal = has_bit(params.goal_bits, state.at) & ~looks
        held = jnp.where(ready, _when_ready(now, at_goal), _when_unready(now, state.at))
        held = jnp.where(wanted, held, _OTHER)
        empty = self._when_empty(now, params, at_goal)
        return jnp.where(now.hand > 0, held, empty).astype(jnp.int32)

    def move(self, action: Array, situation: Array, params: HouseParams) -> Array:
        """`[]` int32, see `moves`; who carries what is ready goes where it belongs."""
        places = len(self.size.places)
        place = jnp.minimum(action, places - 1)
        go = _GO + jnp.asarray(self.size.places, jnp.int32)[place]
        brings = (situation == _READY) & has_bit(params.goal_bits, place)
        go = jnp.where(brings, _BELONGS, go)
        kind = action - places
        take = jnp.where(kind == params.goal_kind, _TAKE, _TAKE_OTHER)
        verb = _VERB + kind - self.size.num_kinds
        other = jnp.where(kind < self.size.num_kinds, take, verb)
        return jnp.where(action < places, go, other).astype(jnp.int32)

    def _when_empty(self, now: Glance, params: HouseParams, at_goal: Array) -> Array:
        in_sight = has_bit(now.seen, params.goal_kind)
        found = jnp.where(at_goal, _PLACED, _REACH)
        return jnp.where(in_sight, found, jnp.where(now.shut, _CLOSED, _SEARCH))


def _when_ready(now: Glance, at_goal: Array) -> Array:
    there = jnp.where(now.shut, _SHUT_GOAL, _AT_GOAL)
    return jnp.where(at_goal, there, _READY)


def _when_unready(now: Glance, at: Array) -> Array:
    fridge = jnp.where(now.shut, _SHUT_FRIDGE, _AT_FRIDGE)
    microwave = jnp.where(now.shut, _SHUT_MICROWAVE, _AT_MICROWAVE)
    found = jnp.where(at == FRIDGE, fridge, _UNREADY)
    found = jnp.where(at == MICROWAVE, microwave, found)
    found = jnp.where(at == SINK, _AT_SINK, found)
    return jnp.where(at == LAMP, _AT_LAMP, found)

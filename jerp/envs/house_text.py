"""A household in words, on the host, from one row of NumPy arrays.

`describe` says what is seen and not what is in the hand, as games of this kind do:
`describe_hand` says that. A reader who is shown the first alone cannot tell states
apart that differ in the second.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

import numpy as np

from jerp.envs.house_state import HouseParams, HouseState
from jerp.envs.house_things import (
    OBJECTS,
    PLACES,
    ROOMS,
    TREATMENTS,
    HouseSize,
    HouseTask,
)

__all__ = [
    "HouseText",
    "describe",
    "describe_action",
    "describe_hand",
    "describe_task",
]

TASK_TEXTS = {
    HouseTask.PICK: "Put a {kind} in or on a {place}.",
    HouseTask.LOOK: "Look at a {kind} under the lamp of the {place}.",
    HouseTask.CLEAN: "Put a clean {kind} in or on a {place}.",
    HouseTask.HEAT: "Put a hot {kind} in or on a {place}.",
    HouseTask.COOL: "Put a cold {kind} in or on a {place}.",
    HouseTask.PICK_TWO: "Put two {kind}s in or on one {place}.",
}
VERB_TEXTS = ("put it down", "open it", "close it", "use it")


@dataclass(frozen=True)
class HouseText:
    """A `jerp.envs.base.WorldText` of homes of one size; the hand is shown as well."""

    size: HouseSize

    def task(self, state: HouseState, params: HouseParams) -> str:
        """See `describe_task`."""
        del state
        return describe_task(params, size=self.size)

    def observation(self, state: HouseState, params: HouseParams) -> str:
        """See `describe` and `describe_hand`."""
        return (
            f"{describe(state, params, size=self.size)} "
            f"{describe_hand(state, params, size=self.size)}"
        )

    def action(self, action: int, params: HouseParams) -> str:
        """See `describe_action`."""
        return describe_action(action, params, size=self.size)


def describe_task(params: HouseParams, *, size: HouseSize) -> str:
    """What is to be done, and the places that there are, room by room.

    Args:
      params: one row, NumPy.
      size: of the home.
    """
    text = TASK_TEXTS[HouseTask(int(params.task))].format(
        kind=OBJECTS[int(params.goal_kind)].name,
        place=PLACES[int(params.goal_place)].name,
    )
    lines = [text]
    for room, name in enumerate(ROOMS):
        there = [
            _place_name(size, i)
            for i in range(len(size.places))
            if int(params.present) >> i & 1 and int(params.room[i]) == room
        ]
        if there:
            lines.append(f"In the {name}: {', '.join(there)}.")
    return "\n".join(lines)


def describe(state: HouseState, params: HouseParams, *, size: HouseSize) -> str:
    """Where one stands, and what can be seen there.

    Args:
      state: of one episode, NumPy.
      params: its row.
      size: of the home.
    """
    at = int(state.at)
    if at == len(size.places):
        return "You stand in the hall."
    text = f"You stand at the {_place_name(size, at)} in the "
    text += f"{ROOMS[int(params.room[at])]}."
    if size.openable >> at & 1:
        if not int(state.open) >> at & 1:
            return f"{text} It is closed."
        text += " It is open."
    here = np.flatnonzero(np.asarray(state.place) == at)
    number = Counter(OBJECTS[int(params.kind[i])].name for i in here)
    seen = [name if n == 1 else f"{name} ({n})" for name, n in sorted(number.items())]
    return f"{text} You see: {', '.join(seen) or 'nothing'}."


def describe_hand(state: HouseState, params: HouseParams, *, size: HouseSize) -> str:
    """What one carries, and how it is."""
    held = np.flatnonzero(np.asarray(state.place) == len(size.places) + 1)
    if not len(held):
        return "Your hand is empty."
    treated = TREATMENTS[int(state.treated[held[0]])]
    words = [] if treated == TREATMENTS[0] else treated.split()
    name = OBJECTS[int(params.kind[held[0]])].name
    return f"You hold: {' '.join([*words, name])}."


def describe_action(action: int, params: HouseParams, *, size: HouseSize) -> str:
    """What an action does, the same in every home."""
    del params
    kind = int(action) - len(size.places)
    if kind < 0:
        return f"go to the {_place_name(size, int(action))}"
    if kind < size.num_kinds:
        return f"take a {OBJECTS[kind].name}"
    return VERB_TEXTS[kind - size.num_kinds]


def _place_name(size: HouseSize, index: int) -> str:
    """With its ordinal, where there may be several of the kind."""
    name, kind = PLACES[size.places[index]].name, size.places[index]
    several = size.places.count(kind) > 1
    return f"{name} {size.ordinals[index]}" if several else name

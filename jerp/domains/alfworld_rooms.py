"""Rooms with furniture and things, drawn by what the package says may lie where."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from random import Random
from typing import Any

__all__ = ["Room", "draw_room", "problem"]

FURNITURE = {
    "kitchen": {
        **{"Cabinet": 4, "Drawer": 3, "CounterTop": 2, "StoveBurner": 2, "Shelf": 1},
        **{"DiningTable": 1, "Fridge": 1, "Microwave": 1, "SinkBasin": 1},
        **{"GarbageCan": 1, "CoffeeMachine": 1},
    },
    "bedroom": {
        **{"Bed": 1, "Desk": 1, "Drawer": 4, "Shelf": 3, "SideTable": 2, "Dresser": 1},
        **{"GarbageCan": 1, "Safe": 1, "LaundryHamper": 1},
    },
    "bathroom": {
        **{"SinkBasin": 2, "BathtubBasin": 1, "Cabinet": 4, "CounterTop": 1},
        **{"Toilet": 1, "Shelf": 2, "GarbageCan": 1, "HandTowelHolder": 1},
    },
    "living room": {
        **{"Sofa": 1, "ArmChair": 2, "CoffeeTable": 1, "SideTable": 2, "Drawer": 3},
        **{"Cabinet": 2, "Dresser": 1, "TVStand": 1, "GarbageCan": 1, "Safe": 1},
    },
}
"""Most pieces of each kind; at least one is there."""

LAMP_STANDS = ("Desk", "SideTable", "Dresser", "CoffeeTable")
"""Where there is one of these a lamp is on it."""

THINGS = 14
"""In a room, besides the lamp."""

KINDS = 7
"""Most kinds of these, so that there are often two of one."""


@dataclass(frozen=True)
class Room:
    """A room at the start.

    Attributes:
      places: kind of each piece of furniture, which are numbered from 0.
      things: kind of each thing, and the number of the piece where it lies.
    """

    places: tuple[str, ...]
    things: tuple[tuple[str, int], ...]

    def number_of(self, kind: str) -> int:
        """Things of a kind."""
        return sum(thing == kind for thing, _ in self.things)

    def has(self, kind: str, place: str) -> bool:
        """Whether such a thing lies in such a place."""
        return any(t == kind and self.places[at] == place for t, at in self.things)


def draw_room(random: Random, name: str, known: Any) -> Room:
    """A room of a kind; nothing lies in it that is cut, or that could hold others.

    Args:
      random: draws it.
      name: one of `FURNITURE`.
      known: the package's constants.
    """
    places = [
        kind
        for kind, most in FURNITURE[name].items()
        for _ in range(random.randint(1, most))
    ]
    fits = {
        (thing, at)
        for at, place in enumerate(places)
        for thing in known.VAL_RECEPTACLE_OBJECTS[place]
        if not thing.endswith("Sliced") and thing not in known.VAL_RECEPTACLE_OBJECTS
    }
    possible = sorted({thing for thing, _ in fits})
    kinds = random.sample(possible, k=min(KINDS, len(possible)))
    drawn = [random.choice(kinds) for _ in range(THINGS)]
    things = [
        random.choice(sorted(fit for fit in fits if fit[0] == kind)) for kind in drawn
    ]
    stands = [at for at, place in enumerate(places) if place in LAMP_STANDS]
    if stands:
        things.append(("DeskLamp", random.choice(stands)))
    return Room(tuple(places), tuple(sorted(things)))


def problem(room: Room, goal: str, known: Any) -> str:
    """The room and a goal in the planner's language.

    Args:
      room: at the start, with the agent in its middle.
      goal: which closes the definition.
      known: the package's constants.
    """
    rtypes = {*room.places, "SinkBasin", "Microwave", "Fridge"}
    otypes = {*(thing for thing, _ in room.things), "Knife", "ButterKnife"}
    declared = [
        "agent1 - agent",
        *(f"loc{at} - location" for at in range(len(room.places) + 1)),
        *(f"{name} - receptacle" for name in _names(room.places)),
        *(f"{name} - object" for name in _names(thing for thing, _ in room.things)),
        *(f"{kind}Type - rtype" for kind in sorted(rtypes)),
        *(f"{kind}Type - otype" for kind in sorted(otypes)),
    ]
    facts = ["atLocation agent1 loc0", *_facts(room, known)]
    facts += [
        f"canContain {place}Type {thing}Type"
        for place in sorted(rtypes)
        for thing in sorted(otypes & {*known.VAL_RECEPTACLE_OBJECTS[place]})
    ]
    return "\n".join(
        [
            "(define (problem room) (:domain alfred)",
            *("(:objects", *declared, ")"),
            *("(:init", "(= (total-cost) 0)", *(f"({fact})" for fact in facts), ")"),
            goal,
        ]
    )


def _facts(room: Room, known: Any) -> Iterator[str]:
    places = list(_names(room.places))
    for at, (name, kind) in enumerate(zip(places, room.places, strict=True)):
        yield f"receptacleAtLocation {name} loc{at + 1}"
        yield f"receptacleType {name} {kind}Type"
        if kind in known.OPENABLE_CLASS_LIST:
            yield f"openable {name}"
    names = _names(thing for thing, _ in room.things)
    for name, (kind, at) in zip(names, room.things, strict=True):
        yield f"objectType {name} {kind}Type"
        yield f"objectAtLocation {name} loc{at + 1}"
        yield f"inReceptacle {name} {places[at]}"
        able = known.VAL_ACTION_OBJECTS
        if kind not in able["Toggleable"]:
            yield f"pickupable {name}"
        for ability in ("Toggleable", "Cleanable", "Heatable", "Coolable", "Sliceable"):
            if kind in able[ability]:
                yield f"{ability.lower()} {name}"


def _names(kinds: Iterable[str]) -> Iterator[str]:
    """Names in the official form, of which the package makes `apple 1` and the like."""
    for number, kind in enumerate(kinds):
        basin = kind.endswith("Basin")
        yield f"{kind.removesuffix('Basin')}_bar_{number:03d}" + "_bar_basin" * basin

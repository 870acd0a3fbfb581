"""What there is in a household: places, kinds of objects, tasks, and homes of a size.

Numbers here are positions in the tuples. A place of a home is a kind of place and an
ordinal, such as the second cabinet; the first four places of every home are the
appliances. Treatments are bits, since an object can be cold and clean at once.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from itertools import combinations
from typing import NamedTuple

__all__ = [
    "CLEAN",
    "CLOSE",
    "COLD",
    "FRIDGE",
    "HOT",
    "LAMP",
    "MICROWAVE",
    "NUM_APPLIANCES",
    "NUM_VERBS",
    "OBJECTS",
    "OPEN",
    "PLACES",
    "PUT",
    "ROOMS",
    "SINK",
    "TREATMENTS",
    "USE",
    "HouseSize",
    "HouseTask",
    "ObjectKind",
    "PlaceKind",
]

HOT, COLD, CLEAN = 1, 2, 4
TREATMENTS = ("plain", "hot", "cold", "", "clean", "hot clean", "cold clean")
"""By the bits of the treatments; hot and cold exclude each other."""

ROOMS = ("kitchen", "living room", "bedroom", "bathroom")


class HouseTask(IntEnum):
    """What is to be done with an object of the goal kind."""

    PICK = 0
    LOOK = 1
    CLEAN = 2
    HEAT = 3
    COOL = 4
    PICK_TWO = 5


class PlaceKind(NamedTuple):
    """A kind of place; `rooms` are those it may stand in."""

    name: str
    openable: bool
    rooms: tuple[int, ...]


class ObjectKind(NamedTuple):
    """A kind of object: what can be done to it, and the places it is often found in."""

    name: str
    treatments: int
    usual: tuple[str, ...]


PLACES = (
    PlaceKind("fridge", True, (0,)),
    PlaceKind("microwave", True, (0,)),
    PlaceKind("sink", False, (0, 3)),
    PlaceKind("desk", False, (1, 2)),
    PlaceKind("cabinet", True, (0, 3)),
    PlaceKind("drawer", True, (0, 1, 2)),
    PlaceKind("shelf", False, (1, 2, 3)),
    PlaceKind("table", False, (0, 1)),
    PlaceKind("counter", False, (0, 3)),
    PlaceKind("sofa", False, (1,)),
    PlaceKind("bed", False, (2,)),
    PlaceKind("dresser", True, (2,)),
)
FRIDGE, MICROWAVE, SINK, LAMP = range(4)
NUM_APPLIANCES = 4
"""The fridge cools, the microwave heats, the sink cleans, the desk has a lamp."""

PUT, OPEN, CLOSE, USE = range(4)
NUM_VERBS = 4
"""Actions after those that go to a place and those that take a kind."""

OBJECTS = (
    ObjectKind("apple", HOT | COLD | CLEAN, ("fridge", "counter", "table")),
    ObjectKind("mug", HOT | COLD | CLEAN, ("cabinet", "sink", "desk")),
    ObjectKind("plate", HOT | COLD | CLEAN, ("cabinet", "sink", "table")),
    ObjectKind("spoon", CLEAN, ("drawer", "sink", "table")),
    ObjectKind("potato", HOT | COLD | CLEAN, ("fridge", "microwave", "counter")),
    ObjectKind("book", 0, ("shelf", "sofa", "bed")),
    ObjectKind("pen", 0, ("drawer", "desk", "shelf")),
    ObjectKind("phone", 0, ("sofa", "table", "dresser")),
    ObjectKind("bread", HOT | COLD, ("fridge", "counter", "table")),
    ObjectKind("tomato", HOT | COLD | CLEAN, ("fridge", "sink", "counter")),
    ObjectKind("bowl", HOT | COLD | CLEAN, ("cabinet", "microwave", "shelf")),
    ObjectKind("fork", CLEAN, ("drawer", "sink", "counter")),
    ObjectKind("towel", CLEAN, ("cabinet", "bed", "dresser")),
    ObjectKind("cushion", 0, ("sofa", "bed", "dresser")),
    ObjectKind("clock", 0, ("shelf", "desk", "dresser")),
    ObjectKind("key", 0, ("drawer", "sofa", "table")),
)


@dataclass(frozen=True)
class HouseSize:
    """How large homes are.

    Attributes:
      places: `N` indices in `PLACES`, one a place that a home may have, appliances
        first. A home lacks two of the others; which, is its family of layouts.
      num_kinds: C; objects are of the first C kinds of `OBJECTS`.
      num_objects: K, in every home.
    """

    places: tuple[int, ...]
    num_kinds: int
    num_objects: int

    @property
    def ordinals(self) -> tuple[int, ...]:
        """`N` numbers from 1: the how-manieth of its kind each place is."""
        return tuple(
            self.places[: i + 1].count(kind) for i, kind in enumerate(self.places)
        )

    @property
    def openable(self) -> int:
        """Bits of the places that can be opened and closed."""
        return sum(
            1 << i for i, kind in enumerate(self.places) if PLACES[kind].openable
        )

    @property
    def families(self) -> tuple[int, ...]:
        """Bits of the places that homes of each family have."""
        everything = (1 << len(self.places)) - 1
        others = range(NUM_APPLIANCES, len(self.places))
        return tuple(
            everything & ~(1 << i) & ~(1 << j) for i, j in combinations(others, 2)
        )

    def kinds_with(self, treatment: int) -> int:
        """Bits of the kinds of objects that `treatment` can be done to."""
        kinds = OBJECTS[: self.num_kinds]
        return sum(1 << i for i, k in enumerate(kinds) if k.treatments & treatment)

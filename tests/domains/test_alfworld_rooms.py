"""Rooms for ALFWorld: what lies where, and how that is said to the planner."""

from random import Random
from types import SimpleNamespace

import pytest

from jerp.domains.alfworld_rooms import FURNITURE, Room, draw_room, problem

KNOWN = SimpleNamespace(
    VAL_RECEPTACLE_OBJECTS={
        **{kind: ["Mug"] for room in FURNITURE.values() for kind in room},
        **{"SinkBasin": ["Mug", "Apple", "AppleSliced"], "Desk": ["Box", "Book"]},
        **{"Fridge": ["Apple"], "Microwave": ["Apple"], "Box": ["Mug"]},
    },
    VAL_ACTION_OBJECTS={
        **{"Toggleable": ["DeskLamp"], "Cleanable": ["Mug", "Apple"]},
        **{"Heatable": ["Apple"], "Coolable": [], "Sliceable": ["Apple"]},
    },
    OPENABLE_CLASS_LIST=["Fridge", "Drawer"],
)


@pytest.mark.parametrize("name", FURNITURE)
def test_things_lie_where_they_may(name):
    rooms = [draw_room(Random(seed), name, KNOWN) for seed in range(20)]
    for room in rooms:
        assert set(room.places) == set(FURNITURE[name])
        for thing, at in room.things:
            if thing != "DeskLamp":
                assert thing in KNOWN.VAL_RECEPTACLE_OBJECTS[room.places[at]]
        assert not {"Box", "AppleSliced"} & {thing for thing, _ in room.things}
        lamps = room.number_of("DeskLamp")
        assert lamps == (name in ("bedroom", "living room"))
    assert rooms[0] == draw_room(Random(0), name, KNOWN) != rooms[1]


def test_what_is_where():
    room = Room(("Desk", "Fridge", "Desk"), (("Mug", 0), ("Mug", 2), ("Apple", 1)))
    assert (room.number_of("Mug"), room.number_of("Egg")) == (2, 0)
    assert room.has("Mug", "Desk") and room.has("Apple", "Fridge")
    assert not room.has("Mug", "Fridge")


def test_a_problem_by_hand():
    room = Room(("Fridge", "SinkBasin"), (("Apple", 1), ("DeskLamp", 0)))
    lines = problem(room, "(:goal ()))", KNOWN).splitlines()
    assert lines[0] == "(define (problem room) (:domain alfred)"
    init = lines.index("(:init")
    assert lines[1:init] == [
        *("(:objects", "agent1 - agent"),
        *(f"loc{i} - location" for i in range(3)),
        *("Fridge_bar_000 - receptacle", "Sink_bar_001_bar_basin - receptacle"),
        *("Apple_bar_000 - object", "DeskLamp_bar_001 - object"),
        *(f"{kind}Type - rtype" for kind in ("Fridge", "Microwave", "SinkBasin")),
        *(f"{k}Type - otype" for k in ("Apple", "ButterKnife", "DeskLamp", "Knife")),
        ")",
    ]
    assert lines[init:] == [
        *("(:init", "(= (total-cost) 0)", "(atLocation agent1 loc0)"),
        "(receptacleAtLocation Fridge_bar_000 loc1)",
        "(receptacleType Fridge_bar_000 FridgeType)",
        "(openable Fridge_bar_000)",
        "(receptacleAtLocation Sink_bar_001_bar_basin loc2)",
        "(receptacleType Sink_bar_001_bar_basin SinkBasinType)",
        "(objectType Apple_bar_000 AppleType)",
        "(objectAtLocation Apple_bar_000 loc2)",
        "(inReceptacle Apple_bar_000 Sink_bar_001_bar_basin)",
        "(pickupable Apple_bar_000)",
        *("(cleanable Apple_bar_000)", "(heatable Apple_bar_000)"),
        "(sliceable Apple_bar_000)",
        "(objectType DeskLamp_bar_001 DeskLampType)",
        "(objectAtLocation DeskLamp_bar_001 loc1)",
        "(inReceptacle DeskLamp_bar_001 Fridge_bar_000)",
        "(toggleable DeskLamp_bar_001)",
        "(canContain FridgeType AppleType)",
        "(canContain MicrowaveType AppleType)",
        "(canContain SinkBasinType AppleType)",
        *(")", "(:goal ()))"),
    ]

"""What schemas alone say of calls."""

import pytest

from jerp.domains.benchmark import Call, ToolSpec
from jerp.domains.tool_use.checks import draft_faults
from jerp.domains.tool_use.conversation import Draft

TOOLS = [
    ToolSpec(
        "move",
        "Moves.",
        {
            "type": "object",
            "properties": {
                "to": {"type": "string"},
                "times": {"type": "integer"},
                "far": {"type": ["number", "null"]},
                "loud": {"type": "boolean"},
                "how": {},
            },
            "required": ["to"],
        },
    ),
    ToolSpec("look", "Looks."),
]


@pytest.mark.parametrize(
    "arguments",
    [
        {"to": "a"},
        {"to": "a", "times": 2, "far": 1.5, "loud": True, "how": [1]},
        {"to": "a", "far": None},
        {"to": "a", "far": 3},
    ],
)
def test_calls_as_declared_have_no_fault(arguments):
    assert draft_faults(Draft(calls=(Call("move", arguments),)), TOOLS) == {}


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ({}, "move needs the argument 'to'"),
        ({"to": 1}, "move: to should be string, got 1"),
        ({"to": "a", "times": 1.5}, "move: times should be integer, got 1.5"),
        ({"to": "a", "times": True}, "move: times should be integer, got True"),
        ({"to": "a", "by": 1}, "move has no argument 'by'"),
    ],
)
def test_what_is_wrong_is_named(arguments, told):
    faults = draft_faults(Draft(calls=(Call("move", arguments),)), TOOLS)
    assert faults == {"arguments": told}


def test_each_kind_of_fault_has_a_name():
    calls = (Call("fly", {}), Call("move", {}), Call("look", {"x": 1}))
    assert draft_faults(Draft(calls=calls), TOOLS) == {
        "known-tools": "there is no tool 'fly'",
        "arguments": "move needs the argument 'to'; look has no argument 'x'",
    }
    assert draft_faults(Draft(fault="cut off"), TOOLS) == {"readable": "cut off"}
    assert "nothing is said" in draft_faults(Draft(), TOOLS)["readable"]
    assert draft_faults(Draft("Done."), TOOLS) == {}

"""What can be said of calls before they are made, from the tools' schemas alone."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from jerp.domains.benchmark import Call, ToolSpec
from jerp.domains.tool_use.conversation import Draft

__all__ = ["CHECKS", "draft_faults"]

CHECKS = ("readable", "known-tools", "arguments")
"""What is looked at, in this order."""

_TYPES: Mapping[str, tuple[type, ...]] = {
    "string": (str,),
    "integer": (int,),
    "number": (int, float),
    "boolean": (bool,),
    "array": (list, tuple),
    "object": (dict,),
    "null": (type(None),),
}


def draft_faults(draft: Draft, tools: Sequence[ToolSpec]) -> dict[str, str]:
    """By name of the check what is wrong, in words; empty where nothing is.

    Args:
      draft: any.
      tools: that may be called.

    Example:
      >>> draft_faults(Draft(calls=(Call("ad", {}),)), [ToolSpec("add", "Adds.")])
      {'known-tools': "there is no tool 'ad'"}
    """
    if draft.fault:
        return {"readable": draft.fault}
    if not draft.calls and not draft.words:
        return {"readable": "nothing is said or called"}
    known = {tool.name: tool for tool in tools}
    faults: dict[str, list[str]] = {}
    for call in draft.calls:
        if call.tool not in known:
            unknown = f"there is no tool {call.tool!r}"
            faults.setdefault("known-tools", []).append(unknown)
            continue
        wrong = [*_argument_faults(call, known[call.tool].parameters)]
        if wrong:
            faults.setdefault("arguments", []).extend(wrong)
    return {name: "; ".join(found) for name, found in faults.items()}


def _argument_faults(call: Call, schema: Mapping[str, Any]) -> Iterator[str]:
    """Names, whether all that are required are there, and types at the first level."""
    expected = schema.get("properties", {})
    for name in schema.get("required", ()):
        if name not in call.arguments:
            yield f"{call.tool} needs the argument {name!r}"
    for name, value in call.arguments.items():
        if name not in expected:
            yield f"{call.tool} has no argument {name!r}"
        elif not _fits(value, expected[name].get("type")):
            kind = expected[name]["type"]
            yield f"{call.tool}: {name} should be {kind}, got {value!r}"


def _fits(value: Any, kinds: Any) -> bool:
    """Whether a value has a JSON type, one of several, or any where none is said."""
    names = [kinds] if isinstance(kinds, str) else kinds or []
    types = [kind for name in names for kind in _TYPES.get(name, (object,))]
    if not types:
        return True
    if isinstance(value, bool):  # an int to Python, not to JSON
        return bool in types or object in types
    return isinstance(value, tuple(types))

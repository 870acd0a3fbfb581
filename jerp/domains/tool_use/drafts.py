"""What an executor wrote, read as calls of tools or as words.

Calls come in either of two ways: in the protocol's own form, or as text, for models and
servers that know no tools: a JSON list of `{"tool": …, "arguments": {…}}`. Nothing is
repaired: what is no such list, and what was cut off, is a draft with a fault.
"""

from __future__ import annotations

import json
import re
from typing import Any

from jerp.bridge.executor import Completion
from jerp.domains.benchmark import Call
from jerp.domains.tool_use.conversation import Draft

__all__ = ["read_draft"]

_BLOCK = re.compile(r"```(?:json)?\s*\n(.*?)```", re.DOTALL)
_THOUGHT = re.compile(r"\A\s*<think>.*?</think>", re.DOTALL)


def read_draft(completion: Completion) -> Draft:
    """The draft in a completion that was not lost on the way.

    Args:
      completion: with calls in the protocol's form, or in its text.

    Example:
      >>> read_draft(Completion('[{"tool": "add", "arguments": {"x": 1}}]')).calls
      (Call(tool='add', arguments={'x': 1}),)
      >>> read_draft(Completion("It is done.")).words
      'It is done.'
    """
    text = _THOUGHT.sub("", completion.text).strip()
    if completion.status != "ok":
        return Draft(text, fault=f"the answer was {completion.status}")
    if completion.tool_calls:
        faults = [call.fault for call in completion.tool_calls if call.fault]
        if faults:
            return Draft(text, fault=faults[0])
        calls = (Call(c.name, c.parsed or {}) for c in completion.tool_calls)
        return Draft(text, tuple(calls))
    block = _BLOCK.search(text)
    written = (block[1] if block else text).strip()
    if not written.startswith(("[", "{")):
        return Draft(text)
    calls = _calls(written)
    if calls is None:
        return Draft(text, fault="expected a JSON list of calls, got something else")
    return Draft(text[: block.start()].strip() if block else "", calls)


def _calls(written: str) -> tuple[Call, ...] | None:
    """Calls in text that has to be all JSON; None where it is not, or has none."""
    try:
        found = json.loads(written)
    except (ValueError, RecursionError):
        return None
    records = found if isinstance(found, list) else [found]
    calls = [_call(record) for record in records]
    return tuple(calls) if calls and None not in calls else None  # pyright: ignore


def _call(record: Any) -> Call | None:
    """By our own keys, or those that models were trained to write."""
    if not isinstance(record, dict):
        return None
    name = record.get("tool", record.get("name"))
    arguments = record.get("arguments", record.get("parameters", {}))
    if not isinstance(name, str) or not isinstance(arguments, dict):
        return None
    return Call(name, arguments)

"""What an executor is asked: who it is, which tools there are, what was said and done.

The conversation is that of a chat. Called natively, tools and calls go in the
protocol's own fields; as text they stand in the messages, for models and servers that
know no tools.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence

from jerp.bridge.executor import Message
from jerp.bridge.tools import Tool, ToolCall
from jerp.domains.benchmark import Call, ToolSpec
from jerp.domains.tool_use.conversation import Conversation, Turn

__all__ = ["described", "native_messages", "native_tools", "text_messages"]

HOW = (
    "You do tasks for a user with tools. Do what is asked, and no more. When a request "
    "is done, or cannot be done, say so to the user in words."
)
HOW_IN_TEXT = (
    "To call tools, answer with nothing but a JSON list of calls, such as "
    '[{"tool": "name", "arguments": {"argument": 1}}]; you are told what they return. '
    "Any other answer is said to the user."
)
AGAIN = "Not done, because a check found: {}. Write it again."


def described(tool: ToolSpec) -> str:
    """A tool with its arguments, on a line.

    Example:
      >>> described(ToolSpec("add", "Adds."))
      'add: Adds. Arguments: {}'
    """
    arguments = json.dumps(tool.parameters.get("properties", {}), ensure_ascii=False)
    required = ", ".join(tool.parameters.get("required", ()))
    needed = f" Required: {required}." if required else ""
    return f"{tool.name}: {tool.description} Arguments: {arguments}{needed}"


def text_messages(
    talk: Conversation, policy: str, *, feedback: str | None
) -> tuple[Message, ...]:
    """The chat with tools and calls as text.

    Args:
      talk: so far.
      policy: of the benchmark, for the executor; may be empty.
      feedback: what a check found of the draft in hand, which is to be written anew.
    """
    names = ", ".join(tool.name for tool in talk.tools)
    parts = [HOW, HOW_IN_TEXT, policy, f"Tools: {names}"]
    parts += [described(tool) for tool in talk.shown]
    messages = [Message("system", "\n".join(filter(None, parts)))]
    messages.append(Message("user", talk.opening))
    for turn in talk.turns:
        messages.append(Message("assistant", str(turn.draft)))
        messages.append(Message("user", "\n".join(turn.replies) or "(nothing)"))
    if feedback is not None:
        messages.append(Message("assistant", str(talk.draft)))
        messages.append(Message("user", AGAIN.format(feedback)))
    return tuple(messages)


def native_messages(
    talk: Conversation, policy: str, *, feedback: str | None
) -> tuple[Message, ...]:
    """The chat with calls in the protocol's own form; see `text_messages`."""
    messages = [Message("system", "\n".join(filter(None, (HOW, policy))))]
    messages.append(Message("user", talk.opening))
    for number, turn in enumerate(talk.turns):
        messages += _native_turn(turn, number)
    if feedback is not None:
        told = AGAIN.format(feedback)
        replies = (told,) * max(len(talk.draft.calls), 1)
        messages += _native_turn(Turn(talk.draft, replies), len(talk.turns))
    return tuple(messages)


def native_tools(tools: Sequence[ToolSpec]) -> tuple[Tool, ...]:
    """Tools in the protocol's own form."""
    return tuple(
        Tool(t.name, t.description, json.dumps(t.parameters, ensure_ascii=False))
        for t in tools
    )


def _native_turn(turn: Turn, number: int) -> Iterator[Message]:
    """An assistant's message and what came of it."""
    draft = turn.draft
    if not draft.calls:
        yield Message("assistant", draft.words)
        yield Message("user", turn.replies[0] or "(nothing)")
        return
    # An episode that ended in the middle of its calls is asked for no more.
    calls = [_native_call(c, number, i) for i, c in enumerate(draft.calls)]
    yield Message("assistant", draft.words, tuple(calls))
    for call, reply in zip(calls, turn.replies, strict=True):
        yield Message("tool", reply, tool_call_id=call.call_id)


def _native_call(call: Call, turn: int, index: int) -> ToolCall:
    arguments = json.dumps(call.arguments, sort_keys=True, ensure_ascii=False)
    return ToolCall(call.tool, arguments, f"call_{turn}_{index}")

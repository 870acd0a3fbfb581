"""What was said and done in an episode, as values: drafts, turns, the conversation."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace

from jerp.domains.benchmark import Call, Move, Say, ToolSpec
from jerp.records import Verdict

__all__ = ["Conversation", "Draft", "Turn", "call_text"]


def call_text(call: Call) -> str:
    """A call as text, the same for equal calls.

    Example:
      >>> call_text(Call("add", {"y": 2, "x": 1}))
      '{"tool": "add", "arguments": {"x": 1, "y": 2}}'
    """
    arguments = json.dumps(call.arguments, sort_keys=True, ensure_ascii=False)
    return f'{{"tool": {json.dumps(call.tool)}, "arguments": {arguments}}}'


@dataclass(frozen=True)
class Draft:
    """What an executor proposes to do: to call tools, or else to say something.

    Attributes:
      words: that are said; beside calls, a thought that nobody hears.
      calls: that are made, in this order.
      fault: why it is neither, such as calls that were cut off; nothing is executed.
    """

    words: str = ""
    calls: tuple[Call, ...] = ()
    fault: str = ""

    @property
    def moves(self) -> tuple[Move, ...]:
        """What carrying it out comes to; calls of a faulty draft are words."""
        return self.calls or (Say(self.words),)

    def __str__(self) -> str:
        """The calls as a JSON list, or the words."""
        if not self.calls:
            return self.words
        return f"[{', '.join(map(call_text, self.calls))}]"


@dataclass(frozen=True)
class Turn:
    """A draft that was carried out.

    Attributes:
      draft: as it was.
      replies: to its moves; an episode that ends has fewer.
      errors: of the replies, those that say so.
    """

    draft: Draft
    replies: tuple[str, ...]
    errors: int = 0


@dataclass(frozen=True)
class Conversation:
    """An episode so far.

    Attributes:
      opening: what was said first.
      tools: that may be called now.
      turns: of the executor.
      brought: names of the tools that it was told of.
      draft: that is in hand.
      verdict: once it is over.
    """

    opening: str
    tools: tuple[ToolSpec, ...]
    turns: tuple[Turn, ...] = ()
    brought: frozenset[str] = frozenset()
    draft: Draft = Draft()
    verdict: Verdict | None = None

    @property
    def moves(self) -> tuple[Move, ...]:
        """All that were made."""
        return tuple(
            move
            for turn in self.turns
            for move in turn.draft.moves[: len(turn.replies)]
        )

    @property
    def heard(self) -> str:
        """What was said last to the executor."""
        said = (t.replies[-1] for t in reversed(self.turns) if not t.draft.calls)
        return next((words for words in said if words), self.opening)

    @property
    def shown(self) -> tuple[ToolSpec, ...]:
        """The tools that may be called and were brought."""
        return tuple(tool for tool in self.tools if tool.name in self.brought)

    def carried_out(self, turn: Turn, tools: tuple[ToolSpec, ...]) -> Conversation:
        """After a turn, with nothing in hand."""
        return replace(self, turns=(*self.turns, turn), tools=tools, draft=Draft())

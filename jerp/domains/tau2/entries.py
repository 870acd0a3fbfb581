"""What tau2's worker tells of a domain: policy, tools, tasks and their references."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import groupby
from typing import Any, Literal

from jerp.domains.benchmark import Call, Move, Say, ToolSpec

__all__ = ["Domain", "Entry", "read_domain"]

PLEASE = "Please do now what has to be done on your side."
DONE = "It is done."


@dataclass(frozen=True)
class Entry:
    """One task.

    Attributes:
      key: official identifier.
      scenario: who the user is and what they want, as the official simulator is told.
      known: of it, why they call and what they know.
      actions: the reference, in order, and whose each is.
      communicate: what the agent has to say, word for word.
      basis: official parts of the score.
    """

    key: str
    scenario: str
    known: str
    actions: tuple[tuple[Literal["assistant", "user"], Call], ...]
    communicate: tuple[str, ...]
    basis: tuple[str, ...]

    @property
    def user_turns(self) -> tuple[tuple[Call, ...], ...]:
        """What the user does whenever the agent has said something.

        Nothing, the last time, where the agent's own actions are the last ones.
        """
        turns = tuple(calls for by, calls in self._parts if by == "user")
        return turns if self._ends_with_user else (*turns, ())

    @property
    def oracle(self) -> tuple[Move, ...]:
        """The agent's actions; words where it is the user's turn, and in the end."""
        moves: list[Move] = []
        for by, calls in self._parts:
            moves += calls if by == "assistant" else [Say(PLEASE)]
        last = " ".join((DONE, *self.communicate))
        return (*(moves[:-1] if self._ends_with_user else moves), Say(last))

    @property
    def _ends_with_user(self) -> bool:
        return bool(self._parts) and self._parts[-1][0] == "user"

    @cached_property
    def _parts(self) -> list[tuple[str, tuple[Call, ...]]]:
        """Actions of one side that follow each other, together."""
        return [
            (by, tuple(call for _, call in own))
            for by, own in groupby(self.actions, key=lambda action: action[0])
        ]


@dataclass(frozen=True)
class Domain:
    """A domain of tau2.

    Attributes:
      version: of the package.
      policy: what the agent has to keep to.
      greeting: with which the agent opens every conversation.
      guidelines: of the official user simulator.
      signs: words of a user that end a conversation: all is done, handed over to a
        person, not provided for in the scenario.
      tools: of the agent.
      user_tools: of the user.
      entries: tasks by official identifier.
      splits: identifiers by name.
    """

    version: str
    policy: str
    greeting: str
    guidelines: str
    signs: tuple[str, ...]
    tools: tuple[ToolSpec, ...]
    user_tools: tuple[ToolSpec, ...]
    entries: Mapping[str, Entry]
    splits: Mapping[str, Sequence[str]]


def read_domain(told: Mapping[str, Any]) -> Domain:
    """A domain, as the worker tells it when it is ready."""
    entries = [_entry(record) for record in told["tasks"]]
    return Domain(
        version=told["version"],
        policy=told["policy"],
        greeting=told["greeting"],
        guidelines=told["guidelines"],
        signs=tuple(told["signs"]),
        tools=tuple(ToolSpec(**tool) for tool in told["tools"]),
        user_tools=tuple(ToolSpec(**tool) for tool in told["user_tools"]),
        entries={entry.key: entry for entry in entries},
        splits=told["splits"],
    )


def _entry(record: Mapping[str, Any]) -> Entry:
    return Entry(
        key=record["id"],
        scenario=record["scenario"],
        known="\n".join(filter(None, record["known"])),
        actions=tuple(
            (action["by"], Call(action["tool"], action["arguments"]))
            for action in record["actions"]
        ),
        communicate=tuple(record["communicate"]),
        basis=tuple(record["basis"]),
    )

"""Who the agent talks to: a simulator on any executor, or a script for checks.

A user is a function of the scene and of what was said so far, so that one may take part
in many episodes at a time. It says something, or calls tools of its own and is asked
again when they have returned. Words with one of the scene's signs end the conversation.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol, get_args

from jerp.bridge.blocking import wait_for
from jerp.bridge.executor import (
    Completion,
    Executor,
    Message,
    Request,
    Sampling,
    complete_checked,
)
from jerp.bridge.tools import Tool, ToolCall
from jerp.domains.benchmark import Call, ToolSpec
from jerp.errors import ConfigError
from jerp.ops.checks import check_choice

__all__ = ["ExecutorUser", "Line", "Scene", "ScriptedUser", "User", "UserMove"]

Guidelines = Literal["own", "official"]

ROLE = (
    "You play a customer who writes to a company. The messages you get are from its "
    "assistant. Below stands who you are and what you want. Write one short message at "
    "a time, in your own words, as this customer would. What does not stand below you "
    "do not know: invent nothing. Tell what you are asked for, and not all at once."
)
TOOLS = (
    "Your tools are what you can do on your own side, such as on your phone. Call one "
    "when the assistant asks for something that needs it, one at a time, and tell only "
    "what it returned. A message is either words or a call."
)
SIGNS = (
    "When all that you want is done, or was refused for good, write {}. When you are "
    "handed over to a person, write {}. When nothing below says how to go on, write {}."
)


@dataclass(frozen=True)
class Line:
    """One line of a conversation, as far as the user takes part in it.

    Attributes:
      by: `tool` is what a tool of the user returned.
      text: what was said or returned.
      calls: of a user's line without words.
    """

    by: Literal["agent", "user", "tool"]
    text: str = ""
    calls: tuple[Call, ...] = ()


@dataclass(frozen=True)
class Scene:
    """What a user knows before anything is said.

    Attributes:
      scenario: who they are and what they want.
      tools: that they may call.
      guidelines: of the official simulator.
      signs: that end a conversation: all is done, handed over, not provided for.
      seed: of the episode.
      known: of the scenario, why they call and what they know.
      turns: what the reference has the user do when the agent has said something; for
        scripts alone.
    """

    scenario: str
    tools: tuple[ToolSpec, ...]
    guidelines: str
    signs: tuple[str, ...]
    seed: int
    known: str
    turns: tuple[tuple[Call, ...], ...]


@dataclass(frozen=True)
class UserMove:
    """What a user does next.

    Attributes:
      text: that is said.
      calls: that are made; then nothing is said.
      fault: why it is neither: the user failed, and no agent can be judged by that.
    """

    text: str = ""
    calls: tuple[Call, ...] = ()
    fault: str = ""


class User(Protocol):
    """Whoever the agent talks to; asked from several threads."""

    def answer(self, scene: Scene, talk: Sequence[Line]) -> UserMove:
        """The next move, to an agent's line or what tools returned."""
        ...


class ScriptedUser:
    """A stand-in: tells all at once, and does what the reference has the user do.

    When the agent says something it makes the calls that come next in the reference;
    where none are left, it says yes to questions and ends at anything else. It says
    itself that it is a script. Scores with it are not comparable with published ones.

    Args:
      patience: most questions that it answers before the conversation ends.
    """

    OPENING = "I am a script that plays a customer, and this is all that I can tell. "
    DONE = "I have done what I had to do. Please go on."
    YES = "Yes, please go on with what I asked for. I can tell no more."
    BYE = "Thank you, that is all."

    def __init__(self, *, patience: int = 5):
        if patience < 0:
            raise ConfigError(f"patience: expected at least 0, got {patience}")
        self._patience = patience

    def answer(self, scene: Scene, talk: Sequence[Line]) -> UserMove:
        """The next move of the script."""
        said = [line.text for line in talk if line.by == "user" and not line.calls]
        if not said:
            return UserMove(self.OPENING + scene.known)
        turn = said.count(self.DONE)
        part, made = scene.turns[turn], _calls_at_the_end(talk)
        if made < len(part):
            return UserMove(calls=(part[made],))
        asked = not part and "?" in talk[-1].text
        if asked and said.count(self.YES) < self._patience:
            return UserMove(self.YES)
        if turn + 1 < len(scene.turns):
            return UserMove(self.DONE)
        return UserMove(f"{self.BYE} {scene.signs[0]}")


class ExecutorUser:
    """A simulator on any executor, by its native tool calls where it has tools.

    Args:
      executor: plays the user; its failures are the user's, not the agent's.
      sampling: of its messages; None draws up to 256 tokens at a temperature of 0.
      guidelines: `own` words of ours, or `official` those of the package.
    """

    def __init__(
        self,
        executor: Executor,
        *,
        sampling: Sampling | None = None,
        guidelines: Guidelines = "own",
    ):
        check_choice("guidelines", guidelines, get_args(Guidelines))
        self._executor, self._guidelines = executor, guidelines
        self._sampling = sampling or Sampling(temperature=0.0, max_tokens=256)

    def answer(self, scene: Scene, talk: Sequence[Line]) -> UserMove:
        """What the executor writes in the user's place.

        Raises:
          ExecutorError: the executor is misconfigured or failed as a whole.
        """
        request = Request(
            (Message("system", self._prompt(scene)), *_messages(talk)),
            self._sampling,
            scene.seed,
            tools=tuple(
                Tool(t.name, t.description, json.dumps(t.parameters))
                for t in scene.tools
            ),
        )
        [completion] = wait_for(complete_checked(self._executor, [request]))
        return _move(completion)

    def _prompt(self, scene: Scene) -> str:
        if self._guidelines == "official":
            parts = [scene.guidelines]
        else:
            tools = [TOOLS] if scene.tools else []
            parts = [ROLE, *tools, SIGNS.format(*scene.signs)]
        return "\n".join([*parts, "<scenario>", scene.scenario, "</scenario>"])


def _calls_at_the_end(talk: Sequence[Line]) -> int:
    """Calls that the user made since the agent spoke."""
    made = 0
    for line in reversed(talk):
        if line.by == "agent":
            break
        made += len(line.calls)
    return made


def _messages(talk: Sequence[Line]) -> Iterator[Message]:
    """The conversation with roles exchanged: the executor is the user."""
    number = 0
    waiting: list[str] = []
    for line in talk:
        if line.by == "agent":
            yield Message("user", line.text)
        elif line.by == "tool":
            yield Message("tool", line.text, tool_call_id=waiting.pop(0))
        else:
            calls = []
            for call in line.calls:
                number += 1
                waiting.append(f"call_{number}")
                arguments = json.dumps(call.arguments, sort_keys=True)
                calls.append(ToolCall(call.tool, arguments, waiting[-1]))
            yield Message("assistant", line.text, tuple(calls))


def _move(completion: Completion) -> UserMove:
    if completion.status != "ok":
        told = f": {completion.error}" if completion.error else ""
        return UserMove(fault=f"the user's answer was {completion.status}{told}")
    faults = [call.fault for call in completion.tool_calls if call.fault]
    if faults:
        return UserMove(fault=f"a call of the user is malformed: {faults[0]}")
    if completion.tool_calls:
        calls = (Call(c.name, c.parsed or {}) for c in completion.tool_calls)
        return UserMove(calls=tuple(calls))
    return UserMove(completion.text)

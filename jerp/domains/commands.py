"""Worlds that take a command in words and answer in words, as sessions."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from jerp.domains.benchmark import Call, Move, Reply, ToolSpec
from jerp.records import Criterion, Verdict

__all__ = [
    "CommandSession",
    "IdleWorlds",
    "Outcome",
    "command",
    "end_java",
    "until_over",
]

ACT = ToolSpec(
    "act",
    "Does what a command says.",
    {
        "type": "object",
        "properties": {"command": {"type": "string"}},
        "required": ["command"],
    },
)


@dataclass(frozen=True)
class Outcome:
    """What a command brought.

    Attributes:
      text: of the world.
      score: of the episode so far, by the world, in [0, 1].
      success: the task is done.
      ended: by success, failure, or because the steps are used up.
      known: the world knew the command.
    """

    text: str
    score: float
    success: bool
    ended: bool
    known: bool = True


def command(text: str) -> Call:
    """The move that gives a command."""
    return Call(ACT.name, {"command": text})


def until_over(path: Sequence[str], act: Callable[[str], bool]) -> list[str]:
    """The part of a reference that is needed: some go on after the task is done.

    Args:
      path: commands.
      act: carries one out in a world at its start, and says whether that is over.
    """
    for number, line in enumerate(path, 1):
        if act(line):
            return list(path[:number])
    return list(path)


class CommandSession:
    """One episode.

    Args:
      opening: the task and what is seen at the start.
      act: carries a command out.
      release: called once, when the episode is closed.
      admissible: the commands that the world takes now, where it knows them.
    """

    tools = (ACT,)

    def __init__(
        self,
        opening: str,
        act: Callable[[str], Outcome],
        release: Callable[[], None],
        *,
        admissible: Callable[[], Iterable[str]] = tuple,
    ):
        self._opening, self._act, self._release = opening, act, release
        self._admissible = admissible
        self._last = Outcome(opening, 0.0, False, False)
        self._closed = False

    @property
    def opening(self) -> str:
        """The task and what is seen at the start."""
        return self._opening

    @property
    def admissible(self) -> tuple[str, ...]:
        """Commands that the world takes now; none if it cannot tell, or at the end."""
        over = self._closed or self._last.ended
        return () if over else tuple(self._admissible())

    def move(self, move: Move) -> Reply:
        """Gives a command; words that are none, and all else, are errors."""
        if self._closed or self._last.ended:
            return Reply("The episode is over.", error=True, ended=True)
        arguments = dict(move.arguments) if isinstance(move, Call) else {}
        text = arguments.pop("command", None)
        named = isinstance(move, Call) and move.tool == ACT.name
        if not named or arguments or not isinstance(text, str):
            return Reply("Call act with a command.", error=True)
        line = " ".join(text.split())
        if not line or len(line) > 1000 or not line.isprintable():
            return Reply("A command is one line of words.", error=True)
        self._last = self._act(line)
        error = not self._last.known
        return Reply(self._last.text, error=error, ended=self._last.ended)

    def score(self) -> Verdict:
        """The world's own score of the episode so far."""
        last = self._last
        return Verdict((Criterion("score", last.score, 1.0),), last.success)

    def close(self) -> None:
        """Gives the world back."""
        if self._closed:
            return
        self._closed = True
        release = self._release
        # A world that is still held when Python ends complains of it.
        del self._act, self._admissible, self._release
        release()


World = TypeVar("World")


class IdleWorlds(Generic[World]):
    """Worlds that take long to start, kept for the next episode.

    Args:
      start: starts one.
      end: ends one.
    """

    def __init__(self, start: Callable[[], World], end: Callable[[World], None]):
        self._start, self._end, self._closed = start, end, False
        self._idle: list[World] = []

    def take(self) -> World:
        """One that nobody else has."""
        with suppress(IndexError):  # another thread may be faster
            return self._idle.pop()
        return self._start()

    def give(self, world: World) -> None:
        """Hands one back, whatever state it is in."""
        if self._closed:
            self._end(world)
        else:
            self._idle.append(world)

    def close(self) -> None:
        """Ends those that are idle, and later those that come back."""
        self._closed = True
        while self._idle:
            self._end(self._idle.pop())


def end_java(world: Any) -> None:
    """Ends a world that runs in a process of Java, which its package leaves behind."""
    process = world._gateway.java_process
    world.close()
    try:
        process.wait(timeout=10)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
    for pipe in (process.stdin, process.stdout, process.stderr):
        if pipe is not None:
            pipe.close()

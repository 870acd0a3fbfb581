"""Games that TextWorld's engine plays, as sessions: its own, and those of ALFWorld."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import Any

from jerp.domains.commands import CommandSession, Outcome

__all__ = ["WANTED", "TextGame"]

WANTED = (
    *("admissible_commands", "description", "feedback", "max_score", "moves"),
    *("objective", "score", "won"),
)
"""What the engine has to tell of a game."""

ASKED = {"goal", "help", "score"}
"""Commands that are answered and are no moves."""

META = {
    *("brief", "normal", "notify", "noscript", "oops", "q", "quit", "restart"),
    *("restore", "save", "script", "short", "superbrief", "transcript", "undo"),
    *("unscript", "verbose", "verify", "version"),
}
"""Words to the interpreter instead of the game: some of them write files."""


class TextGame:
    """One episode of a game.

    Args:
      world: an environment of the engine that has loaded the game, and was asked to
        tell what `WANTED` names.
      max_steps: commands that an episode may take.
    """

    def __init__(self, world: Any, *, max_steps: int):
        self._world, self._left = world, max_steps
        self._state = world.reset()

    @property
    def state(self) -> Any:
        """What the engine tells now."""
        return self._state

    def session(self, opening: str, end: Callable[[], None]) -> CommandSession:
        """The episode as a session, which ends the world by `end`."""
        return CommandSession(opening, self.act, end, admissible=self.admissible)

    def admissible(self) -> Iterable[str]:
        """Commands that would be moves now."""
        return self._state["admissible_commands"]

    def act(self, line: str) -> Outcome:
        """Carries a command out."""
        self._left -= 1
        if _to_the_interpreter(line):
            return self._told("That is no command of the game.", known=False)
        before = self._state["moves"]
        self._state, _, _ = self._world.step(line)
        moved = self._state["moves"] > before
        return self._told(self._state["feedback"].strip(), known=moved or line in ASKED)

    def _told(self, text: str, *, known: bool) -> Outcome:
        state = self._state
        return Outcome(
            text=text,
            score=max(0, state.get("score") or 0) / (state.get("max_score") or 1),
            success=bool(state["won"]),
            ended=bool(state["won"] or state["lost"]) or self._left <= 0,
            known=known,
        )


def _to_the_interpreter(line: str) -> bool:
    words = re.split(r"[\s.,;]+", line.lower())
    return not META.isdisjoint(words) or any(word.startswith("tw-") for word in words)

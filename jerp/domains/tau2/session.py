"""One conversation of tau2: an agent, a user, an environment in the worker."""

from __future__ import annotations

import itertools
import json
from collections.abc import Mapping
from contextlib import suppress
from typing import Any, Literal

from jerp.domains.apart import Apart
from jerp.domains.benchmark import Call, Move, Reply, ToolSpec
from jerp.domains.tau2.entries import Domain, Entry
from jerp.domains.tau2.user import Line, Scene, User, UserMove
from jerp.errors import InfrastructureError
from jerp.records import Criterion, Verdict

__all__ = ["EndedBy", "Tau2Session", "WorkerEpisode"]

EndedBy = Literal["", "user", "limit", "user-fault"]
"""`user` ends it as the protocol has it; agents cannot. With `user-fault` the user
failed: nobody is judged."""

MAX_STEPS = 200
MAX_ERRORS = 10
"""The official limits: messages of agent, user and tools, and calls that failed."""

LEFT_OUT = "NL_ASSERTION"
LONGEST = 100_000

_NUMBERS = itertools.count()


class WorkerEpisode:
    """An episode in the worker, told anew where the worker has lost it.

    It keeps a limited number, and none that it had when it died: one tool that hangs
    costs no other episode its state.

    Args:
      apart: the worker.
      task: official identifier.
    """

    def __init__(self, apart: Apart, task: str):
        self._apart, self._task = apart, task
        self._number = next(_NUMBERS)
        self._told: list[Mapping[str, Any]] = []

    def say(self, by: str, text: str) -> None:
        """Has words taken down."""
        self._tell({"do": "say", "by": by, "text": text})

    def call(self, by: str, call: Call) -> tuple[str, bool]:
        """What a tool returned, and whether that is an error."""
        request = {"do": "call", "by": by, "tool": call.tool}
        answer = self._tell({**request, "arguments": dict(call.arguments)})
        return answer["text"], answer["error"]

    def score(self) -> Mapping[str, Any]:
        """The official judgement of a conversation that the user ended."""
        return self._ask({"do": "score"})

    def close(self) -> None:
        """Has the worker forget it, if it still runs."""
        if self._apart.running:
            with suppress(InfrastructureError):
                self._apart.ask({"do": "close", "episode": self._number})

    def _tell(self, request: Mapping[str, Any]) -> Any:
        answer = self._ask(request)
        self._told.append(request)
        return answer

    def _ask(self, request: Mapping[str, Any]) -> Any:
        number = {"episode": self._number}
        answer = self._apart.ask({**request, **number})
        if "lost" not in answer:
            return answer
        self._apart.ask({"do": "open", "task": self._task, **number})
        for told in (*self._told, request):
            answer = self._apart.ask({**told, **number})
        if "lost" in answer:
            raise InfrastructureError(f"{self._task}: the worker keeps losing it")
        return answer


class Tau2Session:
    """One conversation. The user ends it; until then nothing is scored.

    Attributes:
      ended_by: see `EndedBy`; empty while it goes on.
      fault: why the user failed, where it did.
      policy: what the agent has to keep to; it is not part of the opening.

    Args:
      domain: of the task.
      entry: the task.
      episode: of the worker.
      user: answers.
      seed: of the user.
    """

    def __init__(
        self,
        domain: Domain,
        entry: Entry,
        episode: WorkerEpisode,
        user: User,
        seed: int,
    ):
        self._domain, self._entry, self._user = domain, entry, user
        self._episode = episode
        self._scene = Scene(
            scenario=entry.scenario,
            tools=domain.user_tools,
            guidelines=domain.guidelines,
            signs=domain.signs,
            seed=seed,
            known=entry.known,
            turns=entry.user_turns,
        )
        self._talk = [Line("agent", domain.greeting)]
        self._steps = self._errors = 0
        self._verdict: Verdict | None = None
        self._closed = False
        self.ended_by: EndedBy = ""
        self.fault = ""
        self.policy = domain.policy
        self._opening = self._hear()

    @property
    def opening(self) -> str:
        """The user's first words, to the agent's official greeting."""
        return self._opening

    @property
    def tools(self) -> tuple[ToolSpec, ...]:
        """The agent's."""
        return self._domain.tools

    def move(self, move: Move) -> Reply:
        """Calls a tool, or says something and hears what the user answers.

        Raises:
          InfrastructureError: the worker died or hung; the move was not made.
        """
        if self._closed or self.ended_by:
            return Reply("The conversation is over.", error=True, ended=True)
        if isinstance(move, Call):
            return self._call(move)
        text = _clean(move.text)
        if not text.strip() or len(text) > LONGEST:
            return Reply("Say something, at most 100,000 characters.", error=True)
        self._episode.say("assistant", text)
        self._talk.append(Line("agent", text))
        self._count(1, errors=0)
        return self._reply(self._hear())

    def score(self) -> Verdict:
        """A criterion for each official part of the score; a success needs them all.

        As officially a conversation that the user did not end has failed.

        Raises:
          InfrastructureError: the user failed, so that nobody can be judged; or the
            worker died or hung.
        """
        if self.ended_by == "user-fault":
            raise InfrastructureError(f"{self._entry.key}: {self.fault}")
        if self.ended_by != "user":
            why = "out of steps, or too many errors" if self.ended_by else "broken off"
            return self._judged(0.0, {}, why)
        if self._verdict is None:
            found = self._episode.score()
            self._verdict = self._judged(found["reward"], found["parts"], "")
        return self._verdict

    def close(self) -> None:
        """Has the worker forget the episode."""
        if not self._closed:
            self._closed = True
            self._episode.close()

    def _call(self, call: Call) -> Reply:
        arguments = _arguments(call)
        if isinstance(arguments, str):
            return Reply(arguments, error=True)
        made = Call(_clean(call.tool), arguments)
        text, error = self._episode.call("assistant", made)
        self._count(2, errors=error)
        return self._reply(text, error=error)

    def _hear(self) -> str:
        """What the user says, after calls of tools of its own."""
        while not self.ended_by:
            move = self._user.answer(self._scene, tuple(self._talk))
            if fault := self._fault(move):
                self.ended_by, self.fault = "user-fault", fault
            elif not move.calls:
                return self._heard(_clean(move.text))
            else:
                self._use_tools(move.calls)
        return ""

    def _heard(self, text: str) -> str:
        self._episode.say("user", text)
        self._talk.append(Line("user", text))
        self._count(1, errors=0)
        if any(sign in text for sign in self._domain.signs):
            self.ended_by = "user"
        return text

    def _use_tools(self, calls: tuple[Call, ...]) -> None:
        self._talk.append(Line("user", calls=calls))
        errors = 0
        for call in calls:
            text, error = self._episode.call("user", call)
            self._talk.append(Line("tool", text))
            errors += error
        self._count(2, errors=errors)

    def _fault(self, move: UserMove) -> str:
        """Why a user's move cannot be made; empty where it can."""
        if move.fault:
            return move.fault
        if not move.calls:
            said = bool(move.text.strip()) and len(move.text) <= LONGEST
            return "" if said else "the user said nothing, or far too much"
        own = {tool.name for tool in self._domain.user_tools}
        for call in move.calls:
            if call.tool not in own:
                return f"the user called {call.tool!r}, which is no tool of the user"
            if isinstance(_arguments(call), str):
                return f"the user called {call.tool} with arguments that are no JSON"
        return ""

    def _count(self, steps: int, *, errors: int) -> None:
        self._steps += steps
        self._errors += errors
        if self._steps >= MAX_STEPS or self._errors >= MAX_ERRORS:
            self.ended_by = "limit"

    def _reply(self, text: str, *, error: bool = False) -> Reply:
        if self.ended_by == "user-fault":
            return Reply("The user gave no answer.", error=True, ended=True)
        return Reply(text, error=error, ended=bool(self.ended_by))

    def _judged(
        self, reward: float, parts: Mapping[str, Any], otherwise: str
    ) -> Verdict:
        criteria = []
        for name in self._entry.basis:
            score, detail = parts.get(name, (0.0, otherwise))
            weight = 1.0
            if name == LEFT_OUT:
                weight, detail = 0.0, "left out: it needs a language model as a judge"
            criteria.append(Criterion(name, score, weight, False, detail))
        return Verdict(tuple(criteria), reward >= 1)


def _clean(text: str) -> str:
    """Without halves of characters, which no other program would take."""
    return text.encode(errors="replace").decode()


def _arguments(call: Call) -> dict[str, Any] | str:
    """Arguments as JSON has them, or why they cannot be."""
    try:
        text = json.dumps(dict(call.arguments), allow_nan=False, ensure_ascii=False)
        arguments = json.loads(_clean(text))
    except (TypeError, ValueError, RecursionError) as error:
        return f"Arguments are values of JSON: {error}"
    if len(text) > LONGEST:
        return "Arguments are at most 100,000 characters."
    # Its tool evaluates them, whatever it says: a tower of powers never ends.
    if call.tool == "calculate" and "**" in text:
        return "calculate knows +, -, * and /."
    return arguments

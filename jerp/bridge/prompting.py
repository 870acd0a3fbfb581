"""How a frozen chat model is asked for the next action of a world, and is understood.

A prompt tells the task, what was done and seen so far, and what can be done now; the
model answers with one of these actions, in its words, after a thought if the style asks
for one. An answer is read strictly: what is not of that form is no action. Rules and
notes are quoted data (see `jerp.bridge.rule_prompt`), and so are a model's thoughts.

Reference: Yao et al., "ReAct: Synergizing Reasoning and Acting in Language Models",
  arXiv:2210.03629, for thoughts before actions; the words are our own.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, NamedTuple, get_args

from jerp.bridge.executor import Completion, Message, Request, Sampling
from jerp.bridge.rule_prompt import rules_block
from jerp.ops.checks import check_choice, check_count
from jerp.rules.text import quoted

__all__ = [
    "NOT_UNDERSTOOD",
    "Answer",
    "Log",
    "Prompting",
    "Style",
    "Turn",
    "read_answer",
    "read_command",
]

Style = Literal["plain", "react"]

MAX_THOUGHT = 300
"""Characters of a thought that later prompts show."""

NOT_UNDERSTOOD = (
    "(That was not understood, and nothing happened. Answer in the form that was asked "
    "for, with one of the actions listed, word for word.)"
)

_NOTES = "Notes from earlier trials:"

_SYSTEM = """\
You act in a small world of text. You are told a task, what was done and seen so far, \
and what can be done now, and choose what to do next."""
_ASKS: Mapping[Style, str] = {
    "plain": "Answer with one of these lines, copied word for word.",
    "react": """\
Answer with two lines: first one that begins with "Thought:" and says in a sentence \
what is missing and what comes next, then one of the lines above, copied word for word.
Thought: <your thought>
Action: <what you chose>""",
}
_ASKS_FREELY: Mapping[Style, str] = {
    "plain": "Answer with a line of that form; what is in brackets may be your own.",
    "react": """\
Answer with two lines: first one that begins with "Thought:" and says in a sentence \
what is missing and what comes next, then one of that form; what is in brackets \
may be your own.
Thought: <your thought>
Action: <what you chose>""",
}
_OPENINGS: Mapping[Style, str] = {"plain": "Action:", "react": "Thought:"}
_SAMPLINGS: Mapping[Style, Sampling] = {
    "plain": Sampling(temperature=0.7, max_tokens=24, stop=("\n",)),
    "react": Sampling(temperature=0.7, max_tokens=96),
}
_FORMS: Mapping[Style, re.Pattern[str]] = {
    "plain": re.compile(r"Action: (?P<action>[^\n]+)"),
    "react": re.compile(r"Thought: (?P<thought>[^\n]+)\n+Action: (?P<action>[^\n]+)"),
}


@dataclass(frozen=True)
class Prompting:
    """How actions are asked for.

    Attributes:
      style: "plain" asks for an action, "react" for a thought before it.
      sampling: how answers are drawn; None is a default of the style.
      history: so many of the latest steps are shown.
    """

    style: Style = "react"
    sampling: Sampling | None = None
    history: int = 20

    def __post_init__(self):
        check_choice("style", self.style, get_args(Style))
        check_count("history", self.history)


class Turn(NamedTuple):
    """One step: a thought, what was done, "" if nothing was, and what was seen."""

    thought: str
    action: str
    seen: str


@dataclass
class Log:
    """What one episode has read and written.

    Attributes:
      task: what is asked.
      begun: what was seen at first.
      rules: texts of its working set, best first.
      notes: texts of what earlier trials taught.
      turns: so far.
    """

    task: str
    begun: str
    rules: Sequence[str] = ()
    notes: Sequence[str] = ()
    turns: list[Turn] = field(default_factory=list)

    def request(
        self,
        prompting: Prompting,
        actions: Sequence[str],
        sample_index: int,
        *,
        freely: bool = False,
    ) -> Request:
        """Asks for one of `actions`; the answer is continued from its first word.

        Args:
          prompting: how.
          actions: that are listed.
          sample_index: tells repeated samples apart.
          freely: the actions listed are forms and examples; others may be given.
        """
        options = "\n".join(f"Action: {action}" for action in actions)
        style = prompting.style
        said = (
            f"{rules_block(self.rules)}{_notes_block(self.notes)}"
            f"{self.told(prompting.history)}\n\nWhat can be done now:\n{options}\n\n"
            f"{(_ASKS_FREELY if freely else _ASKS)[style]}"
        )
        return Request(
            messages=(
                Message("system", _SYSTEM),
                Message("user", said),
                Message("assistant", _OPENINGS[style]),
            ),
            sampling=prompting.sampling or _SAMPLINGS[style],
            sample_index=sample_index,
        )

    def told(self, history: int | None = None) -> str:
        """The task and the latest turns, all if `history` is None; no rules."""
        turns = self.turns if history is None else self.turns[-history:]
        lines = [self.task, self.begun]
        if len(turns) < len(self.turns):
            lines = [self.task, f"({len(self.turns) - len(turns)} steps before.)"]
        for thought, action, seen in turns:
            lines += [f"Thought: {thought}"] if thought else []
            lines += [f"Action: {action}"] if action else []
            lines.append(seen)
        return "\n".join(lines)


def _notes_block(notes: Sequence[str]) -> str:
    """As rules are written, under another heading."""
    _, _, lines = rules_block(notes).partition("\n")
    return f"{_NOTES}\n{lines}" if lines else ""


class Answer(NamedTuple):
    """What an answer says: a position in the actions listed, None if none of them."""

    choice: int | None
    thought: str = ""


def read_answer(
    completion: Completion, actions: Sequence[str], *, style: Style
) -> Answer:
    """Reads an answer to `Log.request`.

    Args:
      completion: that was not lost on the way; one that is not "ok", such as one that
        was cut off, is no answer.
      actions: that were listed.
      style: in which it was asked.
    """
    said = read_command(completion, style=style)
    if said is None or said.action not in actions:
        return Answer(None)
    return Answer(actions.index(said.action), said.thought)


class Command(NamedTuple):
    """What an answer says in words of its own."""

    action: str
    thought: str = ""


def read_command(completion: Completion, *, style: Style) -> Command | None:
    """Reads an answer whatever its action is; None where it has not the form.

    Args:
      completion: see `read_answer`.
      style: in which it was asked.

    Example:
      >>> read_command(Completion(" open the door"), style="plain").action
      'open the door'
    """
    if completion.status != "ok":
        return None
    # Some endpoints continue what they were given, others say it once more.
    text, opening = completion.text, _OPENINGS[style]
    text = text if text.lstrip().startswith(opening) else f"{opening}{text}"
    found = _FORMS[style].fullmatch(text.strip(" \t\r\n"))
    if found is None:
        return None
    thought = " ".join(found["thought"].split()) if style == "react" else ""
    return Command(found["action"], quoted(thought[:MAX_THOUGHT]))

"""Answers that cite a passage: what the research and the long-memory domain share.

Passages of a task are numbered from 1 and lie in hand in this order, whole or as a
search left them. The harness cites for the executor a passage in hand with a sentence
that holds every word the answer adds to the question; an answer found in none is left
without a source. What is retrieved and how it is searched is each domain's own.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import replace
from types import ModuleType
from typing import ClassVar, NamedTuple

import numpy as np

from jerp.bridge.executor import Completion, Message, Request, Sampling
from jerp.domains.base import ControlledDomain, Effect, Workspace
from jerp.domains.controlled import cited_rubric
from jerp.domains.controlled.criteria import check_scores, weighted
from jerp.harness.actions import Action
from jerp.records import ProcessStep, Task, Verdict

__all__ = ["CitedAnswerDomain", "Memory", "memory", "shown"]

INSTRUCTION = "Use the notes to answer."
KINDS = {"year": "a year", "number": "a number", "name": "a name", "word": "a word"}


class Memory(NamedTuple):
    """What the domains of cited answers keep in `Workspace.extra`.

    Attributes:
      hand: numbers of the passages in hand, ascending.
      asked: passages and hint of the last executor request.
    """

    hand: tuple[int, ...] = ()
    asked: tuple[tuple[str, ...], str] | None = None


class CitedAnswerDomain(ControlledDomain):
    """Base of the domains whose draft is an answer and its source, such as `oak [2]`.

    Attributes:
      rubric: the module with `PUBLIC`, `WEIGHTS`, `public_scores` and `scores`.
      sampling: of every request.
      note: the note that a failed check says to copy from.
    """

    needs_evidence: ClassVar[bool] = True
    runs_code: ClassVar[bool] = False
    ladder: ClassVar[int] = 2
    rubric: ClassVar[ModuleType]
    sampling: ClassVar[Sampling]
    note: ClassVar[str]

    def begin(self, task: Task, sample_index: int) -> Workspace:
        """A fresh workspace: nothing in hand, the question unread."""
        return Workspace(task=task, sample_index=sample_index, extra=Memory())

    def legal(self, workspace: Workspace) -> np.ndarray:
        """`[A]` bool. A check needs the question, a revision something new.

        A revision that would repeat the last request word for word is not offered.
        """
        legal = super().legal(workspace)
        legal[Action.CHECK] &= workspace.observed
        legal[Action.REVISE] &= memory(workspace).asked != _ask(workspace)
        return legal

    def request(self, workspace: Workspace, action: int) -> Request | None:
        """The question over what is in hand; a revision adds a hint.

        The hint is a function of the task alone, so that revisions repeat requests; the
        rejected answer is left out, because a small model then repeats it too.
        """
        if action not in (Action.DRAFT, Action.REVISE):
            return None
        passages, hint = _ask(workspace)
        lines = (*passages, self._question(workspace), hint)
        return Request(
            (
                Message("system", INSTRUCTION),
                Message("user", "\n".join(line for line in lines if line)),
                Message("assistant", self._opening(workspace.task)),
            ),
            self.sampling,
            workspace.sample_index,
        )

    def verify(self, task: Task, artefact: str | None, workspace: Workspace) -> Verdict:
        """Judges an answer and its source; a success has both right."""
        score = self.rubric.scores(task, artefact, memory(workspace).hand)
        criteria = weighted(score, self.rubric.WEIGHTS, self.rubric.PUBLIC)
        return Verdict(criteria, success=bool(score["correct"] and score["source"]))

    @abstractmethod
    def _opening(self, task: Task) -> str:
        """How the executor's turn begins."""

    @abstractmethod
    def _rungs(self, workspace: Workspace) -> Sequence[int]:
        """The ladder: numbers of the passages that are retrieved, best first."""

    def _question(self, workspace: Workspace) -> str:
        """What is asked of the executor and of the retrieval."""
        return workspace.task.prompt

    def _citable(self, workspace: Workspace) -> Sequence[int]:
        """The passages in hand; the first that holds an answer is cited for it."""
        return memory(workspace).hand

    def _hint(self, task: Task) -> str:
        """What a failed check asks for: one text a task, whichever criterion failed."""
        kind = KINDS[task.payload["kind"]]
        return f"Copy {kind} from {self.note} about {cited_rubric.subject(task)}."

    def _may_call_tool(self, workspace: Workspace) -> bool:
        return workspace.observed and bool(workspace.passages) and not workspace.tested

    def _retrieve(self, workspace: Workspace) -> Effect:
        """The next rung; the whole passages lie in hand again, searched or not."""
        passages, known = workspace.task.payload["passages"], memory(workspace)
        number = next(n for n in self._rungs(workspace) if n not in known.hand)
        hand = tuple(sorted((*known.hand, number)))
        after = replace(
            workspace,
            extra=known._replace(hand=hand),
            passages=tuple(shown(n, passages[n - 1]) for n in hand),
            tested=False,
            findings=sum(len(passages[n - 1]) for n in hand),
        )
        step = ProcessStep(
            "retrieve",
            arguments=f"{self._question(workspace)} #{len(hand)}",
            new_facts=len(passages[number - 1]),
            gathers_evidence=True,
        )
        return after, step, shown(number, passages[number - 1])

    def _write(
        self, workspace: Workspace, action: int, completion: Completion
    ) -> Effect:
        """The executor's answer and the harness's citation become the draft."""
        revises = action == Action.REVISE
        draft = self._cited(workspace, completion.text)
        asked = _ask(workspace)
        after = replace(
            workspace.with_draft(draft, revises=revises),
            tested=workspace.tested,
            support=workspace.support,
            extra=memory(workspace)._replace(asked=asked),
        )
        passages, hint = asked
        step = ProcessStep(
            "",
            arguments="\n".join((*passages, hint)),
            error=completion.status != "ok",
            revises=revises,
        )
        return after, step, draft

    def _check(self, workspace: Workspace) -> Effect:
        task, hand = workspace.task, memory(workspace).hand
        score = self.rubric.public_scores(task, workspace.draft, hand)
        return check_scores(workspace, score, self._hint(task))

    def _claims(self, workspace: Workspace) -> dict[str, int]:
        if not workspace.draft:
            return {}
        _, cited = cited_rubric.parse_draft(workspace.draft)
        return {"claims": 1, "evidence": int(cited in memory(workspace).hand)}

    def _cited(self, workspace: Workspace, text: str) -> str:
        answer, _ = cited_rubric.parse_draft(text)
        answer = answer.strip(" .,:;\"'*")
        for number in self._citable(workspace):
            if cited_rubric.evidence(workspace.task, answer, number):
                return f"{answer} [{number}]"
        return answer


def memory(workspace: Workspace) -> Memory:
    """What the workspace keeps of passages in hand and of the last request.

    Raises:
      TypeError: the workspace is another domain's.
    """
    if not isinstance(workspace.extra, Memory):
        raise TypeError(
            f"workspace.extra: expected a Memory of passages, got {workspace.extra!r}"
        )
    return workspace.extra


def shown(number: int, sentences: Sequence[str]) -> str:
    """Sentences of a passage behind its number, as a request shows them.

    Example:
      >>> shown(2, ["Ada Holm's cat is called Tango."])
      "[2] Ada Holm's cat is called Tango."
    """
    return f"[{number}] {' '.join(sentences)}"


def _ask(workspace: Workspace) -> tuple[tuple[str, ...], str]:
    feedback = workspace.feedback
    return workspace.passages, "" if feedback is None else feedback.text

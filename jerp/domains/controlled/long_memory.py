"""Long memory: a fact from one of many past conversations, with later corrections.

What is real: sessions come from BM25 over the task's memory; call-tool searches every
session for the latest one that tells of the same thing of the same person; check
applies the public part of the verifier's rubric; the answer's words are the executor's.
What the harness does for the executor: it begins its turn with the question turned into
a statement, so that only the value is left to say, and it names the latest session in
hand with a sentence that holds every word the answer adds to the question.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, ClassVar, NamedTuple

import numpy as np

from jerp.bridge.executor import Completion, Message, Request, Sampling
from jerp.domains.base import ControlledDomain, Feedback, Workspace
from jerp.domains.controlled import cited_rubric
from jerp.domains.controlled import long_memory_rubric as rubric
from jerp.domains.controlled.long_memory_tasks import NUM_SESSIONS, generate
from jerp.harness.actions import Action
from jerp.records import Criterion, ProcessStep, Task, Verdict

__all__ = ["LongMemoryDomain"]

INSTRUCTION = "Use the notes to answer."
SAMPLING = Sampling(temperature=0.9, max_tokens=8, stop=("\n", "."))
KINDS = {"number": "a number", "name": "a name", "word": "a word"}


class Hand(NamedTuple):
    """What the domain keeps in `Workspace.extra`.

    Attributes:
      sessions: numbers of the sessions in hand, ascending: the oldest first.
      asked: sentences and hint of the last executor request.
    """

    sessions: tuple[int, ...] = ()
    asked: tuple[tuple[str, ...], str] | None = None


class LongMemoryDomain(ControlledDomain):
    """Questions over 24 past sessions; see the module's docstring for what is real.

    Sessions are numbered in the order in which they took place. Nothing but observe is
    legal before the question is read; a draft without a session in hand is a guess.
    """

    name: ClassVar[str] = "long-memory"
    needs_evidence: ClassVar[bool] = True
    runs_code: ClassVar[bool] = False
    ladder: ClassVar[int] = 2

    def generate(self, seed: int, num_tasks: int) -> tuple[Task, ...]:
        """Tasks in turns of difficulty 0, 1, 2; fewer tasks are a prefix of more."""
        return generate(seed, num_tasks, ladder=self.ladder)

    def begin(self, task: Task, sample_index: int) -> Workspace:
        """A fresh workspace: nothing in hand, the question unread."""
        return Workspace(task=task, sample_index=sample_index, extra=Hand())

    def legal(self, workspace: Workspace) -> np.ndarray:
        """`[A]` bool. A draft needs the question, a revision something new.

        A revision that would repeat the last request word for word is not offered.
        """
        legal = super().legal(workspace)
        legal[Action.DRAFT] &= workspace.observed
        legal[Action.REVISE] &= _hand(workspace).asked != _ask(workspace)
        return legal

    def request(self, workspace: Workspace, action: int) -> Request | None:
        """The question over the sentences in hand; a revision adds a hint.

        The hint is a function of the task alone, so that revisions repeat requests; the
        rejected answer is left out, because a small model then repeats it too.
        """
        if action not in (Action.DRAFT, Action.REVISE):
            return None
        sentences, hint = _ask(workspace)
        lines = (*sentences, workspace.task.prompt, hint)
        return Request(
            (
                Message("system", INSTRUCTION),
                Message("user", "\n".join(line for line in lines if line)),
                Message("assistant", workspace.task.payload["opening"]),
            ),
            SAMPLING,
            workspace.sample_index,
        )

    def verify(self, task: Task, artefact: str | None, workspace: Workspace) -> Verdict:
        """Judges an answer and its session; see `long_memory_rubric`."""
        score = rubric.scores(task, artefact, _hand(workspace).sessions)
        criteria = tuple(
            Criterion(name, score[name], weight, public=name in rubric.PUBLIC)
            for name, weight in rubric.WEIGHTS.items()
        )
        return Verdict(criteria, success=bool(score["correct"] and score["source"]))

    def _may_retrieve(self, workspace: Workspace) -> bool:
        left = set(workspace.task.payload["ladder"]) - set(_hand(workspace).sessions)
        return workspace.observed and bool(left)

    def _may_call_tool(self, workspace: Workspace) -> bool:
        return workspace.observed and bool(workspace.passages) and not workspace.tested

    def _act(
        self, workspace: Workspace, action: int, completion: Completion | None
    ) -> tuple[Workspace, ProcessStep, str]:
        act = {
            Action.OBSERVE: _observe,
            Action.RETRIEVE: _retrieve,
            Action.CALL_TOOL: _search_later,
            Action.CHECK: _check,
            Action.SUBMIT: _submit,
        }
        if completion is not None:
            after, step, text = _write(workspace, action, completion)
        else:
            after, step, text = act[Action(action)](workspace)
        return after, replace(step, **_claims(after)), text


def _observe(w: Workspace) -> tuple[Workspace, ProcessStep, str]:
    step = ProcessStep("observe", arguments=w.task.key, new_facts=1)
    return replace(w, observed=True), step, w.task.prompt


def _retrieve(w: Workspace) -> tuple[Workspace, ProcessStep, str]:
    """The next rung; the whole sessions lie in hand again, searched or not."""
    hand = _hand(w)
    number = next(n for n in w.task.payload["ladder"] if n not in hand.sessions)
    sessions = tuple(sorted((*hand.sessions, number)))
    sentences = w.task.payload["passages"]
    after = replace(
        w,
        extra=hand._replace(sessions=sessions),
        passages=tuple(_shown(n, sentences[n - 1]) for n in sessions),
        tested=False,
        findings=sum(len(sentences[n - 1]) for n in sessions),
    )
    step = ProcessStep(
        "retrieve",
        arguments=f"{w.task.prompt} #{len(sessions)}",
        new_facts=len(sentences[number - 1]),
        gathers_evidence=True,
    )
    return after, step, _shown(number, sentences[number - 1])


def _search_later(w: Workspace) -> tuple[Workspace, ProcessStep, str]:
    """Brings the latest session that tells of the thing, and keeps its sentences alone.

    A draft that rests on another session has then failed.
    """
    latest = rubric.newest_mention(w.task, range(1, NUM_SESSIONS + 1))
    hand = _hand(w)
    found = [] if latest is None else rubric.mentions(w.task, latest)
    step = ProcessStep(
        "call-tool",
        arguments=f"{w.task.prompt} in all sessions",
        new_facts=int(latest is not None and latest not in hand.sessions),
        gathers_evidence=latest is not None,
        tool_valid=True,
    )
    if latest is None:
        return replace(w, tested=True, support=0.0), step, "no session tells of this"
    shown = _shown(latest, found)
    after = replace(
        w,
        tested=True,
        support=0.5,
        passages=(shown,),
        extra=hand._replace(sessions=tuple(sorted({*hand.sessions, latest}))),
    )
    if w.draft is not None:
        stale = cited_rubric.parse_draft(w.draft)[1] != latest
        feedback = Feedback(_hint(w.task), failed=True) if stale else w.feedback
        after = replace(after, feedback=feedback, support=float(not stale))
        step = replace(step, verify_failed=stale)
    return after, step, shown


def _write(
    w: Workspace, action: int, completion: Completion
) -> tuple[Workspace, ProcessStep, str]:
    """The executor's answer and the harness's session become the draft."""
    revises = action == Action.REVISE
    draft = _cite(w, completion.text)
    sentences, hint = _ask(w)
    after = replace(
        w.with_draft(draft, revises=revises),
        tested=w.tested,
        support=min(w.support, 0.5),
        extra=_hand(w)._replace(asked=_ask(w)),
    )
    step = ProcessStep(
        "",
        arguments="\n".join((*sentences, hint)),
        error=completion.status != "ok",
        revises=revises,
    )
    return after, step, draft


def _check(w: Workspace) -> tuple[Workspace, ProcessStep, str]:
    """The public criteria; a failure becomes the hint of a revision."""
    score = rubric.public_scores(w.task, w.draft, _hand(w).sessions)
    missing = tuple(name for name in rubric.PUBLIC if not score[name])
    coverage = 1 - len(missing) / len(rubric.PUBLIC)
    hint = _hint(w.task) if missing else ""
    after = replace(
        w,
        checked=True,
        feedback=Feedback(hint, failed=bool(missing)),
        coverage=coverage,
        missing_share=1 - coverage,
    )
    step = ProcessStep(
        "check", arguments=w.draft or "", coverage=coverage, missing=missing
    )
    text = f"missing: {', '.join(missing)}. {hint}" if missing else "nothing missing"
    return after, step, text


def _submit(w: Workspace) -> tuple[Workspace, ProcessStep, str]:
    return w, ProcessStep("submit", arguments=w.draft or ""), w.draft or ""


def _claims(w: Workspace) -> dict[str, Any]:
    if not w.draft:
        return {}
    _, cited = cited_rubric.parse_draft(w.draft)
    return {"claims": 1, "evidence": int(cited in _hand(w).sessions)}


def _hand(w: Workspace) -> Hand:
    if not isinstance(w.extra, Hand):
        raise TypeError(f"workspace.extra: expected a Hand, got {w.extra!r}")
    return w.extra


def _ask(w: Workspace) -> tuple[tuple[str, ...], str]:
    return w.passages, "" if w.feedback is None else w.feedback.text


def _hint(task: Task) -> str:
    """What a failed check asks for: one text a task, whichever criterion failed."""
    kind = KINDS[task.payload["kind"]]
    return f"Copy {kind} from the latest note about {cited_rubric.subject(task)}."


def _shown(number: int, sentences: Sequence[str]) -> str:
    return f"[{number}] {' '.join(sentences)}"


def _cite(w: Workspace, text: str) -> str:
    answer, _ = cited_rubric.parse_draft(text)
    answer = answer.strip(" .,:;\"'*")
    for number in reversed(_hand(w).sessions):
        if cited_rubric.evidence(w.task, answer, number):
            return f"{answer} [{number}]"
    return answer

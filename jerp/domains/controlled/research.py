"""Research: a question, a corpus with distractors, an answer with a cited source.

What is real: passages come from BM25 over the corpus; call-tool searches the passages
in hand; check applies the public part of the verifier's rubric; the answer's words are
the executor's. What the harness does for the executor: it begins its turn with an open
quotation, which ends at the closing mark, and it cites the first passage in hand with a
sentence that holds every word the answer adds to the question; an answer found in none
is left without a source.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, ClassVar, NamedTuple

import numpy as np

from jerp.bridge.executor import Completion, Message, Request, Sampling
from jerp.domains.base import ControlledDomain, Feedback, Workspace
from jerp.domains.controlled import cited_rubric as rubric
from jerp.domains.controlled.research_corpus import terms, words
from jerp.domains.controlled.research_tasks import generate
from jerp.harness.actions import Action
from jerp.records import Criterion, ProcessStep, Task, Verdict

__all__ = ["ResearchDomain"]

INSTRUCTION = "Use the notes to answer."
PREFILL = 'According to the notes, the answer is "'
SAMPLING = Sampling(temperature=0.8, max_tokens=12, stop=("\n", '"'))
KINDS = {"year": "a year", "number": "a number", "name": "a name", "word": "a word"}


class Memory(NamedTuple):
    """What the research domain keeps in `Workspace.extra`.

    Attributes:
      hand: numbers of the passages in hand, ascending.
      asked: passages and hint of the last executor request.
    """

    hand: tuple[int, ...] = ()
    asked: tuple[tuple[str, ...], str] | None = None


class ResearchDomain(ControlledDomain):
    """Questions over a corpus; see the module's docstring for what is real.

    Passages of a task are numbered from 1 in the order of the question's ranking, so
    that a source keeps its number whatever else is in hand. Before observe only the
    topic is known: one passage can be retrieved for it, nothing checked or searched.
    """

    name: ClassVar[str] = "research"
    needs_evidence: ClassVar[bool] = True
    runs_code: ClassVar[bool] = False
    ladder: ClassVar[int] = 2

    def generate(self, seed: int, num_tasks: int) -> tuple[Task, ...]:
        """Tasks in turns of difficulty 0, 1, 2; fewer tasks are a prefix of more."""
        return generate(seed, num_tasks, ladder=self.ladder)

    def begin(self, task: Task, sample_index: int) -> Workspace:
        """A fresh workspace: nothing in hand, the question unread."""
        return Workspace(task=task, sample_index=sample_index, extra=Memory())

    def legal(self, workspace: Workspace) -> np.ndarray:
        """`[A]` bool. A draft needs a passage, a check the question, a revision news.

        A revision that would repeat the last request word for word is not offered.
        """
        legal = super().legal(workspace)
        legal[Action.DRAFT] &= bool(workspace.passages)
        legal[Action.CHECK] &= workspace.observed
        legal[Action.REVISE] &= _memory(workspace).asked != _ask(workspace)
        return legal

    def request(self, workspace: Workspace, action: int) -> Request | None:
        """A draft asks the question over the passages in hand; a revision adds a hint.

        The hint is a function of the task alone, so that revisions repeat requests; the
        rejected answer is left out, because a small model then repeats it too.
        """
        if action not in (Action.DRAFT, Action.REVISE):
            return None
        passages, hint = _ask(workspace)
        task = workspace.task
        question = task.prompt if workspace.observed else task.payload["topic"]
        lines = (*passages, question, hint)
        return Request(
            (
                Message("system", INSTRUCTION),
                Message("user", "\n".join(line for line in lines if line)),
                Message("assistant", PREFILL),
            ),
            SAMPLING,
            workspace.sample_index,
        )

    def verify(self, task: Task, artefact: str | None, workspace: Workspace) -> Verdict:
        """Judges an answer and its source; see `cited_rubric`."""
        score = rubric.scores(task, artefact, _memory(workspace).hand)
        criteria = tuple(
            Criterion(name, score[name], weight, public=name in rubric.PUBLIC)
            for name, weight in rubric.WEIGHTS.items()
        )
        return Verdict(criteria, success=bool(score["correct"] and score["source"]))

    def _may_retrieve(self, workspace: Workspace) -> bool:
        rungs = self.ladder if workspace.observed else 1
        return len(_memory(workspace).hand) < rungs

    def _may_call_tool(self, workspace: Workspace) -> bool:
        return workspace.observed and bool(workspace.passages) and not workspace.tested

    def _act(
        self, workspace: Workspace, action: int, completion: Completion | None
    ) -> tuple[Workspace, ProcessStep, str]:
        act = {
            Action.OBSERVE: _observe,
            Action.RETRIEVE: _retrieve,
            Action.CALL_TOOL: _search,
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
    """The next rung; the whole passages lie in hand again, searched or not."""
    payload, memory = w.task.payload, _memory(w)
    rungs = payload["ladder"] if w.observed else payload["topic_ladder"]
    number = next(n for n in rungs if n not in memory.hand)
    hand = tuple(sorted((*memory.hand, number)))
    passages = tuple(_shown(n, payload["passages"][n - 1]) for n in hand)
    after = replace(
        w,
        extra=memory._replace(hand=hand),
        passages=passages,
        tested=False,
        findings=sum(len(payload["passages"][n - 1]) for n in hand),
    )
    facts = len(payload["passages"][number - 1])
    query = w.task.prompt if w.observed else payload["topic"]
    step = ProcessStep(
        "retrieve",
        arguments=f"{query} #{len(hand)}",
        new_facts=facts,
        gathers_evidence=True,
    )
    return after, step, _shown(number, payload["passages"][number - 1])


def _search(w: Workspace) -> tuple[Workspace, ProcessStep, str]:
    """Keeps the best sentences in hand: by shared names and years, then other words."""
    asked = set(terms(w.task.prompt))
    names = set(words(rubric.subject(w.task)))
    passages = w.task.payload["passages"]
    hits = {
        (number, sentence): asked & set(terms(sentence))
        for number in _memory(w).hand
        for sentence in passages[number - 1]
    }
    rank = {place: (len(shared & names), len(shared)) for place, shared in hits.items()}
    best = max(rank.values())
    kept: dict[int, list[str]] = {}
    for number, sentence in hits:
        if rank[number, sentence] == best:
            kept.setdefault(number, []).append(sentence)
    shown = tuple(_shown(n, sentences) for n, sentences in kept.items())
    after = replace(w, passages=shown, tested=True, support=best[1] / len(asked))
    step = ProcessStep(
        "call-tool",
        arguments=f"{' '.join(sorted(asked))} in {_memory(w).hand}",
        gathers_evidence=True,
        tool_valid=True,
    )
    return after, step, "\n".join(shown)


def _write(
    w: Workspace, action: int, completion: Completion
) -> tuple[Workspace, ProcessStep, str]:
    """The executor's answer and the harness's citation become the draft."""
    revises = action == Action.REVISE
    draft = _cite(w, completion.text)
    after = replace(
        w.with_draft(draft, revises=revises),
        tested=w.tested,
        support=w.support,
        extra=_memory(w)._replace(asked=_ask(w)),
    )
    passages, hint = _ask(w)
    step = ProcessStep(
        "",
        arguments="\n".join((*passages, hint)),
        error=completion.status != "ok",
        revises=revises,
    )
    return after, step, draft


def _check(w: Workspace) -> tuple[Workspace, ProcessStep, str]:
    """The public criteria; a failure becomes the hint of a revision."""
    score = rubric.public_scores(w.task, w.draft, _memory(w).hand)
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
    _, cited = rubric.parse_draft(w.draft)
    return {"claims": 1, "evidence": int(cited in _memory(w).hand)}


def _memory(w: Workspace) -> Memory:
    if not isinstance(w.extra, Memory):
        raise TypeError(f"workspace.extra: expected a research Memory, got {w.extra!r}")
    return w.extra


def _ask(w: Workspace) -> tuple[tuple[str, ...], str]:
    return w.passages, "" if w.feedback is None else w.feedback.text


def _hint(task: Task) -> str:
    """What a failed check asks for: one text a task, whichever criterion failed."""
    kind = KINDS[task.payload["kind"]]
    return f"Copy {kind} from a note about {rubric.subject(task)}."


def _shown(number: int, sentences: Sequence[str]) -> str:
    return f"[{number}] {' '.join(sentences)}"


def _cite(w: Workspace, text: str) -> str:
    answer, _ = rubric.parse_draft(text)
    answer = answer.strip(" .,:;\"'*")
    for number in _memory(w).hand:
        if rubric.evidence(w.task, answer, number):
            return f"{answer} [{number}]"
    return answer

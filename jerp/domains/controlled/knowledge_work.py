"""Knowledge work: a briefing of three sections from several source notes.

What is real: the notes; call-tool compares each line with the notes in hand, word by
word; check applies the public part of the rubric; the words of the briefing are the
executor's. What the harness does for the executor: it begins the briefing with the
first section's label (before observe, with a bare dash), keeps the first three lines,
and cites for each the first note in hand that holds its words. A revision rewrites one
line, the first at fault: the harness begins it and shows the notes that can be trusted
on it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import ClassVar, NamedTuple

import numpy as np

from jerp.bridge.executor import Completion, Message, Request, Sampling
from jerp.domains.base import ControlledDomain, Effect, Feedback, Workspace
from jerp.domains.controlled import knowledge_work_rubric as rubric
from jerp.domains.controlled.criteria import checked
from jerp.domains.controlled.knowledge_work_rubric import Line
from jerp.domains.controlled.knowledge_work_tasks import NUM_SECTIONS, generate
from jerp.domains.controlled.research_corpus import words
from jerp.harness.actions import Action
from jerp.records import ProcessStep, Task, Verdict

__all__ = ["KnowledgeWorkDomain", "Memory"]

INSTRUCTION = "Fill in the briefing from the notes."
DRAFT_SAMPLING = Sampling(temperature=0.6, top_p=0.9, max_tokens=36, stop=("\n\n",))
LINE_SAMPLING = Sampling(temperature=0.6, top_p=0.9, max_tokens=12, stop=("\n",))
USABLE = ("ok", "truncated")
"""Statuses that are no error: a briefing that runs on is cut after its third line."""


class Memory(NamedTuple):
    """What the knowledge-work domain keeps in `Workspace.extra`.

    Attributes:
      rungs: of the ladder, climbed so far.
      faulty: sections of the draft that a check or cross-check found fault with.
      asked: rungs in hand and section of each revision.
    """

    rungs: int = 0
    faulty: tuple[str, ...] = ()
    asked: tuple[tuple[int, str], ...] = ()


class KnowledgeWorkDomain(ControlledDomain):
    """Briefings from notes; see the module's docstring for what is real.

    Before observe only the subject is known, not the sections: the first rung can be
    retrieved for it and a briefing begun, nothing checked, compared or revised. Whether
    the second rung is needed, a draft and its check can tell.
    """

    name: ClassVar[str] = "knowledge-work"
    needs_evidence: ClassVar[bool] = True
    runs_code: ClassVar[bool] = False
    ladder: ClassVar[int] = 2

    def generate(self, seed: int, num_tasks: int) -> tuple[Task, ...]:
        """Tasks in turns of difficulty 0, 1, 2; fewer tasks are a prefix of more."""
        return generate(seed, num_tasks)

    def begin(self, task: Task, sample_index: int) -> Workspace:
        """A fresh workspace: nothing in hand, the brief unread."""
        return Workspace(task=task, sample_index=sample_index, extra=Memory())

    def legal(self, workspace: Workspace) -> np.ndarray:
        """`[A]` bool. A draft needs notes, a check the brief, a revision a new line.

        A line that was rewritten from the same notes already is not asked for again.
        """
        legal = super().legal(workspace)
        legal[Action.DRAFT] &= bool(workspace.passages)
        legal[Action.CHECK] &= workspace.observed
        legal[Action.REVISE] &= workspace.observed and _section(workspace) is not None
        return legal

    def request(self, workspace: Workspace, action: int) -> Request | None:
        """A draft asks for the whole briefing, a revision for one line of it.

        Neither shows an earlier draft: a revision depends on the task, the notes in
        hand and the section alone, so that revisions of different drafts repeat
        requests.
        """
        if action == Action.DRAFT:
            shown, sampling = workspace.passages, DRAFT_SAMPLING
            brief = workspace.task.prompt
            begun = f"{_title(workspace.task)}\n{_first_label(workspace)}"
            if not workspace.observed:
                brief = f"{_title(workspace.task)}."
        elif action == Action.REVISE:
            section = _section(workspace) or ""
            shown, sampling = _trusted(workspace, section), LINE_SAMPLING
            brief = f"{_title(workspace.task)}: {section}."
            begun = f"{_title(workspace.task)}\n- {section}:"
        else:
            return None
        messages = (
            Message("system", INSTRUCTION),
            Message("user", "\n".join((*shown, brief))),
            Message("assistant", begun),
        )
        return Request(messages, sampling, workspace.sample_index)

    def verify(self, task: Task, artefact: str | None, workspace: Workspace) -> Verdict:
        """Judges a briefing; see `knowledge_work_rubric.criteria`.

        A success has every figure right and from the right note.
        """
        criteria = rubric.criteria(task, artefact, _hand(workspace))
        return Verdict(criteria, success=criteria[0].score == criteria[1].score == 1)

    def _may_retrieve(self, workspace: Workspace) -> bool:
        rungs = self.ladder if workspace.observed else 1
        return _memory(workspace).rungs < rungs

    def _may_call_tool(self, workspace: Workspace) -> bool:
        return workspace.observed and super()._may_call_tool(workspace)

    def _retrieve(self, workspace: Workspace) -> Effect:
        """The next rung; what was checked or compared may be so again, with more."""
        payload, rungs = workspace.task.payload, _memory(workspace).rungs + 1
        added = payload["ladder"][rungs - 1]
        passages = tuple(_shown(workspace.task, number) for number in added)
        facts = sum(len(payload["notes"][n - 1]["sentences"]) for n in added)
        after = replace(
            workspace,
            extra=_memory(workspace)._replace(rungs=rungs),
            passages=(*workspace.passages, *passages),
            checked=False,
            tested=False,
            findings=workspace.findings + facts,
        )
        step = ProcessStep(
            "retrieve",
            arguments=f"{payload['subject']} #{rungs}",
            new_facts=facts,
            gathers_evidence=True,
        )
        return after, step, "\n".join(passages)

    def _call_tool(self, workspace: Workspace) -> Effect:
        """Cross-checks each line with the notes in hand; a fault is a contradiction."""
        hand = _hand(workspace)
        faulty = rubric.contradicted(workspace.task, workspace.draft or "", hand)
        after = replace(
            _with_faults(workspace, faulty, fresh=not workspace.checked),
            tested=True,
            support=1 - len(faulty) / NUM_SECTIONS,
        )
        step = ProcessStep(
            "call-tool",
            arguments=f"{workspace.draft} in {hand}",
            gathers_evidence=True,
            tool_valid=True,
            verify_failed=bool(faulty),
        )
        text = f"not confirmed: {', '.join(faulty)}"
        return after, step, text if faulty else "all lines confirmed"

    def _write(
        self, workspace: Workspace, action: int, completion: Completion
    ) -> Effect:
        write = _draft if action == Action.DRAFT else _rewrite
        after, shown = write(workspace, completion.text)
        step = ProcessStep(
            "",
            arguments="\n".join(shown),
            error=completion.status not in USABLE,
            revises=action == Action.REVISE,
        )
        return after, step, after.draft or ""

    def _check(self, workspace: Workspace) -> Effect:
        """The public rubric; sections with a missing item are at fault."""
        missing = rubric.missing_items(
            workspace.task, workspace.draft, _hand(workspace)
        )
        faulty = tuple(dict.fromkeys(item.split(": ")[1] for item in missing))
        found = _with_faults(workspace, faulty, fresh=not workspace.tested)
        after, step = checked(found, missing, len(rubric.PUBLIC) * NUM_SECTIONS)
        return after, step, f"missing: {', '.join(missing) or 'nothing'}"

    def _claims(self, workspace: Workspace) -> dict[str, int]:
        lines = rubric.parse_draft(workspace.draft or "")
        cited = [line for line in lines if line.source in _hand(workspace)]
        return {"claims": len(lines), "evidence": len(cited)}


def _draft(w: Workspace, text: str) -> tuple[Workspace, tuple[str, ...]]:
    """The executor's lines, cited, become the draft. Gives what it was shown, too."""
    draft = _cited(w, rubric.parse_draft(f"{_first_label(w)}{text}"))
    return w.with_draft(draft, revises=False), w.passages


def _rewrite(w: Workspace, text: str) -> tuple[Workspace, tuple[str, ...]]:
    """The executor's line takes the place of the one at fault; the others stay."""
    section, memory = _section(w) or "", _memory(w)
    line = rubric.parse_draft(f"- {section}:{text}")[0]
    kept = {line.section: line for line in rubric.parse_draft(w.draft or "")}
    wanted = w.task.payload["sections"]
    lines = {**{s: kept[s] for s in wanted if s in kept}, section: line}
    draft = _cited(w, [lines[s] for s in wanted if s in lines])
    memory = memory._replace(faulty=(), asked=(*memory.asked, (memory.rungs, section)))
    after = replace(w.with_draft(draft, revises=True), extra=memory)
    return after, (*_trusted(w, section), section)


def _with_faults(w: Workspace, faulty: Sequence[str], *, fresh: bool) -> Workspace:
    """With sections at fault added to those known, or in their place if `fresh`."""
    known = set(faulty) if fresh else {*faulty, *_memory(w).faulty}
    ordered = tuple(s for s in w.task.payload["sections"] if s in known)
    return replace(
        w,
        feedback=Feedback(f"at fault: {', '.join(ordered)}", failed=bool(ordered)),
        extra=_memory(w)._replace(faulty=ordered),
    )


def _memory(w: Workspace) -> Memory:
    if not isinstance(w.extra, Memory):
        raise TypeError(
            f"workspace.extra: expected a knowledge-work Memory, got {w.extra!r}"
        )
    return w.extra


def _hand(w: Workspace) -> tuple[int, ...]:
    """Numbers of the notes in hand."""
    rungs = w.task.payload["ladder"][: _memory(w).rungs]
    return tuple(number for rung in rungs for number in rung)


def _section(w: Workspace) -> str | None:
    """The first section at fault that was not rewritten from the same notes yet."""
    memory = _memory(w)
    left = [s for s in memory.faulty if (memory.rungs, s) not in memory.asked]
    return left[0] if left else None


def _trusted(w: Workspace, section: str) -> tuple[str, ...]:
    """Current notes in hand: their sentences with the section's word, else all."""
    current = [n for n in _hand(w) if rubric.is_current(w.task, n)]
    sentences = {n: w.task.payload["notes"][n - 1]["sentences"] for n in current}
    named = {
        n: [sentence for sentence in found if section in words(sentence)]
        for n, found in sentences.items()
    }
    chosen = {n: found for n, found in named.items() if found} or sentences
    return tuple(_shown(w.task, n, found) for n, found in chosen.items())


def _title(task: Task) -> str:
    return f"Briefing on {task.payload['subject']}"


def _first_label(w: Workspace) -> str:
    return f"- {next(iter(w.task.payload['sections']))}:" if w.observed else "-"


def _shown(task: Task, number: int, sentences: Sequence[str] | None = None) -> str:
    note = task.payload["notes"][number - 1]
    status = " (superseded)" if note["superseded"] else ""
    said = " ".join(note["sentences"] if sentences is None else sentences)
    return f"[{number}] {note['about']}{status}: {said}"


def _cited(w: Workspace, lines: Sequence[Line]) -> str:
    """The briefing with the first note in hand that holds a line's words, each line."""
    cited = [
        line._replace(
            source=next(
                (n for n in _hand(w) if rubric.stating(w.task, line.text, n)), None
            )
        )
        for line in lines
    ]
    return rubric.write_draft(cited)

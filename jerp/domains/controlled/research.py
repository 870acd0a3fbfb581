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
from typing import ClassVar

import numpy as np

from jerp.bridge.executor import Sampling
from jerp.domains.base import Effect, Workspace
from jerp.domains.controlled import cited_rubric
from jerp.domains.controlled.cited_answer import CitedAnswerDomain, memory, shown
from jerp.domains.controlled.research_corpus import terms, words
from jerp.domains.controlled.research_tasks import generate
from jerp.harness.actions import Action
from jerp.records import ProcessStep, Task

__all__ = ["ResearchDomain"]

PREFILL = 'According to the notes, the answer is "'


class ResearchDomain(CitedAnswerDomain):
    """Questions over a corpus; see the module's docstring for what is real.

    Passages of a task are numbered from 1 in the order of the question's ranking, so
    that a source keeps its number whatever else is in hand. Before observe only the
    topic is known: one passage can be retrieved for it, nothing checked or searched.
    """

    name: ClassVar[str] = "research"
    rubric = cited_rubric
    sampling: ClassVar[Sampling] = Sampling(
        temperature=0.8, max_tokens=12, stop=("\n", '"')
    )
    note: ClassVar[str] = "a note"

    def generate(self, seed: int, num_tasks: int) -> tuple[Task, ...]:
        """Tasks in turns of difficulty 0, 1, 2; fewer tasks are a prefix of more."""
        return generate(seed, num_tasks, ladder=self.ladder)

    def legal(self, workspace: Workspace) -> np.ndarray:
        """`[A]` bool. A draft needs a passage, a check the question, a revision news.

        A revision that would repeat the last request word for word is not offered.
        """
        legal = super().legal(workspace)
        legal[Action.DRAFT] &= bool(workspace.passages)
        return legal

    def _may_retrieve(self, workspace: Workspace) -> bool:
        rungs = self.ladder if workspace.observed else 1
        return len(memory(workspace).hand) < rungs

    def _opening(self, task: Task) -> str:
        return PREFILL

    def _rungs(self, workspace: Workspace) -> Sequence[int]:
        ladder = "ladder" if workspace.observed else "topic_ladder"
        return workspace.task.payload[ladder]

    def _question(self, workspace: Workspace) -> str:
        task = workspace.task
        return task.prompt if workspace.observed else task.payload["topic"]

    def _call_tool(self, workspace: Workspace) -> Effect:
        """Keeps the best sentences in hand: by shared names and years, then words."""
        task, hand = workspace.task, memory(workspace).hand
        asked = set(terms(task.prompt))
        names = set(words(cited_rubric.subject(task)))
        rank = {}
        for number in hand:
            for sentence in task.payload["passages"][number - 1]:
                shared = asked & set(terms(sentence))
                rank[number, sentence] = len(shared & names), len(shared)
        best = max(rank.values())
        kept: dict[int, list[str]] = {}
        for (number, sentence), place in rank.items():
            if place == best:
                kept.setdefault(number, []).append(sentence)
        passages = tuple(shown(n, sentences) for n, sentences in kept.items())
        support = best[1] / len(asked)
        step = ProcessStep(
            "call-tool",
            arguments=f"{' '.join(sorted(asked))} in {hand}",
            gathers_evidence=True,
            tool_valid=True,
        )
        after = replace(workspace, passages=passages, tested=True, support=support)
        return after, step, "\n".join(passages)

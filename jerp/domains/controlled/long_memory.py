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
from typing import ClassVar

import numpy as np

from jerp.bridge.executor import Completion, Sampling
from jerp.domains.base import Effect, Feedback, Workspace
from jerp.domains.controlled import cited_rubric, long_memory_rubric
from jerp.domains.controlled.cited_answer import CitedAnswerDomain, memory, shown
from jerp.domains.controlled.long_memory_tasks import NUM_SESSIONS, generate
from jerp.harness.actions import Action
from jerp.records import ProcessStep, Task

__all__ = ["LongMemoryDomain"]


class LongMemoryDomain(CitedAnswerDomain):
    """Questions over 24 past sessions; see the module's docstring for what is real.

    Sessions are numbered in the order in which they took place. Nothing but observe is
    legal before the question is read; a draft without a session in hand is a guess.
    """

    name: ClassVar[str] = "long-memory"
    rubric = long_memory_rubric
    sampling: ClassVar[Sampling] = Sampling(
        temperature=0.9, max_tokens=8, stop=("\n", ".")
    )
    note: ClassVar[str] = "the latest note"

    def generate(self, seed: int, num_tasks: int) -> tuple[Task, ...]:
        """Tasks in turns of difficulty 0, 1, 2; fewer tasks are a prefix of more."""
        return generate(seed, num_tasks, ladder=self.ladder)

    def legal(self, workspace: Workspace) -> np.ndarray:
        """`[A]` bool. A draft needs the question, a revision something new.

        A revision that would repeat the last request word for word is not offered.
        """
        legal = super().legal(workspace)
        legal[Action.DRAFT] &= workspace.observed
        return legal

    def _may_retrieve(self, workspace: Workspace) -> bool:
        left = set(self._rungs(workspace)) - set(memory(workspace).hand)
        return workspace.observed and bool(left)

    def _opening(self, task: Task) -> str:
        return task.payload["opening"]

    def _rungs(self, workspace: Workspace) -> Sequence[int]:
        return workspace.task.payload["ladder"]

    def _citable(self, workspace: Workspace) -> Sequence[int]:
        return memory(workspace).hand[::-1]

    def _call_tool(self, workspace: Workspace) -> Effect:
        """Brings the latest session that tells of the thing, its sentences alone.

        A draft that rests on another session has then failed.
        """
        task, known = workspace.task, memory(workspace)
        latest = long_memory_rubric.newest_mention(task, range(1, NUM_SESSIONS + 1))
        step = ProcessStep(
            "call-tool",
            arguments=f"{task.prompt} in all sessions",
            new_facts=int(latest is not None and latest not in known.hand),
            gathers_evidence=latest is not None,
            tool_valid=True,
        )
        if latest is None:
            after = replace(workspace, tested=True, support=0.0)
            return after, step, "no session tells of this"
        found = shown(latest, long_memory_rubric.mentions(task, latest))
        after = replace(
            workspace,
            tested=True,
            support=0.5,
            passages=(found,),
            extra=known._replace(hand=tuple(sorted({*known.hand, latest}))),
        )
        if workspace.draft is not None:
            stale = cited_rubric.parse_draft(workspace.draft)[1] != latest
            failed = Feedback(self._hint(task), failed=True)
            feedback = failed if stale else workspace.feedback
            after = replace(after, feedback=feedback, support=float(not stale))
            step = replace(step, verify_failed=stale)
        return after, step, found

    def _write(
        self, workspace: Workspace, action: int, completion: Completion
    ) -> Effect:
        """Of a new draft it is not known whether it rests on the latest session."""
        after, step, draft = super()._write(workspace, action, completion)
        return replace(after, support=min(workspace.support, 0.5)), step, draft

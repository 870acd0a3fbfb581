"""A benchmark of tool calls under the harness's seven actions, by its own evaluator.

What is real: observe brings the descriptions of all tools into a prompt that had their
names alone; retrieve those that share most words with what was said last; a draft
proposes calls of tools, or words; check compares calls with the tools' schemas before
anything is done; revise writes a draft anew that a check found wrong; call-tool carries
the calls out, for good, and what they return is in the next prompt; submit says the
words, which ends a turn, and whoever gave the task may answer. An episode is over when
the benchmark says so, and is judged by its official evaluator as it stands.
"""

from __future__ import annotations

import re
from collections.abc import Hashable
from dataclasses import replace
from typing import ClassVar, Literal, get_args

import numpy as np

from jerp.bridge.executor import Completion, Request, Sampling
from jerp.domains.base import Effect, Feedback, Workspace
from jerp.domains.benchmark import Benchmark, BenchmarkSession, Reply, ToolSpec
from jerp.domains.benchmark_domain import BenchmarkDomain
from jerp.domains.controlled.criteria import checked
from jerp.domains.tool_use.checks import CHECKS, draft_faults
from jerp.domains.tool_use.conversation import Conversation, Draft, Turn
from jerp.domains.tool_use.drafts import read_draft
from jerp.domains.tool_use.live_sessions import LiveSessions
from jerp.domains.tool_use.prompt import (
    described,
    native_messages,
    native_tools,
    text_messages,
)
from jerp.harness.actions import Action
from jerp.ops.checks import check_choice
from jerp.records import ProcessStep, Task, Verdict

__all__ = ["Calling", "ToolUseDomain"]

Calling = Literal["text", "native"]
"""How tools are called: in words that are read, or in the protocol's own form."""

NEAREST = 5
"""Tools that a retrieval brings."""


class ToolUseDomain(BenchmarkDomain):
    """Conversations in which tools are called; see the module's docstring.

    Args:
      benchmark: where tasks come from; closed with the domain.
      split: part of it.
      calling: how the executor calls tools.
      policy: what the benchmark has the executor know in every task.
      sampling: of drafts; None draws up to 512 tokens at a temperature of 0.7.
    """

    needs_evidence: ClassVar[bool] = False
    runs_code: ClassVar[bool] = False
    ladder: ClassVar[int] = 3
    max_steps: ClassVar[int] = 40
    cost_budget: ClassVar[float] = 20.0

    def __init__(
        self,
        benchmark: Benchmark,
        split: str,
        *,
        calling: Calling = "text",
        policy: str = "",
        sampling: Sampling | None = None,
    ):
        super().__init__(benchmark, split)
        check_choice("calling", calling, get_args(Calling))
        self._calling, self._policy = calling, policy
        self._sampling = sampling or Sampling(temperature=0.7, max_tokens=512)
        self._live = LiveSessions(benchmark)

    def begin(self, task: Task, sample_index: int) -> Workspace:
        """A fresh conversation; the sample index is its seed."""
        session = self._live.take(task, sample_index, ())
        talk = Conversation(session.opening, tuple(session.tools))
        self._live.keep(task, sample_index, (), session)
        return Workspace(task=task, sample_index=sample_index, extra=talk)

    def legal(self, workspace: Workspace) -> np.ndarray:
        """`[A]` bool; calls are carried out, words submitted, new tools observed."""
        legal, talk = super().legal(workspace), _talk(workspace)
        if legal.any():
            legal[Action.OBSERVE] = len(talk.shown) < len(talk.tools)
        legal[Action.SUBMIT] &= not talk.draft.calls
        return legal

    def request(self, workspace: Workspace, action: int) -> Request | None:
        """The conversation, with the tools that were brought."""
        if action not in (Action.DRAFT, Action.REVISE):
            return None
        talk, feedback = _talk(workspace), None
        if action == Action.REVISE and workspace.feedback is not None:
            feedback = workspace.feedback.text
        native = self._calling == "native"
        messages = native_messages if native else text_messages
        return Request(
            messages(talk, self._policy, feedback=feedback),
            self._sampling,
            workspace.sample_index,
            tools=native_tools(talk.shown) if native else (),
        )

    def verify(self, task: Task, artefact: str | None, workspace: Workspace) -> Verdict:
        """The official judgement of the conversation as it stands."""
        talk = _talk(workspace)
        if talk.verdict is not None:
            return talk.verdict
        session = self._live.take(task, workspace.sample_index, talk.moves)
        verdict = session.score()
        self._live.keep(task, workspace.sample_index, talk.moves, session)
        return verdict

    def anchor(self, workspace: Workspace) -> Hashable:
        """What was done and said, what is in hand, and what is known of it."""
        talk = _talk(workspace)
        done = tuple((str(turn.draft), turn.replies) for turn in talk.turns)
        hand = (workspace.draft, workspace.revisions, workspace.checked)
        feedback = workspace.feedback and workspace.feedback.text
        return done, tuple(sorted(talk.brought)), hand, feedback

    def close(self) -> None:
        """Closes the benchmark, and the sessions of episodes that did not end."""
        self._live.close()
        super().close()

    def _observe(self, workspace: Workspace) -> Effect:
        after = replace(workspace, observed=True)
        return _brought(after, _talk(workspace).tools, "observe")

    def _retrieve(self, workspace: Workspace) -> Effect:
        return _brought(workspace, _nearest(_talk(workspace)), "retrieve")

    def _call_tool(self, workspace: Workspace) -> Effect:
        """Carries the calls out, one after another, whatever they return."""
        after, replies = self._carried_out(workspace)
        errors = sum(reply.error for reply in replies)
        told = "\n".join(reply.text for reply in replies)
        after = replace(after, findings=workspace.findings + bool(errors))
        step = ProcessStep(
            "call-tool",
            arguments=workspace.draft or "",
            error=bool(errors),
            new_facts=len(replies) - errors,
            tool_valid=not errors,
        )
        return after, step, told

    def _write(
        self, workspace: Workspace, action: int, completion: Completion
    ) -> Effect:
        revises = action == Action.REVISE
        draft = read_draft(completion)
        feedback = workspace.feedback.text if workspace.feedback else ""
        talk = replace(_talk(workspace), draft=draft)
        after = workspace.with_draft(str(draft), revises=revises)
        step = ProcessStep(
            "write",
            arguments=f"{len(talk.turns)} {sorted(talk.brought)} {feedback}",
            error=completion.status != "ok",
            # What is drafted after a refusal answers it.
            revises=revises or bool(talk.turns and talk.turns[-1].errors),
        )
        return replace(after, extra=talk), step, draft.fault or str(draft)

    def _check(self, workspace: Workspace) -> Effect:
        """Compares the draft with the schemas of the tools; nothing is executed."""
        talk = _talk(workspace)
        faults = draft_faults(talk.draft, talk.tools)
        text = "; ".join(faults.values()) or "no fault found"
        told = replace(workspace, feedback=Feedback(text, failed=bool(faults)))
        after, step = checked(told, tuple(faults), len(CHECKS))
        after = replace(
            after,
            support=float(not faults),
            findings=workspace.findings + len(faults),
        )
        return after, step, text

    def _submit(self, workspace: Workspace) -> Effect:
        after, replies = self._carried_out(workspace)
        step = ProcessStep("submit", arguments=workspace.draft or "")
        return after, step, replies[-1].text

    def _ends(self, after: Workspace, action: int) -> bool:
        return _talk(after).verdict is not None

    def _may_retrieve(self, workspace: Workspace) -> bool:
        talk = _talk(workspace)
        few = len(workspace.passages) < self.ladder
        return few and any(t.name not in talk.brought for t in _nearest(talk))

    def _may_call_tool(self, workspace: Workspace) -> bool:
        return bool(_talk(workspace).draft.calls)

    def _carried_out(self, workspace: Workspace) -> tuple[Workspace, list[Reply]]:
        """Makes the moves of the draft, and judges an episode that they end."""
        talk, task = _talk(workspace), workspace.task
        seed, replies = workspace.sample_index, []
        session = self._live.take(task, seed, talk.moves)
        for move in talk.draft.moves:
            replies.append(session.move(move))
            if replies[-1].ended:
                break
        texts = tuple(reply.text for reply in replies)
        turn = Turn(talk.draft, texts, sum(reply.error for reply in replies))
        after = talk.carried_out(turn, tuple(session.tools))
        if _over(talk.draft, replies):
            after = replace(after, verdict=_judged(session))
        else:
            self._live.keep(task, seed, after.moves, session)
        return _without_draft(workspace, after), replies


def _talk(workspace: Workspace) -> Conversation:
    talk = workspace.extra
    assert isinstance(talk, Conversation)  # begin gives one
    return talk


def _over(draft: Draft, replies: list[Reply]) -> bool:
    """It ended, or was handed in where nobody listens to words."""
    return replies[-1].ended or (not draft.calls and replies[-1].error)


def _judged(session: BenchmarkSession) -> Verdict:
    verdict = session.score()
    session.close()
    return verdict


def _without_draft(workspace: Workspace, talk: Conversation) -> Workspace:
    """After a turn: what is drafted next is another matter."""
    empty = workspace.with_draft("", revises=False)
    handed = workspace.draft if talk.verdict is not None else None
    return replace(empty, draft=handed, revisions=0, extra=talk)


def _brought(workspace: Workspace, tools: tuple[ToolSpec, ...], kind: str) -> Effect:
    """With descriptions of tools in the prompt."""
    talk = _talk(workspace)
    new = [tool for tool in tools if tool.name not in talk.brought]
    names = talk.brought | {tool.name for tool in new}
    text = "\n".join(map(described, new))
    step = ProcessStep(
        kind, arguments=", ".join(t.name for t in tools), new_facts=len(new)
    )
    if kind == "retrieve":
        workspace = replace(workspace, passages=(*workspace.passages, text))
    return replace(workspace, extra=replace(talk, brought=names)), step, text


def _nearest(talk: Conversation) -> tuple[ToolSpec, ...]:
    """Tools that share most words with what was said last; ties to the earlier."""
    wanted = _words(talk.heard)

    def shared(tool: ToolSpec) -> int:
        return len(wanted & _words(f"{tool.name} {tool.description}"))

    return tuple(sorted(talk.tools, key=shared, reverse=True)[:NEAREST])


def _words(text: str) -> set[str]:
    return set(re.findall(r"[a-z]{3,}", text.lower()))

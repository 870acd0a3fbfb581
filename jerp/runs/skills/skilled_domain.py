"""A domain whose executor reads a skill: in its system prompt; nothing else changes.

The skill of an episode is in its task, so that episodes with different skills, and with
none, run together in one session.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from jerp.bridge.executor import Completion, Message, Request
from jerp.bridge.session import HarnessDomain
from jerp.records import Task

__all__ = ["SkilledDomain", "skilled_task", "with_skill"]

HEADING = "Follow this procedure:"

SKILL = "skill as Markdown"
"""Where a task has its skill; no domain reads it."""


def with_skill(messages: Sequence[Message], skill: str | None) -> tuple[Message, ...]:
    r"""Messages whose system prompt ends with a skill.

    Args:
      messages: of a request.
      skill: as `render_skill` writes it; None changes nothing.

    Returns:
      The messages; where there was no system prompt the skill is one.

    Deviations: the paper has the skill before the system prompt, and in another place
      behind it. Here it stands behind.

    Reference: Peng et al., "WER", arXiv:2608.17587, sections 3 and 4.1.

    Example:
      >>> for message in with_skill([Message("user", "Go.")], "# Go\n"):
      ...     print(message.role, repr(message.content))
      system 'Follow this procedure:\n\n# Go'
      user 'Go.'
    """
    if skill is None:
        return tuple(messages)
    rest = list(messages)
    before = rest.pop(0).content if rest and rest[0].role == "system" else ""
    parts = [part for part in (before, HEADING, skill.strip()) if part]
    return (Message("system", "\n\n".join(parts)), *rest)


def skilled_task(task: Task, skill: str | None) -> Task:
    """The task with a skill, for `SkilledDomain`; with None, the task as it is."""
    if skill is None:
        return task
    return replace(task, payload={**task.payload, SKILL: skill})


class SkilledDomain:
    """A `HarnessDomain` that tells the executor the skill of each task.

    Args:
      inner: the domain; actions, tools and verifier stay its own.
    """

    def __init__(self, inner: HarnessDomain):
        self.inner = inner
        self.name, self.max_steps = inner.name, inner.max_steps

    def begin(self, task: Task, sample_index: int) -> Any:
        """A fresh workspace."""
        return self.inner.begin(task, sample_index)

    def legal(self, workspace: Any) -> np.ndarray:
        """`[A]` bool."""
        return self.inner.legal(workspace)

    def features(self, workspace: Any) -> np.ndarray:
        """`[F]` float32."""
        return self.inner.features(workspace)

    def request(self, workspace: Any, action: int) -> Request | None:
        """What the domain asks, with the task's skill in the system prompt."""
        request = self.inner.request(workspace, action)
        if request is None:
            return None
        skill = workspace.task.payload.get(SKILL)
        return replace(request, messages=with_skill(request.messages, skill))

    def advance(
        self, workspace: Any, action: int, completion: Completion | None
    ) -> Any:
        """The workspace after `action`."""
        return self.inner.advance(workspace, action, completion)

    def anchor(self, workspace: Any) -> Hashable:
        """Of the domain, and the skill: later requests depend on it."""
        skill = workspace.task.payload.get(SKILL)
        return skill, self.inner.anchor(workspace)

"""Walks every state of a domain's episodes that legal actions can reach.

Afterwards a response store behind the executor holds every request, and a verdict store
behind the domain every test run, that any controller can ask for: experiments then
replay with neither model nor sandbox. States are told apart by `domain.anchor`; the
step budget is ignored, so the walk reaches at least what episodes reach.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np

from jerp.bridge.executor import Completion, Executor, Message, Request
from jerp.domains.base import ControlledDomain, Workspace
from jerp.errors import ExecutorError
from jerp.records import Task

__all__ = ["Reach", "TaskReach", "explore"]

_UNANSWERED = ("timeout", "error")


@dataclass(frozen=True)
class TaskReach:
    """What can be reached of one task, over all sample indices.

    Attributes:
      states: distinct anchors.
      requests: distinct requests, sample index included.
      prompts: distinct message lists.
    """

    task: str
    states: int
    requests: int
    prompts: int


@dataclass(frozen=True)
class Reach:
    """What can be reached of all tasks; totals count once what tasks share.

    Attributes:
      waves: batched calls of the executor.
    """

    tasks: tuple[TaskReach, ...]
    requests: int
    prompts: int
    waves: int


_Edge = tuple[Workspace, int, Request | None]


def explore(
    domain: ControlledDomain,
    tasks: Sequence[Task],
    sample_indices: Sequence[int],
    executor: Executor,
    *,
    workers: int = 2,
) -> Reach:
    """Breadth-first over all tasks and sample indices at once.

    Each wave is one `executor.complete` of the requests not asked before; `advance`
    (where sandboxed tests run) is spread over `workers` threads.

    Raises:
      ExecutorError: a request timed out or failed; what was answered is in the store,
        so that the next walk continues.
    """
    return asyncio.run(_explore(domain, tasks, sample_indices, executor, workers))


async def _explore(domain, tasks, sample_indices, executor, workers) -> Reach:
    frontier = [domain.begin(task, i) for task in tasks for i in sample_indices]
    seen = {_state(domain, workspace) for workspace in frontier}
    asked: dict[str, set[Request]] = {task.key: set() for task in tasks}
    answers: dict[Request, Completion] = {}
    waves = 0
    with ThreadPoolExecutor(workers) as pool:
        while frontier:
            edges = [edge for w in frontier for edge in _edges(domain, w)]
            for workspace, _, request in edges:
                if request is not None:
                    asked[workspace.task.key].add(request)
            waves += await _answer(executor, edges, answers)
            reached = pool.map(lambda edge: _advance(domain, edge, answers), edges)
            frontier = []
            for workspace in reached:
                state = _state(domain, workspace)
                if state not in seen:
                    seen.add(state)
                    frontier.append(workspace)
    return _summary(asked, seen, answers, waves)


def _state(domain: ControlledDomain, workspace: Workspace) -> tuple:
    """Anchor of a state, and whether the episode is over."""
    return (
        workspace.task.key,
        workspace.sample_index,
        domain.anchor(workspace),
        workspace.terminated,
    )


def _edges(domain: ControlledDomain, workspace: Workspace) -> list[_Edge]:
    legal = np.flatnonzero(domain.legal(workspace)).tolist()
    return [(workspace, a, domain.request(workspace, a)) for a in legal]


async def _answer(executor: Executor, edges: list[_Edge], answers: dict) -> int:
    """Fills `answers` with what `edges` ask; 1 if that took a call, else 0."""
    wanted = [r for _, _, r in edges if r is not None and r not in answers]
    requests = list(dict.fromkeys(wanted))
    if not requests:
        return 0
    completions = await executor.complete(requests)
    failed = [c for c in completions if c.status in _UNANSWERED]
    if failed:
        raise ExecutorError(
            f"{len(failed)} of {len(requests)} requests were not answered "
            f"({failed[0].status}: {failed[0].error}); run again to continue"
        )
    answers.update(zip(requests, completions, strict=True))
    return 1


def _advance(domain: ControlledDomain, edge: _Edge, answers: dict) -> Workspace:
    workspace, action, request = edge
    completion = None if request is None else answers[request]
    return domain.timeless(domain.advance(workspace, action, completion))


def _summary(asked: dict, seen: set, answers: dict, waves: int) -> Reach:
    states = dict.fromkeys(asked, 0)
    for key, *_ in seen:
        states[key] += 1
    tasks = tuple(
        TaskReach(key, states[key], len(requests), len(_prompts(requests)))
        for key, requests in asked.items()
    )
    return Reach(tasks, len(answers), len(_prompts(answers)), waves)


def _prompts(requests) -> set[tuple[Message, ...]]:
    return {request.messages for request in requests}

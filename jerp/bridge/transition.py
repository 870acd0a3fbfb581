"""One action of one episode: what becomes of the workspace, and what it cost.

Whatever breaks in a domain (a verifier that raises, a sandbox that fails, a score that
is none) ends this one episode as INFRASTRUCTURE, with the error in its transcript. Any
other `JerpError` (nothing recorded, a full disk) is raised: it concerns every episode.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Hashable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from jerp.bridge.executor import FAILED, Completion, Request
from jerp.errors import JerpError, SandboxError
from jerp.harness.actions import ACTIONS
from jerp.typing import USAGE_KINDS, Outcome

__all__ = ["NO_USAGE", "Episode", "Job", "advance", "begin", "plan"]

logger = logging.getLogger(__name__)

NO_USAGE = (0.0,) * len(USAGE_KINDS)


@dataclass(frozen=True)
class Episode:
    """An open episode after its latest step; replaced by the next, never changed.

    Attributes:
      anchors: of the states in which actions were taken, one a step.
      reward, usage: of the latest step.
      outcome: as if nobody stepped it any more.
      failed: ended as INFRASTRUCTURE.
    """

    workspace: Any
    feature: np.ndarray
    legal: np.ndarray
    anchors: tuple[Hashable, ...] = ()
    reward: float = 0.0
    outcome: Outcome = Outcome.TRUNCATED
    usage: tuple[float, ...] = NO_USAGE
    failed: bool = False

    @property
    def terminated(self) -> bool:
        """Submitted and judged."""
        return self.workspace.terminated and not self.failed

    @property
    def truncated(self) -> bool:
        """Out of budget, or ended by a failure."""
        return self.failed or (self.workspace.truncated and not self.terminated)


@dataclass(frozen=True)
class Job:
    """What one live episode does in a step, and what it asks of the executor."""

    action: int
    episode: Episode
    request: Request | None = None
    error: str = ""


def begin(domain: Any, workspace: Any) -> Episode:
    """The episode of a fresh workspace."""
    return Episode(workspace, *_view(domain, workspace))


def plan(domain: Any, episode: Episode, action: int) -> Job:
    """What a legal `action` asks."""
    try:
        return Job(action, episode, domain.request(episode.workspace, action))
    except Exception as error:
        return Job(action, episode, error=_broken(episode, action, error))


def advance(domain: Any, job: Job, completion: Completion | None) -> Episode:
    """The episode after the job's action; `completion` answers its request."""
    if job.error:
        return _fail(job, completion, job.error)
    if completion is not None and completion.status in FAILED:
        return _fail(job, completion, completion.error or "no answer")
    try:
        before = job.episode.workspace
        workspace = domain.advance(before, job.action, completion)
        reward, outcome = _judgement(workspace)
        return Episode(
            workspace,
            *_view(domain, workspace),
            anchors=(*job.episode.anchors, domain.anchor(before)),
            reward=reward,
            outcome=outcome,
            usage=_usage(completion),
        )
    except Exception as error:
        return _fail(job, completion, _broken(job.episode, job.action, error))


def _view(domain: Any, workspace: Any) -> tuple[np.ndarray, np.ndarray]:
    feature = np.asarray(domain.features(workspace), np.float32)
    return feature, np.asarray(domain.legal(workspace), np.bool_)


def _judgement(workspace: Any) -> tuple[float, Outcome]:
    if not workspace.terminated:
        return 0.0, Outcome.TRUNCATED
    score = workspace.verdict.score
    if not (math.isfinite(score) and 0 <= score <= 1):
        raise ValueError(f"the verifier's score is {score}, expected one in [0, 1]")
    return score, Outcome.SUCCESS if workspace.verdict.success else Outcome.FAILURE


def _fail(job: Job, completion: Completion | None, error: str) -> Episode:
    """Ends the episode where it stands: the failed action changed nothing."""
    entry = {"action": ACTIONS[job.action], "observation": "", "error": error}
    if completion is not None:
        entry |= {"completion": completion.text, "status": completion.status}
    workspace = job.episode.workspace
    return replace(
        job.episode,
        workspace=replace(
            workspace, transcript=(*workspace.transcript, entry), truncated=True
        ),
        legal=np.zeros_like(job.episode.legal),
        # The state is not asked for its anchor: it may be what broke.
        anchors=(*job.episode.anchors, ("failed", len(job.episode.anchors))),
        reward=0.0,
        outcome=Outcome.INFRASTRUCTURE,
        usage=_usage(completion),
        failed=True,
    )


def _broken(episode: Episode, action: int, error: Exception) -> str:
    """What broke, in words; raises what is no failure of one episode."""
    if isinstance(error, JerpError) and not isinstance(error, SandboxError):
        raise error
    logger.warning(
        "%s: %s raised; the episode counts as infrastructure",
        episode.workspace.task.key,
        ACTIONS[action],
        exc_info=error,
    )
    return f"{type(error).__name__}: {error}"


def _usage(completion: Completion | None) -> tuple[float, ...]:
    if completion is None:
        return NO_USAGE
    tokens = completion.tokens_in, completion.tokens_out
    return 1.0, *tokens, completion.seconds, completion.dollars

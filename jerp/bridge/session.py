"""A domain's episodes as arrays: the session that a scan or a host loop steps.

Text lives here, behind an integer handle. A `HarnessDomain` says what an action asks of
the executor and what becomes of a workspace; the `Session` batches the executor calls
of all episodes. What fails in one episode becomes that episode's status; what concerns
every episode (a `JerpError`: no answer to replay, a full disk) is raised.
"""

from __future__ import annotations

import asyncio
from collections.abc import Hashable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any, ClassVar, NamedTuple, Protocol, runtime_checkable

import numpy as np
from numpy.typing import ArrayLike

from jerp.bridge.blocking import wait_for
from jerp.bridge.executor import Completion, Executor, Request, complete_checked
from jerp.bridge.transition import NO_USAGE, Episode, Job, advance, begin, plan
from jerp.errors import ConfigError, StoreMissError
from jerp.records import ProcessStep, Task, Verdict

__all__ = ["HarnessDomain", "Session", "SessionStep", "Workspace"]


class Workspace(Protocol):
    """One episode in progress, as the session reads it.

    A frozen dataclass: a domain makes the next one, and the session itself adds the
    transcript entry of a step that failed.
    """

    @property
    def task(self) -> Task:
        """The task at hand."""
        ...

    @property
    def sample_index(self) -> int:
        """Sample index of every request of this episode."""
        ...

    @property
    def terminated(self) -> bool:
        """Submitted and judged."""
        ...

    @property
    def truncated(self) -> bool:
        """The step budget ran out before a submit."""
        ...

    @property
    def verdict(self) -> Verdict | None:
        """The verifier's judgement, once submitted."""
        ...

    @property
    def trace(self) -> tuple[ProcessStep, ...]:
        """What each step did."""
        ...

    @property
    def transcript(self) -> tuple[dict[str, Any], ...]:
        """JSON-able text of each step."""
        ...


class HarnessDomain(Protocol):
    """Tasks, what actions mean on them, and their verifier.

    All methods are deterministic given their arguments, so that an episode replays from
    recorded completions; `request` and `advance` never mutate a workspace.
    """

    name: ClassVar[str]
    """In tables and file names."""
    max_steps: ClassVar[int]
    """Step budget of an episode."""

    def begin(self, task: Task, sample_index: int) -> Any:
        """A fresh workspace."""
        ...

    def legal(self, workspace: Any) -> np.ndarray:
        """`[A]` bool; at least one is legal until the episode ends."""
        ...

    def features(self, workspace: Any) -> np.ndarray:
        """`[F]` float32, see `jerp.harness.state`."""
        ...

    def request(self, workspace: Any, action: int) -> Request | None:
        """What `action` asks of the executor; None where it asks nothing."""
        ...

    def advance(
        self, workspace: Any, action: int, completion: Completion | None
    ) -> Any:
        """The workspace after `action`: tools and tests run, a submit is judged."""
        ...

    def anchor(self, workspace: Any) -> Hashable:
        """All that later requests, legality and score depend on, but no counters."""
        ...


@runtime_checkable
class _Flushing(Protocol):
    def flush(self) -> None: ...


class SessionStep(NamedTuple):
    """What one step of `B` episodes came to. NumPy arrays.

    Attributes:
      feature: `[B, F]` float32, after the step; an ended episode keeps its last.
      legal: `[B, A]` bool, after the step; all False once ended.
      reward: `[B]` float32, the verdict's score where this step submitted, else 0.
      terminated: `[B]` bool, submitted and judged.
      truncated: `[B]` bool, out of budget, or ended by a failure.
      outcome: `[B]` int32, a `jerp.typing.Outcome`; that of an episode which goes on is
        TRUNCATED, which is what it would be if nobody stepped it any more.
      usage: `[B, U]` float32, of this step, see `jerp.typing.USAGE_KINDS`.
    """

    feature: np.ndarray
    legal: np.ndarray
    reward: np.ndarray
    terminated: np.ndarray
    truncated: np.ndarray
    outcome: np.ndarray
    usage: np.ndarray


class Session:
    """Episodes of one domain around one frozen executor.

    `step` waits; `step_async` is for callers that have an event loop. Verifiers and
    tools run in a few threads, because sandboxed tests wait for processes. Use it as a
    context manager, or leave it to the garbage collector.

    Args:
      domain: what actions mean.
      executor: answers the requests of all episodes of a step in one call.
      workers: threads that advance episodes; 1 advances them one after another.
    """

    def __init__(self, domain: HarnessDomain, executor: Executor, *, workers: int = 2):
        if workers < 1:
            raise ConfigError(f"workers: expected at least 1, got {workers}")
        self.domain = domain
        self.executor = executor
        self._pool = ThreadPoolExecutor(workers, "jerp-advance")
        self._workers = workers
        self._episodes: dict[int, Episode] = {}
        self._next_handle = 0

    def open(
        self, tasks: Sequence[Task], sample_index: ArrayLike
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Begins one episode a task.

        Args:
          tasks: `B` of them; one task may occur often.
          sample_index: `[B]` int32, of every request of the episode.

        Returns:
          Handles `[B]` int32, features `[B, F]` float32, legal actions `[B, A]` bool.
        """
        samples = np.asarray(sample_index)
        if not tasks or samples.shape != (len(tasks),):
            raise ConfigError(
                f"sample_index: expected one for each of the {len(tasks)} tasks, got "
                f"shape {list(samples.shape)}; at least one task is needed"
            )
        handle = np.arange(
            self._next_handle, self._next_handle + len(tasks), dtype="i4"
        )
        self._next_handle += len(tasks)
        for h, task, sample in zip(handle, tasks, samples, strict=True):
            workspace = self.domain.begin(task, int(sample))
            self._episodes[int(h)] = begin(self.domain, workspace)
        episodes = [self._episodes[int(h)] for h in handle]
        return (
            handle,
            np.stack([e.feature for e in episodes]),
            np.stack([e.legal for e in episodes]),
        )

    def step(self, handle: ArrayLike, action: ArrayLike) -> SessionStep:
        """Takes one action in each episode; those that have ended ignore theirs.

        Raises:
          ConfigError: an action is illegal, or a handle not open.
          JerpError: of the executor or the domain; no episode has moved then.
        """
        jobs = self._plan(handle, action)
        return self._settle(handle, jobs, wait_for(self._ask(jobs)))

    async def step_async(self, handle: ArrayLike, action: ArrayLike) -> SessionStep:
        """`step` for a caller with an event loop; the executor runs in that loop."""
        jobs = self._plan(handle, action)
        completions = await self._ask(jobs)
        return await asyncio.to_thread(self._settle, handle, jobs, completions)

    def workspace(self, handle: int) -> Workspace:
        """The episode behind a handle, text included."""
        return self._find(handle).workspace

    def anchors(self, handle: int) -> tuple[Hashable, ...]:
        """The anchor of the state in which each step's action was taken."""
        return self._find(handle).anchors

    def close(self, handle: ArrayLike) -> None:
        """Forgets episodes."""
        for h in np.atleast_1d(np.asarray(handle)):
            self._episodes.pop(int(h), None)

    def flush(self) -> None:
        """Returns once the executor's store, if it has one, is on disk."""
        if isinstance(self.executor, _Flushing):
            self.executor.flush()

    def __enter__(self) -> Session:
        return self

    def __exit__(self, *error: object) -> None:
        self._pool.shutdown(wait=False, cancel_futures=True)

    def _find(self, handle: int) -> Episode:
        try:
            return self._episodes[int(handle)]
        except KeyError:
            raise ConfigError(
                f"handle: {int(handle)} is not open; closed episodes are forgotten"
            ) from None

    def _plan(self, handle: ArrayLike, action: ArrayLike) -> dict[int, Job]:
        jobs = {}
        for h, a in zip(np.asarray(handle), np.asarray(action), strict=True):
            episode = self._find(h)
            if episode.terminated or episode.truncated:
                continue
            if not (0 <= a < len(episode.legal) and episode.legal[a]):
                raise ConfigError(
                    f"action: {int(a)} is illegal in episode {int(h)} "
                    f"({episode.workspace.task.key}); legal are "
                    f"{np.flatnonzero(episode.legal).tolist()}"
                )
            jobs[int(h)] = plan(self.domain, episode, int(a))
        return jobs

    async def _ask(self, jobs: dict[int, Job]) -> list[Completion | None]:
        """One completion a job; None where it asks nothing."""
        asking = [job for job in jobs.values() if job.request is not None]
        if not asking:
            return [None] * len(jobs)
        requests = [job.request for job in asking if job.request is not None]
        try:
            answers = iter(await complete_checked(self.executor, requests))
        except StoreMissError as error:
            # The store names the request; whose it was is known here alone.
            missed = [j for j in asking if j.request in error.args[1:]] or asking
            task = missed[0].episode.workspace.task
            raise StoreMissError(
                f"{self.domain.name}, task {task.key}: {error}", *error.args[1:]
            ) from error
        return [None if j.request is None else next(answers) for j in jobs.values()]

    def _settle(
        self,
        handle: ArrayLike,
        jobs: dict[int, Job],
        completions: Sequence[Completion | None],
    ) -> SessionStep:
        step = partial(advance, self.domain)
        run = self._pool.map if self._workers > 1 and len(jobs) > 1 else map
        after = list(run(step, jobs.values(), completions))
        self._episodes |= dict(zip(jobs, after, strict=True))
        handles = [int(h) for h in np.asarray(handle)]
        episodes = [self._episodes[h] for h in handles]
        moved = [h in jobs for h in handles]
        reward = [e.reward * m for e, m in zip(episodes, moved, strict=True)]
        usage = [
            e.usage if m else NO_USAGE for e, m in zip(episodes, moved, strict=True)
        ]
        return SessionStep(
            feature=np.stack([e.feature for e in episodes]),
            legal=np.stack([e.legal for e in episodes]),
            reward=np.asarray(reward, np.float32),
            terminated=np.asarray([e.terminated for e in episodes], np.bool_),
            truncated=np.asarray([e.truncated for e in episodes], np.bool_),
            outcome=np.asarray([e.outcome for e in episodes], np.int32),
            usage=np.asarray(usage, np.float32),
        )

"""Requests in batches through a function that decodes jobs, in a thread of its own.

For models that another library computes. Batches are made of prompts of like length,
and each answer is handed over when its batch has ended. What request and sample index
decide, and what the batch may, is up to that function: `uniform_numbers` gives each job
draws of its own.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from itertools import count
from typing import Protocol

import jax
import jax.numpy as jnp
import numpy as np

from jerp.bridge.chat_jobs import ChatJobs, in_thread
from jerp.bridge.executor import Completion, OnAnswer, Request
from jerp.bridge.rows import Job
from jerp.errors import ConfigError

__all__ = ["BatchExecutor", "Decode", "uniform_numbers"]

_NUMBERS = 64
"""Drawn at once."""


class Decode(Protocol):
    """Decodes jobs to their ends."""

    def __call__(self, jobs: Sequence[Job], cancelled: Callable[[], bool]) -> None:
        """Fills in tokens and log-probabilities; stops early once `cancelled()`.

        Raises:
          MemoryError: so many jobs do not fit; they may be half done.
        """
        ...


class BatchExecutor:
    """An `EagerExecutor`; calls at once take turns, batch by batch.

    A batch for which the memory does not suffice is tried once more in halves; what
    does not fit then has status `error`.

    Args:
      chats: makes jobs and completions.
      decode: computes them.
      batch_size: the most jobs of one call of `decode`.
      fingerprint: of the model, and of all else that decides the numbers.
    """

    def __init__(
        self, chats: ChatJobs, decode: Decode, *, batch_size: int, fingerprint: str
    ):
        if batch_size < 1:
            raise ConfigError(f"batch_size: expected at least 1, got {batch_size}")
        self._chats, self._decode, self._batch_size = chats, decode, batch_size
        self._lock, self.fingerprint = threading.Lock(), fingerprint

    async def complete(self, requests: Sequence[Request]) -> list[Completion]:
        """Answers all requests, same length and order.

        A request that cannot be run has status `error`. A cancelled call stops the
        computation after the token under way.
        """
        return await self.complete_each(requests, lambda index, completion: None)

    async def complete_each(
        self, requests: Sequence[Request], on_answer: OnAnswer
    ) -> list[Completion]:
        """`complete`, handing over the completions of a batch when it has ended."""
        answers: dict[int, Completion] = {}
        jobs: dict[int, Job] = {}
        for index, request in enumerate(requests):
            prepared = self._chats.job(request)
            if isinstance(prepared, Job):
                jobs[index] = prepared
            else:
                answers[index] = prepared
                on_answer(index, prepared)
        waiting = sorted(jobs, key=lambda index: len(jobs[index].prompt))
        for start in range(0, len(waiting), self._batch_size):
            batch = waiting[start : start + self._batch_size]
            members = [jobs[index] for index in batch]
            ended = await in_thread(partial(self._in_turn, members))
            for index, job in zip(batch, ended, strict=True):
                answers[index] = self._completion(job, requests[index])
                on_answer(index, answers[index])
        return [answers[index] for index in range(len(requests))]

    def _completion(self, job: Job | Completion, request: Request) -> Completion:
        if isinstance(job, Completion):
            return job
        return self._chats.completion(job, request.sampling)

    def _in_turn(
        self, jobs: list[Job], cancelled: Callable[[], bool]
    ) -> list[Job | Completion]:
        with self._lock:
            if cancelled():  # while it waited; nobody looks at the result
                return []
            return self._fitting(jobs, cancelled, tries=2)

    def _fitting(
        self, jobs: list[Job], cancelled: Callable[[], bool], *, tries: int
    ) -> list[Job | Completion]:
        """The jobs, ended, or why one could not be."""
        fresh = [replace(job, tokens=[], log_probs=[]) for job in jobs]
        began = time.perf_counter()
        try:
            self._decode(fresh, cancelled)
        except MemoryError as error:
            if tries > 1 and len(jobs) > 1:
                half = len(jobs) // 2
                again = partial(self._fitting, cancelled=cancelled, tries=tries - 1)
                return again(jobs[:half]) + again(jobs[half:])
            reason = f"out of memory with a batch of {len(jobs)}: {error}"
            return [
                Completion(
                    "", "error", tokens_in=len(job.prompt), error=reason.strip(": ")
                )
                for job in jobs
            ]
        for job in fresh:
            job.seconds = (time.perf_counter() - began) / len(jobs)
        return list(fresh)


def uniform_numbers(seed: int) -> Iterator[float]:
    """Numbers in [0, 1) without end: those that the decoder of jerp draws for a job.

    Args:
      seed: of the job.

    Returns:
      Draw `n` is of `fold_in(key(seed), n)`, as `jerp.models.generate.decode` has it.

    Example:
      >>> numbers = uniform_numbers(3)
      >>> 0 <= next(numbers) < 1
      True
    """
    for start in count(step=_NUMBERS):
        yield from np.asarray(_numbers(np.uint32(seed), np.int32(start))).tolist()


@jax.jit
def _numbers(seed: jax.Array, start: jax.Array) -> jax.Array:
    key = jax.random.key(seed)

    def draw(number: jax.Array) -> jax.Array:
        return jax.random.uniform(jax.random.fold_in(key, number))

    return jax.vmap(draw)(start + jnp.arange(_NUMBERS, dtype=jnp.int32))

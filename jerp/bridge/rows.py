"""Requests as the batcher sees them, and the host's view of the decoding rows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import jax
import jax.numpy as jnp
import numpy as np

from jerp.models.generate import DecodeRows
from jerp.models.sampling import SamplingRows

__all__ = ["Job", "Rows"]

_keys = jax.jit(jax.vmap(jax.random.key))


@dataclass
class Job:
    """One request under way.

    Attributes:
      prompt: token ids, at least one.
      seed: of its draws.
      temperature, top_k, top_p, max_tokens: see `jerp.bridge.executor.Sampling`.
      ends: called with all tokens so far after each one; True ends the job.
      tokens, log_probs, seconds: the result; `seconds` is its share of the time.
    """

    prompt: tuple[int, ...]
    seed: int
    temperature: float
    top_k: int
    top_p: float
    max_tokens: int
    ends: Callable[[Sequence[int]], bool]
    tokens: list[int] = field(default_factory=list)
    log_probs: list[float] = field(default_factory=list)
    seconds: float = 0.0

    def take(self, tokens: Sequence[int], log_probs: Sequence[float]) -> bool:
        """Adds tokens up to the job's end; True once it has ended."""
        for token, log_prob in zip(tokens, log_probs, strict=True):
            self.tokens.append(token)
            self.log_probs.append(log_prob)
            if len(self.tokens) >= self.max_tokens or self.ends(self.tokens):
                return True
        return False


class Rows:
    """Which job is in which of `count` rows, and what the next chunk starts from."""

    def __init__(self, count: int):
        self._jobs: list[Job | None] = [None] * count
        self._token = np.zeros(count, np.int32)
        self._position = np.zeros(count, np.int32)
        self._drawn = np.zeros(count, np.int32)
        self._seed = np.zeros(count, np.uint32)
        self._temperature = np.zeros(count, np.float32)
        self._top_k = np.zeros(count, np.int32)
        self._top_p = np.ones(count, np.float32)

    @property
    def free(self) -> list[int]:
        """Rows without a job."""
        return [row for row, job in enumerate(self._jobs) if job is None]

    @property
    def active(self) -> list[Job]:
        """Jobs under way."""
        return [job for job in self._jobs if job is not None]

    def fill(self, row: int, job: Job) -> None:
        """Puts a job in a row; its last prompt token is the first to be decoded."""
        self._jobs[row] = job
        self._token[row] = job.prompt[-1]
        self._position[row] = len(job.prompt) - 1
        self._drawn[row] = 0
        self._seed[row] = job.seed
        self._temperature[row] = job.temperature
        self._top_k[row], self._top_p[row] = job.top_k, job.top_p

    def start(self) -> DecodeRows:
        """What the device needs."""
        return DecodeRows(
            token=jnp.asarray(self._token),
            position=jnp.asarray(self._position),
            drawn=jnp.asarray(self._drawn),
            keys=_keys(self._seed),
            sampling=SamplingRows(
                temperature=jnp.asarray(self._temperature),
                top_k=jnp.asarray(self._top_k),
                top_p=jnp.asarray(self._top_p),
            ),
        )

    def finish(self, tokens: np.ndarray, log_probs: np.ndarray) -> None:
        """Hands out a chunk `[B, N]` and empties the rows whose jobs have ended."""
        self._token = tokens[:, -1].copy()
        self._position += tokens.shape[1]
        self._drawn += tokens.shape[1]
        for row, job in enumerate(self._jobs):
            if job is None or job.take(tokens[row].tolist(), log_probs[row].tolist()):
                self._empty(row)

    def _empty(self, row: int) -> None:
        # an idle row stays at the start, and greedy, which needs no top-k or top-p
        self._jobs[row] = None
        self._token[row] = self._position[row] = self._drawn[row] = 0
        self._temperature[row] = self._top_k[row] = 0
        self._top_p[row] = 1

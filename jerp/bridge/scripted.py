"""A stand-in for a language model: answers from a script, fails on plan.

It is for tests, speed measurements and trying a domain out; its fingerprint says so
(`scripted:...`), and so does every table that its answers enter.
"""

from __future__ import annotations

import asyncio
import threading
from collections import Counter
from collections.abc import Callable, Mapping, Sequence

from jerp.bridge.executor import Completion, Request, Status
from jerp.errors import ConfigError, ExecutorError

__all__ = ["Script", "ScriptedExecutor"]

Script = Callable[[Request], str | Completion] | Mapping[str, str]
"""A function of the request, or texts by the content of its last message."""

GARBAGE = "}{ \x00\ufffd ))"
"""What a planned `malformed` answer reads."""


class ScriptedExecutor:
    """Answers every request from `script`, at once or after `latency`.

    Args:
      script: what to answer.
      name: tells scripts apart in a store; the fingerprint is `scripted:<name>`.
      latency: seconds that each call of `complete` takes.
      failures: status by number of the request, counted from 0 over all calls; such a
        request is not answered from the script.

    Attributes:
      calls: how often `complete` was called.
      requests: all requests, in order.
      statuses: how often each status was given.
    """

    def __init__(
        self,
        script: Script,
        *,
        name: str = "stand-in",
        latency: float = 0.0,
        failures: Mapping[int, Status] | None = None,
    ):
        if latency < 0:
            raise ConfigError(f"latency: expected >= 0 seconds, got {latency}")
        self._script = script
        self._latency = latency
        self._failures: Mapping[int, Status] = {} if failures is None else failures
        self._lock = threading.Lock()
        self.fingerprint = f"scripted:{name}"
        self.calls = 0
        self.requests: list[Request] = []
        self.statuses: Counter[Status] = Counter()

    async def complete(self, requests: Sequence[Request]) -> list[Completion]:
        """Answers all requests, same length and order.

        Raises:
          ExecutorError: a mapping has no text for a request; it names the prompt.
        """
        with self._lock:
            first = len(self.requests)
            self.calls += 1
            self.requests += requests
        if self._latency:
            await asyncio.sleep(self._latency)
        completions = [self._answer(first + i, r) for i, r in enumerate(requests)]
        with self._lock:
            self.statuses.update(c.status for c in completions)
        return completions

    def _answer(self, number: int, request: Request) -> Completion:
        failure = self._failures.get(number)
        if failure is not None:
            text = GARBAGE if failure == "malformed" else ""
            return Completion(text, failure, error=f"planned failure {number}")
        answer = self._text(request)
        if isinstance(answer, Completion):
            return answer
        status: Status = "ok" if answer.strip() else "empty"
        return Completion(
            text=answer,
            status=status,
            tokens_in=sum(len(m.content.split()) for m in request.messages),
            tokens_out=len(answer.split()),
        )

    def _text(self, request: Request) -> str | Completion:
        if not isinstance(self._script, Mapping):
            return self._script(request)
        prompt = request.messages[-1].content if request.messages else ""
        try:
            return self._script[prompt]
        except KeyError:
            raise ExecutorError(
                f"{self.fingerprint}: the script has no answer to {prompt[-80:]!r}"
            ) from None

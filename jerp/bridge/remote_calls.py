"""One request to an endpoint, through all its attempts, each of them charged."""

from __future__ import annotations

import asyncio
import logging
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

from jerp.bridge.api_key import ApiKey
from jerp.bridge.budget import Ledger
from jerp.bridge.chat_completions import (
    Reply,
    most_tokens_in,
    read_reply,
    request_body,
)
from jerp.bridge.concurrency import Limiter
from jerp.bridge.executor import Completion, Request, Status
from jerp.bridge.remote_settings import RemoteSettings
from jerp.bridge.retry import RETRIED, Failure, Timing, classify
from jerp.errors import ExecutorError, MissingExtraError

if TYPE_CHECKING:
    import openai

__all__ = ["Caller", "Stop", "Wire", "response_type"]

logger = logging.getLogger(__name__)

_STATUS: dict[str, Status]
_STATUS = {"timeout": "timeout", "empty": "empty", "refused": "refused"}


@dataclass
class Wire:
    """A connection pool and its limiter, of one event loop."""

    client: openai.AsyncOpenAI
    response_type: Any
    limiter: Limiter


class Stop:
    """The end of a call: set once, and everybody who waits wakes up."""

    def __init__(self, timing: Timing):
        self.error: Exception | None = None
        self._event, self._sleep = asyncio.Event(), timing.sleep

    def set(self, error: Exception) -> None:
        """Ends the call; the first error is the one that is raised."""
        self.error = self.error or error
        self._event.set()

    async def sleep(self, seconds: float) -> None:
        """Waits, but no longer than the call goes on."""
        waits = [
            asyncio.ensure_future(self._sleep(seconds)),
            asyncio.ensure_future(self._event.wait()),
        ]
        try:
            await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for wait in waits:
                wait.cancel()
            await asyncio.gather(*waits, return_exceptions=True)


@dataclass
class _Asked:
    """A request and what has become of it.

    Attributes:
      request: itself.
      body: its JSON.
      most: dollars that an attempt may cost.
      attempts: sent.
      dollars: charged for them.
      began: when the first was sent.
    """

    request: Request
    body: dict[str, Any]
    most: float
    attempts: int = 0
    dollars: float = 0.0
    began: float = 0.0


class Caller:
    """Asks one model; of all event loops.

    Args:
      model: its name at the endpoint.
      name: of the executor, for errors.
      settings: of the endpoint.
      key: what is scrubbed from all that a server says.
      ledger: the account.
      timing: clock and chance.
    """

    def __init__(
        self,
        model: str,
        name: str,
        settings: RemoteSettings,
        key: ApiKey,
        ledger: Ledger,
        timing: Timing,
    ):
        self._model, self._name, self._settings = model, name, settings
        self._key, self._ledger, self._timing = key, ledger, timing

    async def answer(self, wire: Wire, request: Request, stop: Stop) -> Completion:
        """The completion of a request; raises what concerns every request."""
        asked = _Asked(
            request,
            request_body(request, self._model, self._settings.wire),
            most=self._ledger.dollars(
                most_tokens_in(request), request.sampling.max_tokens
            ),
        )
        while True:
            admit = partial(self._admit, stop, asked.most)
            era = await wire.limiter.acquire(admit, stop.sleep)
            if asked.attempts == 0:
                asked.began = self._timing.clock()
            asked.attempts += 1
            reply = await self._attempt(wire, asked)
            if reply.failure is None:
                wire.limiter.succeeded()
                return self._done(asked, reply.completion)
            self._note(wire, reply.failure, era)
            delay = self._delay(asked, reply.failure)
            if delay is None:
                return self._done(asked, self._given_up(reply.failure, asked.attempts))
            self._ledger.retried(reply.failure.kind, delay)
            await stop.sleep(delay)

    def _delay(self, asked: _Asked, failure: Failure) -> float | None:
        """Seconds until the next attempt; None if there is none."""
        policy = self._settings.retry
        if failure.kind not in RETRIED or asked.attempts >= policy.max_attempts:
            return None
        delay = policy.delay(asked.attempts, failure, self._timing.uniform)
        end = asked.began + policy.request_seconds
        return delay if self._timing.clock() + delay < end else None

    def _done(self, asked: _Asked, completion: Completion) -> Completion:
        self._ledger.note("requests")
        seconds = self._timing.clock() - asked.began
        return replace(completion, seconds=seconds, dollars=asked.dollars)

    def _admit(self, stop: Stop, most: float, can_wait: bool) -> bool:
        if stop.error is not None:
            raise stop.error
        return self._ledger.admit(most, can_wait)

    async def _attempt(self, wire: Wire, asked: _Asked) -> Reply:
        """One attempt, whose place is held: sent, charged, and the place given back."""
        policy = self._settings.retry
        left = asked.began + policy.request_seconds - self._timing.clock()
        left = min(policy.attempt_seconds, left, self._ledger.seconds_left)
        tokens, billed = None, True  # as when it is cancelled
        try:
            reply = await self._send(wire, asked, max(0.0, left))
            tokens = reply.tokens
            billed = reply.failure is None or reply.failure.may_be_billed
        finally:
            asked.dollars += self._ledger.settle(asked.most, tokens, billed=billed)
            wire.limiter.release()
        return reply

    async def _send(self, wire: Wire, asked: _Asked, seconds: float) -> Reply:
        try:
            async with asyncio.timeout(seconds):
                response = await wire.client.post(
                    "/chat/completions", cast_to=wire.response_type, body=asked.body
                )
        except Exception as error:
            return Reply(failure=classify(error, self._timing.wall))
        content = self._key.scrub_body(response.content)
        kind = response.headers.get("content-type", "")
        return self._of_this_model(read_reply(content, kind, asked.request))

    def _of_this_model(self, reply: Reply) -> Reply:
        """The reply, or the failure that it is another model's."""
        if reply.failure is not None and not reply.model:
            return reply
        before = self._ledger.saw(reply.model, reply.system_fingerprint)
        if before:
            logger.warning("%s: %r answers after %s", self._name, reply.model, before)
        declared = self._settings.system_fingerprint
        if not self._is_ours(reply.model) and self._settings.other_model == "refuse":
            problem = (
                f"asked {self._model!r}, and {reply.model!r} answered; name it in "
                "served_as if it is the same"
            )
        elif declared and reply.system_fingerprint != declared:
            got = reply.system_fingerprint
            problem = f"system_fingerprint: expected {declared!r}, got {got!r}"
        else:
            return reply
        return replace(reply, failure=Failure("other_model", problem))

    def _is_ours(self, served: str) -> bool:
        names = (self._model, *self._settings.served_as, "")
        return served in names or served.startswith(f"{self._model}-")

    def _note(self, wire: Wire, failure: Failure, era: int) -> None:
        if failure.kind == "rate_limit":
            self._ledger.note("rate_limited")
        if failure.is_overload:
            pause, longest = failure.retry_after, self._settings.retry.request_seconds
            # Longer than any request may take, it is this request's end alone.
            is_short = pause is not None and pause <= longest
            wire.limiter.overloaded(era, pause if is_short else None)

    def _given_up(self, failure: Failure, attempts: int) -> Completion:
        said = self._key.scrub(failure.message)
        if failure.kind == "fatal":
            key = self._settings.api_key_env
            remedy = "" if self._key.is_set else f"; {key} is not set"
            raise ExecutorError(f"{self._name} refuses all requests: {said}{remedy}")
        times = "1 attempt" if attempts == 1 else f"{attempts} attempts"
        return Completion(
            "",
            _STATUS.get(failure.kind, "error"),
            error=f"{failure.kind} after {times}: {said}",
        )


def response_type() -> Any:
    """The type of the client's responses; an error names the extra to install."""
    try:
        import httpx2
        import openai  # noqa: F401
    except ImportError as error:
        raise MissingExtraError("openai", "remote") from error
    return httpx2.Response

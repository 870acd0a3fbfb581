"""Which failures of an endpoint are tried again, and after how long.

A failure has a kind; `RETRIED` are those that may pass. `fatal` ones concern every
request alike (no key, no such model) and end the run; the others are one request's.
"""

from __future__ import annotations

import asyncio
import email.utils
import random
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from jerp.errors import ConfigError

__all__ = ["RETRIED", "Failure", "FailureKind", "RetryPolicy", "Timing", "classify"]

FailureKind = Literal[
    "rate_limit",
    "server",
    "timeout",
    "connection",
    "garbled",
    "empty",
    "other_model",
    "rejected",
    "refused",
    "fatal",
]

RETRIED = frozenset(
    {"rate_limit", "server", "timeout", "connection", "garbled", "empty", "other_model"}
)
"""Kinds that may pass when the same request is sent again."""

_FATAL_STATUS = frozenset({401, 402, 403, 404})
_PASSING_STATUS = frozenset({408, 409, 425})
_OVERLOADED_STATUS = frozenset({429, 503})
_NO_MONEY = frozenset({"insufficient_quota", "billing_hard_limit_reached"})
_FILTERS = ("content_filter", "content_policy", "moderation", "safety")
_SHOWN = 300


@dataclass(frozen=True)
class Failure:
    """Why an attempt gave no answer.

    Attributes:
      kind: decides what is done about it.
      message: what the server or the client said.
      retry_after: seconds that the server asked to wait, if it did.
      is_overload: the server has too much to do: fewer requests should be under way.
      may_be_billed: the server may have done the work and charge for it.
    """

    kind: FailureKind
    message: str
    retry_after: float | None = None
    is_overload: bool = False
    may_be_billed: bool = False


@dataclass(frozen=True)
class Timing:
    """Where time and chance come from.

    Attributes:
      clock: seconds that only grow.
      wall: seconds since 1970, for dates that servers send.
      sleep: waits.
      uniform: draws in [0, 1); it decides waits, never an answer.
    """

    clock: Callable[[], float] = time.monotonic
    wall: Callable[[], float] = time.time
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep
    uniform: Callable[[], float] = random.random


@dataclass(frozen=True)
class RetryPolicy:
    """How often and how long a request is tried.

    Attributes:
      max_attempts: >= 1, of one request.
      base_seconds: most seconds before the second attempt; doubled for each further.
      cap_seconds: most seconds between two attempts, unless the server asks for more.
      attempt_seconds: an attempt that takes longer is given up.
      request_seconds: deadline of a request, from its first attempt, waits included.
    """

    max_attempts: int = 10
    base_seconds: float = 0.5
    cap_seconds: float = 30.0
    attempt_seconds: float = 120.0
    request_seconds: float = 600.0

    def __post_init__(self):
        if self.max_attempts < 1:
            raise ConfigError(f"max_attempts: expected >= 1, got {self.max_attempts}")
        for name in ("base_seconds", "cap_seconds"):
            if getattr(self, name) < 0:
                raise ConfigError(f"{name}: expected >= 0, got {getattr(self, name)}")
        for name in ("attempt_seconds", "request_seconds"):
            if not getattr(self, name) > 0:
                raise ConfigError(f"{name}: expected > 0, got {getattr(self, name)}")

    def delay(
        self, attempt: int, failure: Failure, uniform: Callable[[], float]
    ) -> float:
        """Seconds to wait after the `attempt`-th attempt, counted from 1.

            u * min(cap, base * 2^(attempt - 1)),  u ~ U[0, 1)

        and, where the server said when to come back, not before that: then `base`
        alone spreads those that it told the same.

        Reference: Brooker, "Exponential Backoff And Jitter", 2015: full jitter.
        """
        if failure.retry_after is not None:
            return failure.retry_after + uniform() * self.base_seconds
        return uniform() * min(self.cap_seconds, self.base_seconds * 2 ** (attempt - 1))


def classify(error: Exception, wall: Callable[[], float]) -> Failure:
    """The failure behind an exception of the client.

    Args:
      error: what was raised.
      wall: seconds since 1970, against which dates are read.
    """
    import openai

    if isinstance(error, TimeoutError | openai.APITimeoutError):
        # What is late for being one of too many is late again, among as many.
        return Failure(
            "timeout", "no whole answer in time", is_overload=True, may_be_billed=True
        )
    if isinstance(error, openai.APIStatusError):
        after = retry_after(error.response.headers, wall())
        return _by_status(error.status_code, error.body, after)
    if isinstance(error, openai.APIConnectionError):
        cause = error.__cause__
        reason = f"{type(cause).__name__}: {cause}" if cause else str(error)
        # A connection that was never made has carried no request.
        never_sent = "Connect" in type(cause).__name__
        return Failure("connection", reason, may_be_billed=not never_sent)
    if isinstance(error, ValueError):
        # A body that does not fit its own headers, such as broken compression.
        return Failure("garbled", str(error)[:_SHOWN], may_be_billed=True)
    raise error


def _by_status(status: int, body: Any, after: float | None) -> Failure:
    message, code = _said(body)
    message = f"HTTP {status}: {message}" if message else f"HTTP {status}"
    overload = status in _OVERLOADED_STATUS
    if status == 429 and code not in _NO_MONEY:
        return Failure("rate_limit", message, after, overload)
    if status >= 500 or status in _PASSING_STATUS:
        return Failure("server", message, after, overload)
    if status in _FATAL_STATUS or status == 429:
        return Failure("fatal", message)
    if any(word in code for word in _FILTERS):
        return Failure("refused", message)
    return Failure("rejected", message)


def _said(body: Any) -> tuple[str, str]:
    """Message and code of an error body of any form."""
    inner = body.get("error", body) if isinstance(body, dict) else body
    if not isinstance(inner, dict):
        return " ".join(str(inner or "").split())[:_SHOWN], ""
    message = " ".join(str(inner.get("message") or "").split())[:_SHOWN]
    code = f"{inner.get('code') or ''}" or f"{inner.get('type') or ''}"
    return message, code


def retry_after(headers: Mapping[str, str], now: float) -> float | None:
    """Seconds that a response's headers ask to wait; None if they do not say.

    Args:
      headers: of the response, with any case; `Retry-After` is seconds or a date.
      now: seconds since 1970.

    Example:
      >>> retry_after({"retry-after": "Thu, 01 Jan 1970 00:00:30 GMT"}, 10.0)
      20.0
    """
    text = headers.get("retry-after-ms")
    scale = 1000.0
    if text is None:
        text, scale = headers.get("retry-after"), 1.0
    if text is None:
        return None
    try:
        seconds = float(text) / scale
    except ValueError:
        try:
            seconds = email.utils.parsedate_to_datetime(text).timestamp() - now
        except (ValueError, OverflowError):
            return None
    return max(0.0, seconds) if seconds < float("inf") else None

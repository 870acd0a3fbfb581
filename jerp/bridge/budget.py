"""What a run may spend, what it has spent, and the end of it.

Every attempt is a request. A rejected one (429, 4xx, 5xx) costs no tokens; an answered
one what the endpoint counts; one that was cut off may have been billed, and is charged
with the most that it can have cost. An attempt begins only if that most fits under the
cap together with all that are under way, so that a cap in dollars holds.
"""

from __future__ import annotations

import json
import threading
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from jerp.errors import ConfigError, ExecutorError, InputError

__all__ = [
    "BudgetExceededError",
    "Caps",
    "Ledger",
    "Price",
    "RemoteUsage",
    "load_prices",
]


class BudgetExceededError(ExecutorError):
    """A cap was reached: nothing more is asked, and what was answered is kept."""


@dataclass(frozen=True)
class Caps:
    """What a run may spend at most; None is no cap.

    Attributes:
      dollars: by the price table, attempts that may have been billed included.
      requests: attempts sent.
      seconds: from the first attempt on.
    """

    dollars: float | None = None
    requests: int | None = None
    seconds: float | None = None

    def __post_init__(self):
        for name in ("dollars", "requests", "seconds"):
            value = getattr(self, name)
            if value is not None and not value >= 0:
                raise ConfigError(f"{name}: expected >= 0 or None, got {value}")


@dataclass(frozen=True)
class Price:
    """Dollars per million tokens."""

    per_million_in: float
    per_million_out: float

    def __post_init__(self):
        for name in ("per_million_in", "per_million_out"):
            if not 0 <= getattr(self, name) < float("inf"):
                raise ConfigError(f"{name}: expected >= 0, got {getattr(self, name)}")

    def dollars(self, tokens_in: int, tokens_out: int) -> float:
        """What these tokens cost."""
        return (
            self.per_million_in * tokens_in + self.per_million_out * tokens_out
        ) / 1e6


def load_prices(path: str | Path) -> dict[str, Price]:
    """A price table: `{"model": {"in": dollars, "out": dollars}}` per million tokens.

    Raises:
      InputError: the file is no such table.
    """
    try:
        table = json.loads(Path(path).read_text(encoding="utf-8"))
        return {
            model: Price(float(price["in"]), float(price["out"]))
            for model, price in table.items()
        }
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise InputError(
            f'{path}: expected {{"model": {{"in": dollars, "out": dollars}}}} for a '
            f"million tokens, got something else ({type(error).__name__}: {error})"
        ) from error


@dataclass(frozen=True)
class RemoteUsage:
    """What an executor has done so far.

    Attributes:
      requests: given an answer or given up.
      attempts: sent.
      retries: attempts after the first, by the kind of failure before them.
      tokens_in: of attempts whose tokens the endpoint counted.
      tokens_out: likewise.
      dollars: of all attempts.
      dollars_unconfirmed: of these, for attempts that nobody counted.
      rate_limited: answers with status 429.
      seconds_waited: between attempts, all requests together.
      concurrency: how many requests may be under way now.
      in_flight: how many are.
      models: names that answers came from, and how many.
      system_fingerprints: what the endpoint said that it runs, and how often.
    """

    requests: int = 0
    attempts: int = 0
    retries: Mapping[str, int] = field(default_factory=dict)
    tokens_in: int = 0
    tokens_out: int = 0
    dollars: float = 0.0
    dollars_unconfirmed: float = 0.0
    rate_limited: int = 0
    seconds_waited: float = 0.0
    concurrency: int = 0
    in_flight: int = 0
    models: Mapping[str, int] = field(default_factory=dict)
    system_fingerprints: Mapping[str, int] = field(default_factory=dict)

    def __str__(self) -> str:
        """One line, for a progress display."""
        retries = sum(self.retries.values())
        return (
            f"{self.requests} requests, {self.attempts} attempts, {retries} retries "
            f"({self.rate_limited} of 429), {self.tokens_in}+{self.tokens_out} tokens, "
            f"${self.dollars:.4f}, {self.in_flight}/{self.concurrency} under way"
        )


class Ledger:
    """Keeps the account of one executor, from any thread.

    Args:
      caps: what may be spent.
      price: of the model; None where it is not known.
      clock: seconds that only grow.
    """

    def __init__(self, caps: Caps, price: Price | None, clock: Callable[[], float]):
        if caps.dollars is not None and price is None:
            raise ConfigError(
                "caps.dollars: expected a price of the model, got none; give one in "
                "prices, or cap requests or seconds"
            )
        self._caps, self._price, self._clock = caps, price, clock
        self._lock = threading.Lock()
        self._began: float | None = None
        self._reserved = 0.0
        self._count: Counter[str] = Counter()
        self._sum: dict[str, float] = dict.fromkeys(
            ("dollars", "unconfirmed", "wait"), 0
        )
        self._retries: Counter[str] = Counter()
        self._models: Counter[str] = Counter()
        self._system_fingerprints: Counter[str] = Counter()

    def dollars(self, tokens_in: int, tokens_out: int) -> float:
        """What tokens cost; 0 without a price."""
        return self._price.dollars(tokens_in, tokens_out) if self._price else 0.0

    @property
    def seconds_left(self) -> float:
        """Until the cap on seconds."""
        if self._caps.seconds is None or self._began is None:
            return float("inf")
        return self._began + self._caps.seconds - self._clock()

    def admit(self, most: float, can_wait: bool) -> bool:
        """Counts an attempt that costs at most `most` dollars as begun.

        Returns:
          False if it may begin once others have cost less than they might.

        Raises:
          BudgetExceededError: it may not begin.
        """
        caps = self._caps
        with self._lock:
            if self._began is None:
                self._began = self._clock()
            attempts, spent = self._count["attempts"], self._sum["dollars"]
            if caps.requests is not None and attempts >= caps.requests:
                raise self._exceeded("requests", caps.requests, attempts)
            if caps.seconds is not None and self.seconds_left <= 0:
                passed = round(self._clock() - self._began, 1)
                raise self._exceeded("seconds", caps.seconds, passed)
            if (
                caps.dollars is not None
                and spent + self._reserved + most > caps.dollars
            ):
                if can_wait:
                    return False
                raise self._exceeded("dollars", caps.dollars, round(spent, 6))
            self._count["attempts"] += 1
            self._reserved += most
            return True

    def settle(
        self, most: float, tokens: tuple[int, int] | None, *, billed: bool
    ) -> float:
        """Charges an attempt that was admitted with `most`; returns its dollars.

        Args:
          most: as admitted.
          tokens: in and out, as the endpoint counts them.
          billed: without tokens: whether it may have been billed all the same.
        """
        with self._lock:
            self._reserved -= most
            charged = 0.0
            if tokens is not None:
                self._count["tokens_in"] += tokens[0]
                self._count["tokens_out"] += tokens[1]
                charged = self.dollars(*tokens)
            elif billed:
                charged = most
                self._sum["unconfirmed"] += most
            self._sum["dollars"] += charged
            return charged

    def note(self, name: Literal["requests", "rate_limited"]) -> None:
        """Counts one more."""
        with self._lock:
            self._count[name] += 1

    def retried(self, kind: str, seconds: float) -> None:
        """Notes that a failure of `kind` is tried again after `seconds`."""
        with self._lock:
            self._retries[kind] += 1
            self._sum["wait"] += seconds

    def saw(self, model: str, system_fingerprint: str) -> str:
        """Notes who answered; the names so far if this one is new among them."""
        with self._lock:
            is_new = bool(self._models) and model not in self._models
            before = ", ".join(self._models) if is_new else ""
            self._models[model] += 1
            self._system_fingerprints[system_fingerprint] += 1
            return before

    def usage(self, *, concurrency: int, in_flight: int) -> RemoteUsage:
        """The account as it stands."""
        with self._lock:
            return RemoteUsage(
                requests=self._count["requests"],
                attempts=self._count["attempts"],
                retries=dict(self._retries),
                tokens_in=self._count["tokens_in"],
                tokens_out=self._count["tokens_out"],
                dollars=self._sum["dollars"],
                dollars_unconfirmed=self._sum["unconfirmed"],
                rate_limited=self._count["rate_limited"],
                seconds_waited=self._sum["wait"],
                concurrency=concurrency,
                in_flight=in_flight,
                models=dict(self._models),
                system_fingerprints=dict(self._system_fingerprints),
            )

    def _exceeded(self, name: str, cap: float, spent: Any) -> BudgetExceededError:
        return BudgetExceededError(
            f"caps.{name}: the cap of {cap} is reached ({spent} spent); answers so far "
            "are kept: raise the cap to go on"
        )

"""What is to be said of an endpoint on the command line."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Annotated, Any

import tyro

from jerp.bridge.budget import Caps, Price, load_prices
from jerp.bridge.chat_completions import WireOptions
from jerp.bridge.concurrency import Concurrency
from jerp.bridge.remote_settings import RemoteSettings
from jerp.bridge.retry import RetryPolicy
from jerp.errors import ConfigError, InputError

__all__ = ["NO_ENDPOINT", "Endpoint", "EndpointOptions", "is_endpoint"]


def is_endpoint(executor: str) -> bool:
    """Whether an executor is named by an address."""
    return executor.startswith(("http://", "https://"))


@dataclass(frozen=True)
class Endpoint:
    """How a model behind an endpoint is asked, and what may be spent on it.

    Attributes:
      model: its name there; where the endpoint serves one alone, it need not be said.
      prices: a JSON file {"model": {"in": dollars, "out": dollars}} per million tokens.
      max_dollars: by these prices; at a cap the run ends, and what was answered is
        kept. Every attempt counts.
      max_requests: attempts, of this sitting.
      max_seconds: of this sitting, from the first attempt.
      concurrency: most requests under way.
      attempt_seconds: an attempt that takes longer is given up and tried again.
      api_key_env: the environment variable that has the key.
      wire: a JSON file with fields of `WireOptions`, for endpoints that differ (see
        docs/remote.md).
    """

    model: str = ""
    prices: Path | None = None
    max_dollars: float | None = None
    max_requests: int | None = None
    max_seconds: float | None = None
    concurrency: int = 64
    attempt_seconds: float = 600.0
    api_key_env: str = "OPENAI_API_KEY"
    wire: Path | None = None

    @property
    def settings(self) -> RemoteSettings:
        """For a `RemoteExecutor`.

        Raises:
          ConfigError: a setting is out of range, or contradicts another.
          InputError: a file is not what it should be.
        """
        if self.concurrency < 1:
            raise ConfigError(
                f"concurrency: expected at least 1, got {self.concurrency}"
            )
        if self.max_dollars is not None and self.prices is None:
            raise ConfigError(
                "max_dollars: expected --prices FILE beside it, which says what a "
                "token costs"
            )
        seconds = self.attempt_seconds
        return RemoteSettings(
            api_key_env=self.api_key_env,
            wire=_wire(self.wire),
            retry=RetryPolicy(attempt_seconds=seconds, request_seconds=5 * seconds),
            concurrency=Concurrency(min(8, self.concurrency), self.concurrency),
            caps=Caps(self.max_dollars, self.max_requests, self.max_seconds),
            price=self.price(self.model) if self.model else None,
        )

    def price(self, model: str) -> Price | None:
        """Of a model's tokens; None without a table.

        Raises:
          InputError: the table does not have it, or the file is none.
        """
        if self.prices is None:
            return None
        table = _read(self.prices, load_prices)
        if model not in table:
            known = ", ".join(table) or "none"
            raise InputError(f"{self.prices}: no price of {model!r} (known: {known})")
        return table[model]


NO_ENDPOINT = Endpoint()
"""What is said of a model that is none behind an endpoint."""

EndpointOptions = Annotated[Endpoint, tyro.conf.OmitArgPrefixes]
"""As a field of settings: its own fields are options beside theirs."""


def _read(path: Path, read: Any) -> Any:
    try:
        return read(path)
    except OSError as error:
        reason = error.strerror or str(error)
        raise InputError(f"{path}: cannot be read ({reason})") from None


def _wire(path: Path | None) -> WireOptions:
    if path is None:
        return WireOptions()
    text = _read(path, lambda found: found.read_text(encoding="utf-8"))
    known = [field.name for field in fields(WireOptions)]
    try:
        found = json.loads(text)
    except ValueError as error:
        raise InputError(f"{path}: expected a JSON object ({error})") from None
    if not isinstance(found, Mapping) or {*found} - {*known}:
        raise InputError(
            f"{path}: expected a JSON object with fields of {', '.join(known)}, got "
            f"{text[:80]!r}"
        )
    return WireOptions(**found)

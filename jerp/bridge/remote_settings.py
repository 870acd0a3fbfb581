"""What is to be said about an endpoint, and the identity that follows from it."""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, dataclass, field
from typing import Literal
from urllib.parse import urlsplit

from jerp.bridge.budget import Caps, Price
from jerp.bridge.chat_completions import WireOptions
from jerp.bridge.concurrency import Concurrency
from jerp.bridge.retry import RetryPolicy
from jerp.errors import ConfigError

__all__ = ["RemoteSettings", "endpoint_fingerprint"]


@dataclass(frozen=True)
class RemoteSettings:
    """All that is to be said about an endpoint beside its address and the model.

    Attributes:
      api_key_env: the environment variable with the key; not set, none is sent.
      wire: how requests are put.
      retry: what is tried again.
      concurrency: how many requests are under way.
      caps: what may be spent.
      price: of the model's tokens, if known; see `load_prices`.
      served_as: further names that the endpoint may answer with. The model's own name,
        alone or with a suffix after a dash (a date), always is accepted.
      other_model: an answer that names another model is refused, as a failure that is
        tried again, or noted in `usage.models`.
      system_fingerprint: if given, an answer with another one is refused. It becomes
        part of the executor's own.
    """

    api_key_env: str = "OPENAI_API_KEY"
    wire: WireOptions = field(default_factory=WireOptions)
    retry: RetryPolicy = field(default_factory=RetryPolicy)
    concurrency: Concurrency = field(default_factory=Concurrency)
    caps: Caps = field(default_factory=Caps)
    price: Price | None = None
    served_as: tuple[str, ...] = ()
    other_model: Literal["refuse", "note"] = "refuse"
    system_fingerprint: str = ""


def endpoint_fingerprint(base_url: str, model: str, settings: RemoteSettings) -> str:
    """Names host, path, model and what is sent with every request; never a key.

    Raises:
      ConfigError: the address is none, or carries a secret, which is not shown.
    """
    parts = urlsplit(base_url)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ConfigError(
            "base_url: expected one such as http://localhost:8000/v1, got "
            f"{parts.scheme or 'no scheme'!r} and {parts.hostname or 'no host'!r}"
        )
    if parts.username or parts.password or parts.query or parts.fragment:
        raise ConfigError(
            f"base_url: expected no user, password, query or fragment at "
            f"{parts.hostname} (not shown); keys belong in {settings.api_key_env}"
        )
    port = f":{parts.port}" if parts.port else ""
    name = f"remote:{parts.hostname}{port}{parts.path.rstrip('/')}#{model}"
    if settings.system_fingerprint:
        name += f"+{settings.system_fingerprint}"
    if settings.wire != WireOptions():
        wire = json.dumps(asdict(settings.wire), sort_keys=True, default=dict)
        name += f"+{hashlib.sha256(wire.encode()).hexdigest()[:8]}"
    return name
